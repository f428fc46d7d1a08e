"""Rows counted in the cells of a grid: a small file that stands for any number of rows.

A sketch holds the distinct cells of one or more sample sets with their counts. Counts merge
exactly: sketches of pieces add up to the sketch of the whole, in whatever order and wherever the
pieces were counted. There are at most `max_cells` distinct cells in all sets together. When there
are more, one bit is given up, of each column in turn, so that cells join. Only the rows decide how
many bits are left, never their order, the pieces they came in, or which set a row is of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Number
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cobpm import _core
from cobpm.arrays import FloatArray
from cobpm.grid import Grid
from cobpm.grid_builder import GridBuilder
from cobpm.progress import Progress
from cobpm.samples import Chunk, Seen, as_chunk, bad, check_count, check_missing
from cobpm.units import kinds_of_all

MAX_CELLS = 1_000_000
ROWS = "rows"  # what a set is called that was given no name


class Counted(NamedTuple):
    """One set of a sketch.

    Attributes:
        keys: Names of the cells that hold rows, in ascending order.
        counts: How many rows each holds.
        beyond: Rows with a value beyond the ends of the grid, which were counted in its outermost
            cells.
        dropped: Rows with a missing value, which were not counted.
    """

    keys: NDArray[np.uint64]
    counts: NDArray[np.uint64]
    beyond: int = 0
    dropped: int = 0

    @property
    def rows(self) -> int:
        """Rows that were counted."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False, repr=False)
class Sketch:
    """Distinct cells of one or more sample sets, with their counts.

    Attributes:
        grid: Where the cells lie.
        bits: Halvings of the grid that are left, of all columns together.
        max_cells: Most distinct cells that all sets together may have.
        sets: Cells and counts of each set, by its name.
    """

    grid: Grid
    bits: int
    max_cells: int
    sets: Mapping[str, Counted]

    @classmethod
    def of(
        cls,
        rows: Any,
        *,
        grid: Grid | None = None,
        bounds: Any = None,
        max_cells: int = MAX_CELLS,
        missing: str = "error",
    ) -> Sketch:
        """Count rows that are in memory, or in collections of Dask.

        Args:
            rows: An array or data frame: one set, called "rows". A mapping from names to such, or a
                list of arrays or data frames, for several sets. Those of Dask are counted where
                they are, piece by piece, and read twice if a grid is to be chosen without bounds.
            grid: Where the cells lie; that of another sketch to merge or compare with it. None to
                choose one: from `bounds`, or such that cells hold about equal numbers of rows.
            bounds: Limits of the columns for a grid of equal cells; see `Grid.from_bounds`.
            max_cells: Most distinct cells in all sets together.
            missing: "error" to refuse rows with missing or infinite values, "drop" to leave them
                out and count how many there were.
        """
        owner = "Sketch.of"
        missing = check_missing(missing, owner=owner)
        if grid is not None and bounds is not None:
            seen = Seen("a grid as well")
            raise bad("bounds", owner, "be left out where a grid is given", seen, "It has its own.")
        from cobpm import clusters  # which counts with this module

        named = _named(rows, owner)
        if any(map(clusters.is_collection, named.values())):
            plain = clusters.is_collection(rows)
            return clusters.sketch(
                named,
                ["rows"] if plain else [f"rows[{name!r}]" for name in named],
                owner=owner,
                grid=grid,
                bounds=bounds,
                max_cells=max_cells,
                missing=missing,
            )
        columns, chunks = None if grid is None else grid.columns, dict[str, Chunk]()
        for name, table in named.items():
            chunks[name] = as_chunk(
                table, columns, missing=missing, parameter=f"rows[{name!r}]", owner=owner
            )
            columns = chunks[name].columns
        if grid is None:
            grid = _chosen(list(chunks.values()), bounds)
        builder = SketchBuilder(grid, max_cells=max_cells)
        for name, chunk in chunks.items():
            builder._count(name, chunk.values, chunk.dropped)
        return builder.sketch()

    @classmethod
    def of_files(
        cls,
        files: Any,
        *,
        grid: Grid | None = None,
        bounds: Any = None,
        columns: Sequence[str] = (),
        exclude: Sequence[str] = (),
        max_cells: int = MAX_CELLS,
        missing: str = "drop",
        progress: bool | Progress = False,
    ) -> Sketch:
        """Count the rows of files of any size, piece by piece, as `cobpm sketch` does.

        Args:
            files: The path of a file or of a folder of files, or a list of such: one set, called
                "rows". A mapping from names to such, for several sets. Parquet, Feather, CSV, TSV
                and JSON lines, the latter three gzipped or not.
            grid: Where the cells lie; that of another sketch to merge or compare with it. None to
                choose one: from `bounds`, or such that cells hold about equal numbers of rows, for
                which files are read twice, or of more than four million rows of Parquet some parts.
            bounds: Limits of the columns for a grid of equal cells; see `Grid.from_bounds`.
            columns: Columns to use; those that hold numbers if there are none.
            exclude: Columns to leave out.
            max_cells: Most distinct cells in all sets together.
            missing: "drop" to leave out rows with missing or infinite values and count how many
                there were, "error" to refuse them.
            progress: See `compare`.
        """
        from cobpm.counting import sketch_paths  # which counts with this module

        return sketch_paths(
            files,
            grid=grid,
            bounds=bounds,
            columns=columns,
            exclude=exclude,
            max_cells=max_cells,
            missing=missing,
            progress=progress,
        )[0]

    @classmethod
    def merge(cls, sketches: Iterable[Sketch]) -> Sketch:
        """Put sketches over one grid together; sets of the same name are added up.

        The result does not depend on the order, and is as if all rows had been counted at once.
        """
        found = list(sketches)
        if not found or not all(isinstance(sketch, Sketch) for sketch in found):
            wrong = next((type(s).__name__ for s in found if not isinstance(s, Sketch)), "none")
            raise bad("sketches", "Sketch.merge", "be one sketch or more", Seen(wrong))
        for other in found[1:]:
            found[0].grid.check_same(other.grid, "Sketch.merge")
        builder = SketchBuilder(found[0].grid, max_cells=min(s.max_cells for s in found))
        for sketch in found:
            builder._take(sketch)
        return builder.sketch()

    def __add__(self, other: Sketch) -> Sketch:
        """Both together; see `merge`."""
        return Sketch.merge([self, other]) if isinstance(other, Sketch) else NotImplemented

    def __radd__(self, other: object) -> Sketch:
        """Let sum() begin with its 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def within(self, max_cells: int) -> Sketch:
        """The same rows on cells that are coarser, if need be: no more of them than this."""
        builder = SketchBuilder(self.grid, max_cells=min(max_cells, self.max_cells))
        builder._take(self)
        return builder.sketch()

    def rename(self, names: str | Mapping[str, str]) -> Sketch:
        """The same cells under other names.

        Args:
            names: From old names to new ones; or the new name, for a sketch of one set.
        """
        if isinstance(names, str):
            if len(self.sets) != 1:
                way_out = "Give a mapping from old names to new ones."
                raise bad("names", "Sketch.rename", "name every set", names, way_out)
            names = {next(iter(self.sets)): names}
        if unknown := [name for name in names if name not in self.sets]:
            way_out = f"The sets are {', '.join(map(repr, self.names))}."
            raise bad("names", "Sketch.rename", "start from sets that exist", unknown[0], way_out)
        found = {str(names.get(name, name)): counted for name, counted in self.sets.items()}
        if len(found) < len(self.sets):
            raise bad("names", "Sketch.rename", "leave the names distinct", dict(names))
        return replace(self, sets=found)

    def select(self, *names: str) -> Sketch:
        """Only some of the sets, in this order. The cells stay as coarse as they are."""
        if unknown := [name for name in names if name not in self.sets]:
            way_out = f"The sets are {', '.join(map(repr, self.names))}."
            raise bad("names", "Sketch.select", "name sets that exist", unknown[0], way_out)
        return replace(self, sets={name: self.sets[name] for name in names})

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sets."""
        return tuple(self.sets)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.grid.columns

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows of each set."""
        return tuple(counted.rows for counted in self.sets.values())

    @cached_property
    def cells(self) -> int:
        """Distinct cells, of all sets together."""
        keys = [counted.keys for counted in self.sets.values() if len(counted.keys)]
        if len(keys) < 2:
            return len(keys[0]) if keys else 0
        found = np.sort(np.concatenate(keys))
        return 1 + int(np.count_nonzero(found[1:] != found[:-1]))

    @property
    def column_bits(self) -> dict[str, int]:
        """How often each column is halved."""
        return dict(zip(self.columns, self.grid.bits_of(self.bits), strict=True))

    def save(self, path: Any) -> None:
        """Write the sketch to a Parquet file that `Sketch.load` reads.

        The file appears whole or not at all.
        """
        from cobpm.sketch_file import save

        save(self, path)

    @classmethod
    def load(cls, path: Any) -> Sketch:
        """Read a sketch that `save` wrote."""
        from cobpm.sketch_file import load

        return load(path)

    def __eq__(self, other: object) -> bool:
        """Whether two sketches hold the same counts of the same cells, in sets of any order."""
        if not isinstance(other, Sketch):
            return NotImplemented
        return (
            (self.bits, self.max_cells) == (other.bits, other.max_cells)
            and self.sets.keys() == other.sets.keys()
            and all(_same(mine, other.sets[name]) for name, mine in self.sets.items())
            and self.grid == other.grid
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        sizes = zip(self.names, self.sizes, strict=True)
        sets = ", ".join(f"{name} ({rows:,} rows)" for name, rows in sizes) or "nothing"
        bits = ", ".join(f"{name} {own}" for name, own in self.column_bits.items())
        lines = [
            f"Sketch of {sets}: {self.cells:,} cells of at most {self.max_cells:,}, "
            f"{self.bits} bits ({bits})"
        ]
        for name, counted in self.sets.items():
            if counted.beyond:
                lines.append(f"{counted.beyond:,} rows of '{name}' lie beyond the grid.")
            if counted.dropped:
                lines.append(f"{counted.dropped:,} rows of '{name}' had missing values.")
        return "\n".join(lines)


class SketchBuilder:
    """Counts rows that come piece by piece, in memory that does not grow with them.

    Threads may share a builder: pieces are counted one after another.

    Args:
        grid: Where the cells lie: from `Grid.from_bounds`, `GridBuilder.grid`, or another sketch.
        max_cells: Most distinct cells in all sets together.
        missing: "error" to refuse rows with missing or infinite values, "drop" to leave them out
            and count how many there were.
    """

    def __init__(self, grid: Grid, *, max_cells: int = MAX_CELLS, missing: str = "error") -> None:
        owner = "SketchBuilder"
        if not isinstance(grid, Grid):
            way_out = "Grid.from_bounds makes one, GridBuilder another, and a sketch has one."
            raise bad("grid", owner, "be a Grid", Seen(type(grid).__name__), way_out)
        self.grid = grid
        self.max_cells = check_count(max_cells, parameter="max_cells", owner=owner)
        self._missing = check_missing(missing, owner=owner)
        self._bits = grid.finest  # fewer once cells came that have fewer
        self._counters: dict[str, _core.Counter] = {}
        self._aside: dict[str, tuple[int, int]] = {}  # rows beyond the grid, rows dropped
        self._lock = RLock()

    def add(self, rows: Any, name: str = ROWS) -> SketchBuilder:
        """Count some rows, an array or a data frame, for the set of this name."""
        chunk = as_chunk(
            rows,
            self.grid.columns,
            missing=self._missing,
            parameter="rows",
            owner="SketchBuilder.add",
        )
        self._count(str(name), chunk.values, chunk.dropped)
        return self

    def _count(self, name: str, values: FloatArray, dropped: int) -> None:
        values, beyond = np.ascontiguousarray(values), self.grid.beyond(values)
        with self._lock:
            self._counter(name).add_rows(values)
            self._set_aside(name, beyond, dropped)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the cells and their counts."""
        return _resumed, (self.sketch(), self._missing)

    def _take(self, sketch: Sketch) -> None:
        for name, counted in sketch.sets.items():
            self._counter(name).add_cells(counted.keys, counted.counts, sketch.bits)
            self._set_aside(name, counted.beyond, counted.dropped)
        self._coarsen(sketch.bits)

    def _absorb(self, name: str, counter: _core.Counter, beyond: int, dropped: int) -> None:
        """Take over what was counted on this grid."""
        if name in self._counters:
            self._counters[name].absorb(counter)
        else:
            self._counters[name] = counter
        self._set_aside(name, beyond, dropped)

    def _counter(self, name: str) -> _core.Counter:
        if name not in self._counters:
            self._counters[name] = self.grid.counter(self._bits, self.max_cells)
        return self._counters[name]

    def _set_aside(self, name: str, beyond: int, dropped: int) -> None:
        before = self._aside.get(name, (0, 0))
        self._aside[name] = before[0] + beyond, before[1] + dropped

    def _coarsen(self, bits: int) -> None:
        self._bits = min(self._bits, bits)
        for counter in self._counters.values():
            counter.coarsen(bits)

    def sketch(self) -> Sketch:
        """What was counted so far."""
        with self._lock:
            return self._sketch()

    def _sketch(self) -> Sketch:
        counters = self._counters
        bits = min([self._bits, *(counter.bits for counter in counters.values())])
        if sum(counter.size for counter in counters.values()) > self.max_cells:
            union = self.grid.counter(bits, self.max_cells)
            for counter in counters.values():
                union.add_cells(*counter.cells(), counter.bits)
            bits = union.bits
        self._coarsen(bits)
        sets = {
            name: Counted(*counter.cells(), *self._aside[name])
            for name, counter in counters.items()
        }
        return Sketch(self.grid, bits, self.max_cells, sets)


def _resumed(sketch: Sketch, missing: str) -> SketchBuilder:
    builder = SketchBuilder(sketch.grid, max_cells=sketch.max_cells, missing=missing)
    builder._take(sketch)
    return builder


def _named(rows: Any, owner: str) -> dict[str, Any]:
    """Sets by their names, from whatever `Sketch.of` was given."""
    if isinstance(rows, Mapping):
        found = {str(name): table for name, table in rows.items()}
        if not found or len(found) < len(rows):
            rule = "hold one set or more, with names that differ as text"
            raise bad("rows", owner, rule, Seen(f"the names {list(rows)}"))
        return found
    plain = (Number, str, bytes, list, tuple)
    if isinstance(rows, list | tuple) and rows and not isinstance(rows[0], plain):
        return {str(k + 1): table for k, table in enumerate(rows)}
    return {ROWS: rows}


def needs_rows(bounds: Any) -> bool:
    """Whether a grid for such bounds depends on the rows."""
    return bounds is None or (isinstance(bounds, str) and bounds == "ranks")


def _chosen(chunks: list[Chunk], bounds: Any) -> Grid:
    """A grid for rows at hand."""
    columns = chunks[0].columns
    if not needs_rows(bounds):
        kinds = kinds_of_all([chunk.kinds for chunk in chunks], len(columns))
        return Grid.from_bounds(columns, bounds).holding(kinds)
    builder = GridBuilder(columns)
    for chunk in chunks:
        builder._see(chunk)
    return builder.grid()


def _same(a: Counted, b: Counted) -> bool:
    return (
        np.array_equal(a.keys, b.keys)
        and np.array_equal(a.counts, b.counts)
        and (a.beyond, a.dropped) == (b.beyond, b.dropped)
    )
