"""Posterior mean densities of all sets, at as many points as one likes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cobpm.arrays import FloatArray, IntArray
from cobpm.domain import BITS
from cobpm.model import PaperModel
from cobpm.partitions import Partitions

MOST_VISITS = 4_000_000  # pairs of a point and a region to hold at a time


@dataclass(frozen=True, eq=False)
class MeanDensity:
    """The posterior mean of every set's density on the unit cube.

    Given a partition into l regions, the mean of a density in a region r is (δ + n_s(r)) / (N_s +
    δl) / |r|, which leaves only the partitions to be averaged over. These have most of their
    regions in common. So each distinct region is held once, below one of the regions that it is
    half of, and a point visits the few regions that it lies in instead of every partition drawn.

    Attributes:
        first_child: Regions are numbered so that those below one follow each other: where they
            begin; one entry more than regions.
        column: The column that was cut last to make each region.
        shift: Where a point's coordinate in that column has the bit that tells the halves apart.
        half: That bit: 1 for the upper half.
        leaf: Row of `values` of each region; −1 for a region that is a leaf of no partition.
        values: What each leaf adds to the density of each set, (distinct leaves, S).
        overlap: How many distinct leaves a point of the samples lies in, on average.
    """

    first_child: IntArray
    column: IntArray
    shift: IntArray
    half: IntArray
    leaf: IntArray
    values: FloatArray
    overlap: float

    @classmethod
    def of(cls, partitions: Partitions, model: PaperModel) -> MeanDensity:
        """Average over the partitions drawn."""
        from scipy.sparse import coo_array

        first_child, column, shift, half, leaf_region = _merged(partitions)
        regions, first, which = np.unique(leaf_region, return_index=True, return_inverse=True)
        leaf = np.full(len(column), -1, dtype=np.int32)
        leaf[regions] = np.arange(len(regions))
        # Each region is a leaf of so many partitions into l: the mean of 1 / (N_s + δl) over them.
        sizes, size = np.unique(partitions.leaves, return_inverse=True)
        size = np.repeat(size, partitions.leaves)
        often = coo_array((np.ones(len(which)), (which, size)), shape=(len(regions), len(sizes)))
        totals = np.asarray(model.sizes) + model.delta * sizes[:, np.newaxis]
        counts = partitions.counts[first]
        values = np.asarray(often.tocsr() @ (1.0 / totals)) / len(partitions)
        values *= model.delta + counts
        values *= np.ldexp(1.0, partitions.depths[first].astype(int))[:, np.newaxis]
        overlap = float(counts.sum(dtype=np.int64) / sum(model.sizes))
        return cls(first_child, column, shift, half, leaf, values, overlap)

    def at(self, codes: IntArray) -> FloatArray:
        """Densities at points, (points, S); codes as in `Cells`."""
        n = codes.shape[1]
        found = np.empty((n, self.values.shape[1]))
        chunk = int(np.clip(MOST_VISITS / (8 * self.overlap), 16, 65_536))
        for start in range(0, n, chunk):
            part = slice(start, min(n, start + chunk))
            found[part] = self._at(np.ascontiguousarray(codes[:, part]))
        return found

    def _at(self, codes: IntArray) -> FloatArray:
        from scipy.sparse import coo_array

        n = codes.shape[1]
        point, region = np.arange(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
        points, leaves = [], []
        while len(point):
            leaf = self.leaf[region]
            points.append(point[leaf >= 0])
            leaves.append(leaf[leaf >= 0])
            first = self.first_child[region]
            below = self.first_child[region + 1] - first
            ends = np.cumsum(below)
            region = np.repeat(first - ends + below, below) + np.arange(ends[-1], dtype=np.int32)
            point = np.repeat(point, below)
            bit = codes[self.column[region], point] >> self.shift[region] & 1
            inside = bit == self.half[region]
            point, region = point[inside], region[inside]
        where = np.concatenate(points), np.concatenate(leaves)
        held = coo_array((np.ones(len(where[0])), where), shape=(n, len(self.values)))
        return np.asarray(held.tocsr() @ self.values)


def _merged(partitions: Partitions) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """The distinct regions of all partitions as one tree, and the region of every leaf.

    The tree is that of `MeanDensity`: first child, column, shift and half of every region.
    """
    d, splits = partitions.d, partitions.splits
    upper_child, leaf_number = _upper_children(splits), np.cumsum(splits < 0) - 1
    leaf_region = np.empty(len(partitions.counts), dtype=np.int64)
    parents, columns, levels, halves = ([np.zeros(1, dtype=np.int64)] for _ in range(4))
    # All partitions at once, from the top down. Regions of one depth are told apart by the node
    # that each column's interval has in a binary heap: 1 is all of it, 2 and 3 are its halves.
    start, heap, level = 0, np.ones((1, d), dtype=np.uint64), np.zeros((1, d), dtype=np.int64)
    node, region = partitions.node_starts[:-1], np.zeros(len(partitions), dtype=np.int64)
    while True:
        cut = splits[node].astype(np.int64)
        leaf_region[leaf_number[node[cut < 0]]] = start + region[cut < 0]
        node, region, cut = node[cut >= 0], region[cut >= 0], cut[cut >= 0]
        if not len(node):
            break
        cuts, which = np.unique(region * d + cut, return_inverse=True)
        parent, column = np.repeat(cuts // d, 2), np.repeat(cuts % d, 2)
        half = np.tile([0, 1], len(cuts))
        heap = heap[parent]
        row = np.arange(len(heap))
        heap[row, column] = 2 * heap[row, column] + half.astype(np.uint64)
        # The same region may be half of several others: it stays below the first of them.
        first, same = _distinct_rows(heap)
        parent, column, half, heap = parent[first], column[first], half[first], heap[first]
        row = np.arange(len(heap))
        level = level[parent]
        level[row, column] += 1
        parents.append(start + parent)
        columns.append(column)
        levels.append(level[row, column])
        halves.append(half)
        start += len(columns[-2])
        node = np.concatenate([node + 1, upper_child[node]])
        region = np.concatenate([same[2 * which], same[2 * which + 1]])
    below = np.bincount(np.concatenate(parents)[1:], minlength=start + len(heap))
    shift = BITS - np.concatenate(levels)
    shift[shift < 0] = 63  # a bit that is 0 for all: below the grid, points are in lower halves
    return (
        np.concatenate([[1], 1 + np.cumsum(below)]).astype(np.int32),
        np.concatenate(columns).astype(np.int16),
        shift.astype(np.uint64),
        np.concatenate(halves).astype(np.uint64),
        leaf_region,
    )


def _upper_children(splits: IntArray) -> IntArray:
    """The node that follows the lower half of each inner node, trees being in preorder."""
    # Count inner nodes up and leaves down: a subtree ends where the count first falls below that of
    # the node before it.
    count = np.cumsum(np.where(splits < 0, -1, 1), dtype=np.int64)
    count -= count.min() - 1
    key = count * len(splits) + np.arange(len(splits))
    order = np.argsort(count, kind="stable")
    inner = order[splits[order] >= 0]  # in the order of the keys, which makes the search quick
    ends = np.searchsorted(key[order], key[inner] - len(splits))
    upper = np.full(len(splits), -1, dtype=np.int64)
    upper[inner] = order[np.minimum(ends, len(order) - 1)] + 1
    return upper


def _distinct_rows(rows: IntArray) -> tuple[IntArray, IntArray]:
    """First occurrence of every distinct row, in order, and the place of each row among them."""
    order = np.lexsort(rows.T)
    ordered = rows[order]
    fresh = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    group = np.cumsum(fresh) - 1
    first = order[fresh]  # lexsort is stable: the first of its group
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    same = np.empty(len(rows), dtype=np.int64)
    same[order] = rank[group]
    return np.sort(first), same
