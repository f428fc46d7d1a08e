"""The exact recursion of the ratio model, in several frames.

Each frame has its own posterior over partitions. Its evidence is D, the probability of the labels
given that the space is cut at all, over L, that of a single leaf. Two questions are asked in turn:

    do the sets differ?  by the Bayes factor, the mean of D/L over frames. One frame that sees a
                         difference is enough.
    by how much?         if they do, estimates and draws average over frames with weights ∝ D^0.1:
                         the evidence of one frame over another grows with the number of points, and
                         taken in full it would nearly always leave a single one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log2, prod

import numpy as np
from scipy.special import expit

from cobpm import _core
from cobpm.arrays import FloatArray, IntArray
from cobpm.cells import Cells
from cobpm.engines import growth
from cobpm.engines.exact import deepest_within
from cobpm.engines.fit import Fit, Plan, Report
from cobpm.engines.ratio_moments import RatioMoments
from cobpm.frames import Frame, is_blind
from cobpm.partitions import Partitions
from cobpm.ratio_model import RatioModel
from cobpm.samples import Samples
from cobpm.sketched import Sketched, encode

POWER = 0.1  # of the evidence, in a frame's weight
NEGLIGIBLE = 1e-4  # probability of reaching a region, below which it counts as a leaf
RARELY_CUT = 1e-6  # probability of a cut, below which the regions after it are not worth finding
DEEPEST = {1: 12, 2: 11, 3: 10, 4: 8, 5: 7, 6: 6, 7: 6}  # halvings, by columns; 5 for more columns


@dataclass(frozen=True)
class View:
    """One frame with its recursion."""

    frame: Frame
    model: RatioModel  # with this frame's number of columns
    recursion: _core.Ratio
    log_evidence: float
    depth: int

    @property
    def log_differs(self) -> float:
        """Log D/L: how much likelier labels are if the space is cut than if it is one leaf."""
        return self.model.log_differs(self.log_evidence - self.model.log_same())

    @property
    def cut_probability(self) -> float:
        """Posterior probability that the space is cut."""
        return self.model.cut_probability(self.log_evidence - self.model.log_same())


def look(samples: Samples | Sketched, frames: Sequence[Frame], plan: Plan) -> list[View]:
    """Sum over all partitions in each frame."""
    views = []
    for number, frame in enumerate(frames):
        cells = encode(samples, frame)
        model = RatioModel(cells.d, samples.sizes)
        useful = most_halvings(cells, DEEPEST.get(cells.d, 5))
        depth = growth.base(cells.d, depth_for(cells, plan.max_regions // len(frames)), useful)
        follow = plan.follow(f"frame {number + 1} of {len(frames)}")
        recursion = _core.Ratio(
            cells.codes,
            cells.sets,
            len(cells.sizes),
            depth,
            model.concentrations,
            model.stop,
            plan.threads,
            follow,
            cells.weights,
            cells.resolution,
        )
        view = View(frame, model, recursion, recursion.up(plan.threads, follow), depth)
        deepest = most_halvings(cells, growth.DEEPEST)
        grown = growth.grow(
            *(recursion, cells, depth, deepest, view.cut_probability),
            *(plan.max_regions // len(frames), plan.threads),
        )
        if grown is not None:
            view = replace(view, log_evidence=grown[0], depth=grown[1])
        views.append(view)
        if follow is not None:  # the core has nothing to tell of what is quickly done
            follow(1.0)
    return views


def depth_for(cells: Cells, max_regions: int) -> int:
    """Halvings that the partitions of this model may make: part of the model, not of a budget.

    Deeper cells than these hold too few points to tell a ratio from noise, and of two sets it is
    the smaller one that runs out of points. In many columns, the regions to hold set a limit before
    that.
    """
    useful = most_halvings(cells, DEEPEST.get(cells.d, 5))
    return max(min(useful, deepest_within(cells, max_regions)), min(cells.d, 1))


def most_halvings(cells: Cells, most: int) -> int:
    """As many halvings as leave enough points to a region, `most` at most."""
    points = 2 * int(min(cells.sizes)) if len(cells.sizes) == 2 else cells.n
    return min(most, ceil(log2(max(points, 2))) - 2)


def weights_of(views: Sequence[View]) -> FloatArray:
    """How much each frame counts, if the sets differ."""
    logs = POWER * np.array([view.log_differs for view in views])
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def same_probability_of(views: Sequence[View], asked: int | None = None) -> float:
    """The probability that all sets share one distribution, with all frames alike likely.

    This one is for estimates. Frames that look at the labels count, so it is no fair test.
    """
    if not views[0].model.d:  # nothing to cut
        return 1.0
    factor = log_mean([view.log_differs for view in views], asked)
    return float(expit(views[0].model.log_same_odds - factor))


def run(
    samples: Samples | Sketched,
    frames: Sequence[Frame],
    plan: Plan,
    asked: Sequence[str] | None = None,
) -> Fit:
    """Look through all frames, weigh them, and draw.

    Args:
        samples: All sample sets.
        frames: The frames.
        plan: How many draws, and what to spend on them.
        asked: Names of all frames that are alike likely before the data, where some of them were
            left out because they would have no weight; see `cobpm.engines.screening`.
    """
    names = [frame.name for frame in frames] if asked is None else asked
    views = look(samples, frames, plan)
    weights, same = weights_of(views), same_probability_of(views, len(names))
    draws = apportioned(weights, plan.draws)
    whole = apportioned(np.array(draws) / plan.draws, round(same * plan.draws))
    parts = []
    for number, (view, count) in enumerate(zip(views, draws, strict=True)):
        if count:
            follow = plan.follow("drawing partitions")
            packed, _ = view.recursion.draw(
                count, plan.seed + number, plan.threads, follow, whole[number]
            )
            parts.append(Partitions.from_core(packed, view.model.d))
    return Fit(
        partitions=Partitions.joined(parts),
        report=Report(
            "ratio",
            _reason(len(views), len(names)),
            depth=max(view.depth for view in views),
            regions=sum(view.recursion.size for view in views),
            frames=tuple(view.frame.name for view in views),
            frame_weights=tuple(weights.tolist()),
        ),
        log_evidence=log_mean([view.log_evidence for view in views], len(names)),
        moments=moments_of(views, weights, same),
        frame_draws=tuple(draws),
        log_bayes_factor=log_bayes_factor(views, names),
    )


def _reason(frames: int, asked: int) -> str:
    if frames == asked:
        return f"the ratio model in {frames} frame{'s' * (frames > 1)}"
    return f"the ratio model in {frames} of {asked} frames; a sample showed that these matter"


def apportioned(weights: FloatArray, draws: int) -> list[int]:
    """Shares of a number of draws, as nearly proportional to the weights as they can be."""
    exact = weights * draws
    shares = np.floor(exact).astype(int)
    rest = np.argsort(shares - exact, kind="stable")[: draws - int(shares.sum())]
    shares[rest] += 1
    return [int(share) for share in shares]


def moments_of(views: Sequence[View], weights: FloatArray, same: float) -> RatioMoments:
    """Expected numbers of leaves by their counts, over all frames.

    Args:
        views: The frames.
        weights: How much each of them counts if the sets differ.
        same: The probability that they do not, and that the whole space is a leaf.
    """
    rows, expected = [], []
    for view, weight in zip(views, weights, strict=True):
        cut = max(view.cut_probability, RARELY_CUT)
        _, counts, probabilities, singles, _ = view.recursion.leaves(NEGLIGIBLE * cut)
        sets = len(view.model.sizes)
        rows += [counts, np.eye(sets, dtype=counts.dtype)]
        # What this frame says if the space is cut. The rows of the whole space do not matter.
        given = weight * (1 - same) / cut
        expected += [given * probabilities, given * singles]
    model = views[0].model
    counts, which = _distinct(np.concatenate(rows), model.sizes)
    totals = np.bincount(which, weights=np.concatenate(expected), minlength=len(counts))
    some = (counts.sum(axis=1) > 0) & (counts != np.asarray(model.sizes)).any(axis=1)
    return RatioMoments(model, counts[some].astype(float), totals[some], same)


def _distinct(counts: IntArray, sizes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Distinct rows in ascending order, and which of them each row is."""
    if prod(size + 1 for size in sizes) >= 2**63:  # rows do not fit into one number each
        rows, which = np.unique(counts, axis=0, return_inverse=True)
        return rows, which.ravel()
    places = np.array([prod(size + 1 for size in sizes[k + 1 :]) for k in range(len(sizes))])
    _, first, which = np.unique(counts @ places, return_index=True, return_inverse=True)
    return counts[first], which


def log_bayes_factor(views: Sequence[View], asked: Sequence[str]) -> float | None:
    """Log of P(labels | the sets differ) / P(labels | one distribution), all frames alike likely.

    Frames that look at the labels are left out.
    """
    blind = [view.log_differs for view in views if view.frame.blind]
    return log_mean(blind, sum(is_blind(name) for name in asked)) if blind else None


def log_mean(logs: Sequence[float], of: int | None = None) -> float:
    """The log of the mean of numbers that are given by their logs; `of` so many, the others 0."""
    return float(np.logaddexp.reduce(logs) - np.log(of or len(logs)))
