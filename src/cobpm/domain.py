"""The map between the user's space and the unit cube.

The model splits the unit cube, so every column is first mapped onto [0, 1] by an increasing map. No
f-divergence changes under a bijection applied to all sample sets, so the choice of map is free; it
only decides which regions can be reached with few splits. The map is part of the result: regions
and densities are reported in the user's units.

**Range.** By default a column's pooled range, smallest to largest, goes linearly to [0, 1]; given
bounds are used in its place. With "ranks", a value goes to the fraction of the pooled points below
it, which no outlier can squeeze and which does not change when a column is, say, put on a log
scale.

**Repeated values** would reward splitting around them for ever: a cell that shrinks onto an atom
has a density that grows without end. Integers, rounded sensors and zeros are full of them. Any rule
that spreads a value over an interval of its own, in the same way for all sets, leaves every
divergence as it is:

* *Heavy atoms*, values held by more than sqrt(N) of the N pooled points, each get an interval that
  halving reaches, a dyadic one. The runs of other values between them get such intervals too. Atoms
  and runs, in order, are laid out by a balanced tree: their list is cut where the pooled mass on
  both sides is most nearly equal, each part gets half of the interval, and so on. A binary column
  becomes two halves, a column of small integers one cell per integer, and a column full of zeros
  gives zero its own cell. Inside a run the map is linear (or goes by ranks). A stretch between
  neighbouring atoms in which no point fell gets no room and lies outside the domain; a stretch
  between the outermost atom and a given bound keeps its room.
* *Light ties*, values that repeat less often, are spread over their own gap: half-way to the value
  before and half-way to the value after, or up to a neighbouring atom's interval.

A repeated value's place in its interval is a fixed function of set, row and column that looks
random, so the answer depends on no seed.

**Constant columns** tell nothing apart. They are left out of the partition and named in a notice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from cobpm.arrays import BoolArray, FloatArray
from cobpm.cells import Cells
from cobpm.column_map import BITS, ColumnMap, Knots, by_ranks, fit_column
from cobpm.samples import Samples
from cobpm.threads import thread_count
from cobpm.units import value_in_words

__all__ = ["BITS", "ColumnMap", "Domain", "Shape"]

T = TypeVar("T")
Shape = Callable[[int], Knots | None]  # how the map of a column, given by its number, is to run


@dataclass(frozen=True, eq=False)
class Domain:
    """The bijection of the user's space onto the unit cube and back.

    Attributes:
        columns: Names of all columns.
        maps: One map per column.
        notices: Sentences for the user about columns that need attention.
        kinds: What the columns hold, see `cobpm.units`; empty if all hold numbers.
        active: Indices of the columns that vary: the coordinates of the unit cube.
    """

    columns: tuple[str, ...]
    maps: tuple[ColumnMap, ...]
    notices: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    active: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Find the columns that vary."""
        varying = tuple(j for j, column in enumerate(self.maps) if not column.is_constant)
        object.__setattr__(self, "active", varying)

    @property
    def d(self) -> int:
        """Number of coordinates of the unit cube."""
        return len(self.active)

    def kind(self, column: int) -> str:
        """What a column holds, given by its number among all columns."""
        return self.kinds[column] if self.kinds else "number"

    @classmethod
    def fit(cls, samples: Samples, bounds: Literal["ranks"] | FloatArray | None = None) -> Domain:
        """Choose the map for the pooled samples.

        Args:
            samples: All sample sets.
            bounds: None for the pooled range, "ranks", or an array (d, 2) of limits that contain
                all points, with NaN for the pooled range: what `check_bounds` returns.
        """
        if isinstance(bounds, str):
            return cls.fit_each(samples, None, [lambda column: by_ranks])[0]
        return cls.fit_each(samples, bounds, [lambda column: None])[0]

    @classmethod
    def fit_each(
        cls, samples: Samples, limits: FloatArray | None, shapes: Sequence[Shape]
    ) -> list[Domain]:
        """Several domains of the same samples, one for each way that maps run inside the limits."""
        # Sets are sorted one by one, to give every thread something to do; merging them is quick.
        sets, points_in_all = len(samples.values), sum(samples.sizes)

        def sort_one(k: int) -> FloatArray:
            return np.sort(samples.values[k % sets][:, k // sets])

        runs = _for_each(sort_one, range(samples.d * sets), points_in_all)

        def fit_one(j: int) -> list[tuple[ColumnMap, bool]]:
            points = np.sort(np.concatenate(runs[j * sets : (j + 1) * sets]), kind="stable")
            ends = None if limits is None else limits[j]
            return [fit_column(points, ends, shape(j)) for shape in shapes]

        fitted = _for_each(fit_one, range(samples.d), points_in_all)
        return [cls._of_columns(samples, columns) for columns in zip(*fitted, strict=True)]

    @classmethod
    def _of_columns(cls, samples: Samples, fitted: Sequence[tuple[ColumnMap, bool]]) -> Domain:
        notices = []
        kinds = samples.kinds or ("number",) * samples.d
        for name, kind, (column, squeezed) in zip(samples.columns, kinds, fitted, strict=True):
            if column.is_constant:
                value = value_in_words(float(column.low[0]), kind, abs(float(column.low[0])) / 2)
                notices.append(f"Column '{name}' is constant (always {value}) and was left out.")
            if squeezed:
                notices.append(
                    f"Almost all points of column '{name}' share less than a millionth of its "
                    "range, so many splits are needed to tell them apart. Use bounds='ranks', drop "
                    "outliers or give tighter bounds, or transform the column (log, say)."
                )
        maps = tuple(column for column, _ in fitted)
        return cls(samples.columns, maps, tuple(notices), samples.kinds)

    def encode(self, samples: Samples) -> Cells:
        """Put the samples that the domain was fitted to on the dyadic grid."""
        sizes = np.array(samples.sizes, dtype=np.int64)
        codes = np.empty((self.d, int(sizes.sum())), dtype=np.uint64)

        def encode_one(k: int) -> None:
            j = self.active[k]
            codes[k] = self.maps[j].codes(_pooled(samples, j), lambda: _spread(samples.sizes, j))

        _for_each(encode_one, range(self.d), codes.shape[1])
        sets = np.repeat(np.arange(len(sizes), dtype=np.uint16), sizes)
        return Cells(codes, sets, sizes)

    def unit(self, points: FloatArray) -> FloatArray:
        """Map points (n, all columns) to [0, 1)^d, without spreading repeated values."""
        unit = np.empty((len(points), self.d))
        for k, j in enumerate(self.active):
            unit[:, k] = self.maps[j].unit(points[:, j])
        return unit

    def inside(self, points: FloatArray) -> BoolArray:
        """Whether each point lies in the domain, where samples of its kind could have fallen."""
        inside = np.ones(len(points), dtype=np.bool_)
        for j, column in enumerate(self.maps):
            inside &= column.contains(points[:, j])
        return inside

    @overload
    def interval(self, column: int, low: float, high: float) -> tuple[float, float]: ...

    @overload
    def interval(
        self, column: int, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray]: ...

    def interval(self, column: int, low: Any, high: Any) -> tuple[Any, Any]:
        """Map intervals of a coordinate back to the user's units.

        An interval inside an atom's own reads (value, value). One that starts where an atom's ends
        reads (value, ...), the atom's value itself excluded.

        Args:
            column: Index among the active columns.
            low: Lower ends in [0, 1].
            high: Upper ends in [0, 1].
        """
        chosen = self.maps[self.active[column]]
        starts = chosen.values(np.asarray(low, dtype=np.float64), "low")
        stops = chosen.values(np.asarray(high, dtype=np.float64), "high")
        return (starts, stops) if starts.ndim else (float(starts), float(stops))

    def has_ends(
        self, column: int, low: FloatArray, high: FloatArray
    ) -> tuple[BoolArray, BoolArray]:
        """Whether the two values that `interval` returns lie in the interval themselves."""
        chosen = self.maps[self.active[column]]
        return chosen.has_end(low, "low"), chosen.has_end(high, "high")

    def log_density_factor(self, points: FloatArray) -> FloatArray:
        """Log of the factor that turns densities on the unit cube into the user's units.

        This is the log of |du/dx|, summed over columns. Atoms have no length: at a point with an
        atom's value in some column, the density is per unit of length in the other columns and a
        plain probability in that one, so the factor there is the width of the atom's interval. A
        constant column counts as one atom. Outside the domain the factor is -inf.
        """
        total = np.zeros(len(points))
        for j, column in enumerate(self.maps):
            total += column.log_slope(points[:, j])
        return total

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays that hold the whole domain, for saving."""
        return {
            "columns": np.array(self.columns, dtype=np.str_),
            "notices": np.array(self.notices, dtype=np.str_),
            "kinds": np.array(self.kinds, dtype=np.str_),
            "pieces": np.array([len(column.low) for column in self.maps], dtype=np.int64),
            "ties": np.array([column.ties for column in self.maps], dtype=np.bool_),
            "edges": np.concatenate([column.edges for column in self.maps]),
            "low": np.concatenate([column.low for column in self.maps]),
            "high": np.concatenate([column.high for column in self.maps]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Domain:
        """Rebuild a domain from what `to_arrays` returned."""
        ends = np.cumsum(arrays["pieces"])[:-1]
        lows, highs = np.split(arrays["low"], ends), np.split(arrays["high"], ends)
        edges = np.split(arrays["edges"], np.cumsum(arrays["pieces"] + 1)[:-1])
        maps = tuple(map(ColumnMap, edges, lows, highs, arrays["ties"].tolist()))
        columns = tuple(arrays["columns"].tolist())
        kinds = arrays.get("kinds", np.array([], dtype=np.str_))  # older files have none
        return cls(columns, maps, tuple(arrays["notices"].tolist()), tuple(kinds.tolist()))

    def __eq__(self, other: object) -> bool:
        """Two domains are equal if they save to the same arrays."""
        if not isinstance(other, Domain):
            return NotImplemented
        mine, theirs = self.to_arrays(), other.to_arrays()
        return all(np.array_equal(mine[key], theirs[key]) for key in mine)

    __hash__ = None  # type: ignore[assignment]


def _pooled(samples: Samples, j: int) -> FloatArray:
    return np.concatenate([values[:, j] for values in samples.values])


def _spread(sizes: tuple[int, ...], column: int) -> FloatArray:
    """Numbers in [0, 1) for all points that look random but depend on set, row and column only."""
    return np.concatenate([_hashed(s, size, column) for s, size in enumerate(sizes)])


def _hashed(index: int, size: int, column: int) -> FloatArray:
    """Hash row numbers to [0, 1): the SplitMix64 generator, one stream per set and column."""
    golden = 0x9E3779B97F4A7C15
    stream = _mix(np.array([(column << 16 | index) + 1], dtype=np.uint64) * np.uint64(golden))
    rows = np.arange(1, size + 1, dtype=np.uint64)
    rows *= np.uint64(golden)
    rows += stream
    return (_mix(rows) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _for_each(function: Callable[[int], T], items: range, points: int) -> list[T]:
    """Call the function on every item, in threads where that pays: NumPy sorts without the GIL."""
    workers = min(len(items), thread_count(), 8)
    if workers < 2 or points < 50_000:
        return [function(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))
