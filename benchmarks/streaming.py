"""Sketching files of up to 10^8 rows: memory, and speed next to a plain scan of the same files.

    python -m benchmarks.streaming              # needs 2.5 GB in the folder for temporary files
    python -m benchmarks.streaming --quick      # tiny sizes: does it still run?

Prints Markdown and writes it to benchmarks/results/streaming.md, with a picture beside it, or to
the file that --out names. The scan is the smallest, largest and mean value of every column by
Polars' streaming engine. Each measurement is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed import ALL, machine, row

HERE = Path(__file__).parent
SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
QUICK = (2_000, 20_000)
FILES, GROUP = 10, 1_000_000
BOUNDS = {"a": (-7.0, 7.0), "b": (-7.0, 7.0), "c": (0.0, 500.0)}
ABOUT = """\
Rows of three columns (two correlated normal ones, one lognormal) in Parquet files with row groups
of a million rows, zstd, no dictionaries. `one pass` counts on a grid from given bounds;
`two passes` looks at about four million rows first to choose a grid by ranks. The scan is Polars'
streaming engine: smallest, largest and mean value of each column. Every figure is the best of
{turns} processes of their own with {threads} threads, libraries loaded before the clock starts;
processor seconds in brackets, which other work on the machine disturbs less. `over the scan` are
rows per second over those of the scan, by the clock and in brackets by processor seconds. Memory is
the peak of the whole process.
"""
WORK = {
    "one pass": """
from cobpm.counting import sketch_streams
from cobpm.streams import open_streams
import pyarrow.parquet
def work():
    found = sketch_streams(open_streams({"rows": [folder]}), bounds=bounds)
    return {"rows": sum(found.sizes), "cells": found.cells, "bits": found.bits}
""",
    "two passes": """
from cobpm.counting import sketch_streams
from cobpm.streams import open_streams
import pyarrow.parquet
def work():
    found = sketch_streams(open_streams({"rows": [folder]}))
    return {"rows": sum(found.sizes), "cells": found.cells, "bits": found.bits}
""",
    "scan": """
import polars as pl
def work():
    every = pl.all()
    asked = every.min().name.suffix(" min"), every.max().name.suffix(" max"), every.mean()
    pl.scan_parquet(folder + "/*.parquet").select(*asked).collect(engine="streaming")
    return {}
""",
}
CLOCK = """
import json, resource, sys, time
began, used = time.perf_counter(), time.process_time()
found = work()
found["seconds"], found["processor"] = time.perf_counter() - began, time.process_time() - used
try:  # Linux; what getrusage says there begins with the peak of the parent
    status = open("/proc/self/status").read()
    found["peak"] = int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6
except OSError:
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Measured:
    """One size: what each kind of work took."""

    n: int
    size: float
    work: dict[str, dict[str, Any]]

    def ratio(self, kind: str, clock: str) -> float:
        """Rows per second over those of the scan."""
        return float(self.work["scan"][clock] / self.work[kind][clock])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes")
    parser.add_argument("--turns", type=int, default=2, help="processes per figure")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "streaming.md")
    options = parser.parse_args(arguments)
    turns = 1 if options.quick else options.turns
    about = machine()
    found = [measure(n, turns) for n in (QUICK if options.quick else SIZES)]
    command = "python -m benchmarks.streaming" + " --quick" * options.quick
    text = "\n".join(
        [
            "# Files larger than memory\n",
            f"Printed by `{command}` on {about}.\n",
            ABOUT.format(turns=turns, threads=ALL),
            *table(found),
            "",
            f"![processor seconds against rows]({options.out.stem}.png)",
            "",
        ]
    )
    print(text)
    options.out.write_text(text, encoding="utf-8")
    draw(found, options.out.with_suffix(".png"))


def measure(n: int, turns: int) -> Measured:
    """Write files of n rows, work through them in turn, and delete them."""
    with tempfile.TemporaryDirectory(prefix="cobpm-streaming-") as folder:
        write(Path(folder), n)
        size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
        best: dict[str, dict[str, Any]] = {}
        for _ in range(turns):
            for kind in WORK:
                one = run(kind, folder)
                print(n, kind, one, file=sys.stderr)
                if kind not in best or one["seconds"] < best[kind]["seconds"]:
                    best[kind] = one
    for kind in ("one pass", "two passes"):
        assert best[kind]["rows"] == n, best[kind]
    return Measured(n, size, best)


def write(folder: Path, n: int) -> None:
    """Several files, a row group at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.float64()) for name in BOUNDS])
    rng = np.random.default_rng(n)
    files = min(FILES, max(1, n // GROUP))
    for k in range(files):
        left = n // files
        settings: dict[str, Any] = {"compression": "zstd", "use_dictionary": False}
        with pq.ParquetWriter(folder / f"{k}.parquet", schema, **settings) as writer:
            while left:
                rows = rng.normal(size=(3, min(GROUP, left)))
                columns = [rows[0], 0.6 * rows[0] + 0.8 * rows[1], np.exp(rows[2])]
                writer.write_table(pa.table(columns, schema=schema))
                left -= rows.shape[1]


def run(kind: str, folder: str) -> dict[str, Any]:
    """One kind of work in a process of its own."""
    script = f"folder, bounds = {folder!r}, {BOUNDS!r}\n{WORK[kind]}{CLOCK}"
    threads = {"COBPM_THREADS": str(ALL), "POLARS_MAX_THREADS": str(ALL)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **threads},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def table(found: Sequence[Measured]) -> list[str]:
    """A row per size and kind of work."""
    lines = [
        row("rows", "MB on disk", "work", "seconds (CPU)", "million rows/s", "over the scan")
        + row("peak, MB", "cells", "bits")[1:],
        "|---" * 9 + "|",
    ]
    for one in found:
        for kind, took in one.work.items():
            lines.append(
                row(
                    f"{one.n:,}",
                    f"{one.size:,.1f}",
                    kind,
                    f"{took['seconds']:.3g} ({took['processor']:.3g})",
                    f"{one.n / took['seconds'] / 1e6:.3g}",
                    "" if kind == "scan" else over_scan(one, kind),
                )
                + row(
                    f"{took['peak']:,.0f}",
                    f"{took['cells']:,}" if "cells" in took else "",
                    str(took.get("bits", "")),
                )[1:]
            )
    return lines


def over_scan(one: Measured, kind: str) -> str:
    return f"{one.ratio(kind, 'seconds'):.2f} ({one.ratio(kind, 'processor'):.2f})"


def draw(found: Sequence[Measured], path: Path) -> None:
    """Processor seconds against rows, both on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
    sizes = [one.n for one in found]
    for kind, mark, color in zip(
        WORK, ("o-", "s-", "^--"), ("#3b6ea5", "#c0392b", "0.5"), strict=True
    ):
        label = {"scan": "Polars: min, max, mean"}.get(kind, f"cobpm sketch, {kind}")
        seconds = [one.work[kind]["processor"] for one in found]
        ax.loglog(sizes, seconds, mark, color=color, label=label)
    ax.set_xlabel("rows")
    ax.set_ylabel("processor seconds")
    ax.grid(True, which="major", color="0.9")
    ax.legend(frameon=False)
    fig.savefig(path, dpi=130)
    plt.close(fig)


if __name__ == "__main__":
    main()
