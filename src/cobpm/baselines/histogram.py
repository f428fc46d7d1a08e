"""Any divergence from counts on a grid of equal cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from cobpm.arrays import FloatArray
from cobpm.divergences import Asked, parse
from cobpm.samples import Samples, Seen, as_samples, bad, check_bounds, check_count, check_positive

MOST_CELLS = 10_000_000


def histogram_divergence(
    x: Any,
    y: Any,
    divergence: Asked = "kl",
    bins: int = 8,
    bounds: Any = None,
    *,
    pseudo_count: float = 0.5,
) -> float:
    """Estimate a divergence of x from y from a histogram of each on the same grid.

    Args:
        x: The first sample: numbers, a matrix with one row per point, or a data frame.
        y: The second sample, with the same columns. It may have another size.
        divergence: A name or a convex function, as everywhere in `cobpm`.
        bins: How many equal intervals each column is divided into.
        bounds: The range of the columns, as in `cobpm.compare` but for "ranks"; None for the
            smallest and the largest value.
        pseudo_count: Added to every count of both histograms. Without it, one cell in which y has
            no points would make many divergences infinite.

    Returns:
        The divergence of the histograms. It is never negative, and overestimates where there are
        many cells for few points.

    Raises:
        InputError: The samples are unfit, or the grid has more than ten million cells.
    """
    owner = "histogram_divergence"
    samples = as_samples([x, y], owner=owner, names=["x", "y"], parameters=["x", "y"])
    asked = parse(divergence, owner)
    bins = check_count(bins, parameter="bins", owner=owner)
    pseudo_count = check_positive(
        pseudo_count,
        parameter="pseudo_count",
        owner=owner,
        way_out="A tiny one, 1e-9 say, comes close to none.",
    )
    cells = bins**samples.d
    if cells > MOST_CELLS:
        seen = Seen(f"{bins} bins in each of {samples.d} columns")
        raise bad("bins", owner, f"make at most {MOST_CELLS:,} cells", seen, "Take fewer bins.")
    low, width = _grid(samples, bounds, owner)

    def masses(points: FloatArray) -> FloatArray:
        at = np.clip((points - low) / width * bins, 0, bins - 1).astype(np.intp)
        counts = np.bincount(np.ravel_multi_index(tuple(at.T), (bins,) * samples.d), None, cells)
        return np.asarray((counts + pseudo_count) / (len(points) + cells * pseudo_count))

    p, q = map(masses, samples.values)
    return float(asked.of_masses(p, q, np.array([0]))[0])


def _grid(samples: Samples, bounds: Any, owner: str) -> tuple[FloatArray, FloatArray]:
    """The lower end and the width of each column; a constant column has some."""
    checked = check_bounds(bounds, samples, owner=owner)
    if isinstance(checked, str):
        way_out = "Put ranks in place of the values first."
        raise bad("bounds", owner, "be None or limits of the columns", bounds, way_out)
    pooled = np.vstack(samples.values)
    low, high = pooled.min(axis=0), pooled.max(axis=0)
    if checked is not None:
        given = ~np.isnan(checked[:, 0])
        low[given], high[given] = checked[given].T
    return low, np.where(high > low, high - low, 1.0)
