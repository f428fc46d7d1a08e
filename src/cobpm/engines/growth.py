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
LEAST_BASE = 3  # halvings: what three columns tell together only
FEWEST_POINTS = 16  # that are worth cutting
FEWEST_OTHERS = 1  # than those of the largest set: of one set alone, there is nothing left to tell
MOST_AT_ONCE = 1000  # regions, in a sweep
SEARCH = 3  # what finding a point's region costs, in looks at points


def base(d: int, affordable: int, useful: int) -> int:
    """The depth down to which all regions are there.

    Where all that are useful are affordable, these. Else one halving less than is affordable, since
    what is missing is grown, at half of the cost.
    """
    if d < FROM_COLUMNS or affordable >= useful:
        return affordable
    return max(affordable - 1, min(affordable, LEAST_BASE))


def grow(
    recursion: _core.Ratio,
    cells: Cells,
    dense: int,
    deepest: int,
    cut_probability: float,
    max_regions: int,
    threads: int,
) -> tuple[float, int] | None:
    """Add regions to a recursion that has been summed.

    Args:
        recursion: All regions down to the depth `dense`.
        cells: Its points.
        dense: That depth.
        deepest: Halvings that partitions may make.
        cut_probability: Posterior probability that the space is cut, as far as is known.
        max_regions: Most regions to hold.
        threads: To work with.

    Returns:
        Log evidence and the depth reached; None if nothing was added.
    """
    if cells.d < FROM_COLUMNS:
        return None
    inner = dense_regions(cells.d, dense - 1) if dense else 0
    visits = MOST_VISITS // 10
    log_evidence: float | None = None
    known = np.empty(0, dtype=np.int64)
    depth = dense
    while depth < deepest:
        ids, counts, probabilities, _, _ = recursion.leaves(REACHED * cut_probability / 10)
        points = counts.sum(axis=1, dtype=np.int64)
        others = points - counts.max(axis=1)
        open_ = (ids >= inner) & (points >= FEWEST_POINTS) & (others >= FEWEST_OTHERS)
        open_ &= probabilities >= REACHED * cut_probability
        open_[open_] &= ~np.isin(ids[open_], known)
        ids, points, value = ids[open_], points[open_], (probabilities * others)[open_]
        room = (max_regions - recursion.size) // (2 * cells.d)
        order = np.argsort(-value, kind="stable")[: max(0, min(room, MOST_AT_ONCE))]
        cost = np.cumsum(_cost(ids[order], points[order], cells, inner, dense))
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


def _cost(ids: IntArray, points: IntArray, cells: Cells, inner: int, dense: int) -> IntArray:
    """Points to look at.

    Those of each region in each column, and all points to find them in the dense part, once for
    each choice of columns.
    """
    choices = np.where(ids < dense_regions(cells.d, dense), (ids - inner) >> dense, -1)
    _, firsts = np.unique(choices, return_index=True)
    cost = points * cells.d
    cost[firsts[choices[firsts] >= 0]] += SEARCH * cells.rows
    return cost
