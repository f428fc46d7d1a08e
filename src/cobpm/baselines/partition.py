"""Kullback–Leibler divergence from cells that hold equally many points of y.

Wang, Kulkarni and Verdú (2005) cut the line at every l-th smallest of the m points of y. With k_i
of the n points of x and l_i of the points of y in cell i,

    KL(p‖q)  ≈  Σ_i k_i/n · log( (k_i/n) / (l_i/m) ),

where l_i is l but for the last cell, which takes what is left. The estimate converges if l and the
number of cells both grow; the default here is l = √m.

They go on to correct its bias; the correction here is our own and need not be theirs, whose terms
could not be compared. It is made of two facts. The mass Q of q between
order statistics of y is Beta(l_i, m + 1 − l_i), so where a point of x falls into a cell, which is
more likely in a large one, log Q has the mean ψ(l_i + 1) − ψ(m + 2) instead of log(l_i/m), if the
density ratio is about constant there. And Σ k_i/n log(k_i/n) has a bias of (c − 1)/2n to first
order, with c the number of cells that have points of x (Miller 1955).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma, xlogy

from cobpm.samples import Seen, as_samples, bad, check_count


def partition_divergence(
    x: Any, y: Any, per_cell: int | None = None, *, correct_bias: bool = True
) -> float:
    """Estimate the Kullback–Leibler divergence of x from y, for one column.

    Args:
        x: The first sample: numbers, or anything with one column.
        y: The second sample. It may have another size.
        per_cell: How many points of y a cell holds; None for √m. Repeated values stay in one cell,
            which then holds more.
        correct_bias: Whether to correct for the bias that few points per cell bring.

    Returns:
        The estimate in nats. Corrected, it may be negative.

    Raises:
        InputError: The samples are unfit or have more than one column.
    """
    owner = "partition_divergence"
    samples = as_samples([x, y], owner=owner, names=["x", "y"], parameters=["x", "y"])
    if samples.d > 1:
        seen = Seen(f"{samples.d} columns")
        way_out = "knn_divergence and nwj_divergence take more."
        raise bad("x", owner, "have one column", seen, way_out)
    first, second = (np.sort(values[:, 0]) for values in samples.values)
    n, m = samples.sizes
    if per_cell is None:
        per_cell = round(m**0.5)
    per_cell = check_count(per_cell, parameter="per_cell", owner=owner)
    cells = max(1, m // per_cell)
    ends = np.unique(second[per_cell * np.arange(1, cells) - 1])
    ends = ends[ends < second[-1]]  # the last cell has points of y too
    k, at = (
        np.diff(np.searchsorted(points, ends, side="right"), prepend=0, append=len(points))
        for points in (first, second)
    )
    p = k / n
    if not correct_bias:
        return float(np.sum(xlogy(p, p) - p * np.log(at / m)))
    # The last cell also has the room beyond the largest y.
    beyond = np.arange(len(at)) == len(at) - 1
    log_q = digamma(at + 1 + beyond) - digamma(m + 2)
    occupied = np.count_nonzero(k)
    return float(np.sum(xlogy(p, p) - p * log_q) - (occupied - 1) / (2 * n))
