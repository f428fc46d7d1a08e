"""Do chains mix? Each kernel against the exact posterior, on two problems.

The first is the paper's: 1250 + 1250 points from three-dimensional mixtures of beta densities. The
second is one-dimensional and small. All chains start from a single leaf, and the first half of each
run is discarded.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from arviz_stats.base.array import array_stats
from numpy.typing import NDArray

from cobpm import _core
from cobpm.arrays import FloatArray
from cobpm.cells import Cells
from cobpm.diagnostics import convergence
from cobpm.divergences import parse
from cobpm.engines import exact, mcmc
from cobpm.engines.fit import Plan
from cobpm.model import PaperModel
from cobpm.partitions import Partitions
from cobpm.posterior import draw_masses
from cobpm.threads import thread_count
from tests.cases import beta_mixtures, cells_of
from verification.report import parser, publish, table

CHAINS = 8
KEPT = 2000  # draws of each chain
MOVED, STEPS = 2000, 10_000
RUNS = (("guided", 1), ("uniform", 1), ("cherry", 1), ("cherry", 8))  # kernel, times as long


@dataclass(frozen=True)
class Problem:
    """Data, and its exact posterior."""

    name: str
    cells: Cells
    iterations: int  # of each chain

    @property
    def model(self) -> PaperModel:
        """With the default prior."""
        return PaperModel(0.5, self.cells.d + 1.0, self.cells.d, tuple(self.cells.sizes.tolist()))


def problems(given: argparse.Namespace) -> list[Problem]:
    rng = np.random.default_rng(given.seed)
    line = [rng.beta(6, 5, (200, 1)), rng.beta(5, 6, (200, 1))]
    return [
        Problem("d=3, n=1250+1250", cells_of(beta_mixtures(1250, rng)), given.iterations),
        Problem("d=1, n=200+200", cells_of(line), given.iterations // 4),
    ]


def run_chains(problem: Problem, kernel: str, times: int, seed: int) -> tuple[Partitions, float]:
    """Draws of all chains, one chain after another, and seconds."""
    began = perf_counter()
    cells, model = problem.cells, problem.model
    half = times * problem.iterations // 2
    packed, _ = _core.run_chains(
        cells.codes,
        cells.sets,
        len(cells.sizes),
        model.log_gamma(),
        model.log_price(mcmc.most_leaves(cells)),
        kernel,
        CHAINS,
        half,
        KEPT,
        half // KEPT,
        seed,
        thread_count(),
    )
    return Partitions.from_core(packed, cells.d), perf_counter() - began


def exact_draws(problem: Problem, seed: int) -> tuple[Partitions, float]:
    """Independent draws, and E[l] without the error of draws."""
    plan = Plan(20_000, 0, 1, None, "cherry", seed, thread_count(), 8_000_000)
    fit = exact.run(problem.cells, problem.model, plan, "asked for")
    assert fit.leaf_probabilities is not None
    mean = float(fit.leaf_probabilities @ np.arange(len(fit.leaf_probabilities)))
    return fit.partitions, mean


def moved_draws(problem: Problem, draws: Partitions, seed: int) -> Partitions:
    """Some of the independent draws, each some way along a cherry chain of its own."""
    cells, model = problem.cells, problem.model
    last = draws.node_starts[MOVED]
    packed = _core.move_on(
        cells.codes,
        cells.sets,
        len(cells.sizes),
        model.log_gamma(),
        model.log_price(mcmc.most_leaves(cells)),
        draws.splits[:last],
        draws.node_starts[: MOVED + 1],
        STEPS,
        seed,
        thread_count(),
    )
    return Partitions.from_core(packed, cells.d)


def z_score(values: FloatArray, truth: float, chains: int, error_of_truth: float = 0.0) -> float:
    """Distance of the mean from the truth in the standard errors that the draws claim."""
    rows = values.reshape(chains, -1)
    effective = rows.size if chains == 1 else float(array_stats.ess(rows, method="mean"))
    return float((rows.mean() - truth) / np.sqrt(rows.var() / effective + error_of_truth**2))


def first_splits(partitions: Partitions, levels: int = 3) -> NDArray[np.str_]:
    """The columns of the first seven splits of each partition, from the top, as a word."""
    words = []
    for tree in range(len(partitions)):
        word: list[str] = []
        ahead = [0]  # the levels of nodes still to come
        for column in partitions.splits[slice(*partitions.node_starts[tree : tree + 2])].tolist():
            level = ahead.pop()
            if level < levels:
                word.append(str(column + 1) if column >= 0 else "-")
            if column >= 0:
                ahead += [level + 1, level + 1]
        words.append("".join(word))
    return np.array(words)


def shares(partitions: Partitions) -> str:
    """Share of the partitions that are halved first along each column."""
    first = partitions.splits[partitions.node_starts[:-1]]
    return " / ".join(f"{(first == column).mean():.2f}" for column in range(partitions.d))


def study(problem: Problem, seed: int) -> list[str]:
    """Tables for one problem."""
    model = problem.model
    draws, mean_leaves = exact_draws(problem, seed)
    plug = mcmc.plug_in_kl(draws, model)
    error = float(plug.std() / np.sqrt(len(plug)))
    words = first_splits(draws)
    common, counts = np.unique(words, return_counts=True)
    mode = common[counts.argmax()]
    judged: list[list[object]] = []
    means: list[list[object]] = [["exact", f"{mean_leaves:.3f}", "", f"{plug.mean():.5f}", ""]]
    tops: list[list[object]] = []

    def compare(label: str, partitions: Partitions, chains: int) -> None:
        leaves, kl = partitions.leaves.astype(float), mcmc.plug_in_kl(partitions, model)
        means.append(
            [
                label,
                f"{leaves.mean():.3f}",
                f"{z_score(leaves, mean_leaves, chains):+.1f}",
                f"{kl.mean():.5f}",
                f"{z_score(kl, float(plug.mean()), chains, error):+.1f}",
            ]
        )
        top(label, partitions, first_splits(partitions), chains)

    def top(label: str, partitions: Partitions, words: NDArray[np.str_], chains: int) -> None:
        has = words == mode
        each = has.reshape(chains, -1).mean(axis=1)
        tops.append(
            [
                label,
                shares(partitions),
                f"{has.mean():.3f}",
                f"{each.min():.2f} to {each.max():.2f}" if chains > 1 else "",
                f"{partitions.leaves[has].mean():.2f}" if has.any() else "",
                f"{partitions.leaves[~has].mean():.2f}" if not has.all() else "",
            ]
        )

    top("exact", draws, words, 1)
    for kernel, times in RUNS:
        partitions, seconds = run_chains(problem, kernel, times, seed)
        label = kernel if times == 1 else f"{kernel}, {times} times as long"
        p, q = np.ascontiguousarray(draw_masses(partitions, model, seed).T)
        noisy = parse("kl", "compare").of_masses(p, q, partitions.starts)
        row: list[object] = [label, f"{times * problem.iterations:,}", f"{seconds:.1f}"]
        for values in (partitions.leaves, mcmc.plug_in_kl(partitions, model), noisy):
            found = convergence("", values.reshape(CHAINS, -1))
            row += [f"{found.rhat:.3f}", f"{found.ess:.0f}"]
        judged.append(row)
        compare(label, partitions, CHAINS)
    compare(
        f"{MOVED:,} exact draws after {STEPS:,} steps of a cherry chain each",
        moved_draws(problem, draws, seed),
        1,
    )
    head = ["kernel", "iterations per chain", "seconds", "R-hat of l", "effective draws of l"]
    head += ["R-hat of plug-in KL", "effective draws", "R-hat of KL draws", "effective draws"]
    parts = [
        f"## {problem.name}",
        f"{CHAINS} chains, {KEPT} draws kept of each.",
        table(head, judged),
        "Means, and their distance from the exact ones in the standard errors that draws claim.",
        table(["", "E[l]", "z", "E[plug-in KL]", "z"], means),
    ]
    if problem.cells.d > 1:
        head = ["", "first split along 1 / 2 / 3", "share of the mode", "by chain", "E[l] there"]
        parts += [
            "The splits at the top of the tree. The mode is what the first three levels are most "
            f"often in exact draws: along columns {mode}, in preorder.",
            table([*head, "E[l] elsewhere"], tops),
        ]
    return parts


def main() -> None:
    options = parser(__doc__, "mixing")
    options.add_argument("--iterations", type=int, default=4_000_000, help="of each chain")
    given = options.parse_args()
    parts = [part for problem in problems(given) for part in study(problem, given.seed)]
    publish(
        "mixing",
        given.out,
        "# Mixing",
        "R-hat of KL draws includes the noise of the masses given the partition, which hides "
        "chains that disagree about the partition; plug-in KL does without it. And chains that are "
        "wrong in the same way agree well: only the exact posterior shows it.",
        *parts,
    )


if __name__ == "__main__":
    main()
