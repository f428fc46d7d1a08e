"""The grid that sketches count on: a domain whose columns are cut into cells.

Every column is mapped onto the unit interval as `cobpm.domain` does it, and the interval is cut
into 2^12 cells of equal length. A repeated value that has an interval of its own falls into the
middle of it. Values beyond the ends of the grid count in the outermost cells, so that a grid chosen
today can take the rows of tomorrow.

Sketches merge only if their grids are equal, so a grid is chosen once: from bounds, which need no
look at the rows, or from ranks, which adapt to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobpm import _core
from cobpm.arrays import FloatArray
from cobpm.column_map import ColumnMap
from cobpm.domain import Domain
from cobpm.samples import Seen, bad, check_limits

FINEST = 12  # bits of a column
MOST_BITS = 63  # of a cell's name


@dataclass(frozen=True, eq=False)
class Grid:
    """Where cells begin and end.

    Attributes:
        domain: The map of the columns onto the unit cube.
    """

    domain: Domain

    @classmethod
    def from_bounds(cls, columns: Sequence[str], bounds: Any) -> Grid:
        """Cells of equal width between bounds: no look at the rows is needed.

        Args:
            columns: Names of the columns.
            bounds: One (low, high) for all columns, a (low, high) for each, or a mapping from
                their names to such pairs.
        """
        names = tuple(str(name) for name in columns)
        maps = tuple(
            ColumnMap(np.array([0.0, 1.0]), np.array([low]), np.array([high]))
            for low, high in check_limits(bounds, names, owner="Grid.from_bounds")
        )
        return cls(Domain(names, maps))

    def __post_init__(self) -> None:
        """Every column needs a bit."""
        if not 1 <= self.d <= MOST_BITS:
            rule, seen = f"be 1 to {MOST_BITS}", Seen(f"{self.d} of them")
            way_out = "A cell's name has a bit for each; choose the columns that matter."
            raise bad("columns", "Grid", rule, seen, way_out)

    def __eq__(self, other: object) -> bool:
        """Two grids are equal if they cut the same columns at the same values."""
        return self.difference(other) is None if isinstance(other, Grid) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the maps; where they cut is worked out again."""
        return Grid, (self.domain,)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.domain.columns

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @property
    def finest(self) -> int:
        """Bits that a cell's name can have."""
        return min(FINEST * self.d, MOST_BITS)

    def bits_of(self, bits: int) -> tuple[int, ...]:
        """How many of the bits of a cell's name each column has."""
        return tuple(bits // self.d + (j < bits % self.d) for j in range(self.d))

    def holding(self, kinds: tuple[str, ...]) -> Grid:
        """The same cells of columns that hold values of these kinds, dates for instance."""
        return Grid(replace(self.domain, kinds=kinds))

    def counter(self, bits: int | None = None, max_cells: int = 2**63 - 1) -> _core.Counter:
        """What counts rows on this grid."""
        bits = self.finest if bits is None else bits
        return _core.Counter(list(self.cuts), list(self.even), FINEST, bits, max_cells)

    @cached_property
    def cuts(self) -> tuple[FloatArray, ...]:
        """The smallest value of each cell but the first, by column."""
        return tuple(cuts_of(column) for column in self.domain.maps)

    @property
    def even(self) -> tuple[bool, ...]:
        """Whether the cells of a column have equal widths."""
        return tuple(len(column.low) == 1 and not column.is_constant for column in self.domain.maps)

    def indices(self, keys: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
        """Index of each cell along each column, (cells, d), from its name."""
        own = self.bits_of(bits)
        found = np.empty((len(keys), self.d), dtype=np.uint64)
        rest = keys.copy()
        for j in reversed(range(self.d)):
            found[:, j] = rest & np.uint64((1 << own[j]) - 1)
            rest >>= np.uint64(own[j])
        return found

    def unit(self, keys: NDArray[np.uint64], bits: int) -> FloatArray:
        """The middle of each cell in the unit cube, (cells, d)."""
        width = 2.0 ** -np.array(self.bits_of(bits), dtype=float)
        return (self.indices(keys, bits) + 0.5) * width

    def difference(self, other: Grid) -> str | None:
        """What two grids differ in, in words; None if they are equal."""
        if self.columns != other.columns:
            return f"the columns are {list(self.columns)} and {list(other.columns)}"
        for name, mine, theirs in zip(self.columns, self.cuts, other.cuts, strict=True):
            if not np.array_equal(mine, theirs):
                return (
                    f"column '{name}' is cut between {mine[0]:.6g} and {mine[-1]:.6g}, and between "
                    f"{theirs[0]:.6g} and {theirs[-1]:.6g}"
                    if (mine[0], mine[-1]) != (theirs[0], theirs[-1])
                    else f"column '{name}' is cut at other values"
                )
        return None

    def check_same(self, other: Grid, owner: str) -> None:
        """Refuse to mix cells of different grids."""
        difference = self.difference(other)
        if difference is not None:
            way_out = "Build all sketches on one grid: Sketch.of(rows, grid=sketch.grid)."
            raise bad("grid", owner, "be the same for all sketches", Seen(difference), way_out)

    def beyond(self, rows: FloatArray) -> int:
        """How many rows have a value beyond the ends of the grid."""
        low = np.array([column.low[0] for column in self.domain.maps])
        high = np.array([column.high[-1] for column in self.domain.maps])
        if not len(rows) or ((rows.min(axis=0) >= low) & (rows.max(axis=0) <= high)).all():
            return 0
        return int(np.count_nonzero(((rows < low) | (rows > high)).any(axis=1)))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays that hold the grid, for saving."""
        return self.domain.to_arrays()


def cuts_of(column: ColumnMap) -> FloatArray:
    """The smallest value of each of the 2^12 cells of a column but the first."""
    edges = np.arange(1, 2**FINEST) / 2**FINEST
    values = column.values(edges, "low")
    piece = np.clip(np.searchsorted(column.edges, edges, side="right") - 1, 0, len(column.low) - 1)
    atom = column.low[piece] == column.high[piece]
    # An atom belongs to the cell in the middle of its interval: cells up to there begin with it.
    middle = column.edges[piece] / 2 + column.edges[piece + 1] / 2
    beyond = (atom & (edges > middle)) | ~(atom | column.has_end(edges, "low"))
    return np.maximum.accumulate(np.where(beyond, np.nextafter(values, np.inf), values))
