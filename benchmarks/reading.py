"""How long libraries take to start and to read a CSV file, each in a process of its own.

    python -m benchmarks.reading                # a minute
    python -m benchmarks.reading --rows 1000    # does it still run?

Prints a table in Markdown: seconds of processor time beyond that of Python itself, best of three.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

READERS = {
    "PyArrow": ("import pyarrow.csv as reader", "reader.read_csv"),
    "pandas": ("import pandas as reader", "reader.read_csv"),
    "Polars": ("import polars as reader", "reader.read_csv"),
}
REPEATS = 3


def seconds(script: str) -> float:
    """The best of several runs of a script, start of Python included, in processor time."""
    used = []
    for _ in range(REPEATS):
        before = os.times()
        subprocess.run([sys.executable, "-c", script], check=True)
        after = os.times()
        used.append(
            after.children_user
            - before.children_user
            + after.children_system
            - before.children_system
        )
    return min(used)


def write_table(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    numbers, groups = rng.normal(size=(rows, 5)), rng.integers(0, 9, rows)
    with path.open("w", encoding="utf-8") as file:
        file.write("a,b,c,d,e,group,word\n")
        for row, group in zip(numbers, groups, strict=True):
            file.write(",".join(map(repr, row.tolist())) + f",{group},x\n")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args(arguments).rows
    empty = seconds("pass")
    print("| library | start | start and read |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write_table(path, rows)
        for name, (load, read) in READERS.items():
            start = seconds(load) - empty
            both = seconds(f"{load}; {read}({str(path)!r})") - empty
            print(f"| {name} | {start:.2f} s | {both:.2f} s |")


if __name__ == "__main__":
    main()
