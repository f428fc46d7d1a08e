"""The compiled chains make the moves of the paper's equations, with their probabilities."""

import numpy as np
import pytest

from cobpm import _core
from cobpm.model import PaperModel
from tests.cases import cells_of
from tests.oracles import enumeration, kernels

SETS = {
    1: [np.array([[0.1], [0.15], [0.7]]), np.array([[0.8], [0.12]])],
    2: [np.array([[0.1, 0.9], [0.3, 0.2], [0.35, 0.22]]), np.array([[0.6, 0.8], [0.31, 0.21]])],
    3: [np.array([[0.1, 0.9, 0.4], [0.3, 0.2, 0.3]]), np.array([[0.6, 0.8, 0.6]])],
}


SWAPS = 1 / 8  # the share of steps that the cherry kernel spends on exchanging splits


def problem_in(d, max_leaves):
    return enumeration.Problem(tuple(SETS[d]), d, delta=0.6, sigma=1.0, max_leaves=max_leaves)


def moves_after(problem, sequence, kernel):
    """Where the compiled chain may go after the given decisions: tree to probability."""
    cells = cells_of(problem.sets)
    model = PaperModel(problem.delta, problem.sigma, problem.d, tuple(cells.sizes.tolist()))
    # The chain may not grow past the end of its price table: cut it where the enumeration ends.
    price = model.log_price(problem.max_leaves)
    walk = _core.Walk(cells.codes, cells.sets, len(cells.sizes), model.log_gamma(), price, kernel)
    regions = [enumeration.whole_space(problem.d)]
    for region, column in sequence:
        slot = regions.index(region)
        walk.split(slot, column)
        lower, upper = enumeration.halves(region, column)
        regions[slot] = lower
        regions.append(upper)
    moves = {}
    for splits, probability in walk.moves():
        tree = tree_of_preorder(iter(splits))
        moves[tree] = moves.get(tree, 0.0) + probability
    return moves


def tree_of_preorder(splits):
    column = next(splits)
    return None if column < 0 else (column, tree_of_preorder(splits), tree_of_preorder(splits))


@pytest.mark.parametrize(("d", "max_leaves"), [(1, 5), (2, 4), (3, 3)])
@pytest.mark.parametrize("kernel", ["guided", "uniform"])
def test_paper_kernels_match_the_slow_twin(kernel, d, max_leaves):
    problem = problem_in(d, max_leaves)
    for sequence in enumeration.decision_sequences(problem):
        found = moves_after(problem, sequence, kernel)
        expected = kernels.transition_probabilities(sequence, problem, kernel)
        expected.pop(sequence)  # staying
        expected = {enumeration.tree_of_sequence(to, d): p for to, p in expected.items()}
        assert found == pytest.approx(expected, rel=1e-10)


def trees_with_a_sequence(problem):
    found = {}
    for sequence in enumeration.decision_sequences(problem):
        found.setdefault(enumeration.tree_of_sequence(sequence, problem.d), sequence)
    return found


@pytest.mark.parametrize(("d", "max_leaves"), [(1, 6), (2, 5), (3, 3)])
def test_cherry_kernel_matches_the_slow_twin(d, max_leaves):
    problem = problem_in(d, max_leaves)
    for tree, sequence in trees_with_a_sequence(problem).items():
        found = moves_after(problem, sequence, "cherry")
        expected = kernels.cherry_transition_probabilities(tree, problem)
        for to, probability in expected.items():
            if to != tree:
                assert found.pop(to) == pytest.approx((1 - SWAPS) * probability, rel=1e-10)
        # What remains are exchanges of splits, which leave the partition as it is.
        root = enumeration.whole_space(d)
        leaves = frozenset(enumeration.leaves_of_tree(tree, root))
        assert all(frozenset(enumeration.leaves_of_tree(to, root)) == leaves for to in found)


def balance_error(problem, wrong=lambda tree, to, probability: probability):
    """Largest relative difference between the flows of the compiled cherry chain there and back."""
    trees = trees_with_a_sequence(problem)
    flow = {}
    for tree, sequence in trees.items():
        weight = np.exp(kernels.tree_log_target(tree, problem))
        for to, probability in moves_after(problem, sequence, "cherry").items():
            flow[tree, to] = weight * wrong(tree, to, probability)
    return max(abs(there - flow[to, tree]) / there for (tree, to), there in flow.items())


def test_cherry_kernel_is_in_detailed_balance():
    problem = problem_in(2, 6)
    assert balance_error(problem) < 1e-10


def test_balance_check_catches_wrong_ratios():
    problem = problem_in(2, 6)

    def without_edge_factor(tree, to, probability):
        return probability * (2 if tree is None else 1)

    def exchange_without_orders(tree, to, probability):
        same = enumeration.splits(tree) == enumeration.splits(to)
        return SWAPS if same else probability

    assert balance_error(problem, without_edge_factor) > 0.1
    assert balance_error(problem, exchange_without_orders) > 0.1


def test_a_weak_column_beside_a_strong_one_keeps_its_chance():
    """A candidate that weighs e^-800 of the best must not round to nothing."""
    rng = np.random.default_rng(4)
    # The first column is crowded into a corner; the second is even.
    sets = [np.column_stack([rng.random(600) * 0.01, rng.random(600)]) for _ in range(2)]
    cells = cells_of(sets)
    model = PaperModel(0.5, 3.0, 2, (600, 600))
    walk = _core.Walk(cells.codes, cells.sets, 2, model.log_gamma(), model.log_price(50), "uniform")
    probability = {splits[0]: chance for splits, chance in walk.moves()}
    counts = np.array(
        [[np.sum(s[:, 1] < 0.5) for s in sets], [np.sum(s[:, 1] >= 0.5) for s in sets]]
    )
    log_rho = model.log_leaf(counts, np.array([1, 1])).sum() - float(
        model.log_leaf(cells.sizes, np.array(0))
    )
    log_ratio = log_rho + np.log(2) + model.log_price(50)[1] - np.log(2)
    assert probability[0] == pytest.approx(0.5)
    assert probability[1] == pytest.approx(0.5 * min(1.0, np.exp(log_ratio)), rel=1e-9)
    assert probability[1] > 0
