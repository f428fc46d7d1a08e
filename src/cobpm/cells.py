"""The points as the engines see them: integer coordinates on the dyadic grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Cells:
    """All sample sets, pooled, as cells of a grid with 2^52 steps per column.

    The bits of a code, from the highest of the 52 down, say which half of the unit interval, then
    which half of that half, and so on, the point lies in: the region reached by `m` halvings of a
    column is named by the top `m` bits.

    Attributes:
        codes: `floor(u * 2**52)` for the unit coordinate `u`, shape (d, rows), one row per column.
        sets: Index of the sample set that each point comes from, shape (rows,).
        sizes: Number of points of each set, shape (S,).
        weights: How many points each row stands for, shape (rows,); None for one.
        resolution: Halvings that each column can take, shape (d,), where the codes have fewer than
            52 bits; None for 52.
    """

    codes: NDArray[np.uint64]
    sets: NDArray[np.uint16]
    sizes: NDArray[np.int64]
    weights: NDArray[np.uint32] | None = None
    resolution: NDArray[np.uint8] | None = None

    @property
    def d(self) -> int:
        """Number of columns."""
        return int(self.codes.shape[0])

    @property
    def n(self) -> int:
        """Number of points, all sets together."""
        return int(self.sizes.sum())

    @property
    def rows(self) -> int:
        """Number of rows, which is what counting costs."""
        return int(self.codes.shape[1])
