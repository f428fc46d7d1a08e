"""Sketches the slow way: every row put into its cell by itself, all at once."""

from collections import Counter
from collections.abc import Mapping

import numpy as np

FINEST = 12
MOST_BITS = 63

Cell = tuple[int, ...]


def column_bits(bits: int, d: int) -> list[int]:
    """Bits go to the columns in turn, the first columns first."""
    own = [0] * d
    for k in range(bits):
        own[k % d] += 1
    return own


def cell_of(row: np.ndarray, cuts: list[np.ndarray], bits: int) -> Cell:
    """How many cuts are at most each value, without the bits that were given up."""
    own = column_bits(bits, len(cuts))
    return tuple(
        int(np.count_nonzero(cuts[j] <= value)) >> (FINEST - own[j])
        for j, value in enumerate(row.tolist())
    )


def coarser(cell: Cell, bits: int) -> Cell:
    """The cell that holds it when the last bit is given up."""
    last = (bits - 1) % len(cell)
    return tuple(index >> 1 if j == last else index for j, index in enumerate(cell))


def sketch(
    sets: Mapping[str, np.ndarray], cuts: list[np.ndarray], max_cells: int
) -> tuple[int, dict[str, Counter[Cell]]]:
    """Bits that are left, and the counts of each set's cells."""
    bits = min(FINEST * len(cuts), MOST_BITS)
    counts = {
        name: Counter(cell_of(row, cuts, bits) for row in rows) for name, rows in sets.items()
    }
    while len(set().union(*counts.values())) > max_cells:
        for name, counted in counts.items():
            joined: Counter[Cell] = Counter()
            for cell, count in counted.items():
                joined[coarser(cell, bits)] += count
            counts[name] = joined
        bits -= 1
    return bits, counts
