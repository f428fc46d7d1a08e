"""The exact recursion of the ratio model, in several frames.

Each frame has its own posterior over partitions and its own evidence. Estimates and draws average
over frames with weights ∝ evidence^0.1: the evidence of one frame over another grows with the
number of points, and taken in full it would nearly always leave a single one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2, prod

import numpy as np

from cobpm import _core
from cobpm.arrays import FloatArray, IntArray
from cobpm.cells import Cells
from cobpm.engines.exact import deepest_within
from cobpm.engines.fit import Fit, Plan, Report
from cobpm.engines.ratio_moments import RatioMoments
from cobpm.frames import Frame
from cobpm.partitions import Partitions
from cobpm.ratio_model import RatioModel
from cobpm.samples import Samples
from cobpm.sketched import Sketched, encode

POWER = 0.1  # of the evidence, in a frame's weight
NEGLIGIBLE = 1e-4  # probability of reaching a region, below which it counts as a leaf
DEEPEST = {1: 12, 2: 11, 3: 10, 4: 8, 5: 7, 6: 6, 7: 6}  # halvings, by columns; 5 for more columns


@dataclass(frozen=True)
class View:
    """One frame with its recursion."""

    frame: Frame
    model: RatioModel  # with this frame's number of columns
    recursion: _core.Ratio
    log_evidence: float
    depth: int


def look(samples: Samples | Sketched, frames: Sequence[Frame], plan: Plan) -> list[View]:
    """Sum over all partitions in each frame."""
    views = []
    for number, frame in enumerate(frames):
        cells = encode(samples, frame)
        model = RatioModel(cells.d, samples.sizes)
        depth = depth_for(cells, plan.max_regions // len(frames))
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
        views.append(View(frame, model, recursion, recursion.up(plan.threads, follow), depth))
        if follow is not None:  # the core has nothing to tell of what is quickly done
            follow(1.0)
    return views


def depth_for(cells: Cells, max_regions: int) -> int:
    """Halvings that the partitions of this model may make: part of the model, not of a budget.

    Deeper cells than these hold too few points to tell a ratio from noise. In many columns, the
    regions to hold set a limit before that.
    """
    useful = min(DEEPEST.get(cells.d, 5), ceil(log2(max(cells.n, 2))) - 2)
    return max(min(useful, deepest_within(cells, max_regions)), min(cells.d, 1))


def weights_of(views: Sequence[View]) -> FloatArray:
    """How much each frame counts."""
    logs = POWER * np.array([view.log_evidence for view in views])
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def run(samples: Samples | Sketched, frames: Sequence[Frame], plan: Plan) -> Fit:
    """Look through all frames, weigh them, and draw."""
    views = look(samples, frames, plan)
    weights = weights_of(views)
    draws = apportioned(weights, plan.draws)
    parts = []
    for number, (view, count) in enumerate(zip(views, draws, strict=True)):
        if count:
            packed, _ = view.recursion.draw(
                count, plan.seed + number, plan.threads, plan.follow("drawing partitions")
            )
            parts.append(Partitions.from_core(packed, view.model.d))
    logs = np.array([view.log_evidence for view in views])
    return Fit(
        partitions=Partitions.joined(parts),
        report=Report(
            "ratio",
            f"the ratio model in {len(views)} frame{'s' * (len(views) > 1)}",
            depth=max(view.depth for view in views),
            regions=sum(view.recursion.size for view in views),
            frames=tuple(view.frame.name for view in views),
            frame_weights=tuple(weights.tolist()),
        ),
        log_evidence=float(np.logaddexp.reduce(logs) - np.log(len(logs))),
        moments=moments_of(views, weights),
        frame_draws=tuple(draws),
        log_bayes_factor=log_bayes_factor(views),
    )


def apportioned(weights: FloatArray, draws: int) -> list[int]:
    """Shares of a number of draws, as nearly proportional to the weights as they can be."""
    exact = weights * draws
    shares = np.floor(exact).astype(int)
    rest = np.argsort(shares - exact, kind="stable")[: draws - int(shares.sum())]
    shares[rest] += 1
    return [int(share) for share in shares]


def moments_of(views: Sequence[View], weights: FloatArray) -> RatioMoments:
    """Expected numbers of leaves by their counts, over all frames."""
    rows, expected = [], []
    for view, weight in zip(views, weights, strict=True):
        _, counts, probabilities, singles, _ = view.recursion.leaves(NEGLIGIBLE)
        sets = len(view.model.sizes)
        rows += [counts, np.eye(sets, dtype=counts.dtype)]
        expected += [weight * probabilities, weight * singles]
    model = views[0].model
    counts, which = _distinct(np.concatenate(rows), model.sizes)
    totals = np.bincount(which, weights=np.concatenate(expected), minlength=len(counts))
    whole = (counts == np.asarray(model.sizes)).all(axis=1)
    some = (counts.sum(axis=1) > 0) & ~whole
    return RatioMoments(model, counts[some].astype(float), totals[some], float(totals[whole].sum()))


def _distinct(counts: IntArray, sizes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Distinct rows in ascending order, and which of them each row is."""
    if prod(size + 1 for size in sizes) >= 2**63:  # rows do not fit into one number each
        rows, which = np.unique(counts, axis=0, return_inverse=True)
        return rows, which.ravel()
    places = np.array([prod(size + 1 for size in sizes[k + 1 :]) for k in range(len(sizes))])
    _, first, which = np.unique(counts @ places, return_index=True, return_inverse=True)
    return counts[first], which


def log_bayes_factor(views: Sequence[View]) -> float | None:
    """Log of P(labels | the sets differ) / P(labels | one distribution), all frames alike likely.

    Frames that look at the labels are left out.
    """
    blind = [view.log_evidence for view in views if view.frame.blind]
    if not blind:
        return None
    model = views[0].model
    return log_bayes_factor_of(np.array(blind) - model.log_same(), model.stop)


def log_bayes_factor_of(log_ratios: FloatArray, stop: float) -> float:
    """The log Bayes factor for a difference, from log Φ/L of each frame.

    A single leaf says that the sets share one distribution. It has the prior probability `stop`;
    what is left of the evidence without it speaks for a difference.
    """
    # Φ = stop·L + (1 − stop)·D, so D/L = (Φ/L − stop) / (1 − stop), averaged over frames.
    differs = np.logaddexp.reduce(log_ratios) - np.log(len(log_ratios))
    with np.errstate(divide="ignore"):
        inner = -np.expm1(np.log(stop) - differs)  # 1 − stop·L/Φ, above zero
        return float(differs + np.log(max(inner, 1e-300)) - np.log1p(-stop))
