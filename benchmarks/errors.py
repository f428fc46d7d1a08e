"""Errors of estimates where the truth is known: run methods on problems, and sum up.

    records = run(TUNING, {"name": method}, sizes=(100, 500), replicates=10, file=Path("a.jsonl"))
    print(markdown(records))

A method takes the two sample sets and returns a mapping from the names of divergences to an
estimate, or to (estimate, low, high). Each method sees the same data: they depend on the problem's
name, the size and the replicate alone.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from cobpm.arrays import FloatArray
from cobpm.experiments.laws import Problem

if TYPE_CHECKING:
    import pandas as pd

Answer = Mapping[str, float | tuple[float, float, float]]
Method = Callable[[FloatArray, FloatArray], Answer]

FLOOR = 1e-3


@dataclass(frozen=True)
class Record:
    """One estimate beside the truth. Without an interval, low and high are not a number."""

    problem: str
    n: int
    replicate: int
    method: str
    divergence: str
    estimate: float
    low: float
    high: float
    truth: float
    seconds: float


def data(problem: Problem, n: int, replicate: int) -> tuple[FloatArray, FloatArray]:
    """The two sets of n points of a replicate."""
    seed = [crc32(problem.name.encode()), n, replicate]
    return problem.sample(n, np.random.default_rng(seed))


def run(
    problems: Sequence[Problem],
    methods: Mapping[str, Method],
    sizes: Sequence[int],
    replicates: int,
    file: Path | None = None,
) -> list[Record]:
    """Ask each method for each problem, size and replicate, smallest sizes first.

    Args:
        problems: What to estimate.
        methods: The methods by name.
        sizes: The numbers of points per set.
        replicates: How many pairs of sets of each size.
        file: Answers are appended here, one JSON line each, and those already there are not asked
            for again. Delete the file, or a method's lines, when the method has changed.

    Returns:
        One record per problem, size, replicate, method and divergence that the method gave.
    """
    known = dict(_read(file)) if file else {}
    cells = [(n, p, r) for n in sizes for p in problems for r in range(replicates)]
    found: list[Record] = []
    for done, (n, problem, replicate) in enumerate(cells):
        print(
            f"\r{done}/{len(cells)} {problem.name} n={n} replicate {replicate}\033[K",
            end="",
            file=sys.stderr,
            flush=True,
        )
        points = data(problem, n, replicate)
        for name, method in methods.items():
            key = problem.name, n, replicate, name
            if key not in known:
                known[key] = _ask(problem, n, replicate, name, method, points)
                if file and known[key]:
                    _append(file, known[key])
            found += known[key]
    print("\r\033[K", end="", file=sys.stderr)
    return found


def _ask(
    problem: Problem,
    n: int,
    replicate: int,
    name: str,
    method: Method,
    points: tuple[FloatArray, FloatArray],
) -> list[Record]:
    start = time.perf_counter()
    answer = method(*points)
    seconds = time.perf_counter() - start
    records = []
    for divergence, value in answer.items():
        estimate, low, high = value if isinstance(value, tuple) else (value, np.nan, np.nan)
        records.append(
            Record(
                problem=problem.name,
                n=n,
                replicate=replicate,
                method=name,
                divergence=divergence,
                estimate=float(estimate),
                low=float(low),
                high=float(high),
                truth=problem.truth[divergence],
                seconds=seconds,
            )
        )
    return records


def _append(file: Path, records: list[Record]) -> None:
    """One line for the whole answer, so that an interrupted run leaves no half of one."""
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps([asdict(record) for record in records]) + "\n")


def _read(file: Path) -> Iterator[tuple[tuple[str, int, int, str], list[Record]]]:
    if not file.exists():
        return
    *lines, rest = file.read_text(encoding="utf-8").split("\n")
    if rest:  # the last answer was cut off: ask again
        file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    for line in lines:
        records = [Record(**record) for record in json.loads(line)]
        first = records[0]
        yield (first.problem, first.n, first.replicate, first.method), records


def read(file: Path) -> list[Record]:
    """The records that a run left in a file."""
    return [record for _, records in _read(file) for record in records]


# Summing up.


def by_problem(records: Sequence[Record]) -> pd.DataFrame:
    """Mean absolute error, bias, coverage and seconds by method, divergence, n and problem.

    Infinite truths are left out: every estimate is infinitely far away. Coverage is the share of
    intervals that hold the truth, and not a number without intervals.
    """
    import pandas as pd

    table = pd.DataFrame([asdict(record) for record in records])
    table = table[np.isfinite(table["truth"])]
    bias = table["estimate"] - table["truth"]
    covered = (table["low"] <= table["truth"]) & (table["truth"] <= table["high"])
    coverage = covered.astype(float).where(table["low"].notna())
    table = table.assign(error=bias.abs(), bias=bias, coverage=coverage)
    groups = table.groupby(["method", "divergence", "n", "problem"], sort=False)
    return groups[["error", "bias", "coverage", "seconds"]].mean()


def overall(records: Sequence[Record], floor: float = FLOOR) -> pd.DataFrame:
    """Over all problems, by method, divergence and n.

    The columns are `error`, the geometric mean over problems of the mean absolute error; `bias`,
    `coverage` and `seconds`, plain means; and `problems`, how many there were.

    A geometric mean weighs a halved error the same on an easy problem as on a hard one. Problems
    whose truth is zero enter like all others. An error below `floor` counts as `floor`: a method
    that answers exactly zero there, or everywhere, has not won the whole comparison by it.
    """
    table = by_problem(records)
    table["error"] = np.log(table["error"].clip(lower=floor))
    table["problems"] = 1
    ways: dict[str, Any] = dict.fromkeys(("error", "bias", "coverage", "seconds"), "mean")
    groups = table.groupby(["method", "divergence", "n"], sort=False)
    out = groups.agg(ways | {"problems": "sum"})
    out["error"] = np.exp(out["error"])
    return out


def markdown(records: Sequence[Record], floor: float = FLOOR) -> str:
    """The geometric mean errors, times 1000: a row for each method, a column for each divergence.

    A cell has one number for each n.
    """
    errors = overall(records, floor)["error"]
    sizes = sorted({record.n for record in records})
    methods = list(dict.fromkeys(record.method for record in records))
    names = list(dict.fromkeys(record.divergence for record in records))
    head = f"error × 1000 at n = {' / '.join(map(str, sizes))}"
    lines = [f"| {head} | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for method in methods:
        cells = []
        for name in names:
            values = [errors.get((method, name, n), np.nan) for n in sizes]
            numbers = ("–" if np.isnan(value) else f"{1000 * value:.0f}" for value in values)
            cells.append("–" if np.isnan(values).all() else " / ".join(numbers))
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)
