"""A grid that adapts to rows which come piece by piece: cells of about equal numbers of points.

Each column is counted in bins of its floating-point numbers: those that share their leading bits.
Bins begin as single values; when there are more than can be held, all of them give up one bit. Each
remembers its smallest and largest value. All of this merges exactly, so the grid depends neither on
the order of the rows nor on how they are cut into pieces. A normal column keeps 11 or 12 bits
after the leading one, and ranks are known to about one part in ten thousand; a column of few
distinct values is known exactly.

A value that many rows have gets an interval of its own, as in `cobpm.domain`. Where its bin holds
other values too, it shares the interval with these: they agree in all leading bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobpm import _core
from cobpm.arrays import FloatArray, IntArray
from cobpm.column_map import ColumnMap, by_ranks, fit_column
from cobpm.domain import Domain
from cobpm.grid import Grid
from cobpm.samples import Chunk, Seen, as_chunk, bad, check_missing
from cobpm.units import kinds_of_all

MOST_BINS = 2**16  # of a column
FEW_BINS = 2**10
SUMMARY = 2**14  # points that stand for a column when its map is fitted
MOST_KNOTS = 2**10 + 1  # of a map: it is saved with every sketch
HELD_BACK = 2**17  # rows that are gathered before they are counted
LARGEST = np.finfo(float).max


@dataclass(frozen=True, eq=False)
class Bins:
    """How many values of a column share their leading bits.

    Attributes:
        dropped: Bits that were given up, at the end of each number.
        keys: Bins in ascending order, each by its leading bits.
        counts: Values in each.
        low: The smallest of them.
        high: The largest.
    """

    dropped: int
    keys: NDArray[np.uint64]
    counts: IntArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, values: FloatArray, most: int = MOST_BINS) -> Bins:
        """Count the values of a column."""
        counter = _core.BinCounter(most)
        counter.add(values)
        return cls(*counter.bins())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle no more than is needed: a bin's smallest value has its leading bits."""
        high = None if np.array_equal(self.low, self.high) else self.high
        return _unpickled, (self.dropped, self.counts, self.low, high)

    def merged(self, other: Bins, most: int = MOST_BINS) -> Bins:
        """All that was counted here or there."""
        both = [np.concatenate(pair) for pair in zip(self._arrays, other._arrays, strict=True)]
        order = np.argsort(both[0], kind="stable")
        keys, counts, low, high = (array[order] for array in both)
        return Bins(max(self.dropped, other.dropped), keys, counts, low, high).joined(most)

    @property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self.keys, self.counts, self.low, self.high

    def joined(self, most: int) -> Bins:
        """Neighbours put together that share their bits, of which so many are given up as needed.

        Bins in ascending order may come more than once.
        """
        if not len(self.keys):
            return self
        # The bit up to which neighbours agree says how many bits to drop before they are one.
        apart = self.keys[1:] ^ self.keys[:-1]
        dropped = self.dropped
        if len(apart) >= most:
            decisive = np.partition(apart, len(apart) - most)[len(apart) - most]
            dropped = max(dropped, int(decisive).bit_length())
        keys = _leading(self.keys, dropped)
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        return Bins(
            dropped,
            keys[first],
            np.add.reduceat(self.counts, first),
            np.minimum.reduceat(self.low, first),
            np.maximum.reduceat(self.high, first),
        )

    def fitted(self) -> ColumnMap:
        """The map by ranks onto the unit interval."""
        total = int(self.counts.sum())
        low, high = self.low, self.high
        if low[0] == high[-1]:
            return _around(float(low[0]))
        mixed = (self.counts > total // int(SUMMARY**0.5)) & (low < high)
        counts = self.counts
        if len(counts) <= FEW_BINS:  # so few values can have cells of their own, the rare ones too
            counts = np.maximum(counts, total // FEW_BINS)
        points = quantile_points(low, np.where(mixed, low, high), counts)
        column, _ = fit_column(points, None, partial(by_ranks, most=MOST_KNOTS))
        return _widened(column, dict(zip(low[mixed].tolist(), high[mixed].tolist(), strict=True)))


def quantile_points(low: FloatArray, high: FloatArray, counts: IntArray) -> FloatArray:
    """Sorted points that stand for all in some bins: their quantiles, or each, if they are few."""
    total = int(counts.sum())
    size = min(total, SUMMARY)
    rank = (np.arange(size) + 0.5) * (total / size)
    ends = np.cumsum(counts)
    which = np.minimum(np.searchsorted(ends, rank, side="right"), len(ends) - 1)
    share = (rank - ends[which]) / counts[which] + 1.0
    points = low[which] * (1 - share) + high[which] * share
    points = np.asarray(np.clip(points, low[which], high[which]))
    points[0], points[-1] = low[0], high[-1]
    return points


def _ordered_bits(points: FloatArray) -> NDArray[np.uint64]:
    """Whole numbers in the order of the floating-point ones, which share leading bits with them."""
    bits: NDArray[np.uint64] = points.view(np.uint64)
    top = np.uint64(1 << 63)
    return np.where(bits & top, ~bits, bits | top)


def _unpickled(dropped: int, counts: IntArray, low: FloatArray, high: FloatArray | None) -> Bins:
    keys = _leading(_ordered_bits(low), dropped)
    return Bins(dropped, keys, counts, low, low if high is None else high)


def _leading(keys: NDArray[np.uint64], dropped: int) -> NDArray[np.uint64]:
    """Keys whose last bits were given up."""
    return keys >> np.uint64(dropped) << np.uint64(dropped)


def _around(value: float) -> ColumnMap:
    """The map of a column with one value: it has a quarter, with room for others on both sides."""
    room = abs(value) or 1.0
    low, high = max(value - room, -LARGEST), min(value + room, LARGEST)
    return ColumnMap(
        np.array([0.0, 0.25, 0.5, 1.0]),
        np.array([low, value, value]),
        np.array([value, value, high]),
    )


def _widened(column: ColumnMap, reach: dict[float, float]) -> ColumnMap:
    """A map whose atoms reach up to some other value where the rows do."""
    low, high = column.low.copy(), column.high.copy()
    for k in np.flatnonzero(low == high):
        if (end := reach.get(float(low[k]))) is not None:
            high[k] = np.nextafter(end, np.inf)
            if k + 1 < len(low):
                low[k + 1] = high[k]
    return ColumnMap(column.edges, low, high)


class GridBuilder:
    """Looks at rows, piece by piece, and chooses the grid that a sketch counts on.

    Builders of different pieces merge: `a + b` has seen the rows of both. Threads may share one.

    Args:
        columns: Names of the columns; None for those of the first piece.
        missing: "error" to refuse rows with missing or infinite values, "drop" to pass over them.
    """

    def __init__(self, columns: Sequence[str] | None = None, *, missing: str = "error") -> None:
        self._columns = None if columns is None else tuple(str(name) for name in columns)
        self._missing = check_missing(missing, owner="GridBuilder")
        self._bins: list[Bins] = []
        self._held: list[FloatArray] = []
        self._kinds: tuple[str, ...] | None = None  # of what was seen, if anything was
        self._lock = RLock()

    def add(self, rows: Any) -> GridBuilder:
        """Look at some rows: an array or a data frame, of the same columns each time."""
        with self._lock:
            chunk = as_chunk(
                rows,
                self._columns,
                missing=self._missing,
                parameter="rows",
                owner="GridBuilder.add",
            )
            self._see(chunk)
        return self

    def _see(self, chunk: Chunk) -> None:
        self._columns, values = chunk.columns, chunk.values
        if len(values):
            self._see_kinds(chunk.kinds)
            # A small piece may be the user's buffer, to be filled again.
            self._held.append(values.copy() if len(values) < HELD_BACK else values)
        if sum(map(len, self._held)) >= HELD_BACK:
            self._count()

    def _see_kinds(self, kinds: tuple[str, ...]) -> None:
        """Remember what the columns hold; nothing for numbers, as in `Domain`."""
        assert self._columns is not None
        before = kinds if self._kinds is None else self._kinds
        self._kinds = kinds_of_all([before, kinds], len(self._columns))

    def _count(self) -> None:
        with self._lock:
            if not self._held:
                return
            rows = np.concatenate(self._held)
            self._held = []
            self._merge([Bins.of(np.ascontiguousarray(column)) for column in rows.T])

    def _merge(self, bins: list[Bins]) -> None:
        if self._bins and bins:
            bins = [mine.merged(more) for mine, more in zip(self._bins, bins, strict=True)]
        self._bins = bins or self._bins

    def __getstate__(self) -> dict[str, Any]:
        """Pickle what was counted, not the rows that wait for it."""
        self._count()
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Go on from what was counted."""
        self.__dict__.update(state, _lock=RLock())

    def __add__(self, other: GridBuilder) -> GridBuilder:
        """What both have seen."""
        if not isinstance(other, GridBuilder):
            return NotImplemented
        columns = self._columns or other._columns
        if (other._columns or columns) != columns:
            seen = Seen(f"{list(self._columns or ())} and {list(other._columns or ())}")
            raise bad("columns", "GridBuilder", "be the same in all pieces", seen)
        found = GridBuilder(columns, missing=self._missing)
        for one in (self, other):
            one._count()
            found._merge(one._bins)
            if one._kinds is not None:
                found._see_kinds(one._kinds)
        return found

    def grid(self) -> Grid:
        """The grid for what was seen so far."""
        self._count()
        if not self._bins:
            seen, way_out = Seen("no rows"), "Add rows, or use Grid.from_bounds."
            raise bad("rows", "GridBuilder", "have been added", seen, way_out)
        assert self._columns is not None
        maps = tuple(bins.fitted() for bins in self._bins)
        return Grid(Domain(self._columns, maps, kinds=self._kinds or ()))
