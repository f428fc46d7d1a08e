"""The map of two columns: where each set is denser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cobpm.arrays import FloatArray
from cobpm.plots import style
from cobpm.plots.columns import mark_ratio
from cobpm.plots.style import Ruler

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cobpm.views import MapView

STRONGEST = float(np.log(12))  # a log ratio beyond this has no stronger colour
MARGIN = 0.015  # around the map, so that points on its rim are seen


def ratio_map(
    view: MapView, ax: Axes, *, points: bool = True, leaves: bool = True, colourbar: bool = True
) -> Axes:
    """The ratio of the densities in two columns in colours, with points of both sets over it."""
    across, up = (
        Ruler.of(name, edges, dated)
        for name, edges, dated in zip(view.columns, view.edges, view.dated, strict=True)
    )
    x, y = across.put(view.edges[0]), up.put(view.edges[1])
    shown = np.ma.masked_array(view.log_ratio, mask=~view.known)
    # A few cells at the rim should not take the colours away from all others.
    largest = float(np.clip(np.quantile(np.abs(shown.compressed()), 0.98), np.log(1.5), STRONGEST))
    image = ax.pcolormesh(
        x,
        y,
        shown,
        cmap=style.ratio_colours(ax),
        vmin=-largest,
        vmax=largest,
        rasterized=True,
        zorder=0,
    )
    if leaves and len(view.leaves) > 1:
        _outline(ax, view.leaves, across, up, (x, y))
    if points:
        _scatter(ax, view, across, up)
    for limits, edges in ((ax.set_xlim, x), (ax.set_ylim, y)):
        room = MARGIN * (edges[-1] - edges[0])
        limits(edges[0] - room, edges[-1] + room)
    across.mark(ax.xaxis)
    up.mark(ax.yaxis)
    style.bare(ax)
    if colourbar:
        beyond = [bool((shown < -largest).any()), bool((shown > largest).any())]
        extend = ("neither", "max", "min", "both")[2 * beyond[0] + beyond[1]]
        bar = ax.figure.colorbar(image, ax=ax, pad=0.02, extend=extend, extendfrac=0.03)
        bar.outline.set_visible(False)
        mark_ratio(bar.ax.yaxis, largest, view.sets)
    return ax


def _scatter(ax: Axes, view: MapView, across: Ruler, up: Ruler) -> None:
    most = max(len(points) for points in view.points)
    size = float(np.clip(4000 / most, 7, 25))
    handles = []
    for points, colour, marker in zip(view.points, style.set_colours(ax), "o^", strict=True):
        paint: Any = [0.8 * c for c in style.mixed(ax, colour, 1.0)]
        ax.scatter(
            across.put(points[:, 0]),
            up.put(points[:, 1]),
            s=size,
            marker=marker,
            color=paint,
            alpha=float(np.clip(300 / most, 0.55, 0.9)),
            linewidths=0,
            rasterized=most > 300,
            zorder=2,
        )
        handles += ax.plot([], [], marker, color=paint, markersize=5, markeredgewidth=0)
    labels = [style.for_legend(name) for name in view.sets]
    ax.legend(
        handles,
        labels,
        frameon=False,
        fontsize="small",
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=2,
        borderaxespad=0.2,
        handletextpad=0.2,
        columnspacing=1.2,
    )


def _outline(
    ax: Axes, leaves: FloatArray, across: Ruler, up: Ruler, edges: tuple[FloatArray, FloatArray]
) -> None:
    """Draw the borders of sub-regions, as far as they lie in the picture."""
    from matplotlib.collections import PolyCollection

    left, right = (np.clip(across.put(leaves[:, k]), edges[0][0], edges[0][-1]) for k in (0, 1))
    low, high = (np.clip(up.put(leaves[:, k]), edges[1][0], edges[1][-1]) for k in (2, 3))
    corners = np.array([[left, low], [right, low], [right, high], [left, high]])
    ax.add_collection(
        PolyCollection(
            list(corners.transpose(2, 0, 1)),
            facecolor="none",
            edgecolor=style.ink(ax, 0.4),
            linewidth=0.6,
            zorder=1,
        ),
        autolim=False,
    )
