"""The Markov chains as explicit tables of transition probabilities.

Two chains, on the states that `enumeration` writes out:

* the *sequence chain* of the paper: append a decision, or take back the last one;
* the *cherry chain* on trees: split a leaf, or remove a cherry (a split of two leaves).

Both choose between growing and shrinking with p(l+1 | l) = p(l-1 | l) = 1/2, and p(2 | 1) = 1.
Moves beyond max_leaves are rejected, which makes the space finite and leaves detailed balance
alone.

The acceptance ratio. Splitting leaf r multiplies the weight of a sequence by
e^-sigma * ratio(a) * prod_s Gamma(N_s + delta l) / Gamma(N_s + delta (l+1)), where
ratio(a) = w(low half) w(high half) / w(r). With q(a) the probability of proposing this decision and
1 that of the way back, the Hastings ratio of the sequence chain is

    size term * ratio(a) / q(a) * p(l | l+1) / p(l+1 | l).

For the guided proposal q(a) = ratio(a) / Z, so that ratio(a) / q(a) = Z for every decision a.

In the cherry chain the weight of a tree carries the factor orders(tree), and the cherry removed is
the last split of a random order, so c is chosen with probability orders(tree without c) /
orders(tree). In the Hastings ratio the first gives orders(bigger) / orders(smaller) and the
second its inverse: they cancel, and the same formula serves both chains.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tests.oracles.enumeration import (
    Decision,
    Problem,
    Region,
    Sequence,
    Tree,
    decision_sequences,
    grown,
    halves,
    leaves_of_sequence,
    leaves_of_tree,
    log_sum,
    orders,
    pruned,
    trees_by_leaves,
    whole_space,
)

Kernel: TypeAlias = Literal["guided", "uniform"]
Chain: TypeAlias = Literal["sequence", "cherry"]
State: TypeAlias = "Sequence | Tree"


# What the two chains share


def grow_probability(leaves: int) -> float:
    """p(l+1 | l)."""
    return 1.0 if leaves == 1 else 0.5


def shrink_probability(leaves: int) -> float:
    """p(l-1 | l)."""
    return 1.0 - grow_probability(leaves)


def log_edge_factor(leaves: int) -> float:
    """Log p(l | l+1) - log p(l+1 | l): it is not zero at l = 1, where growing is certain."""
    return math.log(shrink_probability(leaves + 1)) - math.log(grow_probability(leaves))


def split_log_ratios(leaves: tuple[Region, ...], problem: Problem) -> dict[Decision, float]:
    """Log of w(low half) w(high half) / w(leaf) for every allowed decision."""
    ratios: dict[Decision, float] = {}
    for region in leaves:
        if problem.may_split(region):
            for dimension in range(problem.d):
                low, high = halves(region, dimension)
                ratios[region, dimension] = (
                    problem.leaf_log_weight(low)
                    + problem.leaf_log_weight(high)
                    - problem.leaf_log_weight(region)
                )
    return ratios


@dataclass(frozen=True)
class Split:
    """One decision that may be proposed.

    Attributes:
        probability: Chance of proposing it, given that the chain tries to grow.
        log_acceptance: Log Hastings ratio of accepting it; its negative is that of the way back.
    """

    probability: float
    log_acceptance: float


def split_proposals(
    leaves: tuple[Region, ...], problem: Problem, kernel: Kernel
) -> dict[Decision, Split]:
    """Every allowed decision, how likely it is proposed and its log Hastings ratio.

    The uniform kernel proposes each of the l d decisions alike; those that the depth limit forbids
    are missing here and count as rejected.
    """
    leaf_count = len(leaves)
    candidates = leaf_count * problem.d
    common = (
        problem.size_log_term(leaf_count + 1)
        - problem.size_log_term(leaf_count)
        + log_edge_factor(leaf_count)
    )
    log_ratios = split_log_ratios(leaves, problem)
    if kernel == "guided":
        log_z = log_sum(log_ratios.values())
        return {
            decision: Split(math.exp(log_ratio - log_z), common + log_z)
            for decision, log_ratio in log_ratios.items()
        }
    return {
        decision: Split(1 / candidates, common + log_ratio + math.log(candidates))
        for decision, log_ratio in log_ratios.items()
    }


def acceptance(log_ratio: float) -> float:
    """min(1, exp(log_ratio))."""
    return math.exp(min(0.0, log_ratio))


def may_grow(leaves: int, problem: Problem) -> bool:
    """Whether one leaf more is within max_leaves."""
    return problem.max_leaves is None or leaves < problem.max_leaves


# The sequence chain


def transition_probabilities(
    sequence: Sequence, problem: Problem, kernel: Kernel = "guided"
) -> dict[Sequence, float]:
    """One step of the paper's chain: next sequence (staying included) to probability."""
    leaves = leaves_of_sequence(sequence, problem.d)
    leaf_count = len(leaves)
    moves: dict[Sequence, float] = {}
    if may_grow(leaf_count, problem):
        for decision, split in split_proposals(leaves, problem, kernel).items():
            chance = (
                grow_probability(leaf_count) * split.probability * acceptance(split.log_acceptance)
            )
            moves[(*sequence, decision)] = chance
    if leaf_count > 1:
        shorter, last = sequence[:-1], sequence[-1]
        split = split_proposals(leaves_of_sequence(shorter, problem.d), problem, kernel)[last]
        moves[shorter] = shrink_probability(leaf_count) * acceptance(-split.log_acceptance)
    moves[sequence] = max(0.0, 1 - math.fsum(moves.values()))
    return moves


# The cherry chain


def cherry_probabilities(tree: Tree, d: int) -> dict[Tree, float]:
    """Tree without cherry c to the chance that c comes last in a random order of the splits."""
    return {smaller: orders(smaller) / orders(tree) for smaller, _ in pruned(tree, whole_space(d))}


def tree_log_target(tree: Tree, problem: Problem) -> float:
    """Unnormalised log posterior of a tree: of all its orders together."""
    leaves = leaves_of_tree(tree, whole_space(problem.d))
    return math.log(orders(tree)) + problem.log_weight(leaves)


def cherry_transition_probabilities(
    tree: Tree, problem: Problem, kernel: Kernel = "guided"
) -> dict[Tree, float]:
    """One step of the cherry chain: next tree (staying included) to probability."""
    root = whole_space(problem.d)
    leaves = leaves_of_tree(tree, root)
    leaf_count = len(leaves)
    moves: dict[Tree, float] = {}
    if may_grow(leaf_count, problem):
        proposals = split_proposals(leaves, problem, kernel)
        for bigger, decision in grown(tree, root, problem):
            split = proposals[decision]
            chance = (
                grow_probability(leaf_count) * split.probability * acceptance(split.log_acceptance)
            )
            moves[bigger] = chance
    chosen = cherry_probabilities(tree, problem.d)
    for smaller, decision in pruned(tree, root):
        split = split_proposals(leaves_of_tree(smaller, root), problem, kernel)[decision]
        moves[smaller] = (
            shrink_probability(leaf_count) * chosen[smaller] * acceptance(-split.log_acceptance)
        )
    moves[tree] = max(0.0, 1 - math.fsum(moves.values()))
    return moves


# Whole chains


@dataclass(frozen=True)
class ChainTable:
    """A chain on a finite space, written out.

    Attributes:
        states: Every state, the unsplit space first.
        leaves: Number of leaves of each state.
        target: Posterior probability of each state, straight from its weight.
        matrix: Entry (i, j) is the probability of stepping from state i to state j.
    """

    states: tuple[State, ...]
    leaves: NDArray[np.int64]
    target: NDArray[np.float64]
    matrix: NDArray[np.float64]


def chain_table(problem: Problem, chain: Chain, kernel: Kernel = "guided") -> ChainTable:
    """Write out a chain: its states, its target, and its transition matrix.

    The distribution after k steps from the unsplit space is the first row of matrix^k.
    """
    steps: dict[State, Iterable[tuple[State, float]]] = {}
    log_target: list[float] = []
    leaves: list[int] = []
    if chain == "sequence":
        for sequence in decision_sequences(problem):
            steps[sequence] = transition_probabilities(sequence, problem, kernel).items()
            log_target.append(problem.log_weight(leaves_of_sequence(sequence, problem.d)))
            leaves.append(len(sequence) + 1)
    else:
        for leaf_count, trees in enumerate(trees_by_leaves(problem), start=1):
            for tree in trees:
                steps[tree] = cherry_transition_probabilities(tree, problem, kernel).items()
                log_target.append(tree_log_target(tree, problem))
                leaves.append(leaf_count)
    index = {state: i for i, state in enumerate(steps)}
    matrix = np.zeros((len(index), len(index)))
    for state, moves in steps.items():
        for following, probability in moves:
            matrix[index[state], index[following]] = probability
    total = log_sum(log_target)
    target = np.array([math.exp(value - total) for value in log_target])
    return ChainTable(tuple(steps), np.array(leaves, dtype=np.int64), target, matrix)


def detailed_balance_error(table: ChainTable) -> float:
    """Largest relative difference between the flows i -> j and j -> i."""
    flow = table.target[:, None] * table.matrix
    both = np.maximum(flow, flow.T)
    difference = np.abs(flow - flow.T)
    return float(np.max(np.divide(difference, both, out=np.zeros_like(both), where=both > 0)))
