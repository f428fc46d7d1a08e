"""How far to trust it, and how it was computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from cobpm.model import PaperModel
from cobpm.report.bars import weight_bar
from cobpm.report.names import clean
from cobpm.report.numbers import number
from cobpm.report.where import Regions
from cobpm.verdict import percent

if TYPE_CHECKING:
    from cobpm.posterior import Posterior

LEFT_OUT = 0.05  # splits per draw that do not matter
OBLIQUE = 0.5  # of the weight on turned frames, from which on regions along columns mislead
FEW = 100  # points of a set
MANY_COLUMNS = 7  # beyond, the ratio model cuts at most five deep


@dataclass(frozen=True)
class Check:
    """Something to know before relying on the numbers.

    Attributes:
        state: "good", "note" or "warning".
        title: In two or three words.
        texts: What there is to say, one or two sentences each.
    """

    state: str
    title: str
    texts: tuple[str, ...]

    @property
    def word(self) -> str:
        """The state in a word."""
        return {"good": "Fine", "note": "Note", "warning": "Warning"}[self.state]


def checks(post: Posterior, i: int, j: int, regions: Regions, kind: str) -> list[Check]:
    """All that is known for or against the numbers, warnings first."""
    found = [Check("warning", "From the engine", (text,)) for text in post.report.warnings]
    found += [_draws(post), *_reach(post)]
    if kind == "different":  # else there is no direction to speak of
        found += _frames(post)
    sizes = post.model.sizes[i], post.model.sizes[j]
    if min(sizes) < FEW:
        text = f"The smaller set has {min(sizes):,}. Intervals are wide, and simpler methods may do"
        found.append(Check("note", "Few points", (f"{text} as well or better.",)))
    if any(min(region.points) == 0 for region in regions.rows):
        text = "In some region one set has no points. There, the Kullback-Leibler divergences and "
        text += "those of order 2 are guesses. Total variation and Hellinger are not affected."
        found.append(Check("note", "Unseen places", (text,)))
    if isinstance(post.model, PaperModel):
        text = "The paper's model overestimates small divergences: samples of one law look a little"
        found.append(Check("note", "Upward bias", (f"{text} different.",)))
    elif len(post.columns) > MANY_COLUMNS:
        text = (
            f"With {len(post.columns)} columns the model makes few cuts in a row, so a difference"
        )
        text += " that only shows in many columns together stays hidden."
        found.append(Check("note", "Many columns", (text,)))
    if post.notices:
        found.append(Check("note", "Your data", tuple(map(_sentence, post.notices))))
    return sorted(found, key=lambda check: ("warning", "note", "good").index(check.state))


def _draws(post: Posterior) -> Check:
    draws, chains = len(post.partitions), post.report.chains
    if not post.report.convergence:
        text = f"{draws:,} independent draws from the posterior: there is no convergence to check."
        return Check("good", "Draws", (text,))
    worst = max(entry.rhat for entry in post.report.convergence)
    least = min(entry.ess for entry in post.report.convergence)
    text = f"{draws:,} draws of {chains} chains; R-hat at most {number(worst, 4)}, at least "
    text += f"{number(least)} effective draws."
    warned = bool(post.report.warnings)
    return Check("note" if warned else "good", "Draws", (text,))


def _reach(post: Posterior) -> list[Check]:
    left_out = post.report.left_out
    if left_out is None:
        return []
    text = f"The recursion misses {number(left_out, 2)} cuts per draw; below {LEFT_OUT} this does "
    good = left_out < LEFT_OUT
    return [Check("good" if good else "note", "Depth of the search", (f"{text}not matter.",))]


def _frames(post: Posterior) -> list[Check]:
    report = post.report
    if len(report.frames) < 2 or len(post.columns) < 2:
        return []
    straight = dict.fromkeys(frame.name for frame in post.frames if frame.straight)
    turned = sum(
        weight
        for name, weight in zip(report.frames, report.frame_weights, strict=True)
        if name not in straight
    )
    if turned < OBLIQUE:
        text = f"The view along your columns has {percent(1 - turned)} of the weight, so regions "
        return [Check("good", "Direction", (f"{text}along columns show it well.",))]
    text = f"Turned views have {percent(turned)} of the weight: the difference is oblique to your "
    text += "columns, and regions along columns show it only roughly."
    return [Check("note", "Direction", (text,))]


def _sentence(notice: str) -> str:
    return notice[:1].upper() + notice[1:]


@dataclass(frozen=True)
class FrameRow:
    """One view of the data and how much it counts."""

    name: str
    weight: str
    bar: Markup


def frame_rows(post: Posterior) -> list[FrameRow]:
    """The frames that the ratio model looked through, heaviest first."""
    weights = post.report.frame_weights
    largest = max(weights, default=0.0)
    rows = sorted(zip(post.report.frames, weights, strict=True), key=lambda row: -row[1])
    return [FrameRow(name, percent(w), weight_bar(w, largest)) for name, w in rows]


def settings(post: Posterior) -> list[tuple[str, str]]:
    """Parameters of the run, as name and value."""
    given = post.provenance.get("settings", {})
    return [
        (clean(str(key)), clean(_plain(value))) for key, value in given.items() if key != "function"
    ]


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:.6g}"
    return "none" if value is None else str(value)


@dataclass(frozen=True)
class ConvergenceRow:
    """How well the chains agree on one quantity."""

    quantity: str
    rhat: float
    ess: float
    shown: tuple[str, str]


def convergence_rows(post: Posterior) -> list[ConvergenceRow]:
    """R-hat and effective draws, for engines that run chains."""
    return [
        ConvergenceRow(
            entry.quantity, entry.rhat, entry.ess, (number(entry.rhat, 4), number(entry.ess))
        )
        for entry in post.report.convergence
    ]
