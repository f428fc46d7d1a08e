"""The posterior over binary partitions, by writing out every decision sequence.

Slow on purpose. Nothing here is shared with the engines: regions are tuples, trees are nested
tuples, points are compared with the edges of a region one by one, and totals are plain sums over
everything there is. Small cases only: there are (l-1)! d^(l-1) sequences with l leaves, and
Catalan(l-1) d^(l-1) trees. The vocabulary:

* a *region* is one (level, index) per dimension: the dyadic interval
  [index / 2^level, (index + 1) / 2^level); its depth is the sum of the levels, its volume 2^-depth;
* a *decision* is (region, dimension): halve this region across this dimension;
* a *decision sequence* is a tuple of decisions, in the order in which they are taken;
* a *tree* forgets the order: LEAF, or (dimension, left tree, right tree). One tree has many
  orders, and different trees may have the same leaf regions (a *partition*).
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

Region: TypeAlias = tuple[tuple[int, int], ...]
Decision: TypeAlias = tuple[Region, int]
Sequence: TypeAlias = tuple[Decision, ...]
Tree: TypeAlias = "tuple[int, Tree, Tree] | None"
Partition: TypeAlias = frozenset[Region]
Points: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

LEAF: Tree = None


# Regions


def whole_space(d: int) -> Region:
    """The unit cube itself."""
    return ((0, 0),) * d


def depth(region: Region) -> int:
    """Number of halvings that lead from the unit cube to this region."""
    return sum(level for level, _ in region)


def halves(region: Region, dimension: int) -> tuple[Region, Region]:
    """The lower and the upper half of a region across one dimension."""
    level, index = region[dimension]
    before, after = region[:dimension], region[dimension + 1 :]
    low = (*before, (level + 1, 2 * index), *after)
    high = (*before, (level + 1, 2 * index + 1), *after)
    return low, high


def contains(region: Region, point: Iterable[float]) -> bool:
    """Whether a point lies in the (half-open) region."""
    # Multiplying by a power of two is exact, so this is the same as comparing integer grid codes.
    return all(
        index <= x * 2.0**level < index + 1 for (level, index), x in zip(region, point, strict=True)
    )


# Weights


def leaf_log_weight(counts: Iterable[int], depth: int, delta: float) -> float:
    """Log weight of a leaf: sum_s lnGamma(delta + n_s) + depth ln2 sum_s n_s."""
    counts = list(counts)
    return math.fsum(math.lgamma(delta + n) for n in counts) + depth * math.log(2) * sum(counts)


def size_log_term(leaves: int, sizes: Iterable[int], delta: float, sigma: float) -> float:
    """The part of the log weight that knows only l: -sigma l - sum_s lnGamma(N_s + delta l)."""
    return -sigma * leaves - math.fsum(math.lgamma(size + delta * leaves) for size in sizes)


def sequence_log_weight(
    leaf_counts: Iterable[Iterable[int]],
    leaf_depths: Iterable[int],
    sizes: Iterable[int],
    *,
    delta: float,
    sigma: float,
) -> float:
    """Unnormalised log posterior of ONE decision sequence with these leaves."""
    pairs = zip(leaf_counts, leaf_depths, strict=True)
    leaves = [leaf_log_weight(counts, depth, delta) for counts, depth in pairs]
    return size_log_term(len(leaves), sizes, delta, sigma) + math.fsum(leaves)


def log_sum(log_terms: Iterable[float]) -> float:
    """Log of the sum of exp(terms); minus infinity for no terms."""
    terms = list(log_terms)
    largest = max(terms, default=-math.inf)
    if largest == -math.inf:
        return -math.inf
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms))


# The problem: data, prior, and which splits are allowed


@dataclass(frozen=True)
class Problem:
    """Data, prior and limits; everything that defines one posterior.

    Attributes:
        sets: One array (n_s, d) of points in [0, 1)^d per sample set; n_s may be 0.
        d: Number of dimensions.
        delta: Pseudo-count of each leaf.
        sigma: Price of each leaf.
        max_leaves: No sequence has more leaves than this; None only if max_depth makes it finite.
        max_depth: A region with two or more points (all sets together) may be split only while its
            depth is below this. None: no limit.
        deep_when_sparse: Regions with at most one point are free of max_depth. If False, no region
            whatsoever is deeper than max_depth.
    """

    sets: tuple[Points, ...]
    d: int
    delta: float
    sigma: float
    max_leaves: int | None
    max_depth: int | None = None
    deep_when_sparse: bool = True
    _counts: dict[Region, tuple[int, ...]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse points outside the cube and enumerations that would never end."""
        for points in self.sets:
            if points.ndim != 2 or points.shape[1] != self.d:
                raise ValueError(f"points must have shape (n, {self.d}), got {points.shape}")
            if not bool(np.all((points >= 0) & (points < 1))):
                raise ValueError("points must lie in [0, 1)")
        if self.max_leaves is None and (self.max_depth is None or self.deep_when_sparse):
            raise ValueError("the enumeration is infinite: give max_leaves")

    @property
    def sizes(self) -> tuple[int, ...]:
        """N_s, the number of points of each set."""
        return tuple(len(points) for points in self.sets)

    def counts(self, region: Region) -> tuple[int, ...]:
        """n_s(region) for every set, by looking at every point once."""
        if region not in self._counts:
            self._counts[region] = tuple(
                sum(contains(region, point) for point in points.tolist()) for points in self.sets
            )
        return self._counts[region]

    def may_split(self, region: Region) -> bool:
        """Whether the limits on depth allow this region to be halved."""
        if self.max_depth is None or depth(region) < self.max_depth:
            return True
        return self.deep_when_sparse and sum(self.counts(region)) <= 1

    def leaf_log_weight(self, region: Region) -> float:
        """Log weight of a region as a leaf."""
        return leaf_log_weight(self.counts(region), depth(region), self.delta)

    def size_log_term(self, leaves: int) -> float:
        """The part of the log weight that knows only the number of leaves."""
        return size_log_term(leaves, self.sizes, self.delta, self.sigma)

    def log_weight(self, leaves: Iterable[Region]) -> float:
        """Unnormalised log posterior of one decision sequence that ends in these leaves."""
        weights = [self.leaf_log_weight(region) for region in leaves]
        return self.size_log_term(len(weights)) + math.fsum(weights)


# Decision sequences, one by one


def decision_sequences(problem: Problem) -> Iterator[Sequence]:
    """Every allowed decision sequence, the empty one first; each order is one of its own."""

    def extend(sequence: Sequence, leaves: tuple[Region, ...]) -> Iterator[Sequence]:
        yield sequence
        if problem.max_leaves is not None and len(leaves) >= problem.max_leaves:
            return
        for position, region in enumerate(leaves):
            if problem.may_split(region):
                for dimension in range(problem.d):
                    low, high = halves(region, dimension)
                    yield from extend(
                        (*sequence, (region, dimension)),
                        (*leaves[:position], low, high, *leaves[position + 1 :]),
                    )

    yield from extend((), (whole_space(problem.d),))


def leaves_of_sequence(sequence: Sequence, d: int) -> tuple[Region, ...]:
    """The leaf regions after all decisions have been taken."""
    leaves = [whole_space(d)]
    for region, dimension in sequence:
        position = leaves.index(region)
        leaves[position : position + 1] = halves(region, dimension)
    return tuple(leaves)


def tree_of_sequence(sequence: Sequence, d: int) -> Tree:
    """The tree that a decision sequence builds."""
    decided = dict(sequence)

    def build(region: Region) -> Tree:
        if region not in decided:
            return LEAF
        low, high = halves(region, decided[region])
        return decided[region], build(low), build(high)

    return build(whole_space(d))


# Trees


def leaves_of_tree(tree: Tree, region: Region) -> tuple[Region, ...]:
    """The leaf regions of a tree planted in this region, from left to right."""
    if tree is None:
        return (region,)
    dimension, left, right = tree
    low, high = halves(region, dimension)
    return leaves_of_tree(left, low) + leaves_of_tree(right, high)


def splits(tree: Tree) -> int:
    """Number of internal nodes, which is the number of leaves less one."""
    return 0 if tree is None else 1 + splits(tree[1]) + splits(tree[2])


def orders(tree: Tree) -> int:
    """Number of decision sequences that build this tree, by the hook formula."""

    def product_of_sizes(node: Tree) -> int:
        if node is None:
            return 1
        return splits(node) * product_of_sizes(node[1]) * product_of_sizes(node[2])

    return math.factorial(splits(tree)) // product_of_sizes(tree)


def grown(tree: Tree, region: Region, problem: Problem) -> Iterator[tuple[Tree, Decision]]:
    """Every tree with one split more than this one, planted in this region, and that split."""
    if tree is None:
        if problem.may_split(region):
            for dimension in range(problem.d):
                yield (dimension, LEAF, LEAF), (region, dimension)
        return
    dimension, left, right = tree
    low, high = halves(region, dimension)
    for new, decision in grown(left, low, problem):
        yield (dimension, new, right), decision
    for new, decision in grown(right, high, problem):
        yield (dimension, left, new), decision


def pruned(tree: Tree, region: Region) -> Iterator[tuple[Tree, Decision]]:
    """Every tree with one cherry (a split of two leaves) less than this one, and that split."""
    if tree is None:
        return
    dimension, left, right = tree
    if left is None and right is None:
        yield LEAF, (region, dimension)
    low, high = halves(region, dimension)
    for new, decision in pruned(left, low):
        yield (dimension, new, right), decision
    for new, decision in pruned(right, high):
        yield (dimension, left, new), decision


# The whole posterior


@dataclass(frozen=True)
class TreeRecord:
    """One tree of the posterior.

    Attributes:
        tree: The tree.
        leaves: Its leaf regions, from left to right.
        counts: Points of each set in each leaf, shape (l, S).
        sequences: Number of decision sequences that build the tree.
        sequence_log_weight: Unnormalised log posterior of each of them.
    """

    tree: Tree
    leaves: tuple[Region, ...]
    counts: Counts
    sequences: int
    sequence_log_weight: float

    @property
    def log_weight(self) -> float:
        """Unnormalised log posterior of the tree: of all its sequences together."""
        return math.log(self.sequences) + self.sequence_log_weight

    @property
    def partition(self) -> Partition:
        """The leaf regions as a set."""
        return frozenset(self.leaves)


@dataclass(frozen=True)
class Enumeration:
    """Every tree of a posterior with its weight.

    Attributes:
        problem: What was enumerated.
        records: Tree to record, fewest leaves first.
        log_total: Log of the summed weight of all sequences with exactly l leaves, for every l up
            to max_leaves; minus infinity where the depth limit leaves none.
    """

    problem: Problem
    records: dict[Tree, TreeRecord]
    log_total: dict[int, float]

    @property
    def log_normaliser(self) -> float:
        """Log of the summed weight of everything enumerated."""
        return log_sum(self.log_total.values())

    def leaf_probabilities(self) -> dict[int, float]:
        """P(l | data, l <= max_leaves)."""
        log_normaliser = self.log_normaliser
        return {leaves: math.exp(t - log_normaliser) for leaves, t in self.log_total.items()}

    def tree_probabilities(self) -> dict[Tree, float]:
        """P(tree | data, l <= max_leaves)."""
        log_normaliser = self.log_normaliser
        return {t: math.exp(r.log_weight - log_normaliser) for t, r in self.records.items()}

    def partitions(self) -> dict[Partition, tuple[float, int]]:
        """Partition to (log weight, number of sequences), summed over its trees."""
        grouped: dict[Partition, list[TreeRecord]] = {}
        for record in self.records.values():
            grouped.setdefault(record.partition, []).append(record)
        return {
            partition: (log_sum(r.log_weight for r in records), sum(r.sequences for r in records))
            for partition, records in grouped.items()
        }

    def average(self, f: Callable[[TreeRecord], float], *, leaves: int | None = None) -> float:
        """Posterior mean of a function of the tree record, given l if `leaves` is not None."""
        chosen = [r for r in self.records.values() if leaves is None or len(r.leaves) == leaves]
        log_normaliser = log_sum(r.log_weight for r in chosen)
        return math.fsum(math.exp(r.log_weight - log_normaliser) * f(r) for r in chosen)

    def expectation(self, g: Callable[[Counts, int], float], *, leaves: int | None = None) -> float:
        """Posterior mean of g(counts of shape (l, S), l), given l if `leaves` is not None."""
        return self.average(lambda record: g(record.counts, len(record.leaves)), leaves=leaves)


def trees_by_leaves(problem: Problem) -> Iterator[dict[Tree, int]]:
    """Tree to number of decision sequences, for l = 1, 2, ... leaves.

    A sequence with l + 1 leaves is a sequence with l leaves and one decision more, so the sequences
    are counted by extending each tree in every way and adding up.
    """
    current: dict[Tree, int] = {LEAF: 1}
    root = whole_space(problem.d)
    leaves = 1
    while current:
        yield current
        if leaves == problem.max_leaves:
            return
        longer: dict[Tree, int] = {}
        for tree, sequences in current.items():
            for new, _ in grown(tree, root, problem):
                longer[new] = longer.get(new, 0) + sequences
        current, leaves = longer, leaves + 1


def enumerate_problem(problem: Problem) -> Enumeration:
    """Write out the whole posterior of a problem."""
    records: dict[Tree, TreeRecord] = {}
    log_total: dict[int, float] = dict.fromkeys(range(1, (problem.max_leaves or 0) + 1), -math.inf)
    for leaf_count, trees in enumerate(trees_by_leaves(problem), start=1):
        for tree, sequences in trees.items():
            leaves = leaves_of_tree(tree, whole_space(problem.d))
            counts = np.array([problem.counts(r) for r in leaves], dtype=np.int64)
            counts = counts.reshape(leaf_count, len(problem.sets))
            records[tree] = TreeRecord(tree, leaves, counts, sequences, problem.log_weight(leaves))
        log_total[leaf_count] = log_sum(records[tree].log_weight for tree in trees)
    return Enumeration(problem, records, log_total)


def enumerate_posterior(
    sets: Iterable[Points],
    d: int,
    *,
    delta: float,
    sigma: float,
    max_leaves: int | None,
    max_depth: int | None = None,
    deep_when_sparse: bool = True,
) -> Enumeration:
    """Write out the whole posterior; see Problem for the parameters."""
    return enumerate_problem(
        Problem(tuple(sets), d, delta, sigma, max_leaves, max_depth, deep_when_sparse)
    )


# Without data


def prior_leaf_log_weight(leaves: int, d: int, sets: int, delta: float, sigma: float) -> float:
    """Log of e^(-sigma l) (l-1)! d^(l-1) (Gamma(delta)^l / Gamma(delta l))^S, S empty sets."""
    return (
        -sigma * leaves
        + math.lgamma(leaves)
        + (leaves - 1) * math.log(d)
        + sets * (leaves * math.lgamma(delta) - math.lgamma(delta * leaves))
    )


def prior_leaf_log_probability(
    leaves: int, d: int, sets: int, delta: float, sigma: float, *, max_leaves: int | None = None
) -> float:
    """Log P(l) without data, given l <= max_leaves; None: among all l, if their sum converges."""
    if max_leaves is None:
        # Looking at the terms is no test: for S delta < 1 they may fall for 500,000 leaves
        # and then rise for ever. The ratio of one to the next tends to tail * l^(1 - S delta).
        tail = math.exp(-sigma) * d * (math.gamma(delta) / delta**delta) ** sets
        if sets * delta < 1 or (sets * delta == 1 and tail >= 1):
            raise ValueError("P(l) is improper: its sum over all l is infinite")
    last = max_leaves or 20_000
    terms = [prior_leaf_log_weight(size, d, sets, delta, sigma) for size in range(1, last + 1)]
    if max_leaves is None and terms[-1] > max(terms) - 50:
        raise ValueError(f"P(l) has not died out after {last} leaves: give max_leaves")
    return terms[leaves - 1] - log_sum(terms)


# Posterior means given the partition, from the moments of the two Dirichlet distributions


def _parameters(counts: Counts, delta: float, of: int) -> tuple[list[float], float]:
    parameters = [delta + float(n) for n in counts[:, of]]
    return parameters, math.fsum(parameters)


def kl_mean(counts: Counts, delta: float, first: int = 0, second: int = 1) -> float:
    """E[sum_i p_i ln(p_i / q_i)] for p ~ Dir(delta + n_first), q ~ Dir(delta + n_second).

    The two moments needed are E[p_i ln p_i] = (a_i / A) (psi(a_i + 1) - psi(A + 1)) and
    E[p_i] E[ln q_i] = (a_i / A) (psi(b_i) - psi(B)). The volumes of the regions cancel.
    """
    a, a_sum = _parameters(counts, delta, first)
    b, b_sum = _parameters(counts, delta, second)
    own = [a_i / a_sum * float(digamma(a_i + 1) - digamma(a_sum + 1)) for a_i in a]
    cross = [
        a_i / a_sum * float(digamma(b_i) - digamma(b_sum)) for a_i, b_i in zip(a, b, strict=True)
    ]
    return math.fsum(own) - math.fsum(cross)


def reverse_kl_mean(counts: Counts, delta: float, first: int = 0, second: int = 1) -> float:
    """E[sum_i q_i ln(q_i / p_i)]: KL with the sets swapped."""
    return kl_mean(counts, delta, second, first)


def dirichlet_moment(a_i: float, a_sum: float, power: float) -> float:
    """E[m_i^power] of a Dirichlet mass: infinite if a_i + power <= 0."""
    if a_i == a_sum:  # the only leaf: its mass is one, whatever the power
        return 1.0
    if a_i + power <= 0:
        return math.inf
    return math.exp(
        math.lgamma(a_i + power)
        - math.lgamma(a_i)
        + math.lgamma(a_sum)
        - math.lgamma(a_sum + power)
    )


def power_integral_mean(
    counts: Counts, delta: float, alpha: float, first: int = 0, second: int = 1
) -> float:
    """E[integral of p^alpha q^(1-alpha)], infinite where a moment does not exist."""
    a, a_sum = _parameters(counts, delta, first)
    b, b_sum = _parameters(counts, delta, second)
    return math.fsum(
        dirichlet_moment(a_i, a_sum, alpha) * dirichlet_moment(b_i, b_sum, 1 - alpha)
        for a_i, b_i in zip(a, b, strict=True)
    )


def squared_hellinger_mean(counts: Counts, delta: float, first: int = 0, second: int = 1) -> float:
    """E[1 - integral of sqrt(p q)]."""
    return 1 - power_integral_mean(counts, delta, 0.5, first, second)
