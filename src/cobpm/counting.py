"""From files to sketches: pieces of rows, counted on all processors in bounded memory.

Every thread counts for itself, and counts merge exactly: neither the number of threads nor the size
of the pieces changes the sketch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np

from cobpm.arrays import FloatArray
from cobpm.domain import Domain
from cobpm.grid import Grid
from cobpm.grid_builder import Bins
from cobpm.progress import Progress
from cobpm.samples import InputError, Seen, bad_file
from cobpm.sets import MOST_DROPPED
from cobpm.sketch import MAX_CELLS, Counted, Sketch
from cobpm.streams import Piece, Stream
from cobpm.threads import thread_count
from cobpm.units import common_kind

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
            for cells of about equal numbers of rows, which takes a pass over the files.
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
    passes = 1 if chosen is not None else 2
    if chosen is None:
        lookers = [_Looker(columns, missing) for _ in range(thread_count())]
        _spread(streams, lookers, _Looker.look, "choosing a grid", (0, passes), told, rows)
        chosen = _grid_of(lookers, columns)
    counters = [_Counter(chosen, max_cells, missing) for _ in range(thread_count())]
    place = passes - 1, passes
    _spread(streams, counters, _Counter.count, "counting", place, told, rows)
    found = Sketch.merge([counter.sketch(tuple(streams)) for counter in counters])
    for name, counted in found.sets.items():
        _check_dropped(name, counted)
    if grid is not None:
        return found
    kinds = [kind for stream in streams.values() for kind in [stream.agreement.kinds]]
    seen = [_common([counter.kinds_of(kinds[0]) for counter in counters])]
    return replace(found, grid=Grid(replace(chosen.domain, kinds=seen[0])))


def _spread(
    streams: Mapping[str, Stream],
    workers: list[Worker],
    work: Callable[[Worker, str, Piece], None],
    stage: str,
    place: tuple[int, int],
    told: Progress,
    rows: int | None,
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
                for piece in stream.pieces(rows):
                    if len(waiting) >= AHEAD * len(workers):
                        waiting.popleft().result()
                    waiting.append(pool.submit(do, name, piece))
                    read += len(piece.rows)
                    done = (before + piece.done * size) / total
                    told(f"{stage}: {read:,} rows", (place[0] + done) / place[1])
                before += size
            for one in waiting:
                one.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


class _Looker:
    """Sees what values there are, for a grid."""

    def __init__(self, columns: tuple[str, ...], missing: str) -> None:
        self.columns, self.missing = columns, missing
        self.bins: list[Bins] = []

    def look(self, name: str, piece: Piece) -> None:
        columns, _ = _complete(piece, self.missing)
        if not len(columns[0]):
            return
        bins = [Bins.of(column) for column in columns]
        if self.bins:
            bins = [mine.merged(more) for mine, more in zip(self.bins, bins, strict=True)]
        self.bins = bins


def _grid_of(lookers: Iterable[_Looker], columns: tuple[str, ...]) -> Grid:
    found: list[Bins] = []
    for looker in lookers:
        if found and looker.bins:
            found = [a.merged(b) for a, b in zip(found, looker.bins, strict=True)]
        found = found or looker.bins
    if not found:
        raise InputError("No row of the files is without missing values.")
    return Grid(Domain(columns, tuple(bins.fitted() for bins in found)))


class _Counter:
    """Counts rows of each set, and sees whether whole numbers and dates stay what they are."""

    def __init__(self, grid: Grid, max_cells: int, missing: str) -> None:
        self.grid, self.max_cells, self.missing = grid, max_cells, missing
        self.counters: dict[str, Any] = {}
        self.aside: dict[str, tuple[int, int]] = {}
        self.broken = np.zeros((grid.d, 2), dtype=np.bool_)  # not whole, not full days
        maps = grid.domain.maps
        self.ends = [(column.low[0], column.high[-1]) for column in maps]

    def count(self, name: str, piece: Piece) -> None:
        columns, dropped = _complete(piece, self.missing)
        beyond = 0
        if len(columns[0]):
            if name not in self.counters:
                self.counters[name] = self.grid.counter(None, self.max_cells)
            self.counters[name].add_columns(columns)
            beyond = self._beyond(columns)
            self._look_at_kinds(piece.readings, columns)
        before = self.aside.get(name, (0, 0))
        self.aside[name] = before[0] + beyond, before[1] + dropped

    def _beyond(self, columns: list[FloatArray]) -> int:
        apart = None
        for column, (low, high) in zip(columns, self.ends, strict=True):
            if column.min() < low or column.max() > high:
                own = (column < low) | (column > high)
                apart = own if apart is None else apart | own
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

    def sketch(self, names: tuple[str, ...]) -> Sketch:
        nothing = np.empty(0, dtype=np.uint64)
        bits = min([self.grid.finest, *(counter.bits for counter in self.counters.values())])
        sets = {}
        for name in names:
            cells = nothing, nothing
            if name in self.counters:
                self.counters[name].coarsen(bits)
                cells = self.counters[name].cells()
            sets[name] = Counted(*cells, *self.aside.get(name, (0, 0)))
        return Sketch(self.grid, bits, self.max_cells, sets)


def _common(kinds: list[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(common_kind(own) for own in zip(*kinds, strict=True))


def _complete(piece: Piece, missing: str) -> tuple[list[FloatArray], int]:
    """The columns without rows that have gaps, and how many these are."""
    columns = piece.columns()
    if not len(columns[0]):
        return columns, 0
    ends = [end for column in columns for end in (column.min(), column.max())]
    if np.isfinite(ends).all():
        return columns, 0
    keep = np.logical_and.reduce([np.isfinite(column) for column in columns])
    dropped = len(keep) - int(np.count_nonzero(keep))
    if dropped and missing == "error":
        gaps = [f"'{name}'" for name, c in zip(piece.names, columns, strict=True) if _gaps(c)]
        seen = Seen(f"{dropped:,} rows with some in {', '.join(gaps[:4])}")
        way_out = "--missing drop leaves out rows with gaps."
        raise bad_file(piece.path, "have no missing or infinite values", seen, way_out)
    return [column[keep] for column in columns], dropped


def _gaps(column: FloatArray) -> bool:
    return not np.isfinite(column).all()


def _check_dropped(name: str, counted: Counted) -> None:
    rows = counted.rows + counted.dropped
    if not counted.rows or counted.dropped > MOST_DROPPED * rows:
        raise InputError(
            f"{counted.dropped:,} of {rows:,} rows of '{name}' have missing or infinite values. "
            "Leave out columns with --exclude, or fill the gaps."
        )
