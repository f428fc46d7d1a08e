"""Sketches in files: Parquet, with all that is needed to go on counting.

The table has a row per cell and set: `set`, `cell`, `count`. The metadata hold the grid, the names
and a digest of everything, so that damage is found wherever it is.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cobpm
from cobpm.arrays import FloatArray
from cobpm.columns import as_numpy
from cobpm.domain import Domain
from cobpm.grid import FINEST, Grid
from cobpm.outputs import check_output, written_whole
from cobpm.samples import InputError, Seen, bad
from cobpm.sketch import Counted, Sketch

FORMAT = 1
ABOUT, GRID, DIGEST = b"cobpm_sketch", b"cobpm_grid", b"cobpm_digest"
OWNER = "Sketch.load"


def save(sketch: Sketch, path: Any) -> None:
    """Write a sketch: beside its place first, then moved in one step."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = check_output(path, owner="Sketch.save")
    about = json.dumps(
        {
            "format": FORMAT,
            "cobpm": cobpm.__version__,
            "finest": FINEST,
            "bits": sketch.bits,
            "max_cells": sketch.max_cells,
            "sets": [
                {
                    "name": name,
                    "cells": len(counted.keys),
                    "rows": counted.rows,
                    "beyond": counted.beyond,
                    "dropped": counted.dropped,
                }
                for name, counted in sketch.sets.items()
            ],
        }
    ).encode()
    grid = _packed(sketch.grid)
    which, keys, counts = _columns(sketch)
    names = ["set", "cell", "count"]
    table = pa.table([_as_arrow(column) for column in (which, keys, counts)], names)
    digest = _digest(about, grid, which, keys, counts)
    with (
        written_whole(target) as beside,
        pq.ParquetWriter(
            beside,
            table.schema,
            compression="zstd",
            use_dictionary=["set"],
            column_encoding={"cell": "DELTA_BINARY_PACKED", "count": "DELTA_BINARY_PACKED"},
            write_page_checksum=True,
            store_schema=False,
        ) as file,
    ):
        file.write_table(table)
        file.add_key_value_metadata({ABOUT: about, GRID: grid, DIGEST: digest})


def load(path: Any) -> Sketch:
    """Read what `save` wrote."""
    source = _existing(path)
    try:
        import pyarrow.parquet as pq

        with pq.ParquetFile(source, page_checksum_verification=True) as file:
            kept = file.metadata.metadata or {}
            if ABOUT not in kept:
                raise _unusable(source, "The file holds no sketch.")
            about = json.loads(kept[ABOUT])
            if about["format"] > FORMAT:
                way_out = f"It was written by cobpm {about['cobpm']}: update cobpm to read it."
                seen = Seen(f"format {about['format']} in '{source}'")
                raise bad("path", OWNER, f"name a file of format {FORMAT}", seen, way_out)
            table = file.read(use_threads=False)
        types = {"set": np.uint16, "cell": np.uint64, "count": np.uint64}
        which, keys, counts = (_as_numpy(table[name], kind) for name, kind in types.items())
        if _digest(kept[ABOUT], kept[GRID], which, keys, counts) != kept[DIGEST]:
            raise ValueError("its contents do not match their digest")
        return _rebuilt(about, _unpacked(kept[GRID]), keys, counts)
    except (InputError, PermissionError, ImportError):
        raise
    except Exception as error:  # a foreign or damaged file can fail at any point
        why = " ".join(str(error).split())[:120]
        raise _unusable(source, f"It is damaged, or something else ({why}).") from error


def is_sketch(path: Any) -> bool:
    """Whether a file is a Parquet file that says it holds a sketch."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return ABOUT in (pq.read_metadata(path).metadata or {})
    except (pa.ArrowException, OSError, ValueError):
        return False


def _existing(path: Any) -> Path:
    try:
        source = Path(path)
    except TypeError:
        raise bad("path", OWNER, "be the path of a file", path) from None
    if not source.is_file():
        way_out = f"Relative paths start from '{Path.cwd()}'."
        raise bad("path", OWNER, "name a file that exists", str(source), way_out)
    return source


def _unusable(source: Path, way_out: str) -> InputError:
    return bad("path", OWNER, "name a file that Sketch.save wrote", str(source), way_out)


def _columns(
    sketch: Sketch,
) -> tuple[NDArray[np.uint16], NDArray[np.uint64], NDArray[np.uint64]]:
    """All sets, one after another, as the columns of one table."""
    sets = list(sketch.sets.values())
    which = np.repeat(np.arange(len(sets), dtype=np.uint16), [len(s.keys) for s in sets])
    none = np.empty(0, dtype=np.uint64)
    keys = np.concatenate([none, *(counted.keys for counted in sets)])
    return which, keys, np.concatenate([none, *(counted.counts for counted in sets)])


def _as_arrow(column: NDArray[Any]) -> Any:
    """A column for Arrow, whose own way would load pandas."""
    import pyarrow as pa

    kind = {"uint16": pa.uint16(), "uint64": pa.uint64()}[column.dtype.name]
    return pa.Array.from_buffers(kind, len(column), [None, pa.py_buffer(column)])


def _as_numpy(column: Any, dtype: Any) -> NDArray[Any]:
    """The way back."""
    if str(column.type) != np.dtype(dtype).name:
        raise ValueError(f"a column of type {column.type}")
    parts = [as_numpy(chunk, dtype, 0) for chunk in column.chunks]
    return np.concatenate([np.empty(0, dtype), *parts])


def _rebuilt(
    about: dict[str, Any], grid: Grid, keys: NDArray[np.uint64], counts: NDArray[np.uint64]
) -> Sketch:
    starts = np.concatenate([[0], np.cumsum([entry["cells"] for entry in about["sets"]])])
    sets = {
        entry["name"]: Counted(keys[a:b], counts[a:b], entry["beyond"], entry["dropped"])
        for entry, a, b in zip(about["sets"], starts[:-1], starts[1:], strict=True)
    }
    sketch = Sketch(grid, about["bits"], about["max_cells"], sets)
    if (
        about["finest"] != FINEST
        or not 0 <= sketch.bits <= grid.finest
        or starts[-1] != len(keys)
        or len(sets) != len(about["sets"])
        or not sketch.cells <= sketch.max_cells
        or sketch.max_cells < 1
        or sketch.sizes != tuple(entry["rows"] for entry in about["sets"])
        or not all(_in_order(counted, sketch.bits) for counted in sets.values())
    ):
        raise ValueError("it contradicts itself")
    return sketch


def _in_order(counted: Counted, bits: int) -> bool:
    keys, counts = counted.keys, counted.counts
    if not len(keys):
        return True
    return bool((keys[1:] > keys[:-1]).all() and int(keys[-1]) < 1 << bits and counts.all())


def _packed(grid: Grid) -> bytes:
    """A grid as text: metadata of Parquet files are text."""
    arrays, file = grid.to_arrays(), io.BytesIO()
    arrays["high"] = _against(arrays["high"], arrays["low"])
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return base64.b64encode(file.getvalue())


def _unpacked(text: bytes) -> Grid:
    with np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False) as file:
        arrays = dict(file)
    arrays["high"] = _against(arrays["high"], arrays["low"])
    return Grid(Domain.from_arrays(arrays))


def _against(high: FloatArray, low: FloatArray) -> FloatArray:
    """Upper ends with the bits turned that the next lower end has, or turned back.

    Most pieces begin where the one before ends: what is left is zero and takes no room.
    """
    bits = high.view(np.uint64).copy()
    bits[:-1] ^= low.view(np.uint64)[1:]
    return bits.view(np.float64)


def _digest(about: bytes, grid: bytes, *columns: NDArray[Any]) -> bytes:
    found = hashlib.sha256(about + b"\0" + grid)
    for column in columns:
        found.update(column.data)
    return found.hexdigest().encode()
