"""Simulation-based calibration: is the truth a draw like any other?

Draw a partition and masses from the prior and points from them, then draw from the posterior given
the points. The rank of the truth among the posterior draws is then uniform, whatever is ranked, if
every part agrees with the model: the prior, the likelihood, the engine, and the masses given the
partition.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from scipy import stats

from cobpm import engines
from cobpm.arrays import FloatArray, IntArray
from cobpm.cells import Cells
from cobpm.divergences import parse
from cobpm.domain import BITS
from cobpm.engines.fit import Plan
from cobpm.model import PaperModel
from cobpm.partitions import Partitions
from cobpm.posterior import draw_masses
from verification.report import parser, publish, table

RANKED = ("number of leaves", "KL divergence", "mass of the lower half")


@dataclass(frozen=True)
class Setting:
    """A model and the data it is to explain."""

    model: PaperModel
    engine: str = "exact"
    draws: int = 63  # ranks 0 … 63 fall into 16 or 32 bins of the same width
    assumed: PaperModel | None = None  # what the posterior believes, if not the truth

    def label(self) -> str:
        """The model in words."""
        model = self.model
        return f"d={model.d}, sizes {model.sizes}, delta={model.delta:g}, sigma={model.sigma:g}"


def prior_partition(model: PaperModel, rng: np.random.Generator) -> Partitions:
    """A partition from the prior: P(l), then decisions uniform over leaves and columns."""
    probabilities = model.prior_leaf_probabilities()
    leaves = 1 + int(rng.choice(len(probabilities), p=probabilities))
    # A tree is a list [column, lower half, upper half], a leaf an empty list.
    root: list = []
    ends = [root]
    for _ in range(leaves - 1):
        leaf = ends.pop(int(rng.integers(len(ends))))
        leaf.extend([int(rng.integers(model.d)), [], []])
        ends += leaf[1:]
    splits: list[int] = []
    stack = [root]
    while stack:
        node = stack.pop()
        splits.append(node[0] if node else -1)
        stack += node[:0:-1]
    return Partitions(
        np.array(splits, dtype=np.int16),
        np.array([0, len(splits)]),
        np.zeros((leaves, len(model.sizes)), dtype=np.uint32),  # no points yet
        np.array([0, leaves]),
        model.d,
    )


def points_from(
    partition: Partitions, masses: FloatArray, model: PaperModel, rng: np.random.Generator
) -> Cells:
    """Points of every set, spread evenly inside the leaves that their set's masses choose."""
    levels, indices = partition.boxes()
    free = (BITS - levels.astype(np.int64)).astype(np.uint64)
    codes = []
    for k, size in enumerate(model.sizes):
        leaf = rng.choice(len(masses), size=size, p=masses[:, k] / masses[:, k].sum())
        within = np.floor(rng.random((size, model.d)) * np.ldexp(1.0, free[leaf].astype(int)))
        codes.append((indices[leaf] << free[leaf]) + within.astype(np.uint64))
    return Cells(
        np.ascontiguousarray(np.concatenate(codes).T),
        np.repeat(np.arange(len(model.sizes)), model.sizes).astype(np.uint16),
        np.array(model.sizes),
    )


def quantities(partitions: Partitions, masses: FloatArray) -> FloatArray:
    """One row for each of RANKED, one column for each partition."""
    p, q = (np.ascontiguousarray(masses[:, k]) for k in (0, 1))
    lower_half = np.zeros((1, partitions.d), dtype=np.uint8)
    lower_half[0, 0] = 1
    in_half = partitions.box_masses(masses, lower_half, np.zeros((1, partitions.d), np.uint64))
    return np.stack(
        [
            partitions.leaves.astype(float),
            parse("kl", "compare").of_masses(p, q, partitions.starts),
            in_half[:, 0, 0],
        ]
    )


def ranks(setting: Setting, replications: int, seed: int) -> IntArray:
    """Ranks of the truth, one row for each of RANKED. Ties are broken at random."""
    found = np.empty((len(RANKED), replications), dtype=int)
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        truth = prior_partition(setting.model, rng)
        true_masses = draw_masses(truth, setting.model, int(rng.integers(2**63)))
        cells = points_from(truth, true_masses, setting.model, rng)
        assumed = setting.assumed or setting.model
        fit = engines.run(cells, assumed, setting.engine, plan_for(setting, rng))
        drawn = fit.partitions
        masses = draw_masses(drawn, assumed, int(rng.integers(2**63)))
        true_value, values = quantities(truth, true_masses), quantities(drawn, masses)
        # Where both say "no split", masses are equal up to rounding.
        below = (values < true_value - 1e-12).sum(axis=1)
        ties = (np.abs(values - true_value) <= 1e-12).sum(axis=1)
        found[:, i] = below + rng.integers(0, ties + 1)
    return found


def plan_for(setting: Setting, rng: np.random.Generator) -> Plan:
    """Enough for independent draws in these small problems."""
    return Plan(
        draws=setting.draws,
        burn_in=50,
        chains=1,
        thin=500,
        kernel="cherry",
        seed=int(rng.integers(2**62)),
        threads=1,
        max_regions=20_000,
    )


def p_value(of_one: IntArray, draws: int, bins: int) -> float:
    """Chi-square test that ranks 0 … draws are uniform, in bins of equal width."""
    assert (draws + 1) % bins == 0
    observed = np.bincount(of_one * bins // (draws + 1), minlength=bins)
    return float(stats.chisquare(observed).pvalue)


def settings() -> list[tuple[Setting, float]]:
    """What the full run looks at, with the share of the replications that each can afford."""
    line = PaperModel(0.5, 2.0, 1, (40, 25))
    plane = PaperModel(0.5, 2.6, 2, (60, 60))
    right = [
        (Setting(line), 1.0),
        (Setting(PaperModel(1.0, 0.2, 1, (30, 80))), 1.0),
        (Setting(plane), 1.0),
        (Setting(PaperModel(0.7, 1.5, 3, (50, 20))), 1.0),
        (Setting(PaperModel(0.5, 1.5, 2, (30, 30, 10))), 1.0),
        (Setting(plane, engine="mcmc"), 1.0),
        (Setting(plane, engine="pruned"), 0.06),
    ]
    wrong = [
        (Setting(line, assumed=replace(line, delta=3 * line.delta)), 1.0),
        (Setting(plane, assumed=replace(plane, sigma=plane.sigma + 1.0)), 1.0),
    ]
    return right + wrong


def row_of(setting: Setting, replications: int, seed: int) -> list[object]:
    """One row of the table."""
    began = perf_counter()
    bins = 32 if replications >= 640 else 16
    found = ranks(setting, replications, seed)
    assumed = setting.assumed
    return [
        setting.label(),
        setting.engine,
        "the truth" if assumed is None else f"delta={assumed.delta:g}, sigma={assumed.sigma:g}",
        replications,
        *(f"{p_value(row, setting.draws, bins):.3g}" for row in found),
        f"{perf_counter() - began:.0f}",
    ]


def main() -> None:
    options = parser(__doc__, "sbc")
    options.add_argument("--replications", type=int, default=2000)
    given = options.parse_args()
    with ProcessPoolExecutor(2) as pool:
        jobs = [
            pool.submit(row_of, setting, round(share * given.replications), given.seed + which)
            for which, (setting, share) in enumerate(settings())
        ]
        rows = [job.result() for job in jobs]
    head = ["model", "engine", "posterior assumes", "replications", *RANKED, "seconds"]
    publish(
        "sbc",
        given.out,
        "# Simulation-based calibration",
        "p-values of the chi-square test that the rank of the true value among 63 posterior draws "
        "is uniform. They should look like uniform numbers where the posterior assumes the truth, "
        "and be tiny where it does not.",
        table(head, rows),
    )


if __name__ == "__main__":
    main()
