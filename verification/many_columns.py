"""Twenty columns, 10,000 points in each of two sets: do independent runs agree, and how fast?

Partitions that differ in their first splits are far from each other here, and the exact recursion
over all regions is out of reach. Each problem is compared as a user would, and the independent runs
behind the answer are compared with each other.
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter
from unittest import mock

import numpy as np

import cobpm
from cobpm.arrays import FloatArray
from cobpm.engines import pruned
from tests.cases import beta_mixtures
from verification.report import parser, publish, table

COLUMNS = 20


def mixture_and_noise(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """The paper's three-dimensional mixtures, and 17 uniform columns."""
    x, y = (np.hstack([part, rng.random((n, COLUMNS - 3))]) for part in beta_mixtures(n, rng))
    return x, y


def betas(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """All columns Beta(2, 2) against Beta(2, 3)."""
    return rng.beta(2, 2, (n, COLUMNS)), rng.beta(2, 3, (n, COLUMNS))


def normals(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Standard normal columns, the first one shifted by a half."""
    x, y = rng.standard_normal((2, n, COLUMNS))
    y[:, 0] += 0.5
    return x, y


PROBLEMS = {
    "beta mixture in 3 columns, 17 uniform": (mixture_and_noise, (0, 1)),
    "Beta(2,2) and Beta(2,3) in 20 columns": (betas, (0, 1)),
    "normals, shift of 0.5 in one column": (normals, None),
}


def study(name: str, seed: int, given: argparse.Namespace) -> list[object]:
    """One row of the table."""
    make, bounds = PROBLEMS[name]
    x, y = make(given.n, np.random.default_rng([given.seed, seed]))
    runs: list[pruned.Run] = []
    one_run = pruned.one_run

    def recorded(*args: object, **kwargs: object) -> pruned.Run:
        runs.append(one_run(*args, **kwargs))
        return runs[-1]

    with (
        mock.patch.object(pruned, "one_run", recorded),
        warnings.catch_warnings(record=True) as said,
    ):
        warnings.simplefilter("always")
        began = perf_counter()
        post = cobpm.compare(x, y, bounds=bounds, rng=seed, model="paper")
        interval = post.interval("kl", 0.9)
        seconds = perf_counter() - began
    rhats = [f"{entry.rhat:.3f}" for entry in post.report.convergence] or ["", ""]
    evidence = [run.growth.root.log_total for run in runs]
    return [
        name,
        seed,
        post.report.engine,
        f"{seconds:.1f}",
        *rhats,
        f"{np.ptp(evidence):.2f}" if evidence else "",
        f"{post.leaves.mean():.1f}",
        f"{interval.low:.3f} to {interval.high:.3f}",
        f"{post.report.left_out:.2g}",
        f"{max((abs(run.drift) for run in runs), default=0):.2f}",
        "yes" if said else "no",
    ]


def main() -> None:
    options = parser(__doc__, "many_columns")
    options.add_argument("--n", type=int, default=10_000, help="points in each set")
    options.add_argument("--seeds", type=int, default=2)
    given = options.parse_args()
    rows = []
    for name in PROBLEMS:
        for seed in range(given.seeds):
            rows.append(study(name, seed, given))
            print(rows[-1], flush=True)
    head = ["problem", "seed", "engine", "seconds", "R-hat of l", "R-hat of plug-in KL"]
    head += ["range of log evidence", "E[l]", "90% interval of KL", "left out", "drift", "warned"]
    publish(
        "many_columns",
        given.out,
        "# Many columns",
        f"{COLUMNS} columns, {given.n:,} + {given.n:,} points, default settings: four independent "
        "runs. R-hat compares the runs; it should be at most 1.05. The evidence is that of each "
        "run's recursion. Drift is how far l moves along chains at the end of a run, in its "
        "standard deviations.",
        table(head, rows),
    )


if __name__ == "__main__":
    main()
