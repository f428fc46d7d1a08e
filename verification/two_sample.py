"""The two-sample test: how often it rejects what is true, and what is not.

Level: two samples of one normal law in three columns, 100 points each. Power, at the level 0.05:

    beta mixtures   the paper's two mixtures in three columns
    shift           normal in three columns, one of them shifted by 0.3
    scale           normal in two columns, 1.3 times as wide
    pocket          uniform in a square, with a tenth of the points moved to a hundredth of its area

Next to `cobpm.test` stand the same permutations with the Bayes factor in place of its statistic,
and the tests with MMD and energy distance of hyppo, as they come: p-values from its chi-squared
approximation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

import cobpm
from cobpm.arrays import FloatArray
from cobpm.frames import BLIND, fit_frames
from cobpm.samples import as_samples
from cobpm.two_sample import MAX_REGIONS, log_ratios, pool
from tests.cases import beta_mixtures
from verification.report import parser, publish, table

Pair = tuple[FloatArray, FloatArray]
LEVELS = (0.01, 0.05, 0.1)


def shift(n: int, rng: np.random.Generator) -> Pair:
    return rng.normal(size=(n, 3)), rng.normal((0.3, 0.0, 0.0), size=(n, 3))


def scale(n: int, rng: np.random.Generator) -> Pair:
    return rng.normal(size=(n, 2)), 1.3 * rng.normal(size=(n, 2))


def pocket(n: int, rng: np.random.Generator) -> Pair:
    x, y = rng.random((n, 2)), rng.random((n, 2))
    return x, np.where(rng.random((n, 1)) < 0.1, 0.5 + 0.1 * y, y)


PROBLEMS: list[tuple[str, int, Callable[[int, np.random.Generator], Pair]]] = [
    ("beta mixtures", 50, beta_mixtures),
    ("beta mixtures", 150, beta_mixtures),
    ("beta mixtures", 500, beta_mixtures),
    ("shift", 100, shift),
    ("scale", 100, scale),
    ("pocket", 100, pocket),
]


def own(x: FloatArray, y: FloatArray, permutations: int, seed: int) -> float:
    return cobpm.test(x, y, permutations=permutations, rng=seed).pvalue


def by_bayes_factor(x: FloatArray, y: FloatArray, permutations: int, seed: int) -> float:
    samples = as_samples([x, y], owner="verification")
    pooled, labels = pool(samples, np.random.default_rng(seed))
    frames = fit_frames(pooled, BLIND, None)
    ratios = log_ratios(
        pooled, labels, samples.sizes, frames, permutations, seed, MAX_REGIONS, None
    )
    statistics = logsumexp(ratios, axis=0)  # the Bayes factor grows with it
    return float(np.mean(statistics >= statistics[0] - 1e-9))


def mmd(x: FloatArray, y: FloatArray, permutations: int, seed: int) -> float:
    from hyppo.ksample import MMD  # pip install 'cobpm[benchmark]'

    return float(MMD().test(x, y, auto=True)[1])


def energy(x: FloatArray, y: FloatArray, permutations: int, seed: int) -> float:
    from hyppo.ksample import Energy

    return float(Energy().test(x, y, auto=True)[1])


METHODS = {"cobpm.test": own, "Bayes factor": by_bayes_factor, "MMD": mmd, "energy": energy}


def share(pvalues: list[float], level: float) -> str:
    """How many p-values do not exceed the level, with the standard error of that share."""
    found = float(np.mean(np.array(pvalues) <= level))
    error = np.sqrt(found * (1 - found) / len(pvalues))
    return f"{found:.3f} ± {error:.3f}"


def main() -> None:
    options = parser(__doc__, "two_sample")
    options.add_argument("--null-runs", type=int, default=1000)
    options.add_argument("--runs", type=int, default=200, help="of each problem for power")
    options.add_argument("--permutations", type=int, default=199)
    given = options.parse_args()
    null = []
    for i in range(given.null_runs):
        rng = np.random.default_rng([given.seed, i])
        x, y = rng.normal(size=(100, 3)), rng.normal(size=(100, 3))
        null.append(own(x, y, given.permutations, i))
    rows = []
    for number, (name, n, law) in enumerate(PROBLEMS):
        found: dict[str, list[float]] = {method: [] for method in METHODS}
        for i in range(given.runs):
            x, y = law(n, np.random.default_rng([given.seed, number, i, 1]))
            for method, pvalue in METHODS.items():
                found[method].append(pvalue(x, y, given.permutations, i))
        rows.append([name, n, *(share(found[method], 0.05) for method in METHODS)])
    publish(
        "two_sample",
        given.out,
        f"Level: share of p-values up to α when both samples have the same law, in "
        f"{given.null_runs:,} runs of {given.permutations} permutations, with its standard error.",
        table(["α", "share"], [[level, share(null, level)] for level in LEVELS]),
        f"Power: share of p-values up to 0.05 when the laws differ, in {given.runs} runs.",
        table(["problem", "points each", *METHODS], rows),
    )


if __name__ == "__main__":
    main()
