"""Data that several tests use."""

import numpy as np

from cobpm.cells import Cells


def cells_of(sets):
    """Points in the unit cube as the engines see them."""
    pooled = np.vstack(sets)
    codes = np.minimum(np.floor(pooled * 2.0**52), 2.0**52 - 1).astype(np.uint64)
    sizes = np.array([len(points) for points in sets])
    labels = np.repeat(np.arange(len(sets)), sizes).astype(np.uint16)
    return Cells(np.ascontiguousarray(codes.T), labels, sizes)


def beta_mixtures(n, rng):
    """Two sets of n points from the paper's three-dimensional mixtures of beta densities."""
    first = [[(1, 2), (2, 3), (3, 4)], [(4, 3), (3, 2), (2, 1)]]
    second = [[(1, 3), (3, 5), (5, 7)], [(7, 5), (5, 3), (3, 1)]]

    def draw(components):
        a, b = (np.column_stack([rng.beta(*shape, n) for shape in part]) for part in components)
        return np.where(rng.random((n, 1)) < 0.4, a, b)

    return draw(first), draw(second)
