"""Posterior means over all partitions at once, without a draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cobpm import _core
from cobpm.arrays import FloatArray, IntArray
from cobpm.divergences import Divergence
from cobpm.model import PaperModel
from cobpm.threads import thread_count

TABLE = 512


@dataclass(frozen=True)
class Moments:
    """The recursion, kept to answer for sums over leaves.

    Given l leaves, A = N_1 + δ l and B = N_2 + δ l are known, so a mean of the form
    scale(A, B) · Σ_leaves g + shift(A, B) needs E[Σ_leaves g | l] only, and that is the recursion
    again with every leaf weight w replaced by the dual number w (1 + ε g).
    """

    recursion: _core.Exact
    model: PaperModel
    leaves: IntArray  # the l of each entry of `probabilities`
    probabilities: FloatArray

    def knows(self, divergence: Divergence) -> bool:
        """Whether the mean of a divergence is of that form."""
        return divergence.additive is not None

    def mean(self, divergence: Divergence, first: int, second: int) -> float:
        """E[D | data] for a divergence whose mean given the partition is a sum over leaves."""
        assert divergence.additive is not None
        terms = divergence.additive.terms
        sums = self._leaf_sums([term.leaf for term in terms], first, second)
        A, B = (self.model.sizes[i] + self.model.delta * self.leaves for i in (first, second))
        given_leaves = divergence.additive.shift(A, B)
        for term, total in zip(terms, sums, strict=True):
            given_leaves = given_leaves + term.scale(A, B) * total
        return max(0.0, float(self.probabilities @ given_leaves))

    def _leaf_sums(
        self,
        functions: list[Callable[[FloatArray, FloatArray], FloatArray]],
        first: int,
        second: int,
    ) -> list[FloatArray]:
        """E[Σ_leaves g | l] for each g, over `leaves`."""
        delta, sets = self.model.delta, len(self.model.sizes)
        counts = self.recursion.counts()[:, [first, second]]
        # Nearly all regions are small: look up g of small counts, and work out the rest.
        small = min(TABLE, int(counts.max()) + 1)
        a, b = (
            axis.ravel() for axis in np.meshgrid(*2 * [delta + np.arange(small)], indexing="ij")
        )
        large = np.flatnonzero((counts >= small).any(axis=1))
        where = counts[:, 0].astype(np.intp) * small + counts[:, 1]
        where[large] = 0
        values = np.column_stack([g(a, b) for g in functions])[where]
        a, b = delta + counts[large, 0], delta + counts[large, 1]
        values[large] = np.column_stack([g(a, b) for g in functions])
        none = np.full(1, delta)
        empty = np.array([float(g(none, none)[0]) for g in functions])
        single = np.tile(empty, (sets, 1))
        single[first] = [float(g(none + 1, none)[0]) for g in functions]
        single[second] = [float(g(none, none + 1)[0]) for g in functions]
        found = self.recursion.expect(values, empty, single, thread_count())
        return list(np.asarray(found).T)
