"""Regions beyond the dense ones, grown where partitions go.

In many columns all regions down to a few halvings are already too many, and a difference that takes
several cuts to see lies below. So regions are added there, sweep by sweep: sum upwards, ask which
leaves partitions end in that are leaves only because their halves are not known, make their halves
known, and sum again.

Which leaves are taken depends on how probable it is that a partition ends in them and on how many
points they hold, not on what their halves look like. A cut is tried before its outcome is seen, and
stays whether it pays or not. So the sum is that of a prior that goes on cutting where the data
above speaks for it, and is no more likely to find a difference where there is none.

A region whose halves are not known counts as a leaf. What partitions would do inside it is missing
from the sum, and so from the evidence for a difference.
"""

from __future__ import annotations

import numpy as np

from cobpm import _core
from cobpm.arrays import IntArray
from cobpm.cells import Cells
from cobpm.engines.exact import MOST_VISITS, dense_regions

FROM_COLUMNS = 8  # with fewer, all regions go deep enough
DEEPEST = 12  # halvings
REACHED = 0.01  # probability of ending in a region, given that the space is cut, to look inside it
FEWEST_POINTS = 16  # that are worth cutting
MOST_AT_ONCE = 1000  # regions, in a sweep
SEARCH = 3  # what finding a point's region costs, in looks at points


def grow(
    recursion: _core.Ratio,
    cells: Cells,
    base: int,
    deepest: int,
    cut_probability: float,
    max_regions: int,
    threads: int,
) -> tuple[float, int] | None:
    """Add regions to a recursion that has been summed.

    Args:
        recursion: All regions down to the depth `base`.
        cells: Its points.
        base: That depth.
        deepest: Halvings that partitions may make.
        cut_probability: Posterior probability that the space is cut, as far as is known.
        max_regions: Most regions to hold.
        threads: To work with.

    Returns:
        Log evidence and the depth reached; None if nothing was added.
    """
    if cells.d < FROM_COLUMNS:
        return None
    inner = dense_regions(cells.d, base - 1) if base else 0
    visits = MOST_VISITS // 10
    log_evidence: float | None = None
    known = np.empty(0, dtype=np.int64)
    depth = base
    while depth < deepest:
        ids, counts, probabilities, _, _ = recursion.leaves(REACHED * cut_probability / 10)
        points = counts.sum(axis=1, dtype=np.int64)
        mixed = points - counts.max(axis=1)  # of one set alone, there is nothing left to tell
        open_ = (ids >= inner) & (points >= FEWEST_POINTS) & (mixed > 0)
        open_ &= probabilities >= REACHED * cut_probability
        open_[open_] &= ~np.isin(ids[open_], known)
        ids, points, value = ids[open_], points[open_], (probabilities * mixed)[open_]
        room = (max_regions - recursion.size) // (2 * cells.d)
        order = np.argsort(-value, kind="stable")[: max(0, min(room, MOST_AT_ONCE))]
        cost = np.cumsum(_cost(ids[order], points[order], cells, inner, base))
        order = order[cost <= visits]
        if not len(order):
            break
        visits -= int(cost[len(order) - 1])
        chosen: IntArray = np.sort(ids[order])
        recursion.expand(chosen, threads)
        known = np.concatenate([known, chosen])
        log_evidence = recursion.up(threads)
        depth += 1
    recursion.forget_points()
    return None if log_evidence is None else (log_evidence, depth)


def _cost(ids: IntArray, points: IntArray, cells: Cells, inner: int, base: int) -> IntArray:
    """Points to look at, by region.

    Those of the region in each column; and to find them in the dense part, all points once for each
    choice of columns.
    """
    choices = np.where(ids < dense_regions(cells.d, base), (ids - inner) >> base, -1)
    _, firsts = np.unique(choices, return_index=True)
    cost = points * cells.d
    cost[firsts[choices[firsts] >= 0]] += SEARCH * cells.rows
    return cost
