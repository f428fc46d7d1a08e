"""What a sketch loses: errors by the number of its cells, beside the answer from all rows.

    python -m benchmarks.sketches           # ten minutes or so
    python -m benchmarks.sketches --quick   # tiny sizes: does it still run?

Prints Markdown and writes it to benchmarks/results/sketches.md, or to the file that --out names.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import cobpm
from benchmarks.errors import data
from benchmarks.problems import TUNING, FloatArray, Problem
from benchmarks.seen_problems import SEEN
from benchmarks.speed import HERE, machine

NAMES = (
    *("beta", "beta-mixtures", "correlations", "rotated-ring"),
    *("many-zeros", "codes", "shift-5", "one-spread-of-eight"),
)
SHOWN = {"kl": "KL", "hellinger": "Hellinger", "tv": "Total variation"}
STRAIGHT = ["ranks", "warped", "range", "arctan"]
CELLS = (1_000, 10_000, 100_000, 1_000_000)

ABOUT = """# What a sketch loses

`{command}` on {machine}.

{n:,} + {n:,} rows, means over {replicates} pairs of sets. Errors are absolute, against the truth.
"All frames" is `compare(x, y)` on the rows, "straight frames" the same without turned frames and
those that look at the sets, which sketches cannot have. The other columns are sketches on a grid by
ranks with at most so many cells. "Spread" is the standard deviation of the posterior draws from the
rows: what is added to an error and is small beside it does not matter.
"""
ABOUT_FILES = """## Files

Kilobytes of the file of both sets, and bits per column that are left.
"""
ABOUT_SPEED = """## Counting

{rows:,} rows of three normal columns, in pieces of {piece:,}, on one thread; at most 1,000,000
cells. Rows that are drawn anew are not counted in the time.
"""


@dataclass(frozen=True)
class Row:
    """What one pair of sets gave."""

    problem: Problem
    truth: dict[str, float]
    spread: dict[str, float]
    errors: dict[str, dict[str, float]]  # by column of the table, then by divergence
    bytes: dict[int, int]
    bits: dict[int, tuple[int, ...]]


def errors(post: cobpm.Posterior, problem: Problem) -> dict[str, float]:
    return {name: abs(post.estimate(name) - problem.truth[name]) for name in SHOWN}


def measure(problem: Problem, n: int, replicate: int, folder: Path) -> Row:
    x, y = data(problem, n, replicate)
    rows = cobpm.compare(x, y, rng=0)
    found = {
        "all frames": errors(rows, problem),
        "straight frames": errors(cobpm.compare(x, y, rng=0, frames=STRAIGHT), problem),
    }
    sizes, bits = {}, {}
    fine = cobpm.Sketch.of({"x": x, "y": y}, max_cells=max(CELLS))
    for cells in CELLS:
        sketch = fine.within(cells)
        sketch.save(folder / "sketch")
        sizes[cells] = (folder / "sketch").stat().st_size
        bits[cells] = tuple(sketch.column_bits.values())
        found[f"{cells:,}"] = errors(cobpm.fit(sketch, rng=0), problem)
    spread = {name: float(rows.draws(name).std()) for name in SHOWN}
    return Row(problem, dict(problem.truth), spread, found, sizes, bits)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def by_problem(found: list[Row]) -> Iterator[tuple[Problem, list[Row]]]:
    for name in dict.fromkeys(row.problem.name for row in found):
        own = [row for row in found if row.problem.name == name]
        yield own[0].problem, own


def error_tables(found: list[Row]) -> Iterator[str]:
    columns = list(found[0].errors)
    for divergence, title in SHOWN.items():
        rows = []
        for problem, own in by_problem(found):
            means = [np.mean([row.errors[c][divergence] for row in own]) for c in columns]
            spread = np.mean([row.spread[divergence] for row in own])
            cells = [own[0].truth[divergence], spread, *means]
            rows.append([problem.name, str(problem.d), *(f"{value:.4f}" for value in cells)])
        yield f"## {title}\n\n" + table(["problem", "d", "truth", "spread", *columns], rows)


def file_table(found: list[Row]) -> str:
    rows = []
    for problem, own in by_problem(found):
        cells = []
        for limit in CELLS:
            bits = own[0].bits[limit]
            few, many = min(bits), max(bits)
            each = f"{few}" if few == many else f"{few}–{many}"
            cells.append(f"{np.mean([row.bytes[limit] for row in own]) / 1000:,.0f} kB, {each}")
        rows.append([problem.name, str(problem.d), *cells])
    return table(["problem", "d", *(f"{limit:,}" for limit in CELLS)], rows)


def speed_table(total: int, piece: int) -> str:
    def pieces() -> Iterator[FloatArray]:
        rng = np.random.default_rng(0)
        for _ in range(total // piece):
            yield rng.normal(size=(piece, 3))

    looked, took = cobpm.GridBuilder(), 0.0
    for rows in pieces():
        start = time.process_time()
        looked.add(rows)
        took += time.process_time() - start
    grids = {"by ranks": looked.grid(), "even": cobpm.Grid.from_bounds(["a", "b", "c"], (-5, 5))}
    lines = [["a first look, for a grid by ranks", f"{1e9 * took / total:.0f}", "", ""]]
    for name, grid in grids.items():
        builder, took = cobpm.SketchBuilder(grid), 0.0
        for rows in pieces():
            start = time.process_time()
            builder.add(rows)
            took += time.process_time() - start
        sketch = builder.sketch()
        each = f"{1e9 * took / total:.0f}"
        lines.append([f"counting, grid {name}", each, f"{sketch.cells:,}", str(sketch.bits)])
    return table(["", "ns per row", "cells", "bits"], lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "sketches.md")
    given = parser.parse_args(arguments)
    n, replicates, names = (300, 1, NAMES[:2]) if given.quick else (100_000, 3, NAMES)
    total, piece = (20_000, 10_000) if given.quick else (10_000_000, 500_000)
    problems = {problem.name: problem for problem in (*TUNING, *SEEN)}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for replicate in range(replicates):
                found.append(measure(problems[name], n, replicate, Path(folder)))
            print(f"{name}: done", flush=True)
    command = "python -m benchmarks.sketches" + " --quick" * given.quick
    text = "\n".join(
        [
            ABOUT.format(command=command, machine=machine(), n=n, replicates=replicates),
            *error_tables(found),
            ABOUT_FILES,
            file_table(found),
            ABOUT_SPEED.format(rows=total, piece=piece),
            speed_table(total, piece),
        ]
    )
    print(text)
    given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
