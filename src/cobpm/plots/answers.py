"""Pictures of numbers: divergences, the number of sub-regions, and regions in words."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from cobpm import divergences as family
from cobpm.arrays import FloatArray
from cobpm.bins import choose_bins
from cobpm.plots import style
from cobpm.plots.columns import SHARPEST, mark_ratio
from cobpm.samples import check_level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cobpm.posterior import Posterior

USUAL = ("tv", "hellinger", "js", "kl", "reverse_kl")
STEPS = 160  # of the curves


def divergences(
    post: Posterior,
    asked: Any = USUAL,
    first: str | None = None,
    second: str | None = None,
    *,
    level: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """A row for each divergence; see `Plots.divergences`."""
    level = check_level(level, owner="plot.divergences")
    if isinstance(asked, str) or not isinstance(asked, Iterable):
        asked = [asked]
    chosen = [family.parse(item, "plot.divergences") for item in asked]
    drawn = [post.draws(item, first, second) for item in chosen]
    ends = [post.interval(item, level, first, second) for item in chosen]
    ax = style.axes(ax, 6.4, 1.0 + 0.55 * len(chosen))
    most = max(max(end.high for end in ends) * 1.2, 1e-3)
    for row, (draws, (low, high)) in enumerate(zip(drawn, ends, strict=True)):
        base = -float(row)
        _cloud(ax, draws, base, most)
        ax.plot([low, high], [base, base], color=style.ink(ax), linewidth=2, solid_capstyle="butt")
        median = float(np.median(draws))
        ax.plot(median, base, "o", color=style.ink(ax), markersize=5)
        ax.annotate(
            _in_figures(median, low, high),
            (1.0, base),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="bottom",
            fontsize="small",
            color=style.ink(ax),
        )
    ax.set_yticks(-np.arange(len(chosen)), [_row_name(item.label) for item in chosen])
    ax.set_ylim(-len(chosen) + 0.6, 0.95)
    ax.set_xlim(-0.01 * most, most)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"median and {100 * level:g}% interval")
    style.bare(ax, "top", "right", "left")
    return ax


def leaves(post: Posterior, ax: Axes | None = None) -> Axes:
    """How many sub-regions the drawn partitions have; see `Plots.leaves`."""
    ax = style.axes(ax, 5.2, 3.2)
    counts = post.leaves.astype(float)
    bins = choose_bins([counts], 60, (float(counts.min()), float(counts.max())))
    shares = 100 * bins.counts(counts) / len(counts)
    ax.stairs(shares, bins.edges, fill=True, color=style.mixed(ax, style.NEITHER, 0.5))
    ax.axvline(counts.mean(), color=style.ink(ax), linewidth=1.2)
    ax.annotate(
        f"mean {counts.mean():.1f}",
        (counts.mean(), 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(4, -2),
        textcoords="offset points",
        va="top",
        fontsize="small",
    )
    ax.set_xlim(bins.edges[0], bins.edges[-1])
    ax.set_ylim(0, 1.15 * shares.max())
    ax.set_xlabel("sub-regions")
    ax.set_ylabel("of draws")
    ax.yaxis.set_major_formatter("{x:g}%")
    ax.locator_params(axis="x", integer=True)
    style.bare(ax)
    return ax


def regions(
    post: Posterior,
    first: str | None = None,
    second: str | None = None,
    *,
    most: int = 8,
    level: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """The regions that differ most, in words, with their ratios; see `Plots.regions`."""
    i, j = post._pair(first, second, "plot.regions")
    sets = (post.names[i], post.names[j])
    table = post.regions(level=level, first=sets[0], second=sets[1]).head(most)
    ax = style.axes(ax, 7.5, 1.0 + 0.5 * len(table))
    estimate, low, high = (
        np.clip(table[name].to_numpy(), -SHARPEST, SHARPEST)
        for name in ("log_ratio", "log_ratio_low", "log_ratio_high")
    )
    rows = -np.arange(len(table))
    largest = max(float(np.abs([low, high]).max()), 0.3) * 1.05
    ax.axvline(0.0, color=style.ink(ax, 0.5), linewidth=0.8, zorder=0)
    colours = style.set_colours(ax)
    for row, middle, a, b in zip(rows, estimate, low, high, strict=True):
        sure = int(a > 0) - int(b < 0)
        paint: Any = {1: colours[0], -1: colours[1], 0: style.ink(ax, 0.6)}[sure]
        ax.plot([a, b], [row, row], color=paint, linewidth=2, solid_capstyle="butt")
        ax.plot(middle, row, "o", color=paint, markersize=6)
    ax.set_yticks(rows, [_in_two_lines(words) for words in table["where"]], fontsize="small")
    ax.set_ylim(-len(table) + 0.4, 0.6)
    ax.set_xlim(-largest, largest)
    mark_ratio(ax.xaxis, largest, sets)
    ax.tick_params(axis="y", length=0)
    style.bare(ax, "top", "right", "left")
    return ax


def _cloud(ax: Axes, draws: FloatArray, base: float, most: float) -> None:
    """The posterior of a divergence as a hill on its row; what lies at zero is a post."""
    above = draws[(draws > 0) & (draws <= most)]
    at_zero = float(np.mean(draws == 0))
    if len(above) > 1:
        grid, curve = _smooth(above, most)
        top = base + 0.72 * (1 - at_zero) * curve
        ax.fill_between(grid, base, top, color=style.mixed(ax, style.NEITHER, 0.4), linewidth=0)
    if at_zero > 0:
        ax.plot(
            [0, 0],
            [base, base + 0.72 * at_zero],
            color=style.mixed(ax, style.NEITHER, 0.85),
            linewidth=4,
            solid_capstyle="butt",
            clip_on=False,
        )


def _smooth(draws: FloatArray, most: float) -> tuple[FloatArray, FloatArray]:
    """A curve of the density of positive draws, highest at one."""
    from scipy.ndimage import gaussian_filter1d

    counts, edges = np.histogram(draws, bins=STEPS, range=(0, most))
    lower, upper = np.quantile(draws, [0.25, 0.75])
    width = max((upper - lower) / 1.35 * len(draws) ** -0.2, most / STEPS)
    curve = gaussian_filter1d(counts.astype(float), width / most * STEPS, mode="reflect")
    return edges[:-1] / 2 + edges[1:] / 2, curve / curve.max()


def _in_figures(median: float, low: float, high: float) -> str:
    """An estimate with its interval, all to the same place."""
    places = int(np.clip(3 - np.ceil(np.log10(max(high, 1e-6))), 0, 6))
    middle, start, end = (f"{value:.{places}f}" if value else "0" for value in (median, low, high))
    return f"{middle}  ({start} – {end})"


def _row_name(label: str) -> str:
    for word in (" divergence", " distance"):
        label = label.replace(word, "")
    return fill(style.printable(label, 60), 20)


def _in_two_lines(words: str, width: int = 44) -> str:
    """A region in words, in as few lines as will do."""
    lines = fill(" ".join(words.split()), width).splitlines()
    text = "\n".join(lines[:3]) + " …" * (len(lines) > 3)
    return text.replace("$", r"\$")
