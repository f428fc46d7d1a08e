"""The posterior of the ratio model, by writing out every tree.

Slow on purpose, and nothing here is shared with the core. A region stops or is halved across one
of the d dimensions; a region at the largest depth, or with one point at most, cannot be halved. The
prior of a tree is the product of those choices, its likelihood the product over its leaves of the
probability of their labels. Regions and trees are those of `tests.oracles.enumeration`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cobpm.arrays import IntArray
from tests.oracles.enumeration import (
    LEAF,
    Points,
    Region,
    Tree,
    contains,
    depth,
    halves,
    whole_space,
)

Counts = tuple[int, ...]
MANY = 50_000  # factors that are not multiplied one by one


def label_probability(counts: Counts, sizes: Counts, concentrations: list[float]) -> float:
    """Probability of one order of the labels in a leaf, one label after another (a Polya urn)."""
    total = sum(sizes)
    mean = 0.0
    for concentration in concentrations:
        probability, drawn = 1.0, 0
        for count, size in zip(counts, sizes, strict=True):
            for already in range(count):
                ahead = concentration * size / total + already
                probability *= ahead / (concentration + drawn)
                drawn += 1
        mean += probability / len(concentrations)
    return mean


@dataclass(frozen=True)
class Listed:
    """One tree with its leaves."""

    tree: Tree
    prior: float
    leaves: tuple[Region, ...]


@dataclass(frozen=True)
class RatioPosterior:
    """Everything about one small problem.

    Attributes:
        sets: One array (n_s, d) of points in [0, 1)^d per sample set.
        d: Number of dimensions.
        concentrations: Of the components of a leaf's label distribution.
        stop: Prior probability that a region which could be halved is not.
        max_depth: No region is deeper than this.
    """

    sets: tuple[Points, ...]
    d: int
    concentrations: list[float]
    stop: float
    max_depth: int

    @property
    def sizes(self) -> Counts:
        return tuple(len(points) for points in self.sets)

    def counts(self, region: Region) -> Counts:
        return tuple(sum(contains(region, x) for x in points.tolist()) for points in self.sets)

    @cached_property
    def listed(self) -> list[Listed]:
        """Every tree there is."""

        def grow(region: Region) -> list[Listed]:
            if depth(region) == self.max_depth or sum(self.counts(region)) <= 1:
                return [Listed(LEAF, 1.0, (region,))]
            found = [Listed(LEAF, self.stop, (region,))]
            for dimension in range(self.d):
                low, high = halves(region, dimension)
                upper = grow(high)
                for a in grow(low):
                    for b in upper:
                        prior = (1 - self.stop) / self.d * a.prior * b.prior
                        tree = (dimension, a.tree, b.tree)
                        found.append(Listed(tree, prior, a.leaves + b.leaves))
            return found

        return grow(whole_space(self.d))

    @cached_property
    def weights(self) -> list[float]:
        """Prior times likelihood of every tree."""
        known: dict[Region, float] = {}

        def likelihood(region: Region) -> float:
            if region not in known:
                counts = self.counts(region)
                known[region] = label_probability(counts, self.sizes, self.concentrations)
            return known[region]

        return [one.prior * math.prod(map(likelihood, one.leaves)) for one in self.listed]

    @cached_property
    def evidence(self) -> float:
        """Probability of all labels."""
        return math.fsum(self.weights)

    def tree_probabilities(self) -> dict[Tree, float]:
        """Posterior probability of every tree."""
        pairs = zip(self.listed, self.weights, strict=True)
        return {one.tree: weight / self.evidence for one, weight in pairs}

    def leaf_probabilities(self) -> dict[Region, float]:
        """Posterior probability that a region is a leaf, for all that can be."""
        found: dict[Region, float] = {}
        for one, weight in zip(self.listed, self.weights, strict=True):
            for region in one.leaves:
                found[region] = found.get(region, 0.0) + weight / self.evidence
        return found

    def expectation(self, of_leaf: Callable[[Region], float]) -> float:
        """Posterior mean of a sum over the leaves."""
        return math.fsum(p * of_leaf(region) for region, p in self.leaf_probabilities().items())


# --- any number of points -------------------------------------------------------------------------


def log_label_probability(counts: Counts, sizes: Counts, concentrations: list[float]) -> float:
    """The same as `label_probability` by its logarithm, for any number of labels."""
    total, logs = sum(sizes), []
    for a in concentrations:
        log = -log_rising(a, sum(counts))
        for count, size in zip(counts, sizes, strict=True):
            if size:
                log += log_rising(a * size / total, count)
        logs.append(log)
    return log_mean_exp(logs)


def log_rising(start: float, steps: int) -> float:
    """Log of start · (start + 1) ⋯ (start + steps − 1)."""
    if steps < MANY:
        return float(np.log(start + np.arange(steps)).sum())
    return math.lgamma(start + steps) - math.lgamma(start)


def log_mean_exp(logs: list[float]) -> float:
    """Log of the mean of numbers that are given by their logs."""
    top = max(logs)
    return top + math.log(math.fsum(math.exp(log - top) for log in logs) / len(logs))


def log_evidence(
    sets: tuple[Points, ...],
    weights: tuple[IntArray, ...] | None,
    concentrations: list[float],
    stop: float,
    max_depth: int,
) -> float:
    """Log probability of all labels, for any number of points in [0, 1)^d.

    The recursion of the model as it is written, in logarithms throughout. A point counts as often
    as its weight says, once without weights.
    """
    points = np.concatenate(sets)
    d = points.shape[1]
    labels = np.repeat(np.arange(len(sets)), [len(rows) for rows in sets])
    counted = np.ones(len(points), dtype=int) if weights is None else np.concatenate(weights)

    def counts_of(inside: IntArray) -> Counts:
        return tuple(int(counted[inside[labels[inside] == s]].sum()) for s in range(len(sets)))

    sizes = counts_of(np.arange(len(points)))
    known: dict[tuple[tuple[int, int], ...], float] = {}

    def log_phi(box: tuple[tuple[int, int], ...], inside: IntArray) -> float:
        if not len(inside):
            return 0.0
        if box not in known:
            counts = counts_of(inside)
            whole = log_label_probability(counts, sizes, concentrations)
            if sum(level for level, _ in box) == max_depth or sum(counts) == 1 or not d:
                known[box] = whole
            else:
                logs = []
                for j, (level, place) in enumerate(box):
                    middle = (2 * place + 1) / 2 ** (level + 1)
                    upper = points[inside, j] >= middle
                    log = 0.0
                    for half, rows in enumerate((inside[~upper], inside[upper])):
                        smaller = (*box[:j], (level + 1, 2 * place + half), *box[j + 1 :])
                        log += log_phi(smaller, rows)
                    logs.append(log)
                cut = math.log1p(-stop) + log_mean_exp(logs)
                known[box] = float(np.logaddexp(math.log(stop) + whole, cut))
        return known[box]

    return log_phi(((0, 0),) * d, np.arange(len(points)))
