"""Many columns: what growing regions where partitions go finds, against dense regions alone.

Differences that take several columns together to see, and samples of one law, with and without
growth on the same data.
"""

from __future__ import annotations

from time import process_time
from unittest import mock

import numpy as np
from scipy.stats import norm

import cobpm
from cobpm.arrays import FloatArray
from cobpm.engines import growth
from verification.report import parser, publish, table

REPEATS = 4
BUMP = 0.2  # share of the points that a sparse bump moves


def alike(n: int, d: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """One law."""
    x, y = rng.normal(size=(2, n, d))
    return x, y


def shift(n: int, d: int, rng: np.random.Generator, columns: int) -> tuple[FloatArray, FloatArray]:
    """Means one apart along the diagonal of some columns."""
    x, y = rng.normal(size=(2, n, d))
    y[:, :columns] += 1 / np.sqrt(columns)
    return x, y


def correlation(n: int, d: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Two columns with correlation 0.7 in one set and none in the other."""
    x, y = rng.normal(size=(2, n, d))
    y[:, 1] = 0.7 * y[:, 0] + np.sqrt(1 - 0.49) * y[:, 1]
    return x, y


def bump(n: int, d: int, rng: np.random.Generator, columns: int) -> tuple[FloatArray, FloatArray]:
    """A fifth of one set sits in the box [1/4, 1/2] of some columns; the rest is uniform."""
    x, y = rng.random((2, n, d))
    moved = rng.random(n) < BUMP
    y[moved, :columns] = 0.25 + 0.25 * y[moved, :columns]
    return x, y


def bump_kl(columns: int) -> float:
    """KL of the uniform law from the one with the bump."""
    box = 0.25**columns
    return float(-box * np.log(1 - BUMP + BUMP / box) - (1 - box) * np.log(1 - BUMP))


PROBLEMS = {
    "alike": (alike, 0.0, 0.0),
    "shift, 1 column": (lambda *a: shift(*a, 1), 0.5, 2 * norm.cdf(0.5) - 1),
    "shift, 2 columns": (lambda *a: shift(*a, 2), 0.5, 2 * norm.cdf(0.5) - 1),
    "shift, 3 columns": (lambda *a: shift(*a, 3), 0.5, 2 * norm.cdf(0.5) - 1),
    "correlation": (correlation, 0.5 * np.log(0.51) - 1 + 1 / 0.51, None),
    "bump, 2 columns": (lambda *a: bump(*a, 2), bump_kl(2), BUMP * (1 - 1 / 16)),
    "bump, 3 columns": (lambda *a: bump(*a, 3), bump_kl(3), BUMP * (1 - 1 / 64)),
}


def study(name: str, n: int, d: int, repeats: int, seed: int) -> list[object]:
    """One row of the table."""
    make, kl, tv = PROBLEMS[name]
    found: dict[bool, list[list[float]]] = {True: [], False: []}
    for repeat in range(repeats):
        x, y = make(n, d, np.random.default_rng([seed, repeat, n, d]))
        for grown, rows in found.items():
            columns = growth.FROM_COLUMNS if grown else d + 1
            with mock.patch.object(growth, "FROM_COLUMNS", columns):
                began = process_time()
                post = cobpm.compare(x, y, rng=repeat, draws=1000)
                estimates = [post.estimate("kl"), post.estimate("tv")]
                seconds = process_time() - began
            assert post.log_bayes_factor is not None
            rows.append([*estimates, post.log_bayes_factor, seconds, post.report.depth or 0])
    without, with_ = (np.array(found[grown]) for grown in (False, True))
    errors = [float(np.abs(rows[:, 0] - kl).mean()) for rows in (without, with_)]
    row: list[object] = [name, d, f"{n:,}", f"{kl:.3f}"]
    row += [f"{rows[:, 0].mean():.3f}" for rows in (without, with_)]
    row += [f"{error:.3f}" for error in errors]
    row += ["" if tv is None else f"{tv:.3f}"]
    row += [f"{rows[:, 1].mean():.3f}" for rows in (without, with_)]
    row += [f"{np.median(rows[:, 2]):.1f}" for rows in (without, with_)]
    row += [f"{np.median(rows[:, 3]):.2f}" for rows in (without, with_)]
    return [*row, f"{without[:, 4].max():.0f} / {with_[:, 4].max():.0f}"]


def main() -> None:
    options = parser(__doc__, "growth")
    options.add_argument("--n", type=int, nargs="+", default=[500, 5000, 50_000])
    options.add_argument("--d", type=int, nargs="+", default=[8, 12, 20])
    options.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    options.add_argument("--repeats", type=int, default=REPEATS)
    given = options.parse_args()
    rows = []
    for name in given.problems:
        for d in given.d:
            for n in given.n:
                rows.append(study(name, n, d, given.repeats, given.seed))
                print(rows[-1], flush=True)
    both = ["dense", "grown"]
    head = ["problem", "columns", "n", "KL", *(f"KL, {one}" for one in both)]
    head += [*(f"error, {one}" for one in both), "TV", *(f"TV, {one}" for one in both)]
    head += [*(f"log BF, {one}" for one in both), *(f"s CPU, {one}" for one in both), "depth"]
    publish(
        "growth",
        given.out,
        "# Regions grown where partitions go",
        f"{given.repeats} pairs of sets of n rows each, default settings but for 1,000 draws; "
        "estimates are posterior medians, errors mean absolute errors of KL. Dense: without "
        "growth. The Bayes factor is that for a difference, its logarithm a median. Processor "
        "seconds for fit and estimates, medians. Depth: most halvings, dense / grown.",
        table(head, rows),
    )


if __name__ == "__main__":
    main()
