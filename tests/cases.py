"""Data that several tests use."""

import numpy as np

from cobpm.cells import Cells
from cobpm.experiments.laws import beta_mixtures

__all__ = ["beta_mixtures", "cells_of"]


def cells_of(sets):
    """Points in the unit cube as the engines see them."""
    pooled = np.vstack(sets)
    codes = np.minimum(np.floor(pooled * 2.0**52), 2.0**52 - 1).astype(np.uint64)
    sizes = np.array([len(points) for points in sets])
    labels = np.repeat(np.arange(len(sets)), sizes).astype(np.uint16)
    return Cells(np.ascontiguousarray(codes.T), labels, sizes)
