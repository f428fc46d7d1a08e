"""Speed of cobpm next to a nearest-neighbour estimate on the same data, in the same run.

    python -m benchmarks.speed              # all cases, some minutes
    python -m benchmarks.speed --quick      # tiny sizes: does it still run?

Prints Markdown and writes it to benchmarks/results/speed.md, or to the file that --out names.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
ALL = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Case:
    """A comparison to time; n points in each of the two sets."""

    n: int
    d: int
    threads: int
    goal: str
    engine: str = "exact"
    draws: int = 3000
    repeats: int = 5
    model: str = "paper"


RATIO: dict[str, Any] = {"model": "ratio", "engine": "auto"}
CASES = (
    Case(500, 3, 1, "under 0.3 s", **RATIO),
    Case(5000, 3, 1, "", **RATIO),
    Case(100_000, 3, 1, "under 3 s", repeats=3, **RATIO),
    Case(100_000, 3, ALL, "", repeats=3, **RATIO),
    Case(1_000_000, 3, ALL, "", repeats=1, **RATIO),
    Case(10_000, 20, ALL, "", repeats=1, **RATIO),
    Case(1250, 3, 1, "under 0.2 s on one thread"),
    Case(1250, 3, ALL, ""),
    Case(100_000, 3, 1, "under 2 s"),
    Case(100_000, 3, ALL, ""),
    Case(1_000_000, 3, 1, "", repeats=3),
    Case(1_000_000, 3, ALL, "a fifth of k-NN, under 1 GB", repeats=3),
    Case(2000, 10, ALL, "", engine="auto", repeats=1),
    Case(10_000, 20, ALL, "20 s, R-hat ≤ 1.05", engine="auto", repeats=1),
)
QUICK = (
    Case(100, 2, 1, "", draws=50, repeats=1, **RATIO),
    Case(100, 3, 1, "", draws=50, repeats=1),
    Case(100, 5, ALL, "", engine="auto", draws=50, repeats=1),
)
ABOUT_FITS = """\
Seconds from two arrays to a table of four divergences (total variation, Hellinger, KL, Rényi of
order 2) with median and interval: fit, {draws:,} draws, read-outs. Next to it one estimate
of KL alone from nearest neighbours (`scipy.spatial.cKDTree`, k=1, one thread, no interval) on the
same data. Medians of five turns, three for a million points, one for many columns, after a call
that loads the modules; processor seconds in brackets, which other work on the machine disturbs
less. Memory is the peak of the whole process after the first comparison. The data is the paper's
pair of beta mixtures, KL 0.2132, in three columns; all further columns are uniform.
"""
ABOUT_CHAINS = """\
One chain on one thread, {n:,} + {n:,} points in three columns, {iterations:,} iterations from a
single leaf on, 1,000 of them kept; per second of processor time. Fast is not converged: see
docs/engines.md.
"""
KERNELS = {"guided": "at least 8 million", "uniform": "", "cherry": ""}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "speed.md")
    options = parser.parse_args(arguments)
    command = "python -m benchmarks.speed" + " --quick" * options.quick

    text = "\n".join(
        [
            "# Speed\n",
            f"Printed by `{command}` on {machine()}.\n",
            *fits(QUICK if options.quick else CASES),
            "",
            *chains(1250, 10_000 if options.quick else 20_000_000),
            "",
            *imports(1 if options.quick else 9),
            "",
        ]
    )
    print(text)
    options.out.write_text(text, encoding="utf-8")


def fits(cases: Sequence[Case]) -> list[str]:
    """The table of comparisons, and what the engines had to say."""
    lines = [
        "## Comparing two samples\n",
        ABOUT_FITS.format(draws=cases[0].draws),
        row("points", "columns", "threads", "cobpm, s (CPU)", "k-NN, s (CPU)", "cobpm / k-NN (CPU)")
        + row("peak, MB", "data, MB", "model, engine", "goal")[1:],
        "|---" * 10 + "|",
    ]
    details = [
        row("points", "columns", "threads", "KL, cobpm", "KL, k-NN", "sub-regions", "depth")
        + row("regions held", "left out", "R-hat of l / plug-in KL")[1:],
        "|---" * 10 + "|",
    ]
    said: list[str] = []
    for case in cases:
        found = child(asdict(case), case.threads)
        ours, theirs = found["seconds"], found["neighbours_seconds"]
        which = (f"{case.n:,} + {case.n:,}", case.d, case.threads)
        ratios = tuple(a / b for a, b in zip(ours, theirs, strict=True))
        times = ("{:.3g} ({:.3g})".format(*pair) for pair in (ours, theirs, ratios))
        memory = megabytes(found["peak_bytes"]), megabytes(found["data_bytes"])
        how = case.model if case.model == "ratio" else f"{case.model}, {found['engine']}"
        lines.append(row(*which, *times, *memory, how, case.goal))
        rhat = " / ".join(f"{value:.2f}" for value in found["rhat"].values()) or "independent draws"
        details.append(
            row(*which, f"{found['kl']:.4f}", f"{found['neighbours_kl']:.4f}")
            + row(f"{found['leaves']:.1f}", found["depth"], f"{found['regions']:,}")[1:]
            + row("–" if found["left_out"] is None else f"{found['left_out']:.2g}", rhat)[1:]
        )
        said += [f"- {which[0]} points, {case.d} columns: {w}" for w in found["warnings"]]
    if said:
        said = ["\nWhat the user was warned of:\n", *said]
    return [*lines, "\nWhat came out:\n", *details, *said]


def chains(n: int, iterations: int) -> list[str]:
    """The table of kernels."""
    lines = [
        "## Chains\n",
        ABOUT_CHAINS.format(n=n, iterations=iterations),
        "| kernel | million iterations / s | accepted | goal |",
        "|---|---|---|---|",
    ]
    for kernel, goal in KERNELS.items():
        found = child({"n": n, "d": 3, "kernel": kernel, "iterations": iterations}, 1)
        lines.append(
            f"| {kernel} | {found['per_second'] / 1e6:.1f} | {found['acceptance']:.0%} | {goal} |"
        )
    return lines


def imports(repeats: int) -> list[str]:
    """The table of import times."""
    lines = [
        "## Import\n",
        f"Milliseconds beyond `import numpy`, each in a fresh process, median of {repeats}.\n",
        "| statement | ms | goal |",
        "|---|---|---|",
    ]
    for statement, goal in (
        ("import cobpm", "under 200"),
        ("import cobpm; cobpm.compare", ""),  # loads what the first call needs
    ):
        code = f"import numpy, time; t = time.perf_counter; b = t(); {statement}; print(t() - b)"
        seconds = [float(run(["-c", code], ALL)) for _ in range(repeats)]
        lines.append(f"| `{statement}` | {1000 * median(seconds):.0f} | {goal} |")
    return lines


def child(settings: dict[str, Any], threads: int) -> dict[str, Any]:
    """What `benchmarks.case` finds with these settings."""
    output = run(["-m", "benchmarks.case", json.dumps(settings)], threads)
    found: dict[str, Any] = json.loads(output)
    return found


def run(arguments: list[str], threads: int) -> str:
    """Output of a fresh Python process, started from the root of the project."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=HERE.parent,
        env={**os.environ, "COBPM_THREADS": str(threads)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def machine() -> str:
    """Processor, cores and versions."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.split(":")[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass
    versions = ", ".join(f"{package} {version(package)}" for package in ("cobpm", "numpy", "scipy"))
    python = platform.python_version()
    load = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    return f"{name}, {ALL} cores{load}, {platform.system()}; Python {python}, {versions}"


def row(*cells: Any) -> str:
    return "".join(f"| {cell} " for cell in cells) + "|"


def megabytes(size: int | None) -> str:
    return "–" if size is None else f"{size / 1e6:.0f}"


if __name__ == "__main__":
    main()
