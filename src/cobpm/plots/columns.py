"""Pictures of single columns: both marginals, and their ratio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cobpm.plots import style
from cobpm.plots.style import Ruler

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cobpm.views import ColumnView

SHARPEST = 6.0  # a log ratio beyond this, 400 : 1, is drawn no farther out


def marginals(view: ColumnView, ax: Axes, *, legend: bool = True, title: bool = True) -> Axes:
    """Both sets' histograms of a column, with what one has more of than the other in its colour.

    The colour is strong where the posterior is sure which set is denser, else faint.
    """
    ruler = Ruler.of(view.name, view.edges, view.dated)
    edges = ruler.put(view.edges)
    colours = style.set_colours(ax)
    p, q = 100 * view.shares
    ax.stairs(np.minimum(p, q), edges, fill=True, color=style.ink(ax, 0.1), zorder=1)
    for more, less, colour, sign in ((p, q, colours[0], 1), (q, p, colours[1], -1)):
        for strength, where in ((0.22, view.sign != sign), (0.75, view.sign == sign)):
            top = np.where(where, np.maximum(more, less), less)
            paint = style.mixed(ax, colour, strength)
            ax.stairs(top, edges, baseline=less, fill=True, color=paint, zorder=1)
    lines = [
        ax.stairs(shares, edges, color=colour, linewidth=1.3, zorder=2)
        for shares, colour in ((p, colours[0]), (q, colours[1]))
    ]
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(0, 1.12 * max(p.max(), q.max()))
    _mark_open_ends(view, ax, edges, np.maximum(p, q))
    ruler.mark(ax.xaxis)
    ax.yaxis.set_major_formatter("{x:g}%")
    ax.locator_params(axis="y", nbins=4)
    style.bare(ax)
    if legend:
        ax.legend(
            lines, [style.for_legend(name) for name in view.sets], frameon=False, fontsize="small"
        )
    if title:
        ax.set_title(_difference(view), fontsize="small", loc="left", color=style.ink(ax, 0.75))
    return ax


def ratio(view: ColumnView, ax: Axes) -> Axes:
    """The ratio of the densities along a column, with its band."""
    ruler = Ruler.of(view.name, view.edges, view.dated)
    edges = ruler.put(view.edges)
    colours = style.set_colours(ax)
    estimate, low, high = (
        np.clip(values, -SHARPEST, SHARPEST) for values in (view.log_ratio, view.low, view.high)
    )
    known = np.isfinite(estimate)
    largest = max(np.abs(np.concatenate([low[known], high[known]])).max(initial=0.0), 0.1) * 1.05
    ax.stairs(high, edges, baseline=low, fill=True, color=style.ink(ax, 0.16), zorder=1)
    for colour, sign in ((colours[0], 1), (colours[1], -1)):
        sure = np.where(view.sign == sign, estimate, np.nan)
        ax.stairs(
            sure, edges, baseline=0.0, fill=True, color=style.mixed(ax, colour, 0.6), zorder=1
        )
    ax.axhline(0.0, color=style.ink(ax, 0.5), linewidth=0.8, zorder=2)
    ax.stairs(estimate, edges, baseline=None, color=style.ink(ax), linewidth=1.4, zorder=3)
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(-largest, largest)
    mark_ratio(ax.yaxis, largest, view.sets)
    ruler.mark(ax.xaxis)
    style.bare(ax)
    return ax


def mark_ratio(axis: Any, largest: float, sets: tuple[str, str]) -> None:
    """Ticks and label of an axis that has log ratios."""
    at, labels = style.ratio_ticks(largest)
    axis.set_ticks(at, labels)
    first, second = (style.printable(name, 16) for name in sets)
    axis.set_label_text(f"density, {first} : {second}")


def _difference(view: ColumnView) -> str:
    low, high = view.tv_interval
    return f"total variation {view.tv:.2f} ({low:.2f} – {high:.2f})"


def _mark_open_ends(view: ColumnView, ax: Axes, edges: Any, tops: Any) -> None:
    """Say which of the outer bins hold all that is beyond."""
    ends = ((view.open_low, 0, "≤"), (view.open_high, len(tops) - 1, "≥"))
    for is_open, k, sign in ends:
        if is_open:
            middle = edges[k] / 2 + edges[k + 1] / 2
            ax.annotate(
                sign,
                (middle, tops[k]),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                fontsize="small",
                color=style.ink(ax, 0.75),
            )
