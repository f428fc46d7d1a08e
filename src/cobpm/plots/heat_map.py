"""The matrix of divergences between many sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cobpm.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cobpm.pairs import Pairwise

MOST_NAMES = 60  # beyond, names along an axis cannot be read
MOST_NUMBERS = 12  # sets, beyond which numbers do not fit into the cells


def heat_map(pairs: Pairwise, *, ax: Axes | None = None, dendrogram: bool = True) -> Axes:
    """The matrix of divergences, similar sets next to each other; see `Pairwise.plot`."""
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    sets = len(pairs.names)
    size = float(np.clip(2.5 + 0.28 * sets, 4.5, 12.0))
    ax = style.axes(ax, size + 0.8, size)
    mean = (pairs.matrix + pairs.matrix.T) / 2
    # An infinite divergence is farther than all others.
    largest = np.max(mean, where=np.isfinite(mean), initial=0.0)
    distances = squareform(np.where(np.isfinite(mean), mean, 2 * largest + 1), checks=False)
    tree = hierarchy.linkage(distances, "average", optimal_ordering=sets <= 400)
    order = hierarchy.leaves_list(tree)

    shown = pairs.matrix[np.ix_(order, order)]
    image = ax.imshow(shown, cmap="viridis_r", vmin=0.0, interpolation="nearest", aspect="equal")
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
    bar.set_label(_label(pairs))
    names = [style.printable(pairs.names[k]) for k in order]
    if sets <= MOST_NAMES:
        ax.set_xticks(range(sets), names, rotation=90)
        ax.set_yticks(range(sets), names)
    else:
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel(f"{sets} sets")
    if not pairs.symmetric:
        ax.set_ylabel("from")
        ax.set_xlabel("to")
    if sets <= MOST_NUMBERS:
        _write_numbers(ax, shown)
    if dendrogram and sets > 2:
        _draw_tree(ax, hierarchy.dendrogram(tree, no_plot=True))
    return ax


def _label(pairs: Pairwise) -> str:
    from cobpm.divergences import parse

    label = pairs.divergence
    if not label.startswith("phi"):
        label = parse(label, "plot").label
    return label[0].upper() + label[1:]


def _write_numbers(ax: Axes, shown: Any) -> None:
    dark = shown > 0.55 * np.max(shown, where=np.isfinite(shown), initial=0.0)
    for (i, j), value in np.ndenumerate(shown):
        if i != j:
            colour = "white" if dark[i, j] else "black"
            ax.text(j, i, f"{value:.2g}", ha="center", va="center", color=colour, fontsize="small")


def _draw_tree(ax: Axes, tree: Any) -> None:
    """Draw the tree above the map, each leaf over its column."""
    above = ax.inset_axes((0.0, 1.01, 1.0, 0.15), sharex=ax)
    for across, heights in zip(tree["icoord"], tree["dcoord"], strict=True):
        # SciPy puts leaf k at 10 k + 5; the map puts it at k.
        above.plot((np.array(across) - 5) / 10, heights, color=style.ink(ax, 0.7), linewidth=0.8)
    above.set_ylim(bottom=0.0)
    above.axis("off")
