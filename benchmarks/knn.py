"""The estimate that speed is compared with: KL divergence from nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree


def kl_from_neighbours(x: NDArray[Any], y: NDArray[Any], k: int = 1) -> float:
    """KL(p‖q) from the distances to the k-th neighbour of each x_i, ρ_i in x and ν_i in y.

        d/n Σ_i log(ν_i / ρ_i) + log(m / (n − 1))

    (Pérez-Cruz 2008; Wang, Kulkarni and Verdú 2009.) One number without an interval, on one core.
    The points must be distinct.
    """
    (n, d), m = x.shape, len(y)
    rho, _ = cKDTree(x).query(x, k=[k + 1], workers=1)  # the nearest is the point itself
    nu, _ = cKDTree(y).query(x, k=[k], workers=1)
    return float(d * np.mean(np.log(nu / rho)) + np.log(m / (n - 1)))
