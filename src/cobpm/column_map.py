"""The map of one column onto [0, 1] and how it is fitted; `cobpm.domain` says why it looks so."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cobpm import _core
from cobpm.arrays import BoolArray, FloatArray

BITS = 52  # resolution of the dyadic grid, bits per column
MOST_KNOTS = 2**16  # a map by ranks keeps at most this many
ARCTAN_KNOTS = 257
AT_A_TIME = 2**14  # points to map, so that they stay in the processor's cache
BALANCED_DEPTH = 24  # the layout of atoms and runs halves masses down to here, then numbers
SQUEEZED = 2.0**-20  # points that share less of their range than this deserve a notice

_BELOW_ONE = np.nextafter(1.0, 0.0)

# From the sorted points of a run and its two ends to values, ascending from one end to the other,
# and the share of the run's interval below each of them.
Knots = Callable[[FloatArray, float, float], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, eq=False)
class ColumnMap:
    """An increasing map of one column onto [0, 1], in linear pieces.

    Piece `i` takes the values from `low[i]` to `high[i]` to the interval from `edges[i]` to
    `edges[i + 1]`. A piece with `low[i] == high[i]` is an atom: one value with a whole interval.

    Attributes:
        edges: Ends of the pieces in the unit interval, from 0 to 1, one more than pieces.
        low: Smallest value of each piece.
        high: Largest value of each piece.
        ties: Whether some values that are no atoms repeat in the points it was fitted to.
    """

    edges: FloatArray
    low: FloatArray
    high: FloatArray
    ties: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether the column has only one value."""
        return len(self.low) == 1 and bool(self.low[0] == self.high[0])

    def piece(self, values: FloatArray) -> NDArray[np.intp]:
        """Index of the piece that each value belongs to, or of a neighbour if it has none."""
        shape = np.shape(values)
        flat = np.ascontiguousarray(values, dtype=np.float64).ravel()
        index = _core.count_up_to(self.low, flat).reshape(shape) - 1
        index = np.maximum(index, 0)
        if not self._has_atoms:
            return index
        # A run starts at the value of the atom before it, but that value is the atom's.
        before = np.maximum(index - 1, 0)
        return np.where(self._is_atom[before] & (self.low[before] == values), before, index)

    def contains(self, values: FloatArray) -> BoolArray:
        """Whether each value lies in some piece."""
        piece = self.piece(values)
        return (self.low[piece] <= values) & (values <= self.high[piece])

    def unit(self, values: FloatArray) -> FloatArray:
        """Map values to [0, 1), atoms to the middle of their interval."""
        return self._unit(values, self.piece(values))

    def _unit(self, values: FloatArray, piece: NDArray[np.intp]) -> FloatArray:
        low, high, scale = self.low[piece], self.high[piece], self._scale[piece]
        start, stop = self.edges[piece], self.edges[piece + 1]
        width = high * scale - low * scale
        share = (np.clip(values, low, high) * scale - low * scale) / np.where(width, width, 1.0)
        share = np.where(self._is_atom[piece], 0.5, share)
        # Rounding must not push a point over the edge, into the next piece.
        return np.minimum(start + share * (stop - start), np.nextafter(stop, 0.0))

    def values(self, unit: FloatArray, side: Literal["low", "high"]) -> FloatArray:
        """Map back. At the edge between two pieces, `side` says which end of an interval it is."""
        piece = self._piece_at(unit, side)
        low, high, scale = self.low[piece], self.high[piece], self._scale[piece]
        start, stop = self.edges[piece], self.edges[piece + 1]
        share = np.clip((unit - start) / (stop - start), 0.0, 1.0)
        with np.errstate(over="ignore"):
            inner = (low * scale + share * (high * scale - low * scale)) / scale
        return np.where(share == 1.0, high, np.clip(inner, low, high))

    def has_end(self, unit: FloatArray, side: Literal["low", "high"]) -> BoolArray:
        """Whether the value at an end of an interval lies in the interval, or next to it."""
        piece = self._piece_at(unit, side)
        if side == "low":  # a run that follows an atom starts above the atom's value
            before = np.maximum(piece - 1, 0)
            after_atom = (before < piece) & self._is_atom[before] & ~self._is_atom[piece]
            return np.asarray(~after_atom | (unit > self.edges[piece]))
        return np.asarray(self._is_atom[piece] | (unit == 1.0))

    def _piece_at(self, unit: FloatArray, side: Literal["low", "high"]) -> NDArray[np.intp]:
        """Index of the piece that an interval starts in (above its low end) or stops in."""
        # An end at an edge between two pieces belongs to the piece on the inside.
        inside: Literal["left", "right"] = "right" if side == "low" else "left"
        piece = np.searchsorted(self.edges, unit, side=inside) - 1
        return np.clip(piece, 0, len(self.low) - 1)

    def log_slope(self, values: FloatArray) -> FloatArray:
        """Log of du/dx in a run, log of the interval's width on an atom, -inf where undefined."""
        width = self.high * self._scale - self.low * self._scale
        length = np.log(np.where(self._is_atom, 1.0, width)) - np.log(self._scale)
        slope = np.log(np.diff(self.edges)) - np.where(self._is_atom, 0.0, length)
        return np.where(self.contains(values), slope[self.piece(values)], -np.inf)

    def codes(self, column: FloatArray, uniform: Callable[[], FloatArray]) -> NDArray[np.uint64]:
        """Grid coordinates of the points it was fitted to, repeated values spread by `uniform`."""
        if len(self.low) == 1:  # the common case, worth doing in place
            unit: FloatArray = column * self._scale[0]
            unit -= self.low[0] * self._scale[0]
            unit /= self.high[0] * self._scale[0] - self.low[0] * self._scale[0]
            start = _code(np.minimum(unit, _BELOW_ONE, out=unit))
            if not self.ties:
                return start
            stop, in_run = start.copy(), np.arange(len(column))
        else:
            start = np.empty(len(column), dtype=np.uint64)
            stop, atom = np.empty_like(start), np.empty(len(column), dtype=np.bool_)
            for first in range(0, len(column), AT_A_TIME):
                part = slice(first, first + AT_A_TIME)
                piece = self.piece(column[part])
                unit, atom[part] = self._unit(column[part], piece), self._is_atom[piece]
                start[part] = _code(np.where(atom[part], self.edges[piece], unit))
                stop[part] = _code(np.where(atom[part], self.edges[piece + 1], unit))
            if not (self.ties or atom.any()):
                return start
            in_run = np.flatnonzero(~atom)
        if self.ties:
            tied, lowest, highest = self._gaps(column[in_run])
            start[in_run[tied]], stop[in_run[tied]] = _code(lowest), _code(highest)
        return start + (uniform() * (stop - start)).astype(np.uint64)

    def _gaps(self, column: FloatArray) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """Find the light ties among values that are no atoms, and the gap each is spread over."""
        order = np.argsort(column)
        points = column[order]
        first = np.flatnonzero(np.concatenate([[True], points[1:] != points[:-1]]))
        count = np.diff(first, append=len(points))
        first, count = first[count > 1], count[count > 1]
        value, after = points[first], np.minimum(first + count, len(points) - 1)
        start = self._halfway(points[np.maximum(first - 1, 0)], value)
        stop = self._halfway(value, points[after])
        # The outermost values of a run reach up to the atom there. At an end of the range they
        # reach as far out as in: nowhere, if the range ends with them.
        unit, (low, high) = self.unit(value), self._run_around(value)
        far_start = np.where(low > 0.0, low, np.fmax(0.0, 2 * unit - stop))
        far_stop = np.where(high < 1.0, high, np.fmin(1.0, 2 * unit - start))
        start = np.where(np.isnan(start), far_start, start)
        stop = np.where(np.isnan(stop), far_stop, stop)
        tied = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
        return order[tied], np.repeat(start, count), np.repeat(stop, count)

    def _halfway(self, below: FloatArray, above: FloatArray) -> FloatArray:
        """Where the gaps of neighbours meet in the unit interval; NaN if they share no run."""
        middle = below / 2 + above / 2  # halved first: the sum may overflow
        between = (below < middle) & (middle < above)  # else take the middle of the images
        meet = np.where(between, self.unit(middle), self.unit(below) / 2 + self.unit(above) / 2)
        together = (below < above) & (self._run_around(below)[0] == self._run_around(above)[0])
        return np.where(together, meet, np.nan)

    def _run_around(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends, in the unit interval, of the run that each value lies in."""
        atoms, piece = np.flatnonzero(self._is_atom), self.piece(values)
        ends = np.concatenate([[0.0], self.edges[atoms + 1]])
        starts = np.concatenate([self.edges[atoms], [1.0]])
        before = np.searchsorted(atoms, piece)  # how many atoms lie below
        return ends[before], starts[before]

    def __getstate__(self) -> dict[str, object]:
        """What a map is, for saving and sending, without what was worked out from it."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @cached_property
    def _is_atom(self) -> BoolArray:
        return np.equal(self.low, self.high)

    @cached_property
    def _has_atoms(self) -> bool:
        return bool(self._is_atom.any())

    @cached_property
    def _scale(self) -> FloatArray:
        """A half where high - low would overflow, else one."""
        with np.errstate(over="ignore"):
            return np.where(np.isfinite(self.high - self.low), 1.0, 0.5)


# Fitting one column


@dataclass(frozen=True)
class _Segment:
    """An atom (`low == high`) or a run of other values, and its points among the sorted ones."""

    low: float
    high: float
    first: int
    last: int

    @property
    def is_atom(self) -> bool:
        return self.low == self.high


def _heavy(points: FloatArray) -> FloatArray:
    """Values held by more than sqrt(N) of the sorted points."""
    reach = math.isqrt(len(points))  # more than sqrt(N) copies: a value equals the one `reach` on
    return np.unique(points[:-reach][points[:-reach] == points[reach:]])


def _segments(points: FloatArray, low: float, high: float) -> list[_Segment]:
    """Cut the range from `low` to `high` into heavy atoms and the runs between them."""
    atoms = _heavy(points)
    firsts = np.searchsorted(points, atoms, side="left").tolist()
    lasts = np.searchsorted(points, atoms, side="right").tolist()
    segments: list[_Segment] = []
    start, first = low, 0  # where the next run begins: its lower end, and its first point
    for atom, atom_first, atom_last in zip(atoms.tolist(), firsts, lasts, strict=True):
        segments += _run(points, start, atom, first, atom_first, low, high)
        segments.append(_Segment(atom, atom, atom_first, atom_last))
        start, first = atom, atom_last
    return segments + _run(points, start, high, first, len(points), low, high)


def _run(
    points: FloatArray, start: float, stop: float, first: int, last: int, low: float, high: float
) -> list[_Segment]:
    """Make the run that lies between two atoms or at an end of the range, if there is one."""
    # Whoever gives bounds beyond the points wants room there.
    beyond = (start == low and low < points[0]) or (stop == high and points[-1] < high)
    if start == stop or (first == last and not beyond):
        return []
    if not beyond and points[first] == points[last - 1]:  # a single value: as good as an atom
        start = stop = float(points[first])
    return [_Segment(start, stop, first, last)]


def dyadic_edges(masses: Iterable[int]) -> FloatArray:
    """Lay out segments side by side on [0, 1], in order, each on a dyadic interval.

    A heavy segment gets a long interval: the list is cut where the masses on both sides are most
    nearly equal, each part gets one half, and so on.
    """
    total = np.concatenate([[0], np.cumsum(list(masses))])
    edges = np.zeros(len(total))
    edges[-1] = 1.0
    todo = [(0, len(total) - 1, 0)]
    while todo:
        first, last, depth = todo.pop()
        if last - first < 2:
            continue
        cut = (first + last) // 2
        if depth < BALANCED_DEPTH:
            half = (total[first] + total[last]) / 2
            cut = int(np.clip(np.searchsorted(total, half), first + 1, last - 1))
            if cut > first + 1 and half - total[cut - 1] < total[cut] - half:
                cut -= 1
        edges[cut] = (edges[first] + edges[last]) / 2
        todo += [(first, cut, depth + 1), (cut, last, depth + 1)]
    return edges


def by_ranks(
    points: FloatArray, low: float, high: float, most: int = MOST_KNOTS
) -> tuple[FloatArray, FloatArray]:
    """Knots (value, share of the run's points below it) of the map by ranks inside a run."""
    is_first = np.concatenate([[True], points[1:] != points[:-1]])
    distinct = points[is_first]
    below = np.concatenate([np.flatnonzero(is_first), [len(points)]]) / len(points)
    # A value sits in the middle of its own ranks, and they end half-way to the next value.
    values = np.empty(2 * len(distinct) + 1)
    shares = np.empty(len(values))
    values[0], values[-1] = low, high
    values[1::2], shares[1::2] = distinct, below[:-1] / 2 + below[1:] / 2
    values[2:-1:2] = distinct[:-1] / 2 + distinct[1:] / 2
    shares[0::2] = below
    rising = np.concatenate([[True], values[1:] > values[:-1]])
    values, shares = values[rising], shares[rising]  # the last share is not used: it is one
    # Too many knots would make results large. Points are mapped through the thinned knots as well,
    # so that the map stays a bijection; it then follows the ranks to about one part in `most`.
    if len(values) > most:
        kept = np.linspace(0, len(values) - 1, most).astype(np.intp)
        values, shares = values[kept], shares[kept]
    return values, shares


def by_arctan(points: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Knots of the arctangent of the robust z-score: straight in the middle, with short tails."""
    lower, middle, upper = np.quantile(points, [0.25, 0.5, 0.75])
    # The spread of a normal column; else the range, whose half can be zero.
    scale = (upper / 2 - lower / 2) / 0.6745 or high / 2 - low / 2 or high - low
    with np.errstate(over="ignore"):
        first, last = (np.arctan((end - middle) / scale) for end in (low, high))
        angles = np.linspace(first, last, ARCTAN_KNOTS)
        values = np.clip(middle + scale * np.tan(angles), low, high)
    values[0], values[-1] = low, high
    rising = np.concatenate([[True], values[1:] > values[:-1]])
    rising[-1] = True  # and drop what rounding has put on top of the end
    rising[:-1] &= values[:-1] < high
    return values[rising], ((angles - first) / (last - first))[rising]


def warped(knots: Knots, power: float, mirrored: bool) -> Knots:
    """The same knots with shares raised to a power, from the lower end or from the upper one."""

    def found(points: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        values, shares = knots(points, low, high)
        return values, 1 - (1 - shares) ** power if mirrored else shares**power

    return found


def _is_squeezed(points: FloatArray, low: float, high: float) -> bool:
    """Whether all but a hundredth of the sorted points (or one) share a sliver of the range."""
    if len(points) < 8:
        return False
    kept = len(points) - max(1, len(points) // 100)
    narrowest = (points[kept - 1 :] / 2 - points[: len(points) - kept + 1] / 2).min()
    return bool(0 < narrowest < SQUEEZED * (high / 2 - low / 2))


def fit_column(
    points: FloatArray, bounds: FloatArray | None, knots: Knots | None = None
) -> tuple[ColumnMap, bool]:
    """Fit the map to the sorted points of a column; also say whether they are squeezed.

    Args:
        points: All of them, in ascending order.
        bounds: Lower and upper end of the range; None or NaN for that of the points.
        knots: How the map runs inside a run of values; None for straight.
    """
    low, high = float(points[0]), float(points[-1])
    if low == high:
        return ColumnMap(np.array([0.0, 1.0]), points[:1].copy(), points[:1].copy()), False
    if bounds is not None and not np.isnan(bounds[0]):
        low, high = float(bounds[0]), float(bounds[1])
    repeats = int(np.count_nonzero(points[1:] == points[:-1]))
    segments = [_Segment(low, high, 0, len(points))]
    if repeats:
        segments = _segments(points, low, high)
    edges = dyadic_edges(segment.last - segment.first for segment in segments)
    in_atoms = sum(s.last - s.first - 1 for s in segments if s.is_atom)
    runs = [s for s in segments if not s.is_atom]
    squeezed = knots is None and any(
        _is_squeezed(points[s.first : s.last], s.low, s.high) for s in runs
    )
    lows, highs, inner = [], [], []
    for segment, start, stop in zip(segments, edges[:-1], edges[1:], strict=True):
        values, shares = np.array([segment.low, segment.high]), np.array([0.0, 1.0])
        # A given bound can leave a run without points: it stays straight.
        if knots is not None and segment.first < segment.last and not segment.is_atom:
            values, shares = knots(points[segment.first : segment.last], *values)
        lows.append(values[:-1])
        highs.append(values[1:])
        inner.append(start + shares[:-1] * (stop - start))
    inner.append(np.array([1.0]))
    column = ColumnMap(
        np.concatenate(inner), np.concatenate(lows), np.concatenate(highs), repeats > in_atoms
    )
    return column, squeezed


def _code(unit: FloatArray) -> NDArray[np.uint64]:
    return (unit * 2.0**BITS).astype(np.uint64)
