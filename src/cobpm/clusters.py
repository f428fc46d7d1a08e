"""Dask collections, counted where they are.

A data frame or an array of Dask comes in pieces: partitions, or blocks of rows. Each piece is
counted by the worker that has it, with the code that counts rows in memory, and the sketches of
pieces are merged in a tree. Counts merge exactly, so the sketch is that of all rows at once, bit
for bit, whatever the pieces and the tree.

Nothing here loads Dask before it sees a collection. Where a client of a cluster is active, the
cluster does the work, and else Dask's own scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from cobpm.grid import Grid
from cobpm.grid_builder import GridBuilder
from cobpm.samples import Chunk, InputError, Seen, as_chunk, as_group_chunk, bad, check_count
from cobpm.sketch import MAX_CELLS, Sketch, SketchBuilder, needs_rows
from cobpm.units import kinds_of_all

TOGETHER = 8  # pieces that are merged in one step


def is_collection(rows: Any) -> bool:
    """Whether these are a data frame, a series or an array of Dask."""
    homes = ("dask.dataframe.", "dask.array.")
    return any(base.__module__.startswith(homes) for base in type(rows).__mro__)


@dataclass(frozen=True)
class Source:
    """What the workers need to know of the rows that they are to read.

    Attributes:
        name: Name of the set.
        parameter: What the user calls it, for messages.
        owner: The function that the user called, for messages.
        missing: What to do with rows that have missing values; see `Sketch.of`.
        groups: Name of the column that says which set a row is of, where there are several.
    """

    name: str
    parameter: str
    owner: str
    missing: str = "error"
    groups: str | None = None

    def read(self, rows: Any, columns: Sequence[str] | None) -> tuple[dict[str, Chunk], Chunk]:
        """Check some rows: those of each set, and all."""
        if self.groups is not None:
            return as_group_chunk(rows, self.groups, columns, owner=self.owner)
        chunk = as_chunk(
            rows, columns, missing=self.missing, parameter=self.parameter, owner=self.owner
        )
        return {self.name: chunk}, chunk


def sketch(
    sets: Mapping[str, Any],
    parameters: Sequence[str],
    *,
    owner: str,
    grid: Grid | None = None,
    bounds: Any = None,
    max_cells: int = MAX_CELLS,
    missing: str = "error",
    together: int = TOGETHER,
) -> Sketch:
    """Count sets some of which are collections; see `Sketch.of`.

    Args:
        sets: Collections, and rows in memory, by name.
        parameters: What the user calls each set, for messages.
        owner: The function that the user called, for messages.
        grid: As for `Sketch.of`, like all that follow but the last.
        bounds: Limits of the columns.
        max_cells: Most distinct cells.
        missing: What to do with missing values.
        together: Pieces that are merged in one step.
    """
    sources = [
        (Source(name, parameter, owner, missing), rows)
        for (name, rows), parameter in zip(sets.items(), parameters, strict=True)
    ]
    return _sketch(sources, grid, bounds, max_cells, together).select(*sets)


def sketch_groups(table: Any, groups: Any, *, owner: str, bounds: Any = None) -> Sketch:
    """Count the sets that one data frame is made of.

    Args:
        table: A data frame of Dask.
        groups: Name of the column that says which set a row is of.
        owner: The function that the user called, for messages.
        bounds: Limits of the other columns; see `Sketch.of`.
    """
    if not isinstance(groups, str):
        seen, rule = Seen(f"a {type(groups).__name__}"), "name a column with collections of Dask"
        raise bad("groups", owner, rule, seen, "Put the labels into a column of the data frame.")
    source = Source("", "samples", owner, groups=groups)
    found = _sketch([(source, table)], None, bounds, MAX_CELLS, TOGETHER)
    dtype = table._meta[groups].dtype
    kind = getattr(getattr(dtype, "categories", dtype), "dtype", dtype).kind
    number = {"i": int, "u": int, "f": float}.get(kind, str)  # labels ascend, not their names
    return found.select(*sorted(found.names, key=number))


def _sketch(
    sources: list[tuple[Source, Any]],
    grid: Grid | None,
    bounds: Any,
    max_cells: int,
    together: int,
) -> Sketch:
    max_cells = check_count(max_cells, parameter="max_cells", owner=sources[0][0].owner)
    columns = None if grid is None else grid.columns
    work, here, kinds = [], [], []  # pieces on the cluster, rows in memory
    for source, rows in sources:
        if is_collection(rows):
            empty, pieces = _pieces(rows, source.parameter, source.owner)
            _, whole = source.read(empty, columns)
            work += [(source, where, piece) for where, piece in pieces]
        else:
            sets, whole = source.read(rows, columns)
            here.append(sets)
        columns = whole.columns
        kinds.append(whole.kinds)
    assert columns is not None
    if grid is None and needs_rows(bounds):
        looks = _run(look_at_piece, work, (columns,), merge_looks, together)
        grid = merge_looks(*(look(sets, columns) for sets in here), *looks).grid()
    elif grid is None:
        grid = Grid.from_bounds(columns, bounds).holding(kinds_of_all(kinds, len(columns)))
    counts = _run(count_piece, work, (grid, max_cells), merge_counts, together)
    return merge_counts(*(count(sets, grid, max_cells) for sets in here), *counts)


def notices(parameters: Sequence[str], *, looked: bool) -> tuple[str, ...]:
    """Sentences for the user about the sets that were counted on a cluster.

    Args:
        parameters: What the user calls these sets.
        looked: Whether the rows were read once more to choose the cells.
    """
    if not parameters:
        return ()
    shown = ", ".join(f"'{parameter}'" for parameter in parameters[:8])
    more = f" and {len(parameters) - 8} more" if len(parameters) > 8 else ""
    first = " after a first pass that chose the cells; bounds= saves that pass" if looked else ""
    return (f"Dask counted the rows of {shown}{more} in cells{first}.",)


# --- what the workers run ------------------------------------------------------------------------

Sets = Mapping[str, Chunk]  # rows by the names of their sets


def look_at_piece(piece: Any, source: Source, where: str, columns: tuple[str, ...]) -> GridBuilder:
    """Have a builder look at a piece."""
    with _place(where):
        sets, _ = source.read(piece, columns)
    return look(sets, columns)


def look(sets: Sets, columns: tuple[str, ...]) -> GridBuilder:
    """Have a builder look at some rows."""
    builder = GridBuilder(columns)
    for chunk in sets.values():
        builder._see(chunk)
    builder._count()  # the rows themselves stay here
    return builder


def merge_looks(*builders: GridBuilder) -> GridBuilder:
    """One builder that has seen what all have."""
    return reduce(add, builders)


def count_piece(piece: Any, source: Source, where: str, grid: Grid, max_cells: int) -> Sketch:
    """Sketch a piece."""
    with _place(where):
        sets, _ = source.read(piece, grid.columns)
    return count(sets, grid, max_cells)


def count(sets: Sets, grid: Grid, max_cells: int) -> Sketch:
    """Sketch some rows."""
    builder = SketchBuilder(grid, max_cells=max_cells)
    for name, chunk in sets.items():
        builder._count(name, chunk.values, chunk.dropped)
    return builder.sketch()


def merge_counts(*sketches: Sketch) -> Sketch:
    """One sketch of what all have counted."""
    return Sketch.merge(sketches)


@contextmanager
def _place(where: str) -> Iterator[None]:
    """Say where the rows are that are refused."""
    try:
        yield
    except InputError as error:
        raise InputError(f"In {where}: {error}") from None


# --- pieces and trees ----------------------------------------------------------------------------


def _pieces(rows: Any, parameter: str, owner: str) -> tuple[Any, list[tuple[str, Any]]]:
    """A table of these columns without rows; and the pieces, with the way to get at each."""
    import dask.array as da

    if isinstance(rows, da.Array):
        rows = _in_rows(rows, parameter, owner)
        pieces, where = rows.to_delayed().ravel().tolist(), f"{parameter}.blocks"
        empty = np.empty((0, *rows.shape[1:]), dtype=rows.dtype)
    elif hasattr(rows, "to_delayed"):
        best = rows.optimize()
        pieces, empty = best.to_delayed(optimize_graph=False), rows._meta
        same = best.npartitions == rows.npartitions
        where = f"{parameter}.partitions" if same else f"{parameter}.optimize().partitions"
    else:
        rule, seen = "be a data frame, a series or an array", Seen(f"a {type(rows).__name__}")
        raise bad(parameter, owner, rule, seen)
    return empty, [(f"{where}[{k}]", piece) for k, piece in enumerate(pieces)]


def _in_rows(rows: Any, parameter: str, owner: str) -> Any:
    """An array whose blocks have all columns."""
    if rows.ndim not in (1, 2):
        seen, rule = Seen(f"an array of shape {rows.shape}"), "be a matrix with one row per point"
        way_out = "Bring it to shape (n, d) first."
        raise bad(parameter, owner, rule, seen, way_out)
    if np.isnan(rows.shape[1:]).any():
        seen, way_out = (
            Seen(f"an array of shape {rows.shape}"),
            f"{parameter}.compute_chunk_sizes() counts them.",
        )
        raise bad(parameter, owner, "have a known number of columns", seen, way_out)
    return rows.rechunk({1: -1}) if rows.ndim == 2 and rows.numblocks[1] > 1 else rows


def _run(
    function: Callable[..., Any],
    work: list[tuple[Source, str, Any]],
    shared: tuple[Any, ...],
    merge: Callable[..., Any],
    together: int,
) -> list[Any]:
    """Call a function on each piece and merge what comes out: at most one thing in the end."""
    import dask

    if not work:
        return []
    call, join = dask.delayed(function, pure=False), dask.delayed(merge, pure=False)
    same = [dask.delayed(thing, traverse=False) for thing in shared]  # travel once, not per piece
    found = [call(piece, source, where, *same) for source, where, piece in work]
    while len(found) > 1:
        groups = [found[k : k + together] for k in range(0, len(found), together)]
        found = [join(*group) if len(group) > 1 else group[0] for group in groups]
    try:
        return list(dask.compute(*found))
    except InputError as error:
        raise InputError(str(error)) from None  # without the way through the scheduler
