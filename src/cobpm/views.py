"""The numbers behind the pictures: one column, or two columns, of two sets.

They come from a comparison of these columns alone; `cobpm.marginals` says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cobpm.arrays import BoolArray, FloatArray, IntArray
from cobpm.bins import Bins, choose_bins
from cobpm.marginals import marginal, points_of, thinned
from cobpm.regions import Ends
from cobpm.samples import Samples, Seen, bad, check_count, check_level
from cobpm.units import DATED

if TYPE_CHECKING:
    from cobpm.posterior import Interval, Posterior

MOST_FITS = 32  # of more columns, those that seem to differ most are fitted
LEAST_POINTS = 3  # in and around a cell of a map, of both sets, to say something there
MOST_SHOWN = 500  # points of each set to lay over a map


@dataclass(frozen=True, eq=False)
class ColumnView:
    """One column of two sets, in bins of the user's units.

    Attributes:
        name: The column.
        sets: Names of the first and the second set.
        edges: Ends of the bins: evenly spaced, one more than bins.
        open_low: Whether the first bin also holds all that is lower.
        open_high: Whether the last bin also holds all that is higher.
        step: Distance of the values if they lie on a lattice (1 for integers), else None.
        shares: Part of each set in each bin, (2, bins). Each row sums to one.
        log_ratio: Log of the first set's mass over the second's in each bin, averaged over the
            posterior; NaN in a bin without points.
        low: Lower ends of its credible intervals.
        high: Upper ends.
        tv: Total variation distance of the two sets in this column alone: the posterior's median.
        tv_interval: Its credible interval.
        level: Probability that the intervals are to hold.
        dated: Whether values are dates, in seconds since the start of 1970 (UTC).
    """

    name: str
    sets: tuple[str, str]
    edges: FloatArray
    open_low: bool
    open_high: bool
    step: float | None
    shares: FloatArray
    log_ratio: FloatArray
    low: FloatArray
    high: FloatArray
    tv: float
    tv_interval: Interval
    level: float
    dated: bool

    @property
    def sign(self) -> IntArray:
        """Which set is denser beyond doubt: 1 for the first, −1 for the second, 0 for neither."""
        return np.asarray((self.low > 0).astype(int) - (self.high < 0).astype(int))


@dataclass(frozen=True, eq=False)
class MapView:
    """Two columns of two sets, on a grid in the user's units.

    Attributes:
        columns: Names of the columns: across, and up.
        sets: Names of the first and the second set.
        edges: Ends of the grid's cells across, and up.
        open_ends: For each column, whether its first and its last cell also hold what is beyond.
        log_ratio: Log of the first set's density over the second's in each cell, averaged over the
            posterior, (cells up, cells across).
        low: Lower ends of its credible intervals.
        high: Upper ends.
        known: Whether a cell has points enough, in and around it, to say something.
        points: Points of each set to lay over the map: a sample of fixed choice, (n, 2) each.
            Those beyond an open end are put into the cell there, and values on a lattice are
            spread a little.
        steps: For each column, distance of the values if they lie on a lattice, else None.
        leaves: Sub-regions of a representative partition: low and high end across, low and high
            end up, (leaves, 4). They fill the grid: on a lattice they end half-way between values.
        leaf_log_ratio: Log ratio in each of them, given that partition.
        level: Probability that the intervals are to hold.
        dated: For each column, whether values are dates, as in `ColumnView`.
    """

    columns: tuple[str, str]
    sets: tuple[str, str]
    edges: tuple[FloatArray, FloatArray]
    open_ends: tuple[tuple[bool, bool], tuple[bool, bool]]
    log_ratio: FloatArray
    low: FloatArray
    high: FloatArray
    known: BoolArray
    points: tuple[FloatArray, FloatArray]
    steps: tuple[float | None, float | None]
    leaves: FloatArray
    leaf_log_ratio: FloatArray
    level: float
    dated: tuple[bool, bool]


def column_view(
    post: Posterior,
    column: str,
    first: str | None = None,
    second: str | None = None,
    *,
    bins: int | None = None,
    level: float = 0.9,
    samples: Any = None,
) -> ColumnView:
    """One column of two sets: shares and log ratio in bins, and how much it differs on its own.

    Args:
        post: The posterior.
        column: Name of the column.
        first: Name of the first set. Only needed with more than two sets.
        second: Name of the second set.
        bins: How many at the most, but for open ends; by default more with more points, up to 40.
        level: Probability that credible intervals are to hold.
        samples: The points, for a posterior that was loaded from a file; see `points_of`.
    """
    owner = "column_view"
    if bins is not None:
        bins = check_count(bins, parameter="bins", owner=owner)
    level = check_level(level, owner=owner)
    i, j = post._pair(first, second, owner)
    k = _column(post, column, "column", owner)
    points = points_of(post, samples, owner)
    values = [points.values[s][:, k] for s in (i, j)]
    chosen, _ = _bins([points.values[s] for s in (i, j)], (i, j), k, bins)
    fit = marginal(post, points, (k,), (i, j))
    band = fit.log_ratios(chosen, level)
    return ColumnView(
        name=post.columns[k],
        sets=(post.names[i], post.names[j]),
        edges=chosen.edges,
        open_low=chosen.open_low,
        open_high=chosen.open_high,
        step=chosen.step,
        shares=np.array([chosen.counts(v) / len(v) for v in values]),
        log_ratio=band[0],
        low=band[1],
        high=band[2],
        tv=fit.post.estimate("tv", *fit.names, read_out="median"),
        tv_interval=fit.post.interval("tv", level, *fit.names),
        level=level,
        dated=post.domain.kind(k) in DATED,
    )


def telling_columns(
    post: Posterior,
    first: str | None = None,
    second: str | None = None,
    *,
    most: int | None = None,
    bins: int | None = None,
    level: float = 0.9,
    samples: Any = None,
) -> list[ColumnView]:
    """Columns in the order of how much two sets differ in each of them alone.

    The order is that of the total variation distances. Of more than 32 columns only those 32 are
    returned whose histograms are farthest apart.

    Args:
        post: The posterior.
        first: Name of the first set. Only needed with more than two sets.
        second: Name of the second set.
        most: How many columns to return; all by default.
        bins: See `column_view`.
        level: Probability that credible intervals are to hold.
        samples: See `column_view`.
    """
    owner = "telling_columns"
    i, j = post._pair(first, second, owner)
    points = points_of(post, samples, owner)
    candidates = list(range(points.d))
    if len(candidates) > MOST_FITS:
        apart = [_apart(points, k, i, j) for k in candidates]
        candidates = sorted(np.argsort(-np.array(apart), kind="stable")[:MOST_FITS].tolist())
    fits = [marginal(post, points, (k,), (i, j)) for k in candidates]
    # Of columns without a difference most medians are 0, so let the means break the tie.
    found = [fit.post.draws("tv", *fit.names) for fit in fits]
    keys = [(-float(np.median(tv)), -float(tv.mean())) for tv in found]
    order = sorted(range(len(candidates)), key=keys.__getitem__)[:most]
    names = (post.names[i], post.names[j])
    return [
        column_view(
            post, post.columns[candidates[k]], *names, bins=bins, level=level, samples=samples
        )
        for k in order
    ]


def map_view(
    post: Posterior,
    columns: Sequence[str] | None = None,
    first: str | None = None,
    second: str | None = None,
    *,
    cells: int | None = None,
    level: float = 0.9,
    samples: Any = None,
) -> MapView:
    """Two columns of two sets: the log ratio on a grid, points to lay over, and a partition.

    Args:
        post: The posterior, of at least two columns.
        columns: Names of the column across and of the one up. By default the two in which the sets
            differ most, in the order of the data.
        first: Name of the first set. Only needed with more than two sets.
        second: Name of the second set.
        cells: Of the grid in each direction, at the most; by default more with more points.
        level: Probability that credible intervals are to hold.
        samples: See `column_view`.
    """
    owner = "map_view"
    level = check_level(level, owner=owner)
    i, j = post._pair(first, second, owner)
    points = points_of(post, samples, owner)
    a, b = _two_columns(post, columns, (post.names[i], post.names[j]), samples, owner)
    if cells is None:
        cells = int(np.clip(2 * (len(points.values[i]) + len(points.values[j])) ** 0.4, 8, 48))
    cells = check_count(cells, parameter="cells", owner=owner)
    both = [points.values[s][:, [a, b]] for s in (i, j)]
    across, x = _bins(both, (i, j), 0, cells)
    up, y = _bins(both, (i, j), 1, cells)
    fit = marginal(post, points, tuple(sorted((a, b))), (i, j))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    band = fit.post.log_ratio(grid if a < b else grid[:, ::-1], *fit.names, level=level)
    estimate, low, high = (values.reshape(len(up), len(across)) for values in band)
    pooled = np.concatenate(both)
    counts = np.bincount(
        up.of(pooled[:, 1]) * len(across) + across.of(pooled[:, 0]), minlength=estimate.size
    ).reshape(estimate.shape)
    ends, leaf_log_ratio = fit.leaves()
    by_name = {end.name: end for end in ends}
    sides = zip(fit.post.columns, (across, up) if a < b else (up, across), strict=True)
    spans = [_spans(by_name.get(name), bins, len(leaf_log_ratio)) for name, bins in sides]
    return MapView(
        columns=(post.columns[a], post.columns[b]),
        sets=(post.names[i], post.names[j]),
        edges=(across.edges, up.edges),
        open_ends=((across.open_low, across.open_high), (up.open_low, up.open_high)),
        log_ratio=estimate,
        low=low,
        high=high,
        known=_around(counts) >= LEAST_POINTS,
        points=(_shown(both[0], i, across, up), _shown(both[1], j, across, up)),
        steps=(across.step, up.step),
        leaves=np.column_stack(spans if a < b else spans[::-1]),
        leaf_log_ratio=leaf_log_ratio,
        level=level,
        dated=(post.domain.kind(a) in DATED, post.domain.kind(b) in DATED),
    )


def _apart(points: Samples, column: int, i: int, j: int) -> float:
    """How far two histograms of a column are apart: quick, to choose among many columns."""
    x, y = (thinned(points.values[s], s)[:, column] for s in (i, j))
    edges = np.unique(np.quantile(np.concatenate([x, y]), np.linspace(0, 1, 17)))
    if len(edges) < 2:
        return 0.0
    p, q = (np.histogram(values, edges)[0] / len(values) for values in (x, y))
    return float(np.abs(p - q).sum())


def _column(post: Posterior, name: Any, parameter: str, owner: str) -> int:
    if str(name) in post.columns:
        return post.columns.index(str(name))
    known = ", ".join(map(repr, post.columns[:8])) + " …" * (len(post.columns) > 8)
    raise bad(parameter, owner, "name a column", name, f"The columns are {known}.")


def _two_columns(
    post: Posterior, columns: Any, sets: tuple[str, str], samples: Any, owner: str
) -> tuple[int, int]:
    """The columns across and up that a user asks for."""
    if len(post.columns) < 2:
        way_out = "column_view() shows a single one."
        raise bad("columns", owner, "be two", Seen("a posterior of one column"), way_out)
    if columns is None:
        columns = [view.name for view in telling_columns(post, *sets, most=2, samples=samples)]
        a, b = sorted(post.columns.index(name) for name in columns)
        return a, b
    if isinstance(columns, str) or not isinstance(columns, Sequence) or len(columns) != 2:
        raise bad("columns", owner, "be a pair of column names", columns)
    a, b = (_column(post, name, "columns", owner) for name in columns)
    if a == b:
        raise bad("columns", owner, "name two different columns", columns)
    return a, b


def _bins(
    sets: list[FloatArray], pair: tuple[int, int], column: int, most: int | None
) -> tuple[Bins, FloatArray]:
    """Bins for a column of two sets, and a typical value for each."""
    values = [rows[:, column] for rows in sets]
    ends = float(min(v.min() for v in values)), float(max(v.max() for v in values))
    some = [thinned(v, s) for s, v in zip(pair, values, strict=True)]
    bins = choose_bins(some, most, ends)
    return bins, bins.middles(np.concatenate(some))


def _spans(ends: Ends | None, bins: Bins, leaves: int) -> FloatArray:
    """Low and high end of each leaf in a column, as they are drawn."""
    low, high = bins.edges[0], bins.edges[-1]
    if ends is None:  # a constant column is not cut
        return np.tile([low, high], (leaves, 1))
    half = (bins.step or 0.0) / 2
    starts = np.where(ends.has_low, ends.low - half, ends.low + half)
    stops = np.where(ends.has_high, ends.high + half, ends.high - half)
    starts, stops = np.where(ends.cut_low, starts, low), np.where(ends.cut_high, stops, high)
    return np.asarray(np.clip(np.column_stack([starts, stops]), low, high))


def _shown(rows: FloatArray, index: int, across: Bins, up: Bins) -> FloatArray:
    """Some points of a set to lay over a map."""
    x, y = thinned(rows, index, MOST_SHOWN).T
    rng = np.random.default_rng(index)
    return np.column_stack(
        [_spread(_inside(bins, v), bins, rng) for bins, v in ((across, x), (up, y))]
    )


def _spread(values: FloatArray, bins: Bins, rng: np.random.Generator) -> FloatArray:
    """Values of a lattice, moved a little so that equal ones do not hide each other."""
    if bins.step is None:
        return values
    return np.asarray(values + bins.step * rng.uniform(-0.35, 0.35, len(values)))


def _inside(bins: Bins, values: FloatArray) -> FloatArray:
    """Values, with those beyond the bins in the middle of the one there."""
    middles = bins.edges[:-1] / 2 + bins.edges[1:] / 2
    inside = np.where(values < bins.edges[0], middles[0], values)
    return np.where(values > bins.edges[-1], middles[-1], inside)


def _around(counts: IntArray) -> IntArray:
    """The sum over each cell and its eight neighbours."""
    padded = np.pad(counts, 1)
    rows = padded[:-2] + padded[1:-1] + padded[2:]
    return np.asarray(rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:])
