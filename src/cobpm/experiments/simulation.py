"""The simulations in one and three dimensions: posteriors of four divergences at three sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cobpm.arrays import FloatArray
from cobpm.experiments import simulation_page
from cobpm.experiments.fits import (
    BURN_IN,
    COLOURS,
    ENGINES,
    KEPT,
    box,
    chain,
    draw_boxes,
    exact,
    room_for_boxes,
)
from cobpm.experiments.framework import Result, Settings, new_figure
from cobpm.experiments.laws import FOUR, LABELS, Problem
from cobpm.progress import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cobpm.posterior import Posterior

SIZES = (50, 250, 1250)
CHAINS = 8
SHOWN = ("guided", "exact")  # in the picture
PAPER_DRAWS = 10**8  # of the Monte Carlo that the paper takes its true values from


@dataclass(frozen=True)
class Fitted:
    """One engine's draws on one data set."""

    draws: Mapping[str, FloatArray]
    leaves: FloatArray
    about: Mapping[str, Any]  # what else goes to the JSON file

    def numbers(self) -> dict[str, Any]:
        """For the JSON file."""
        counts = np.bincount(self.leaves.astype(int))
        found = {int(k): int(counts[k]) for k in np.flatnonzero(counts)}
        boxes = {name: box(values) for name, values in self.draws.items()}
        mean = float(self.leaves.mean())
        return {**boxes, "leaves": found, "mean_leaves": mean, **self.about}


def fit_exact(x: FloatArray, y: FloatArray, seed: int, draws: int) -> Fitted:
    """Independent draws, and E[l] without their error."""
    post = exact(x, y, seed, draws=draws)
    assert post.leaf_probabilities is not None
    mean = float(post.leaf_probabilities @ np.arange(len(post.leaf_probabilities)))
    return Fitted(_draws(post), post.leaves.astype(float), {"expected_leaves": mean})


def fit_chain(x: FloatArray, y: FloatArray, seed: int, draws: int, kernel: str) -> Fitted:
    """The paper's chain: the first of several, whose disagreement tells how well they mix."""
    post = chain(x, y, seed, draws=draws, kernel=kernel, chains=CHAINS)
    drawn, leaves = _draws(post), post.leaves.reshape(CHAINS, -1)
    each = {name: np.median(values.reshape(CHAINS, -1), axis=1) for name, values in drawn.items()}
    about = {
        "medians_of_chains": each,
        "mean_leaves_of_chains": leaves.mean(axis=1),
        "rhat": {entry.quantity: entry.rhat for entry in post.report.convergence},
        "acceptance": post.report.acceptance,
    }
    first = {name: values[:draws] for name, values in drawn.items()}
    return Fitted(first, leaves[0].astype(float), about)


def _draws(post: Posterior) -> dict[str, FloatArray]:
    return {name: post.draws(name) for name in FOUR}


def monte_carlo_errors(problem: Problem, draws: int) -> dict[str, float | None]:
    """Standard errors of averages over draws of the first law; None where there is none.

    They come from quadrature of the variance. Where that grows with the number of nodes, the
    variance is infinite.
    """
    fine, coarse = (_errors(problem, nodes) for nodes in (problem.nodes, 2 * problem.nodes // 3))
    return {
        name: value / draws**0.5 if value < 1.05 * coarse[name] else None
        for name, value in fine.items()
    }


def _errors(problem: Problem, nodes: int) -> dict[str, float]:
    """Standard errors if there were one draw only."""
    p, q = problem.masses(nodes)
    ratio = q / p

    def std(values: FloatArray) -> float:
        mean = p @ values
        return float(np.sqrt(p @ (values - mean) ** 2))

    truth = problem.truth
    return {
        "tv": std(np.abs(1 - ratio) / 2),
        "hellinger": std(np.sqrt(ratio)) / (2 * truth["hellinger"]),
        "kl": std(np.log(ratio)),
        "renyi:2": std(1 / ratio) / float(np.exp(truth["renyi:2"])),
    }


@dataclass(frozen=True)
class Study:
    """A simulation of the paper.

    Attributes:
        problem: The two distributions.
        paper: The true values that the paper prints.
        densities: The distributions in words.
    """

    problem: Problem
    paper: Mapping[str, float]
    densities: str

    def run(self, settings: Settings, progress: Progress) -> Result:
        """Fit one data set of each size with each engine, and further ones with the exact one."""
        draws, repeats = settings.choose((KEPT, 100), (600, 10))
        fits: dict[int, dict[str, Fitted]] = {}
        more: dict[int, dict[str, Any]] = {}
        for step, n in enumerate(SIZES):
            progress(f"{n} + {n} points", step / len(SIZES))
            x, y = self._sample(settings, n, 0)
            fits[n] = {
                kernel: fit_chain(x, y, settings.seed, draws, kernel)
                for kernel in ("guided", "uniform")
            }
            fits[n]["exact"] = fit_exact(x, y, settings.seed, draws)
            found = []
            for k, pair in enumerate(self._more(settings, n, repeats), 1):
                share = (step + k / repeats) / len(SIZES)
                progress(f"{n} + {n} points, data set {k} of {repeats}", share)
                found.append(fit_exact(*pair, settings.seed + k, draws))
            more[n] = self._over_data_sets(found)
        numbers = {
            "truth": {name: self.problem.truth[name] for name in FOUR},
            "truth_error": {name: self.problem.truth_error[name] for name in FOUR},
            "paper_monte_carlo_error": monte_carlo_errors(self.problem, PAPER_DRAWS),
            "draws": draws,
            "burn_in": BURN_IN,
            "data_sets": repeats,
            "sizes": {
                n: {engine: fit.numbers() for engine, fit in by_engine.items()}
                for n, by_engine in fits.items()
            },
            "over_data_sets": more,
            "paper": {"truth": dict(self.paper)},
        }
        return Result(
            numbers,
            self._draw(fits, numbers),
            "Posteriors of four divergences at three sample sizes, and numbers of sub-regions",
            simulation_page.sections(numbers, self.densities),
            simulation_page.verdict(numbers),
        )

    def _sample(self, settings: Settings, n: int, k: int) -> tuple[FloatArray, FloatArray]:
        return self.problem.sample(n, settings.rng(self.problem.d, n, k))

    def _more(
        self, settings: Settings, n: int, repeats: int
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        return (self._sample(settings, n, k) for k in range(1, repeats + 1))

    def _over_data_sets(self, fits: list[Fitted]) -> dict[str, Any]:
        """How the exact posterior does on average over data sets."""
        found: dict[str, Any] = {
            "mean_leaves": float(np.mean([fit.about["expected_leaves"] for fit in fits]))
        }
        for name in FOUR:
            medians = np.array([np.median(fit.draws[name]) for fit in fits])
            inside = [
                np.quantile(fit.draws[name], 0.05)
                <= self.problem.truth[name]
                <= np.quantile(fit.draws[name], 0.95)
                for fit in fits
            ]
            stds = np.array([fit.draws[name].std() for fit in fits])
            outliers = np.array([box(fit.draws[name])["outliers"] for fit in fits])
            found[name] = {
                "medians": medians,
                "mean_of_medians": float(medians.mean()),
                "error": _average(np.abs(medians - self.problem.truth[name])),
                "std": _average(stds),
                "outliers": _average(outliers),
                "intervals_of_90_that_hold_the_truth": float(np.mean(inside)),
            }
        return found

    def _draw(self, fits: Mapping[int, Mapping[str, Fitted]], numbers: Mapping[str, Any]) -> Figure:
        """Box-plots of the divergences above, histograms of the number of sub-regions below."""
        figure = new_figure(10.0, 5.8)
        above, below = cast(Any, figure.subfigures(2, 1, height_ratios=(1.3, 1)))
        for ax, name in zip(above.subplots(1, 4), FOUR, strict=True):
            draws = {n: {engine: fits[n][engine].draws[name] for engine in SHOWN} for n in SIZES}
            sizes = numbers["sizes"]
            boxes = {n: {engine: sizes[n][engine][name] for engine in SHOWN} for n in SIZES}
            _draw_divergence(ax, boxes, draws, numbers["truth"][name])
            ax.set_title(LABELS[name], fontsize="medium")
        for ax, n in zip(below.subplots(1, 3), SIZES, strict=True):
            _draw_leaves(ax, fits[n])
            ax.set_title(f"{n:,} points in each sample", fontsize="medium")
        below.axes[0].set_ylabel("share of draws")
        _legend(above)
        return figure


def _average(values: FloatArray) -> dict[str, float]:
    """A mean over data sets, with its standard error."""
    return {
        "mean": float(values.mean()),
        "standard_error": float(values.std(ddof=1) / np.sqrt(len(values))),
    }


# --- the picture -------------------------------------------------------------------------------


def _draw_divergence(ax: Axes, boxes: Any, draws: Any, truth: float) -> None:
    ax.axhline(truth, color="red", linewidth=1.2, zorder=1)
    for shift, engine in zip((-0.19, 0.19), SHOWN, strict=True):
        places = [k + shift for k in range(len(SIZES))]
        summaries, values = ([found[n][engine] for n in SIZES] for found in (boxes, draws))
        draw_boxes(ax, places, summaries, values, COLOURS[engine], 0.32)
    ax.set_xticks(range(len(SIZES)), [f"{n:,}" for n in SIZES])
    ax.set(xlabel="points in each sample", xlim=(-0.55, len(SIZES) - 0.45))
    room_for_boxes(ax, [found for by_engine in boxes.values() for found in by_engine.values()])


def _draw_leaves(ax: Axes, fits: Mapping[str, Fitted]) -> None:
    for engine in SHOWN:
        leaves = fits[engine].leaves
        edges = np.arange(leaves.min() - 0.5, leaves.max() + 1).tolist()
        ax.hist(leaves, edges, density=True, color=COLOURS[engine], alpha=0.6)
    ax.set_xlabel("number of sub-regions $l$")
    ax.locator_params(axis="x", integer=True)


def _legend(figure: Any) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Patch(color=COLOURS[name], label=ENGINES[name]) for name in SHOWN]
    handles.append(Line2D([], [], color="red", label="true value"))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False)
