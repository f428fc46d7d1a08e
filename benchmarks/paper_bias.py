"""What comes out where the KL divergence is known, with two maps onto the unit cube.

    python -m benchmarks.paper_bias           # a minute or two
    python -m benchmarks.paper_bias --quick   # one small pair of each kind: does it still run?

Prints Markdown and writes it to benchmarks/results/paper_bias.md, or to the file that --out names.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cobpm
from cobpm.baselines import knn_divergence
from cobpm.diagnostics import ConvergenceWarning
from tests.cases import beta_mixtures

ABOUT = """\
Pairs of samples in three columns. Shown are means over {replicates} pairs: the posterior mean of
KL, its 90% interval, the number of sub-regions, and the nearest-neighbour estimate (k=1) on the
same data. `covered` counts the intervals that hold the truth.
"""

Pair = Callable[[int, np.random.Generator], tuple[Any, Any]]


def uniform(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    return rng.random((n, 3)), rng.random((n, 3))


def normal(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    return rng.normal(size=(n, 3)), rng.normal(size=(n, 3))


def correlated(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    spread = np.linalg.cholesky(0.8 + 0.2 * np.eye(3))
    x, y = normal(n, rng)
    return x @ spread.T, y @ spread.T


def beta_mixture(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    return beta_mixtures(n, rng)[0], beta_mixtures(n, rng)[0]


def heavy_tails(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    return rng.standard_t(2, (n, 3)), rng.standard_t(2, (n, 3))


def twice(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    x = rng.normal(size=(n, 3))
    return x, x


def shifted(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    x, y = normal(n, rng)
    return x, y + np.array([0.5, 0.0, 0.0])


PAIRS: tuple[tuple[str, float, Pair], ...] = (
    ("uniform, the same law", 0.0, uniform),
    ("normal, the same law", 0.0, normal),
    ("normal, correlation 0.8, the same law", 0.0, correlated),
    ("beta mixture, the same law", 0.0, beta_mixture),
    ("Student t, 2 degrees of freedom, the same law", 0.0, heavy_tails),
    ("normal, the same sample twice", 0.0, twice),
    ("normal, one column shifted by ½", 0.125, shifted),
    ("the paper's two beta mixtures", 0.2132, beta_mixtures),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper_bias", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small pair of each kind")
    here = Path(__file__).parent
    parser.add_argument("--out", type=Path, default=here / "results" / "paper_bias.md")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ConvergenceWarning)  # heavy tails earn some
    replicates, sizes = (1, (50,)) if options.quick else (10, (500, 5000))
    lines = [
        "# The bias of the paper's model\n",
        f"Printed by `python -m benchmarks.paper_bias{' --quick' * options.quick}`, "
        f"cobpm {cobpm.__version__}.\n",
        ABOUT.format(replicates=replicates),
        "| data | points | true KL | bounds | KL | 90% interval | covered | sub-regions | k-NN |",
        "|---" * 9 + "|",
    ]
    for name, truth, pair in PAIRS:
        for n in sizes[:1] if pair is heavy_tails else sizes:  # more points are slow there
            for bounds in (None, "ranks"):
                figures = measured(pair, n, bounds, truth, replicates)
                bounds_name = bounds or "pooled range"
                lines.append(f"| {name} | {n:,} + {n:,} | {truth:g} | {bounds_name} {figures}")
    text = "\n".join([*lines, ""])
    print(text)
    options.out.write_text(text, encoding="utf-8")


def measured(pair: Pair, n: int, bounds: str | None, truth: float, replicates: int) -> str:
    """The figures of a row."""
    found, covered = [], 0
    for replicate in range(replicates):
        x, y = pair(n, np.random.default_rng([n, replicate]))
        post = cobpm.compare(x, y, bounds=bounds, draws=1000, rng=replicate, model="paper")
        low, high = post.interval("kl", 0.9)
        covered += low <= truth <= high
        neighbours = np.nan if pair is twice else knn_divergence(x, y)
        found.append((post.estimate("kl"), low, high, post.leaves.mean(), neighbours))
    kl, low, high, leaves, neighbours = np.mean(found, axis=0)
    beside = "–" if pair is twice else f"{neighbours:.3f}"  # with ties it is not defined
    interval = f"{low:.3f} – {high:.3f}"
    return f"| {kl:.3f} | {interval} | {covered} of {replicates} | {leaves:.0f} | {beside} |"


if __name__ == "__main__":
    main()
