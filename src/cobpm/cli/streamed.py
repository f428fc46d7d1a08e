"""Files that are too large to hold, and sketches, for commands that compare sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cobpm.counting import sketch_files
from cobpm.progress import Progress
from cobpm.sets import Choice, set_names
from cobpm.sketch import Sketch
from cobpm.sketch_file import is_sketch
from cobpm.sketched import Sketched
from cobpm.streams import are_large


def must_stream(files: Sequence[str], asked: bool) -> bool:
    """Whether to count files piece by piece rather than to hold their rows."""
    return asked or any(map(is_sketch, files)) or are_large(files)


def streamed(files: Sequence[str], choice: Choice, bounds: Any, told: Progress) -> Sketched:
    """One set per file, folder or sketch."""
    names = set_names([Path(path) for path in files])
    bounds = None if bounds == "ranks" else bounds
    sketch, notices = sketch_files(
        dict(zip(names, files, strict=True)), choice, bounds=bounds, told=told
    )
    found = Sketched.of(sketch, "compare")
    return replace(found, notices=(*notices, *found.notices, what_it_means(sketch)))


def what_it_means(sketch: Sketch) -> str:
    """What is lost where cells stand for rows."""
    parts = ", ".join(f"'{name}' {2**own:,}" for name, own in sketch.column_bits.items())
    return (
        f"Rows were counted in {sketch.cells:,} cells of a grid, with columns in parts ({parts}), "
        "instead of being held: differences within a cell go unseen."
    )
