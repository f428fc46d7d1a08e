"""The work of `cobpm sketch` and `cobpm merge`."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

from cobpm.cli.output import console, progress, say
from cobpm.counting import check_same_grid, sketch_paths
from cobpm.grid import Grid
from cobpm.outputs import check_output
from cobpm.samples import InputError
from cobpm.sketch import Sketch
from cobpm.streams import files_in


def run_sketch(
    *,
    files: tuple[str, ...],
    output: str,
    columns: tuple[str, ...],
    exclude: tuple[str, ...],
    missing: str,
    bounds: Any,
    grid: str | None,
    max_cells: int,
    name: str,
    quiet: bool,
) -> None:
    """Count the rows of files; see the command's help."""
    target = _target(output, files_in(files))
    began = perf_counter()
    chosen: Grid | None = None if grid is None else Sketch.load(grid).grid
    with progress(quiet) as told:
        found, notices = sketch_paths(
            {name: files},
            grid=chosen,
            bounds=bounds,
            columns=columns,
            exclude=exclude,
            max_cells=max_cells,
            missing=missing,
            progress=told,
        )
        told(f"writing {output}", 1.0)
        found.save(target)
    if not quiet:
        _show(found, target, notices, perf_counter() - began)


def run_merge(*, files: tuple[str, ...], output: str, quiet: bool) -> None:
    """Put sketches together; see the command's help."""
    target = _target(output, ())  # which may be one of those that are read
    began = perf_counter()
    sketches: list[Sketch] = []
    for path in files:
        sketches.append(Sketch.load(path))
        check_same_grid(path, sketches[-1].grid, files[0], sketches[0].grid)
    found = Sketch.merge(sketches)
    found.save(target)
    if not quiet:
        _show(found, target, (), perf_counter() - began)


def _target(output: str, sources: Any) -> Path:
    target = check_output(output, parameter="output", owner="sketch")
    if target.resolve() in {Path(path).resolve() for path in sources}:
        raise InputError(f"--output would overwrite '{output}', which is read.")
    return target


def _show(found: Sketch, target: Path, notices: tuple[str, ...], seconds: float) -> None:
    out = console()
    for line in str(found).splitlines():
        say(out, line)
    for notice in notices:
        say(out, f"Notice: {notice}")
    size = target.stat().st_size / 1e6
    rate = sum(found.sizes) / max(seconds, 1e-9) / 1e6
    words = f"{target}: {size:,.2f} MB, {seconds:.1f} s, {rate:.2f} million rows per second."
    say(out, words, "dim")
