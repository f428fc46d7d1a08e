"""The comparison with other methods: KL divergence on three problems in three dimensions.

In the caption of its figure the paper calls both densities of the middle problem p1; the second is
meant to be p2. The divergence is KL(p1‖p2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from time import process_time
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.special import xlogy

import cobpm
from cobpm.arrays import FloatArray
from cobpm.baselines import knn_divergence, nwj_fit
from cobpm.experiments.comparison_page import sections, verdict
from cobpm.experiments.fits import BURN_IN, KEPT, chain, exact
from cobpm.experiments.framework import Result, Settings, new_figure
from cobpm.experiments.laws import COMPARISON, Problem
from cobpm.progress import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "comparison"
TITLE = "Comparison with other methods"
SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
QUICK_SIZES = (50, 150, 500)
LABEL = 5  # of the generators
# Widths of NWJ's kernel, None for the default, and penalties times n, for one size.
WIDTHS, PENALTIES, VARIED_SIZE = (None, 0.25, 0.5, 1.0), (1.0, 0.1), 500
OVER_Y = "M2 over y"  # the same fits as M2, read off another way
TITLES = {
    "uniform-normal": "Left: uniform and N(0, (⅓)² I)",
    "corner-normals": "Middle: N(0, (½)² I) and N(1, (½)² I)",
    "beta-mixtures": "Right: mixtures of betas",
}
STYLES = {  # colour, marker and line of each method, in the order of the legend
    "co-BPM": ("#3b75af", "o", "-"),
    "co-BPM, chain": ("#d98b2b", "o", "--"),
    "NWJ-M1": ("#c44e52", "v", "-"),
    "NWJ-M2": ("#e39aa0", "^", "-"),
    "PC-1": ("#4f8a5b", "s", "-"),
    "PC-10": ("#9ac28a", "D", "-"),
    "ratio model": ("#222222", "x", ":"),
}


@dataclass(frozen=True)
class Data:
    """One data set, and seeds for what needs some."""

    x: FloatArray
    y: FloatArray
    seed: int


def _cobpm(data: Data) -> tuple[float, dict[str, float]]:
    post = exact(data.x, data.y, data.seed, draws=1000)
    return post.estimate("kl"), {"median": post.estimate("kl", read_out="median")}


def _chain(data: Data) -> tuple[float, dict[str, float]]:
    return chain(data.x, data.y, data.seed, draws=KEPT).estimate("kl"), {}


def _nwj(method: str) -> Callable[[Data], tuple[float, dict[str, float]]]:
    def estimate(data: Data) -> tuple[float, dict[str, float]]:
        fit = nwj_fit(data.x, data.y, method)
        return fit.divergence, {"gap": abs(fit.gap)}

    return estimate


def _neighbours(k: int) -> Callable[[Data], tuple[float, dict[str, float]]]:
    return lambda data: (knn_divergence(data.x, data.y, k=k), {})


def _ratio(data: Data) -> tuple[float, dict[str, float]]:
    return cobpm.compare(data.x, data.y, rng=data.seed).estimate("kl"), {}


METHODS: dict[str, Callable[[Data], tuple[float, dict[str, float]]]] = {
    "co-BPM": _cobpm,
    "co-BPM, chain": _chain,
    "NWJ-M1": _nwj("M1"),
    "NWJ-M2": _nwj("M2"),
    "PC-1": _neighbours(1),
    "PC-10": _neighbours(10),
    "ratio model": _ratio,  # not in the paper
}


def run(settings: Settings, progress: Progress) -> Result:
    """Estimate the divergence with every method on every data set."""
    sizes, replicates = settings.choose((SIZES, 10), (QUICK_SIZES, 3))
    problems: dict[str, dict[str, Any]] = {}
    seconds: dict[str, dict[int, float]] = {method: dict.fromkeys(sizes, 0.0) for method in METHODS}
    gap, work, total = 0.0, 0.0, sum(sizes) * len(COMPARISON)
    for problem in COMPARISON:
        found = {method: np.empty((len(sizes), replicates)) for method in METHODS}
        medians = np.empty((len(sizes), replicates))
        for i, n in enumerate(sizes):
            progress(f"{problem.name}, n = {n:,}", work / total)
            for j, data in enumerate(data_sets(problem, n, replicates, settings)):
                for method, estimate in METHODS.items():
                    began = process_time()
                    found[method][i, j], more = estimate(data)
                    seconds[method][n] += (process_time() - began) / replicates / len(COMPARISON)
                    gap = max(gap, more.get("gap", 0.0))
                    medians[i, j] = more.get("median", medians[i, j])
            work += n
        problems[problem.name] = {
            "truth": problem.truth["kl"],
            "truth_error": problem.truth_error["kl"],
            "methods": {
                method: summary(values, problem.truth["kl"]) for method, values in found.items()
            },
            "co-BPM_median": summary(medians, problem.truth["kl"]),
        }
    progress("settings of NWJ", work / total)
    numbers = {
        "sizes": sizes,
        "replicates": replicates,
        "chain": {"burn_in": BURN_IN, "kept": KEPT},
        "problems": problems,
        "nwj_duality_gap_below": 10.0 ** np.ceil(np.log10(max(gap, 1e-12))),
        "nwj_settings": nwj_settings(settings, replicates),
        "processor_seconds": seconds,
        "paper": {"right_truth": 0.2133},
    }
    return Result(
        numbers,
        draw(numbers),
        "KL divergence by several methods on three problems, by the number of points per sample",
        sections(numbers),
        verdict(numbers),
    )


def data_sets(problem: Problem, n: int, replicates: int, settings: Settings) -> Iterator[Data]:
    """Independent data sets, the same for all methods."""
    which = COMPARISON.index(problem)
    for j in range(replicates):
        yield Data(*problem.sample(n, settings.rng(LABEL, which, n, j)), settings.seed + j)


def summary(estimates: FloatArray, truth: float) -> dict[str, Any]:
    """Estimates of one method, a row per size, and what they say on average."""
    return {
        "estimates": estimates,
        "mean": estimates.mean(axis=1),
        "std": estimates.std(axis=1, ddof=1),
        "mean_absolute_error": np.abs(estimates - truth).mean(axis=1),
        "negative": (estimates < 0).sum(axis=1),
    }


def nwj_settings(settings: Settings, replicates: int) -> list[dict[str, Any]]:
    """What becomes of NWJ with other kernels and penalties."""
    n = settings.choose(VARIED_SIZE, QUICK_SIZES[0])
    rows = []
    for method, width, weight in product(("M1", "M2"), WIDTHS, PENALTIES):
        read: dict[str, dict[str, Any]] = {method: {}}
        for problem in COMPARISON:
            fits = [
                nwj_fit(data.x, data.y, method, width, weight / n)
                for data in data_sets(problem, n, replicates, settings)
            ]
            read[method][problem.name] = _spread([fit.divergence for fit in fits])
            if method == "M2":
                over_y = [float(np.mean(xlogy(fit.ratios, fit.ratios))) for fit in fits]
                read.setdefault(OVER_Y, {})[problem.name] = _spread(over_y)
        about = {"n": n, "width": width, "penalty_times_n": weight}
        rows += [{"method": name, **about, **found} for name, found in read.items()]
    return sorted(rows, key=lambda row: str(row["method"]))


def _spread(estimates: Sequence[float]) -> dict[str, float]:
    return {"mean": float(np.mean(estimates)), "std": float(np.std(estimates, ddof=1))}


# --- the picture -------------------------------------------------------------------------------


def draw(numbers: Mapping[str, Any]) -> Figure:
    """The layout of the paper: a panel for each problem, a line with error bars for each method."""
    figure = new_figure(11.0, 4.6)
    axes = cast(Any, figure.subplots(1, len(COMPARISON)))
    for ax, (name, found) in zip(axes, numbers["problems"].items(), strict=True):
        _draw_problem(ax, numbers["sizes"], found)
        ax.set_title(TITLES[name], fontsize="medium")
    axes[0].set_ylabel("KL divergence")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    return figure


def _draw_problem(ax: Axes, sizes: Sequence[int], found: Mapping[str, Any]) -> None:
    ax.axhline(found["truth"], color="red", linewidth=1.2, zorder=1, label="true value")
    for k, (method, (colour, marker, line)) in enumerate(STYLES.items()):
        shift = 1.045 ** (k - (len(STYLES) - 1) / 2)
        values = found["methods"][method]
        ax.errorbar(
            np.array(sizes) * shift,
            values["mean"],
            values["std"],
            color=colour,
            marker=marker,
            markersize=4,
            linestyle=line,
            linewidth=1.4,
            elinewidth=1.0,
            capsize=2,
            label=f"{method} (not in the paper)" if method == "ratio model" else method,
        )
    ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes], fontsize="small")
    ax.minorticks_off()
    ax.set_xlabel("points in each sample")
