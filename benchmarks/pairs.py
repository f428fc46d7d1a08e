"""All pairs of many sets: seconds and memory, with an interrupt and a resumed run shown.

python -m benchmarks.pairs --out benchmarks/results/pairs.md
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cobpm
from benchmarks.case import peak_memory
from benchmarks.speed import HERE, machine, row
from cobpm.baselines import knn_divergence

PARSER = argparse.ArgumentParser(prog="python -m benchmarks.pairs", description=__doc__)
PARSER.add_argument("--sets", type=int, default=200)
PARSER.add_argument("--points", type=int, default=1600)
PARSER.add_argument("--neighbour-pairs", type=int, default=300, help="pairs for the k-NN estimate")
PARSER.add_argument("--some-sets", type=int, default=20, help="sets for pairs by the ratio model")
PARSER.add_argument("--quick", action="store_true", help="a few small sets")
PARSER.add_argument("--out", type=Path, help="file to write the tables to")
PARSER.add_argument("--case", help=argparse.SUPPRESS)  # what a child process is to measure

ABOUT = """# All pairs

`{command}` on {machine}.

{sets} sets of {points:,} points in 2 columns: clouds of four shapes around random centres. Rényi
divergence of order ½ with 90% intervals. Memory is the peak of the whole process. One k-NN estimate
of KL (SciPy's `cKDTree`, k=1, one thread, one direction, no interval) per pair stands beside,
run on {neighbour_pairs} of the pairs.
"""


def samples(sets: int, points: int) -> list[Any]:
    """Clouds of four shapes."""
    rng = np.random.default_rng(2014)
    found = []
    for k in range(sets):
        z = rng.normal(size=(points, 2))
        halves = np.where(rng.random((points, 1)) < 0.5, 1.0, -1.0)
        shapes = (z, z @ np.array([[1.0, 0.8], [0.0, 0.6]]), z * (0.9 + 0.4 * halves), 0.6 * z)
        found.append(shapes[k % 4] + (0.8 * halves if k % 4 == 3 else 0.0) + rng.normal(0, 0.3, 2))
    return found


def measured(case: str, given: argparse.Namespace) -> dict[str, Any]:
    """Seconds, peak memory and a figure or two, in this process."""
    sets = samples(given.sets, given.points)
    cobpm.pairwise(
        [points[:20] for points in sets[:3]], draws=10
    )  # load what is loaded when needed
    kind, _, argument = case.partition(" ")
    began = time.perf_counter()
    found: dict[str, Any] = {}
    if kind == "neighbours":
        pairs = np.random.default_rng(1).integers(0, len(sets), size=(given.neighbour_pairs, 2))
        for i, j in pairs:
            knn_divergence(sets[i], sets[j])
    elif kind == "pair":
        result = cobpm.pairwise(
            sets, partition="pair", model="paper", checkpoint=argument, rng=1, progress=True
        )
        found["checksum"] = float(result.matrix.sum())
    elif kind == "some":
        result = cobpm.pairwise(sets[: given.some_sets], partition="pair", rng=1)
    else:
        model, divergence = argument.split()
        result = cobpm.pairwise(sets, divergence, model=model, draws=200, rng=1)
        found["leaves"] = float(result.posterior(0, 1).leaves.mean())
    return found | {"seconds": time.perf_counter() - began, "peak_bytes": peak_memory()}


def child(case: str, given: argparse.Namespace) -> subprocess.Popen[str]:
    """The same in a process of its own."""
    sizes = ["--sets", given.sets, "--points", given.points]
    sizes += ["--neighbour-pairs", given.neighbour_pairs, "--some-sets", given.some_sets]
    arguments = [sys.executable, "-m", "benchmarks.pairs", "--case", case, *map(str, sizes)]
    return subprocess.Popen(arguments, cwd=HERE.parent, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"a measurement ended with code {process.returncode}")
    found: dict[str, Any] = json.loads(output)
    return found


def interrupted(case: str, given: argparse.Namespace, file: Path) -> tuple[int, float]:
    """Stop a run with Ctrl-C when a tenth is done: pairs kept, and seconds until it ended."""
    pairs = given.sets * (given.sets - 1) // 2
    process = child(case, given)
    while len(_lines(file)) - 1 < pairs / 10:
        time.sleep(0.02)
    began = time.perf_counter()
    process.send_signal(signal.SIGINT)
    process.communicate()
    return len(_lines(file)) - 1, time.perf_counter() - began


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def main(arguments: Sequence[str] | None = None) -> None:
    given = PARSER.parse_args(arguments)
    if given.quick:
        given.sets, given.points, given.neighbour_pairs, given.some_sets = 8, 60, 5, 3
    if given.case:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
        try:
            print(json.dumps(measured(given.case, given)))
        except KeyboardInterrupt as interrupt:
            print(interrupt, file=sys.stderr)
            sys.exit(130)
        return
    pairs = given.sets * (given.sets - 1) // 2
    lines = [
        ABOUT.format(
            command="python -m benchmarks.pairs" + " --quick" * given.quick,
            machine=machine(),
            sets=given.sets,
            points=given.points,
            neighbour_pairs=given.neighbour_pairs,
        ),
        row("what", "draws", "seconds", "ms per pair", "peak MB", "goal"),
        "|---" * 6 + "|",
    ]

    def add(what: str, draws: Any, found: dict[str, Any], over: int, goal: str = "") -> None:
        each = f"{1000 * found['seconds'] / over:.2f}"
        memory = "–" if found["peak_bytes"] is None else f"{found['peak_bytes'] / 1e6:.0f}"
        lines.append(row(what, draws, f"{found['seconds']:.1f}", each, memory, goal))

    for model, divergence in (
        *(("paper", name) for name in ("renyi:0.5", "kl", "tv")),
        ("ratio", "renyi:0.5"),
    ):
        found = answer(child(f"joint {model} {divergence}", given))
        goal = "20 s, 2,000 MB" if (model, divergence) == ("paper", "renyi:0.5") else ""
        add(f'joint, model="{model}", {divergence}', 200, found, pairs, goal)
    with tempfile.TemporaryDirectory() as folder:
        whole, halves = (Path(folder) / name for name in ("whole", "halves"))
        straight = answer(child(f"pair {whole}", given))
        add('pair by pair, model="paper"', 1000, straight, pairs, "1,800 s")
        kept, seconds = interrupted(f"pair {halves}", given, halves)
        resumed = answer(child(f"pair {halves}", given))
        add(f"the same, resumed after {kept:,} pairs", 1000, resumed, pairs - kept)
        agree = resumed["checksum"] == straight["checksum"]
    some = given.some_sets
    add(
        f'pair by pair, model="ratio", {some} of the sets',
        1000,
        answer(child("some", given)),
        some * (some - 1) // 2,
    )
    add("k-NN", "–", answer(child("neighbours", given)), given.neighbour_pairs)
    lines.append(
        f"\nThe run that was resumed had been stopped by an interrupt, and ended {seconds:.1f} s "
        f"after it with {kept:,} of {pairs:,} pairs in its file. The matrix it came to is "
        + ("the same as that of the straight run to the last digit." if agree else "DIFFERENT.")
    )
    text = "\n".join(lines) + "\n"
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
