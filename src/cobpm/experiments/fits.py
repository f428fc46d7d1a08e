"""Fits of the paper's model as the paper ran them, and exactly; and what is read off the draws."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import cobpm
from cobpm.arrays import FloatArray
from cobpm.diagnostics import ConvergenceWarning

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cobpm.posterior import Posterior

KEPT, BURN_IN = 3000, 5000  # iterations of the paper's chain
ENGINES = {"guided": "the paper's chain", "uniform": "its uniform variant", "exact": "exact"}
COLOURS = {"guided": "#d98b2b", "exact": "#3b75af"}


def exact(
    x: FloatArray, y: FloatArray, seed: int, *, draws: int, delta: float | None = None
) -> Posterior:
    """Independent draws of the posterior."""
    return cobpm.compare(
        x, y, model="paper", engine="exact", bounds=(0, 1), delta=delta, draws=draws, rng=seed
    )


def chain(
    x: FloatArray,
    y: FloatArray,
    seed: int,
    *,
    draws: int,
    burn_in: int = BURN_IN,
    kernel: str = "guided",
    chains: int = 1,
    delta: float | None = None,
) -> Posterior:
    """Chains of the paper, each from a single cell. That they do not mix is no surprise here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return cobpm.compare(
            x,
            y,
            model="paper",
            engine="mcmc",
            kernel=kernel,
            chains=chains,
            thin=1,
            bounds=(0, 1),
            draws=draws * chains,
            burn_in=burn_in,
            delta=delta,
            rng=seed,
        )


def box(values: FloatArray) -> dict[str, float]:
    """What a box-plot shows of some draws: whiskers reach 1.5 times the box at most."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    reach = 1.5 * (high - low)
    inside = values[(values >= low - reach) & (values <= high + reach)]
    return {
        "median": float(middle),
        "quartile_1": float(low),
        "quartile_3": float(high),
        "whisker_low": float(inside.min()),
        "whisker_high": float(inside.max()),
        "std": float(values.std()),
        "outliers": len(values) - len(inside),
        "largest": float(values.max()),
    }


def draw_boxes(
    ax: Axes,
    at: Sequence[float],
    boxes: Sequence[dict[str, float]],
    draws: Sequence[FloatArray],
    colour: str,
    width: float,
) -> Any:
    """Box-plots at some places, with their outliers."""
    shown = [
        {
            "med": found["median"],
            "q1": found["quartile_1"],
            "q3": found["quartile_3"],
            "whislo": found["whisker_low"],
            "whishi": found["whisker_high"],
            "fliers": values[(values < found["whisker_low"]) | (values > found["whisker_high"])],
        }
        for found, values in zip(boxes, draws, strict=True)
    ]
    return ax.bxp(
        shown,
        positions=list(at),
        widths=width,
        patch_artist=True,
        boxprops={"facecolor": colour, "linewidth": 0.7},
        medianprops={"color": "black", "linewidth": 1.2},
        whiskerprops={"linewidth": 0.7},
        capprops={"linewidth": 0.7},
        flierprops={"marker": ".", "markersize": 2, "alpha": 0.35, "markeredgecolor": colour},
    )


def room_for_boxes(ax: Axes, boxes: Sequence[dict[str, float]]) -> None:
    """Limit the axis to the boxes: outliers far above the longest whisker are told, not shown."""
    top = 1.6 * max(found["whisker_high"] for found in boxes)
    largest = max(found["largest"] for found in boxes)
    ax.set_ylim(0, min(top, 1.05 * largest))
    if largest > top:
        ax.text(
            0.98,
            0.975,
            f"outliers up to {largest:.2g}",
            transform=ax.transAxes,
            ha="right",
            va="top",
            fontsize=8,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.9},
        )
