"""Sketches in the place of samples: cells with counts for the engines, and frames for the cells.

The paper's model halves the grid itself, down to its cells and no further. The ratio model does so
in one frame, "grid", and looks through the straight frames too (see `cobpm.frames`), where a cell
is a point in its middle that counts as often as it holds rows. Turned frames and those that look
at the sets would need the rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobpm import clusters
from cobpm.arrays import FloatArray, IntArray
from cobpm.cells import Cells
from cobpm.column_map import BITS, ColumnMap
from cobpm.domain import Domain
from cobpm.frames import GRID, NAMES, SHAPES, Frame, check_frames, fit_frames
from cobpm.grid import Grid
from cobpm.grid_builder import quantile_points
from cobpm.samples import Samples, Seen, as_groups, as_samples, bad, check_bounds
from cobpm.sketch import Sketch, needs_rows

MOST_ROWS = 2**32 - 1  # of all sets together: the core counts in 32 bits
COARSE = 2  # bits of a column that deserve a notice
SKETCH_FRAMES = (GRID, *SHAPES)


@dataclass(frozen=True, eq=False)
class Sketched:
    """The sets of a sketch where `Samples` are expected.

    Attributes:
        names: One name per set.
        columns: One name per column.
        values: Cells and counts of each set, (cells, 2).
        grid: Where the cells lie.
        bits: Bits of their names.
        notices: Sentences for the user.
        bounded: Whether the grid was made within the bounds that came with the rows.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[NDArray[np.uint64], ...]
    grid: Grid
    bits: int
    notices: tuple[str, ...] = ()
    bounded: bool = False

    @classmethod
    def of(cls, sketch: Sketch, owner: str) -> Sketched:
        """Check that there is something to compare, and no more than can be counted."""
        empty = [name for name, counted in sketch.sets.items() if not len(counted.keys)]
        if empty or not sketch.sets:
            seen = Seen(f"none in '{empty[0]}'" if empty else "a sketch without sets")
            raise bad("samples", owner, "hold rows", seen)
        if (total := sum(sketch.sizes)) > MOST_ROWS:
            way_out = "Compare sketches of fewer rows, for example of every second file."
            rule = f"have at most {MOST_ROWS:,} rows together"
            raise bad("samples", owner, rule, Seen(f"{total:,}"), way_out)
        values = tuple(
            np.column_stack([counted.keys, counted.counts]) for counted in sketch.sets.values()
        )
        return cls(sketch.names, sketch.columns, values, sketch.grid, sketch.bits, _notices(sketch))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of rows of each set."""
        return tuple(int(cells[:, 1].sum()) for cells in self.values)

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def only(self, *which: int) -> Sketched:
        """Some of the sets, given by their numbers."""
        names = tuple(self.names[k] for k in which)
        return replace(self, names=names, values=tuple(self.values[k] for k in which))

    @property
    def about(self) -> dict[str, Any]:
        """What the cells are cells of, for the record."""
        digest = hashlib.sha256()
        for cuts in self.grid.cuts:
            digest.update(cuts.data)
        return {"bits": self.bits, "cells": len(self._keys), "grid_sha256": digest.hexdigest()}

    @cached_property
    def _keys(self) -> NDArray[np.uint64]:
        """Distinct cells of all sets, in ascending order."""
        return np.unique(np.concatenate([cells[:, 0] for cells in self.values]))

    @cached_property
    def _which(self) -> IntArray:
        """For each row of all `values`, one after another, which of the distinct cells it is."""
        return np.searchsorted(self._keys, np.concatenate([cells[:, 0] for cells in self.values]))

    @cached_property
    def _indices(self) -> NDArray[np.uint64]:
        return self.grid.indices(self._keys, self.bits)

    @cached_property
    def active(self) -> tuple[int, ...]:
        """Columns in which the cells differ."""
        differ = (self._indices != self._indices[0]).any(axis=0)
        return tuple(np.flatnonzero(differ).tolist())

    @cached_property
    def _middles(self) -> FloatArray:
        """A point in the middle of each distinct cell, in the user's units."""
        unit = self.grid.unit(self._keys, self.bits)
        maps = self.grid.domain.maps
        return np.column_stack([maps[j].values(unit[:, j], "low") for j in range(self.d)])

    def frames(self, names: Sequence[str]) -> list[Frame]:
        """Frames of these names; straight ones are fitted to the middles of the cells."""
        found = [Frame(GRID, self._own_domain())] if GRID in names else []
        straight = [name for name in names if name != GRID]
        if straight:
            fitted = fit_frames(self._summary(), straight, None)
            found += [replace(f, domain=replace(f.domain, notices=())) for f in fitted]
        said = [
            f"All rows have column '{self.columns[j]}' in one cell of the grid; it was left out."
            for j in range(self.d)
            if j not in self.active
        ]
        if straight and len(self.active) > 1:
            said.append("Turned frames and those that look at the sets need rows: left out.")
        first = replace(found[0], domain=replace(found[0].domain, notices=tuple(said)))
        return [first, *found[1:]]

    def _own_domain(self) -> Domain:
        """The grid's, without the columns in which all cells are one."""
        maps = [
            column if j in self.active else _constant(self._middles[0, j])
            for j, column in enumerate(self.grid.domain.maps)
        ]
        return replace(self.grid.domain, maps=tuple(maps), notices=())

    def _summary(self) -> Samples:
        """Points that stand for all rows in each column by itself."""
        weights = np.bincount(self._which, np.concatenate([c[:, 1] for c in self.values]))
        columns = []
        for j in range(self.d):
            values, place = np.unique(self._middles[:, j], return_inverse=True)
            counts = np.bincount(place, weights).astype(np.int64)  # exact: sums are below 2^53
            columns.append(quantile_points(values, values, counts))
        rows = np.ascontiguousarray(np.column_stack(columns))
        return Samples(("pooled",), self.columns, (rows,), kinds=self.grid.domain.kinds)

    def encode(self, frame: Frame) -> Cells:
        """Put the cells on the grid of a frame."""
        resolution = None
        if frame.name == GRID:
            bits = np.array(self.grid.bits_of(self.bits), dtype=np.uint8)[list(self.active)]
            indices = self._indices[:, list(self.active)]
            codes = (indices << (BITS - bits).astype(np.uint64)).T
            resolution = bits
        else:
            codes = frame.codes(self._middles)
        counts = [len(cells) for cells in self.values]
        return Cells(
            np.ascontiguousarray(codes[:, self._which]),
            np.repeat(np.arange(len(counts), dtype=np.uint16), counts),
            np.array(self.sizes, dtype=np.int64),
            np.concatenate([cells[:, 1] for cells in self.values]).astype(np.uint32),
            resolution,
        )

    def pooled(self) -> tuple[IntArray, IntArray]:
        """Rows of all sets in each distinct cell, and which cell each row of `encode` is."""
        counts = np.bincount(self._which, np.concatenate([c[:, 1] for c in self.values]))
        return counts.astype(np.int64), self._which


def _constant(value: float) -> ColumnMap:
    return ColumnMap(np.array([0.0, 1.0]), np.array([value]), np.array([value]))


def _notices(sketch: Sketch) -> tuple[str, ...]:
    found = []
    for name, counted in sketch.sets.items():
        if counted.beyond:
            found.append(
                f"In '{name}': {counted.beyond:,} rows lie beyond the grid and were counted in its "
                "outermost cells."
            )
        if counted.dropped:
            found.append(
                f"In '{name}': {counted.dropped:,} rows with missing values were left out."
            )
    bits = sketch.column_bits
    coarse = [name for name, own in bits.items() if own <= COARSE]
    if coarse and sketch.bits < sketch.grid.finest:
        more = f" (and {len(coarse) - 1} more)" if len(coarse) > 1 else ""
        found.append(
            f"With at most {sketch.max_cells:,} cells in all, column '{coarse[0]}'{more} is cut "
            f"into {2 ** bits[coarse[0]]}. What differs inside cannot be seen: raise max_cells, or "
            "count fewer columns."
        )
    return tuple(found)


# --- either kind ---------------------------------------------------------------------------------


def as_sets(
    sets: Any,
    *,
    owner: str,
    names: Sequence[str] | None = None,
    parameters: Sequence[str] | None = None,
    bounds: Any = None,
    most_cells: int | None = None,
) -> Samples | Sketched:
    """Samples as `as_samples` reads them; or sketches, if there is one among them.

    Rows beside a sketch are counted on its grid. Where there are collections of Dask, all sets are
    counted, on a grid within the bounds, if given, or else one by ranks. A sketch of more than
    `most_cells` is made coarser.
    """
    if isinstance(sets, Sketched):
        return sets
    if isinstance(sets, Sketch):
        return Sketched.of(sets, owner)
    listed = list(sets.values()) if isinstance(sets, Mapping) else sets
    is_list = isinstance(listed, list | tuple)
    leader = next((s for s in listed if isinstance(s, Sketch)), None) if is_list else None
    remote = [clusters.is_collection(s) for s in listed] if is_list else []
    if leader is None and not any(remote):
        return as_samples(sets, owner=owner, names=names, parameters=parameters)
    keys = list(sets) if isinstance(sets, Mapping) else list(range(len(listed)))
    if names is None:
        names = [str(key if isinstance(sets, Mapping) else key + 1) for key in keys]
    parameters = [f"samples[{key!r}]" for key in keys] if parameters is None else parameters
    if len(set(names)) < len(names):
        raise bad("samples", owner, "have names that differ as text", Seen(f"{list(names)}"))
    if leader is not None:
        sketch = _on_grid_of(leader, listed, names, parameters, owner)
    else:
        tables = dict(zip(names, listed, strict=True))
        sketch = clusters.sketch(tables, parameters, owner=owner, bounds=bounds)
    said = clusters.notices(
        list(compress(parameters, remote)), looked=leader is None and needs_rows(bounds)
    )
    coarse = sketch if most_cells is None else sketch.within(most_cells)
    found = Sketched.of(coarse, owner)
    said += found.notices
    if coarse.cells < sketch.cells:
        said += (
            f"The sketch was brought from {sketch.cells:,} cells to {coarse.cells:,}, with "
            f"{coarse.bits} bits of {sketch.bits}, to bound the time.",
        )
    return replace(found, notices=said, bounded=leader is None and bounds is not None)


def as_grouped(table: Any, groups: Any, *, owner: str, bounds: Any) -> Samples | Sketched:
    """The sets of one table as `as_groups` reads them; or a sketch, if it is one of Dask."""
    if not clusters.is_collection(table):
        return as_groups(table, groups, owner=owner)
    sketch = clusters.sketch_groups(table, groups, owner=owner, bounds=bounds)
    found = Sketched.of(sketch, owner)
    said = clusters.notices(["samples"], looked=needs_rows(bounds))
    return replace(found, notices=(*said, *found.notices), bounded=bounds is not None)


def _on_grid_of(
    leader: Sketch, sets: Sequence[Any], names: Sequence[str], parameters: Sequence[str], owner: str
) -> Sketch:
    """One sketch of all sets, those that are no sketches counted on the grid of one that is."""
    found = []
    for one, name, parameter in zip(sets, names, parameters, strict=True):
        if not isinstance(one, Sketch):
            # A sketch must not lose cells to rows that could have more.
            one = Sketch.of({name: one}, grid=leader.grid, max_cells=leader.max_cells)
        elif len(one.sets) != 1:
            seen, way_out = Seen(f"{len(one.sets)} sets"), "Pick one: sketch.select(name)."
            if owner in ("fit", "pairwise"):
                way_out = f"Pass it by itself: {owner}(sketch)."
            raise bad(parameter, owner, "be a sketch of one set", seen, way_out)
        leader.grid.check_same(one.grid, owner)
        found.append(one.rename(name) if one.names != (name,) else one)
    return Sketch.merge(found)


def encode(samples: Samples | Sketched, frame: Frame) -> Cells:
    """Put samples of either kind on a frame's grid."""
    return samples.encode(frame) if isinstance(samples, Sketched) else frame.encode(samples)


def check_any_bounds(bounds: Any, samples: Samples | Sketched, *, owner: str) -> Any:
    """Read bounds, which sketches have no use for."""
    if isinstance(samples, Samples):
        return check_bounds(bounds, samples, owner=owner)
    if bounds is not None and not samples.bounded:
        way_out = "A sketch has the bounds of its grid: Sketch.of(rows, bounds=...)."
        raise bad("bounds", owner, "be left out with sketches", bounds, way_out)
    return None


def check_sketch_frames(frames: Any, *, owner: str) -> tuple[str, ...]:
    """The names of the frames that a user asks for, of those that do without rows."""
    if isinstance(frames, str) and frames == "auto":
        return SKETCH_FRAMES
    if isinstance(frames, int | np.integer) and not isinstance(frames, bool):
        if not 1 <= frames <= len(SKETCH_FRAMES):
            rule = f"be a number from 1 to {len(SKETCH_FRAMES)}, 'auto', or a list of names"
            raise bad("frames", owner, rule, frames, "Other frames need the rows.")
        return SKETCH_FRAMES[:frames]
    named = frames if isinstance(frames, list | tuple) else []
    if turned := [name for name in named if name in NAMES and name not in SHAPES]:
        way_out = f"Those that do are {', '.join(map(repr, SKETCH_FRAMES))}."
        raise bad("frames", owner, "name frames that do without rows", turned[0], way_out)
    if GRID in named:
        others = [name for name in named if name != GRID]
        if len(others) + 1 < len(named):
            raise bad("frames", owner, "name each frame once", frames)
        checked = check_frames(others, owner=owner, d=2) if others else ()
        return (GRID, *checked)
    return check_frames(frames, owner=owner, d=2)
