"""What the prior does as the number of sets grows: cells, and errors of all pairs' divergences.

Three kinds of sets, in two columns, with known Rényi divergences of order ½:

    families   four normal laws a little apart (their means within ½); many sets of each
    normals    each set has its own mean and spread, all of them overlapping
    spots      each set has its own place in a square twenty times as wide as a set

Errors are means over all pairs whose true divergence is below 1.5, over all data sets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import cobpm
from cobpm.arrays import FloatArray
from verification.report import parser, publish, table

LARGEST = 1.5  # beyond, sets hardly overlap, and no estimate from points is precise
Laws = tuple[FloatArray, FloatArray]  # means and standard deviations, a row per set

SETTINGS: dict[str, dict[str, Any]] = {
    "paper": {"model": "paper"},
    "paper, delta=1": {"model": "paper", "delta": 1.0},
    "paper, delta=0.3": {"model": "paper", "delta": 0.3},
    "paper, ranks": {"model": "paper", "bounds": "ranks"},
    "ratio": {"model": "ratio"},
}


def families(sets: int, rng: np.random.Generator) -> Laws:
    centres = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 0.5], [0.4, 0.4]])
    return centres[np.arange(sets) % 4], np.ones((sets, 2))


def normals(sets: int, rng: np.random.Generator) -> Laws:
    return rng.normal(0, 0.7, (sets, 2)), np.exp(rng.normal(0, 0.25, (sets, 2)))


def spots(sets: int, rng: np.random.Generator) -> Laws:
    return rng.uniform(-10, 10, (sets, 2)), np.ones((sets, 2))


KINDS: dict[str, Callable[[int, np.random.Generator], Laws]] = {
    "families": families,
    "normals": normals,
    "spots": spots,
}


def true_matrix(laws: Laws) -> FloatArray:
    """Rényi divergence of order ½ between normal laws with independent columns: −2 log ∫√(pq)."""
    means, spreads = laws
    variances = spreads**2
    between = (variances[:, None] + variances[None]) / 2
    apart = ((means[:, None] - means[None]) ** 2 / between).sum(axis=2) / 8
    shape = np.log(between / (spreads[:, None] * spreads[None])).sum(axis=2) / 2
    return np.asarray(2 * (apart + shape))


def main() -> None:
    options = parser(__doc__, "many_sets")
    options.add_argument("--data-sets", type=int, default=5, help="of two sets; fewer of many")
    options.add_argument("--sets", type=int, nargs="+", default=[2, 10, 50, 200])
    options.add_argument("--points", type=int, nargs="+", default=[30, 300])
    given = options.parse_args()
    rows = []
    for kind, law in KINDS.items():
        for points in given.points:
            for sets in given.sets:
                cells: dict[str, list[float]] = {name: [] for name in SETTINGS}
                errors: dict[str, list[FloatArray]] = {name: [] for name in SETTINGS}
                repeats = max(2, given.data_sets * 10 // sets)
                for i in range(repeats):
                    rng = np.random.default_rng([given.seed, sets, points, i])
                    laws = law(sets, rng)
                    truth = true_matrix(laws)
                    near = (truth < LARGEST) & ~np.eye(sets, dtype=bool)
                    data = [
                        m + s * rng.normal(size=(points, 2)) for m, s in zip(*laws, strict=True)
                    ]
                    for name, settings in SETTINGS.items():
                        try:
                            found = cobpm.pairwise(data, draws=100, rng=i, **settings)
                        except cobpm.InputError:  # improper, or nearly so
                            continue
                        cells[name].append(found.posterior(0, 1).leaves.mean())
                        errors[name].append(np.abs(found.matrix - truth)[near])
                rows.append(
                    [kind, points, sets]
                    + [
                        f"{np.concatenate(errors[name]).mean():.3f} ({np.mean(cells[name]):.0f})"
                        if errors[name] and np.concatenate(errors[name]).size
                        else "–"
                        for name in SETTINGS
                    ]
                )
    publish(
        "many_sets",
        given.out,
        "Mean absolute error of the Rényi divergence of order ½ (number of cells). A dash: the "
        "prior is improper or nearly so, and refused.",
        table(["sets are", "points each", "sets", *SETTINGS], rows),
    )


if __name__ == "__main__":
    main()
