"""From files to sketches: pieces of rows, counted on all processors in bounded memory.

Every thread counts for itself, and counts merge exactly: neither the number of threads nor the size
of the pieces changes the sketch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from os import PathLike, fspath
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np

from cobpm import _core
from cobpm.arrays import FloatArray
from cobpm.domain import Domain
from cobpm.grid import Grid
from cobpm.grid_builder import MOST_BINS, Bins
from cobpm.progress import Progress, shown
from cobpm.samples import InputError, Seen, bad, bad_file, check_count, check_missing, listed
from cobpm.sets import MOST_DROPPED, Choice
from cobpm.sketch import MAX_CELLS, ROWS, Counted, Sketch, SketchBuilder
from cobpm.sketch_file import is_sketch
from cobpm.streams import Piece, Stream, open_streams
from cobpm.threads import thread_count
from cobpm.units import common_kind

LOOKED_AT = 1 << 22  # rows that choose a grid, of files that can be read in part
AHEAD = 2  # pieces that wait for each thread: what memory is bounded by
DAY = 86400.0
Worker = TypeVar("Worker")


def sketch_streams(
    streams: Mapping[str, Stream],
    *,
    grid: Grid | None = None,
    bounds: Any = None,
    max_cells: int = MAX_CELLS,
    missing: str = "drop",
    told: Progress = lambda stage, fraction: None,
    rows: int | None = None,
) -> Sketch:
    """Count the rows of files, in one pass over them, or in two if the grid is yet to be chosen.

    Args:
        streams: Files of each set, from `open_streams`.
        grid: Where the cells lie; None to choose a grid.
        bounds: Limits of the columns for a grid of equal cells. None, with no grid given either,
            for cells of about equal numbers of rows, which takes a pass over the files, though of
            more than four million rows of Parquet only over some, evenly spread.
        max_cells: Most distinct cells in all sets together.
        missing: "drop" rows with missing or infinite values, or treat them as an "error".
        told: What to report progress to.
        rows: Of a piece; the result does not depend on it.
    """
    streams = dict(streams)
    columns = next(iter(streams.values())).columns
    chosen = grid
    if chosen is None and bounds is not None:
        chosen = Grid.from_bounds(columns, bounds)
    share = 0.0
    if chosen is None:
        parts = [sum(x.parts) for stream in streams.values() for x in stream.sources]
        every = max(1, round(sum(parts) / LOOKED_AT))
        share = 1.0 / (1 + every)
        lookers = [_Looker(missing) for _ in range(thread_count())]
        _spread(streams, lookers, _Looker.look, "choosing a grid", (0.0, share), told, rows, every)
        chosen = _grid_of(lookers, streams)
    bits = [chosen.finest]
    counters = [_Counter(chosen, max_cells, missing, bits) for _ in range(thread_count())]
    _spread(streams, counters, _Counter.count, "counting", (share, 1.0), told, rows)
    builder = SketchBuilder(chosen, max_cells=max_cells)
    for counter in counters:
        counter.hand_over(builder, tuple(streams))
    found = builder.sketch()
    for name, counted in found.sets.items():
        _check_dropped(name, counted)
    if grid is not None:
        return found
    thought = next(iter(streams.values())).agreement.kinds
    kinds = zip(*(counter.kinds_of(thought) for counter in counters), strict=True)
    return replace(found, grid=chosen.holding(tuple(map(common_kind, kinds))))


def sketch_paths(
    files: Any,
    *,
    grid: Grid | None = None,
    bounds: Any = None,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    max_cells: int = MAX_CELLS,
    missing: str = "drop",
    progress: bool | Progress = False,
) -> tuple[Sketch, tuple[str, ...]]:
    """What `Sketch.of_files` says; also what happened to the columns, in sentences."""
    owner = "Sketch.of_files"
    sets = _paths(files, owner)
    max_cells = check_count(max_cells, parameter="max_cells", owner=owner)
    missing = check_missing(missing, owner=owner)
    columns, exclude = ((c,) if isinstance(c, str) else tuple(c) for c in (columns, exclude))
    if grid is not None:
        if not isinstance(grid, Grid):
            way_out = "Grid.from_bounds makes one, and a sketch has one: sketch.grid."
            raise bad("grid", owner, "be a Grid", Seen(type(grid).__name__), way_out)
        for name, given in (("bounds", bounds), ("columns", columns), ("exclude", exclude)):
            if given is not None and given != ():
                seen = Seen("a grid as well")
                rule = "be left out where a grid is given"
                raise bad(name, owner, rule, seen, "It has its own.")
        columns = grid.columns
    with shown(progress) as told:
        streams = open_streams(sets, Choice(columns, exclude, missing))
        found = sketch_streams(
            streams,
            grid=grid,
            bounds=None if isinstance(bounds, str) and bounds == "ranks" else bounds,
            max_cells=max_cells,
            missing=missing,
            told=told or (lambda stage, fraction: None),
        )
    return found, next(iter(streams.values())).agreement.notices


def _paths(files: Any, owner: str) -> dict[str, list[str]]:
    """Paths by the names of the sets."""
    named = dict(files) if isinstance(files, Mapping) else {ROWS: files}
    found: dict[str, list[str]] = {}
    for name, paths in named.items():
        own = [paths] if isinstance(paths, str | PathLike) else paths
        kinds = (str, PathLike)
        if not isinstance(own, list | tuple) or not all(isinstance(one, kinds) for one in own):
            seen = Seen(f"a {type(paths).__name__}")
            raise bad("files", owner, "be paths of files or folders", seen)
        if not own:
            raise bad("files", owner, "be one file or more", Seen("none"))
        found[str(name)] = [fspath(one) for one in own]
    if not found or len(found) < len(named):
        rule = "hold one set or more, with names that differ as text"
        raise bad("files", owner, rule, Seen(f"the names {list(named)}"))
    return found


def sketch_files(
    sets: Mapping[str, str],
    choice: Choice,
    *,
    grid: Grid | None = None,
    bounds: Any = None,
    max_cells: int = MAX_CELLS,
    told: Progress = lambda stage, fraction: None,
) -> tuple[Sketch, tuple[str, ...]]:
    """One sketch of several files, folders, or sketches; also what to say about it.

    Args:
        sets: The path of each set by its name.
        choice: Which columns of files to use, and what to do about missing values.
        grid: Where the cells lie; None for that of the sketches, if there are any.
        bounds: Limits of the columns for a grid, if there are none.
        max_cells: Most distinct cells in all sets together.
        told: What to report progress to.
    """
    kept = {name: loaded(path) for name, path in sets.items() if is_sketch(path)}
    rows = {name: [path] for name, path in sets.items() if name not in kept}
    leader = next(iter(kept), None)
    if leader is not None:
        grid = kept[leader].grid if grid is None else grid
        if bounds is not None or choice.columns or choice.exclude:
            option = "bounds" if bounds is not None else "columns" if choice.columns else "exclude"
            raise InputError(f"--{option} goes with files of rows; a sketch has its own grid.")
        for name, sketch in kept.items():
            check_same_grid(sets[name], sketch.grid, sets[leader], grid)
            max_cells = min(max_cells, sketch.max_cells)
    found = [sketch.rename(name) for name, sketch in kept.items()]
    notices: tuple[str, ...] = ()
    if rows:
        if grid is not None:
            choice = replace(choice, columns=grid.columns, exclude=())
        streams = open_streams(rows, choice)
        notices = next(iter(streams.values())).agreement.notices
        given: dict[str, Any] = {"grid": grid, "bounds": bounds, "max_cells": max_cells}
        found.append(sketch_streams(streams, missing=choice.missing, told=told, **given))
    merged = Sketch.merge(found)
    return merged.select(*sets), notices


def loaded(path: str) -> Sketch:
    """A sketch of one set."""
    sketch = Sketch.load(path)
    if len(sketch.sets) != 1:
        seen = Seen(f"{len(sketch.sets)}: {listed(sketch.names)}")
        raise bad_file(path, "be a sketch of one set", seen)
    return sketch


def check_same_grid(path: str, grid: Grid, leader: str, expected: Grid) -> None:
    """Refuse a sketch on another grid, by the names of the files."""
    if difference := expected.difference(grid):
        way_out = f"Count its rows on that grid: cobpm sketch ... --grid {leader}"
        raise bad_file(path, f"have the grid of '{leader}'", Seen(difference), way_out)


def _spread(
    streams: Mapping[str, Stream],
    workers: list[Worker],
    work: Callable[[Worker, str, Piece], None],
    stage: str,
    place: tuple[float, float],
    told: Progress,
    rows: int | None,
    every: int = 1,
) -> None:
    """Give the pieces to whichever worker is free; a few pieces wait."""
    free: SimpleQueue[Worker] = SimpleQueue()
    for worker in workers:
        free.put(worker)

    def do(name: str, piece: Piece) -> None:
        worker = free.get()
        try:
            work(worker, name, piece)
        finally:
            free.put(worker)

    total = sum(source.size for stream in streams.values() for source in stream.sources) or 1
    waiting: deque[Future[None]] = deque()
    read, before = 0, 0
    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            for name, stream in streams.items():
                size = sum(source.size for source in stream.sources)
                for piece in stream.pieces(rows, every):
                    if len(waiting) >= AHEAD * len(workers):
                        waiting.popleft().result()
                    waiting.append(pool.submit(do, name, piece))
                    read += len(piece.rows)
                    done = (before + piece.done * size) / total
                    told(f"{stage}: {read:,} rows", place[0] + done * (place[1] - place[0]))
                before += size
            for one in waiting:
                one.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


class _Looker:
    """Sees what values there are, for a grid."""

    def __init__(self, missing: str) -> None:
        self.missing = missing
        self.counters: list[_core.BinCounter] = []

    def look(self, name: str, piece: Piece) -> None:
        columns, _, _ = _complete(piece, self.missing)
        if not len(columns[0]):
            return
        if not self.counters:
            self.counters = [_core.BinCounter(MOST_BINS) for _ in columns]
        for counter, column in zip(self.counters, columns, strict=True):
            counter.add(column)


def _grid_of(lookers: Iterable[_Looker], streams: Mapping[str, Stream]) -> Grid:
    seen = [looker.counters for looker in lookers if looker.counters]
    if not seen:
        raise InputError("No row of the files is without missing values.")
    for others in seen[1:]:
        for counter, other in zip(seen[0], others, strict=True):
            counter.add_all(other)
    bins = [Bins(*counter.bins()) for counter in seen[0]]
    for stream in streams.values():
        for k, ends in enumerate(stream.ends()):
            if ends is not None and not _within(ends, bins[k]):
                bins[k] = bins[k].merged(Bins.of(np.array(ends, dtype=float)))
    columns = next(iter(streams.values())).columns
    return Grid(Domain(columns, tuple(own.fitted() for own in bins)))


def _within(ends: tuple[float, float], bins: Bins) -> bool:
    return bool(bins.low[0] <= ends[0] and ends[1] <= bins.high[-1])


class _Counter:
    """Counts rows of each set, and sees whether whole numbers and dates stay what they are."""

    def __init__(self, grid: Grid, max_cells: int, missing: str, bits: list[int]) -> None:
        self.grid, self.max_cells, self.missing = grid, max_cells, missing
        self.bits = bits  # the fewest of any thread: no more will be left in the end
        self.counters: dict[str, _core.Counter] = {}
        self.aside: dict[str, tuple[int, int]] = {}
        self.broken = np.zeros((grid.d, 2), dtype=np.bool_)  # not whole, not full days
        maps = grid.domain.maps
        self.ends = [(column.low[0], column.high[-1]) for column in maps]

    def count(self, name: str, piece: Piece) -> None:
        columns, ends, dropped = _complete(piece, self.missing)
        beyond = 0
        if len(columns[0]):
            if name not in self.counters:
                self.counters[name] = self.grid.counter(self.bits[0], self.max_cells)
            counter = self.counters[name]
            if counter.bits_so_far > self.bits[0]:
                counter.coarsen(self.bits[0])
            counter.add_columns(columns)
            self.bits[0] = min(self.bits[0], counter.bits_so_far)
            beyond = self._beyond(columns, ends)
            self._look_at_kinds(piece.readings, columns)
        before = self.aside.get(name, (0, 0))
        self.aside[name] = before[0] + beyond, before[1] + dropped

    def _beyond(self, columns: list[FloatArray], ends: list[tuple[float, float]]) -> int:
        apart = None
        for column, own, (low, high) in zip(columns, ends, self.ends, strict=True):
            if own[0] < low or own[1] > high:
                there = (column < low) | (column > high)
                apart = there if apart is None else apart | there
        return 0 if apart is None else int(np.count_nonzero(apart))

    def _look_at_kinds(self, kinds: tuple[str, ...], columns: list[FloatArray]) -> None:
        for j, (kind, column) in enumerate(zip(kinds, columns, strict=True)):
            if kind == "integer" and not self.broken[j, 0]:
                self.broken[j, 0] = not (column == np.floor(column)).all()
            if kind == "date" and not self.broken[j, 1]:
                self.broken[j, 1] = bool((column % DAY).any())

    def kinds_of(self, kinds: tuple[str, ...]) -> tuple[str, ...]:
        """What the columns hold, after all, that were thought to hold this."""
        changed = {"integer": "number", "date": "moment"}
        return tuple(
            changed[kind] if kind in changed and self.broken[j].any() else kind
            for j, kind in enumerate(kinds)
        )

    def hand_over(self, builder: SketchBuilder, names: tuple[str, ...]) -> None:
        """Give all that was counted to what puts the threads together."""
        for name in names:
            counter = self.counters.get(name) or self.grid.counter(None, self.max_cells)
            builder._absorb(name, counter, *self.aside.get(name, (0, 0)))


def _complete(
    piece: Piece, missing: str
) -> tuple[list[FloatArray], list[tuple[float, float]], int]:
    """The columns without rows that have gaps, their ends, and how many such rows there were."""
    columns = piece.columns()
    if not len(columns[0]):
        return columns, [], 0
    ends = [(float(column.min()), float(column.max())) for column in columns]
    if np.isfinite(ends).all():
        return columns, ends, 0
    keep = np.logical_and.reduce([np.isfinite(column) for column in columns])
    dropped = len(keep) - int(np.count_nonzero(keep))
    if dropped and missing == "error":
        gaps = [f"'{name}'" for name, c in zip(piece.names, columns, strict=True) if _gaps(c)]
        seen = Seen(f"{dropped:,} rows with some in {', '.join(gaps[:4])}")
        way_out = "--missing drop leaves out rows with gaps."
        raise bad_file(piece.path, "have no missing or infinite values", seen, way_out)
    columns = [column[keep] for column in columns]
    ends = [(float(c.min()), float(c.max())) for c in columns] if len(columns[0]) else []
    return columns, ends, dropped


def _gaps(column: FloatArray) -> bool:
    return not np.isfinite(column).all()


def _check_dropped(name: str, counted: Counted) -> None:
    rows = counted.rows + counted.dropped
    if not counted.rows or counted.dropped > MOST_DROPPED * rows:
        raise InputError(
            f"{counted.dropped:,} of {rows:,} rows of '{name}' have missing or infinite values. "
            "Leave out columns with --exclude, or fill the gaps."
        )
