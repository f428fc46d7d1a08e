"""Drawn partitions, stored flat, and the questions one asks of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cobpm import _core
from cobpm.arrays import FloatArray, IntArray
from cobpm.threads import thread_count


@dataclass(frozen=True)
class Partitions:
    """Many partitions of the unit cube, one after another, each a binary tree in preorder.

    Attributes:
        splits: The column each node is halved along, its lower half coming first; −1 for a leaf.
        node_starts: Where the nodes of each partition begin; one entry more than partitions.
        counts: Points of each set in each leaf, (all leaves, S), leaves in the order of `splits`.
        leaf_starts: Where the leaves of each partition begin; one entry more than partitions.
        d: Number of columns.
    """

    splits: IntArray
    node_starts: IntArray
    counts: IntArray
    leaf_starts: IntArray
    d: int

    @classmethod
    def from_core(cls, packed: tuple[Any, ...], d: int) -> Partitions:
        """Take over what the core returns: splits, nodes per tree, counts, leaves per tree."""
        splits, nodes, counts, leaves = packed
        return cls(splits, _starts(nodes), counts, _starts(leaves), d)

    @classmethod
    def joined(cls, parts: Sequence[Partitions]) -> Partitions:
        """Those of all parts, one part after another."""
        return cls(
            np.concatenate([part.splits for part in parts]),
            _starts(np.concatenate([np.diff(part.node_starts) for part in parts])),
            np.concatenate([part.counts for part in parts]),
            _starts(np.concatenate([part.leaves for part in parts])),
            max(part.d for part in parts),
        )

    def __len__(self) -> int:
        return len(self.node_starts) - 1

    @property
    def starts(self) -> IntArray:
        """First leaf of each partition."""
        return self.leaf_starts[:-1]

    @property
    def leaves(self) -> IntArray:
        """Number of leaves of each partition."""
        return np.diff(self.leaf_starts)

    @cached_property
    def _described(self) -> tuple[IntArray, FloatArray]:
        depth, log_orders = _core.describe(
            self.splits, self.node_starts, self.leaf_starts, self.d, thread_count()
        )
        return depth, log_orders

    @property
    def depths(self) -> IntArray:
        """Depth of every leaf: it has the volume 2^−depth."""
        return self._described[0]

    @property
    def log_orders(self) -> FloatArray:
        """Log of the number of orders that each partition's splits can come in."""
        return self._described[1]

    def one(self, which: int) -> Partitions:
        """A single partition."""
        return self.between(which, which + 1)

    def between(self, first: int, last: int) -> Partitions:
        """The partitions from number `first` to before `last`."""
        nodes = self.node_starts[first : last + 1]
        leaves = self.leaf_starts[first : last + 1]
        return Partitions(
            self.splits[nodes[0] : nodes[-1]],
            nodes - nodes[0],
            self.counts[leaves[0] : leaves[-1]],
            leaves - leaves[0],
            self.d,
        )

    def boxes(self) -> tuple[IntArray, IntArray]:
        """Level and index of every leaf in every column: it spans [index, index + 1) / 2^level."""
        levels = np.zeros((len(self.counts), self.d), dtype=np.uint8)
        indices = np.zeros((len(self.counts), self.d), dtype=np.uint64)
        leaf = 0
        for tree in range(len(self)):
            stack = [([0] * self.d, [0] * self.d)]
            for column in self.splits[self.node_starts[tree] : self.node_starts[tree + 1]].tolist():
                level, index = stack.pop()
                if column < 0:
                    levels[leaf], indices[leaf] = level, index
                    leaf += 1
                    continue
                level[column] += 1
                index[column] *= 2
                upper = list(index)
                upper[column] += 1
                stack += [(list(level), upper), (level, index)]
        return levels, indices

    def locate(self, codes: IntArray) -> IntArray:
        """Leaf that holds each point, (partitions, points); codes as in `Cells`."""
        return np.asarray(
            _core.locate(self.splits, self.node_starts, self.leaf_starts, codes, thread_count())
        )

    def box_masses(
        self,
        masses: FloatArray,
        levels: IntArray,
        indices: IntArray,
        box_points: IntArray | None = None,
    ) -> FloatArray:
        """What leaves with given masses put on given boxes, (partitions, boxes, S).

        Args:
            masses: Of each set in each leaf.
            levels: How often each box was halved in each column, as `boxes` has it.
            indices: Which of the boxes of its level it is.
            box_points: Points of all sets in each box, if the boxes are a partition. Given these,
                mass is spread over a leaf as its pooled points are: known where a box lies in a
                leaf or a leaf in a box; where they cross, as evenly as the points of all leaves
                and boxes allow. Without them it is spread evenly.
        """
        leaf_points = None
        if box_points is not None:
            leaf_points = self.counts.sum(axis=1, dtype=np.int64)
        return np.asarray(
            _core.box_masses(
                self.splits,
                self.node_starts,
                self.leaf_starts,
                np.ascontiguousarray(masses),
                levels,
                indices,
                leaf_points,
                box_points,
                thread_count(),
            )
        )


def _starts(sizes: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
