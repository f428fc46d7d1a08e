"""The answer in words: are two sets different, by how much, and how sure are we."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from cobpm.arrays import FloatArray, IntArray
from cobpm.model import PaperModel
from cobpm.ratio_model import RatioModel
from cobpm.samples import check_level

if TYPE_CHECKING:
    from cobpm.posterior import Interval, Posterior

NEGLIGIBLE, LITTLE, MUCH = 0.02, 0.1, 0.5  # total variation distances that change the words
LEANING = 0.25  # probability of one distribution, below which two sets "may differ"
SHUFFLES = 1000  # of the labels, where the model has no place for equality
TOLERANCE = 1e-9  # log probabilities that differ by less are equal but for rounding


@dataclass(frozen=True)
class Verdict:
    """What a comparison comes to, for readers without statistics.

    Attributes:
        kind: "different", "same" if no difference was found (which does not prove that there is
            none), or "unclear".
        headline: A few words with the names of the sets.
        sentence: One or two sentences on how different they are and how sure that is.
        total_variation: The estimate behind the sentence.
        interval: Its credible interval.
        same_probability: Probability that both share one distribution, beginning with even odds;
            None where the model has no place for equality.
        chance: Where `same_probability` is None: how often the sets would differ at least as
            clearly in the same partitions if their rows were shuffled.
    """

    kind: Literal["different", "same", "unclear"]
    headline: str
    sentence: str
    total_variation: float
    interval: Interval
    same_probability: float | None = None
    chance: float | None = None


def verdict(
    post: Posterior, first: str | None = None, second: str | None = None, level: float = 0.9
) -> Verdict:
    """Say what a comparison comes to.

    "Different" asks for a probability of one distribution below (1 − level)/2 and a total variation
    distance whose interval leaves out zero; "same" for a probability of at least `level`, or of a
    half if the interval ends below 0.02. The paper's model and posteriors of more than two sets
    have no such probability. There, the sets are compared with what they look like when their rows
    are shuffled: "different" asks for a share of shuffles below (1 − level)/10, "same" for one
    above 1 − level.

    Args:
        post: What `compare` or `fit` returned.
        first: Name of a set. Only needed with more than two.
        second: Name of the other set.
        level: Probability that the interval is to hold, and how sure to be.
    """
    level = check_level(level, owner="verdict")
    i, j = post._pair(first, second, "verdict")
    names = post.names[i], post.names[j]
    distance = post.estimate("tv", *names)
    ends = post.interval("tv", level, *names)
    probability = chance = None
    # The probability is that of all sets sharing one distribution.
    if len(post.names) == 2 and post.log_bayes_factor is not None:
        probability = post.same_probability()
        differ = probability < (1 - level) / 2
        alike = probability >= (level if ends.high > NEGLIGIBLE else 0.5)
    else:
        chance = _chance(post, i, j)
        differ, alike = chance < (1 - level) / 10, chance > 1 - level
    kind: Literal["different", "same", "unclear"] = "unclear"
    if differ and ends.low > 0.0:
        kind = "different"
    elif alike:
        kind = "same"
    leaning = probability < LEANING if probability is not None else differ
    headline = _headline(kind, names, distance, leaning)
    told = [_how_far(kind, post, names, distance, ends, level), _how_sure(probability, chance)]
    if kind == "different" and isinstance(post.model, PaperModel):
        told.append("The paper's model overestimates small differences.")
    if post.report.warnings:
        told.append("The engine warns that these numbers may be off.")
    return Verdict(kind, headline, " ".join(told), distance, ends, probability, chance)


def _headline(kind: str, names: tuple[str, str], distance: float, leaning: bool) -> str:
    both = f"{names[0]} and {names[1]}"
    if kind == "different":
        size = " slightly" if distance < LITTLE else " strongly" if distance > MUCH else ""
        return f"{both} differ{size}"
    if kind == "same":
        return f"No difference found between {both}"
    return f"{both} may differ" if leaning else f"No clear difference between {both}"


def _how_far(
    kind: str,
    post: Posterior,
    names: tuple[str, str],
    distance: float,
    ends: Interval,
    level: float,
) -> str:
    """The total variation distance as the success of the best guess, ½ + TV/2."""
    one = "value" if len(post.columns) == 1 else "row"
    shares = [0.5 + value / 2 for value in (distance, ends.low, ends.high)]
    digits = max(map(_digits, shares))  # alike for all three
    guess, low, high = (percent(share, digits) for share in shares)
    if kind == "different":
        return (
            f"Given one {one}, you could tell whether it is from {names[0]} or {names[1]} {guess} "
            f"of the time ({level:.0%} interval {low} to {high}; a coin is right 50% of the time)."
        )
    if kind == "same" and high == "50%":
        return (
            f"This is no proof that they are the same, but nothing was found that would tell which "
            f"of the two a {one} is from better than a coin does."
        )
    if kind == "same":
        return (
            f"This is no proof that they are the same: given one {one}, it may be possible to tell "
            f"which it is from up to {high} of the time ({level:.0%} interval; a coin is right 50% "
            "of the time)."
        )
    return (
        f"The data does not settle it: given one {one}, you could tell whether it is from "
        f"{names[0]} or {names[1]} {low} to {high} of the time ({level:.0%} interval; a coin is "
        "right 50% of the time)."
    )


def _how_sure(probability: float | None, chance: float | None) -> str:
    if probability is not None:
        return f"The probability that both share one distribution is {percent(probability)}."
    assert chance is not None
    return (
        "If the rows were shuffled between the two, they would look at least this different "
        f"{percent(chance)} of the time."
    )


def percent(share: float, digits: int | None = None) -> str:
    """A share in per cent, never rounded to none or all: "63%", "0.4%", "less than 0.1%"."""
    if share < 0.001:
        return "less than 0.1%"
    if share > 0.999:
        return "more than 99.9%" if share < 1.0 else "100%"
    return f"{share:.{_digits(share) if digits is None else digits}%}"


def _digits(share: float) -> int:
    """Digits after the point that a share needs in per cent: one near none or all."""
    return int(min(share, 1 - share) < 0.0995)


def _chance(post: Posterior, i: int, j: int) -> float:
    """How often shuffled rows differ at least as clearly, over the partitions drawn.

    Partitions are taken as they are. They follow the shape of the pooled points more than the
    labels (those of many sets: the labels of all), so this is a yardstick and not an exact test.
    """
    rng = np.random.default_rng(0)
    starts = post.partitions.leaf_starts
    model = RatioModel(post.model.d, (post.model.sizes[i], post.model.sizes[j]))
    chosen = np.unique(np.linspace(0, len(post.partitions) - 1, SHUFFLES).astype(int))
    leaves = np.concatenate([np.arange(starts[draw], starts[draw + 1]) for draw in chosen])
    sizes = starts[chosen + 1] - starts[chosen]
    seen = post.partitions.counts[leaves][:, [i, j]].astype(np.int64)
    shuffled, first = np.empty_like(seen), 0
    for size in sizes:
        here = slice(first, first + size)
        pooled = seen[here].sum(axis=1)
        labels = rng.multivariate_hypergeometric(pooled, model.sizes[0], method="marginals")
        shuffled[here] = np.column_stack([labels, pooled - labels])
        first += size
    depths = post.partitions.depths[leaves].astype(int)
    ours, by_chance = (_apart(rows, depths.copy(), model) for rows in (seen, shuffled))
    at_least = np.count_nonzero(by_chance >= ours - TOLERANCE)  # ties count, rounding aside
    return (int(at_least) + 1) / (len(chosen) + 1)


def _apart(counts: IntArray, depths: IntArray, model: RatioModel) -> FloatArray:
    """How clearly two sets differ in each of some partitions, whose leaves come in preorder.

    The log probability of the labels, where any two neighbours that a partition makes may also be
    one. A distance over the leaves as they are would be mostly noise if these are many, as where a
    third set has fine structure.
    """
    logs = model.log_leaf(counts)
    for depth in range(int(depths.max(initial=0)), 0, -1):
        # Deeper leaves were joined before, so leaves at this depth come in pairs of neighbours.
        at = np.flatnonzero(depths == depth)
        lower, upper = at[::2], at[1::2]
        counts[lower] += counts[upper]
        depths[lower] -= 1
        apart = np.log1p(-model.stop) + logs[lower] + logs[upper]
        logs[lower] = np.logaddexp(np.log(model.stop) + model.log_leaf(counts[lower]), apart)
        kept = np.ones(len(logs), dtype=bool)
        kept[upper] = False
        counts, depths, logs = counts[kept], depths[kept], logs[kept]
    return logs
