"""The oracles against cases small enough to work out by hand, and against themselves."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from tests.oracles import enumeration as en
from tests.oracles import kernels


def column(*values: float) -> en.Points:
    return np.array(values, dtype=np.float64).reshape(-1, 1)


def nothing(d: int) -> en.Points:
    return np.empty((0, d))


def random_sets(seed: int, sizes: tuple[int, ...], d: int) -> tuple[en.Points, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.beta(2, 4, size=(n, d)) for n in sizes)


# Every flavour of the limits, in one and two dimensions, with two and three sets.
PROBLEMS = {
    "1-d": en.Problem(random_sets(1, (4, 3), 1), 1, 0.5, 2.0, 6),
    "2-d": en.Problem(random_sets(2, (3, 4), 2), 2, 0.5, 3.0, 5),
    "3 sets": en.Problem(random_sets(3, (2, 3, 1), 2), 2, 0.8, 1.0, 4),
    "depth 2, sparse free": en.Problem(random_sets(4, (3, 2), 2), 2, 0.5, 1.0, 5, 2, True),
    "depth 2, hard": en.Problem(random_sets(5, (3, 2), 2), 2, 0.5, 1.0, None, 2, False),
    "no data": en.Problem((nothing(2), nothing(2)), 2, 0.7, 1.0, 5),
}
all_problems = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())


# Regions and weights


def test_regions() -> None:
    low, high = en.halves(((1, 1), (0, 0)), 0)
    assert (low, high) == (((2, 2), (0, 0)), ((2, 3), (0, 0)))
    assert en.depth(high) == 2
    assert en.contains(low, (0.5, 0.99))
    assert not en.contains(low, (0.75, 0.1))
    assert en.contains(high, (0.75, 0.1))


def test_points_outside_the_cube_and_endless_enumerations_are_refused() -> None:
    with pytest.raises(ValueError, match="must lie in"):
        en.Problem((column(1.0),), 1, 1.0, 0.0, 3)
    with pytest.raises(ValueError, match="shape"):
        en.Problem((column(0.5),), 2, 1.0, 0.0, 3)
    with pytest.raises(ValueError, match="infinite"):
        en.Problem((column(0.5),), 1, 1.0, 0.0, None, 3, True)


def test_weight_is_the_integral_of_the_joint_posterior_over_the_masses() -> None:
    # Two leaves of volume 1/2: the masses of each set are (m, 1 - m), integrated numerically.
    delta, sigma = 1.5, 0.7
    counts = np.array([[3, 1], [2, 0]])
    by_quadrature = math.exp(-2 * sigma) * 2.0 ** counts.sum()
    for n_low, n_high in counts.T:
        by_quadrature *= quad(
            lambda m, a=n_low, b=n_high: m ** (delta + a - 1) * (1 - m) ** (delta + b - 1), 0, 1
        )[0]
    weight = en.sequence_log_weight(counts, [1, 1], counts.sum(axis=0), delta=delta, sigma=sigma)
    assert math.exp(weight) == pytest.approx(by_quadrature, rel=1e-9)


@all_problems
def test_weight_of_a_problem_is_that_of_its_counts(problem: en.Problem) -> None:
    for record in en.enumerate_problem(problem).records.values():
        depths = [en.depth(region) for region in record.leaves]
        log_weight = en.sequence_log_weight(
            record.counts, depths, problem.sizes, delta=problem.delta, sigma=problem.sigma
        )
        assert record.sequence_log_weight == pytest.approx(log_weight, abs=1e-12)


def test_one_point_by_hand() -> None:
    # delta = 1, sigma = 0. l = 2: 2 * 1 / 2!. l = 3: splitting the full half gives 4, the empty
    # half 2, together 6 / 3!.
    posterior = en.enumerate_posterior([column(0.3)], 1, delta=1.0, sigma=0.0, max_leaves=3)
    assert posterior.log_total == pytest.approx({1: 0.0, 2: 0.0, 3: 0.0}, abs=1e-14)


def test_three_points_in_two_sets_by_hand() -> None:
    # x = 0.1, 0.2 and y = 0.9; delta = 1, e^sigma = 2.
    # l = 1: 2! 1! / (2! 1!) = 1.
    # l = 2: low half 2! 2^2, high half 1! 2, over 3! 2!: 4/3.
    # l = 3: split low: (2! 4^2) (1) (2) = 64; split high: (8) (1) (4) = 32; over 4! 3!: 2/3.
    by_hand = {1: Fraction(1, 2), 2: Fraction(4, 3) / 4, 3: Fraction(2, 3) / 8}
    posterior = en.enumerate_posterior(
        [column(0.1, 0.2), column(0.9)], 1, delta=1.0, sigma=math.log(2), max_leaves=3
    )
    for leaves, weight in by_hand.items():
        assert math.exp(posterior.log_total[leaves]) == pytest.approx(float(weight), rel=1e-14)

    total = sum(by_hand.values())
    assert posterior.log_normaliser == pytest.approx(math.log(total), abs=1e-14)
    mean_leaves = sum(leaves * weight for leaves, weight in by_hand.items()) / total
    assert posterior.expectation(lambda _, leaves: leaves) == pytest.approx(float(mean_leaves))
    probabilities = posterior.leaf_probabilities()
    assert probabilities[2] == pytest.approx(float(by_hand[2] / total))

    # Given l = 3, the low half is the one split with probability 64 / 96.
    split_low: en.Tree = (0, (0, None, None), None)
    chosen = posterior.average(lambda record: record.tree == split_low, leaves=3)
    assert chosen == pytest.approx(2 / 3)
    np.testing.assert_array_equal(posterior.records[split_low].counts, [[2, 0], [0, 0], [0, 1]])
    assert posterior.tree_probabilities()[split_low] == pytest.approx(
        float(by_hand[3] / total * Fraction(2, 3))
    )


# Counting sequences, trees and partitions


@pytest.mark.parametrize("d", [1, 2, 3])
def test_numbers_of_sequences_and_trees(d: int) -> None:
    problem = en.Problem((nothing(d),), d, 1.0, 0.0, 5)
    for splits, trees in enumerate(en.trees_by_leaves(problem)):
        assert len(trees) == math.comb(2 * splits, splits) // (splits + 1) * d**splits
        assert sum(trees.values()) == math.factorial(splits) * d**splits


def test_orders_by_hand() -> None:
    cherry: en.Tree = (0, None, None)
    assert en.orders(None) == 1
    assert en.orders(cherry) == 1
    assert en.orders((0, cherry, cherry)) == 2
    # Below the root a chain of two and a single split interleave in 3 ways.
    assert en.orders((0, (0, cherry, None), cherry)) == 3


@all_problems
def test_generator_level_by_level_and_hook_formula_agree(problem: en.Problem) -> None:
    literal = Counter[en.Tree]()
    log_weights: dict[int, list[float]] = {}
    seen = set()
    for sequence in en.decision_sequences(problem):
        seen.add(sequence)
        tree = en.tree_of_sequence(sequence, problem.d)
        leaves = en.leaves_of_sequence(sequence, problem.d)
        assert leaves == en.leaves_of_tree(tree, en.whole_space(problem.d))
        literal[tree] += 1
        log_weights.setdefault(len(leaves), []).append(problem.log_weight(leaves))
    assert len(seen) == sum(literal.values())

    posterior = en.enumerate_problem(problem)
    assert {tree: record.sequences for tree, record in posterior.records.items()} == literal
    for leaves_count, log_terms in log_weights.items():
        assert posterior.log_total[leaves_count] == pytest.approx(en.log_sum(log_terms), abs=1e-12)
    for tree, count in literal.items():
        assert en.orders(tree) == count
    assert sum(posterior.tree_probabilities().values()) == pytest.approx(1, abs=1e-13)


def test_two_trees_can_share_a_partition() -> None:
    points = random_sets(6, (2, 3), 2)
    posterior = en.enumerate_posterior(points, 2, delta=0.5, sigma=1.0, max_leaves=4)
    across = (0, (1, None, None), (1, None, None))
    upright = (1, (0, None, None), (0, None, None))
    records = [posterior.records[across], posterior.records[upright]]
    assert records[0].partition == records[1].partition
    log_weight, sequences = posterior.partitions()[records[0].partition]
    assert sequences == 4
    assert log_weight == pytest.approx(math.log(4) + records[0].sequence_log_weight, abs=1e-13)
    assert len(posterior.partitions()) == len(posterior.records) - 1


def test_depth_limits_by_hand() -> None:
    # The low half holds one point, the high half two.
    sets = (column(0.1), column(0.6, 0.7))

    def numbers(max_depth: int | None, deep_when_sparse: bool) -> list[int]:
        problem = en.Problem(sets, 1, 1.0, 0.0, 5, max_depth, deep_when_sparse)
        return [sum(trees.values()) for trees in en.trees_by_leaves(problem)]

    assert numbers(None, True) == [1, 1, 2, 6, 24]
    assert numbers(0, True) == [1]  # three points in the unit interval
    assert numbers(1, False) == [1, 1]
    assert numbers(2, False) == [1, 1, 2, 2]
    # Only the low half and whatever lies in it may be split: 1, then 2, then 3 choices.
    assert numbers(1, True) == [1, 1, 1, 2, 6]
    # The high half may be split once, into a quarter with both points (stuck) and an empty one
    # (free). With f free leaves and the high half whole, there are f + 1 choices, after its split
    # f. l = 3: one sequence each with f = 2; l = 4: 2 whole, 1 + 2 split, all with f = 3.
    assert numbers(2, True) == [1, 1, 2, 2 + 3, 2 * 4 + 3 * 3]


def test_log_total_is_minus_infinity_where_nothing_fits() -> None:
    posterior = en.enumerate_posterior(
        [column(0.1)], 1, delta=1.0, sigma=0.0, max_leaves=4, max_depth=1, deep_when_sparse=False
    )
    assert sorted(posterior.log_total) == [1, 2, 3, 4]
    assert posterior.log_total[3] == posterior.log_total[4] == -math.inf


# Without data


@pytest.mark.parametrize(("d", "sets"), [(1, 1), (1, 2), (2, 2), (3, 3)])
def test_prior_of_the_number_of_leaves(d: int, sets: int) -> None:
    delta, sigma = 0.6, d + 1.0
    posterior = en.enumerate_posterior(
        [nothing(d)] * sets, d, delta=delta, sigma=sigma, max_leaves=5
    )
    for leaves, probability in posterior.leaf_probabilities().items():
        log_weight = en.prior_leaf_log_weight(leaves, d, sets, delta, sigma)
        assert posterior.log_total[leaves] == pytest.approx(log_weight, abs=1e-12)
        log_prior = en.prior_leaf_log_probability(leaves, d, sets, delta, sigma, max_leaves=5)
        assert probability == pytest.approx(math.exp(log_prior), rel=1e-12)


def test_prior_over_all_leaves() -> None:
    # S = 1 and delta = 2 by hand: the weight of l is (l-1)! e^(-sigma l) / (2l-1)!.
    weights = [
        math.factorial(k - 1) * math.exp(-k) / math.factorial(2 * k - 1) for k in range(1, 30)
    ]
    for leaves in (1, 2, 5):
        expected = math.log(weights[leaves - 1] / math.fsum(weights))
        log_prior = en.prior_leaf_log_probability(leaves, 1, 1, 2.0, 1.0)
        assert log_prior == pytest.approx(expected, abs=1e-12)
    # Two sets: S delta = 1 is proper for e^sigma > 2 pi d and no other; S delta < 1 never is.
    en.prior_leaf_log_probability(1, 1, 2, 0.5, math.log(2 * math.pi) + 0.05)
    with pytest.raises(ValueError, match="improper"):
        en.prior_leaf_log_probability(1, 1, 2, 0.5, math.log(2 * math.pi) - 0.05)
    with pytest.raises(ValueError, match="improper"):
        en.prior_leaf_log_probability(1, 1, 2, 0.4, 5.0)


# Posterior means given the partition


def test_posterior_means_against_monte_carlo() -> None:
    rng = np.random.default_rng(20140)
    counts = np.array([[4, 1, 0], [0, 3, 2], [2, 2, 5]])
    delta, draws = 0.8, 200_000
    p = rng.dirichlet(delta + counts[:, 0], size=draws)
    q = rng.dirichlet(delta + counts[:, 1], size=draws)

    def close(exact: float, values: np.typing.NDArray[np.float64]) -> bool:
        return bool(abs(values.mean() - exact) < 4 * values.std() / math.sqrt(draws))

    kl = np.sum(p * np.log(p / q), axis=1)
    reverse = np.sum(q * np.log(q / p), axis=1)
    assert close(en.kl_mean(counts, delta), kl)
    assert close(en.reverse_kl_mean(counts, delta), reverse)
    assert not close(en.kl_mean(counts, delta), reverse)
    hellinger = 1 - np.sum(np.sqrt(p * q), axis=1)
    assert close(en.squared_hellinger_mean(counts, delta), hellinger)
    for alpha in (0.3, 0.5, 1.2):
        values = np.sum(p**alpha * q ** (1 - alpha), axis=1)
        assert close(en.power_integral_mean(counts, delta, alpha), values)

    r = rng.dirichlet(delta + counts[:, 2], size=draws)
    assert close(en.kl_mean(counts, delta, 1, 2), np.sum(q * np.log(q / r), axis=1))


def test_posterior_means_by_hand() -> None:
    # p ~ Beta(2, 1), q ~ Beta(1, 2). E[p^2] = 1/2, E[(1-p)^2] = 1/6, E[1/(1-q)] = 2.
    counts = np.array([[1, 0], [0, 1]])
    assert en.dirichlet_moment(2, 3, 2) == pytest.approx(1 / 2)
    assert en.dirichlet_moment(1, 3, 2) == pytest.approx(1 / 6)
    assert en.dirichlet_moment(2, 3, -1) == pytest.approx(2)
    # E[1/q] does not exist, because the empty cell has delta = 1 <= alpha - 1.
    assert en.power_integral_mean(counts, 1.0, 2.0) == math.inf
    # KL: 2/3 (psi(3) - psi(4) - psi(1) + psi(3)) + 1/3 (psi(2) - psi(4) - psi(2) + psi(3)).
    by_hand = 2 / 3 * (-1 / 3 + 3 / 2) + 1 / 3 * (-1 / 3)
    assert en.kl_mean(counts, 1.0) == pytest.approx(by_hand)


def test_one_leaf_has_no_divergence() -> None:
    # Its mass is one for certain, also where the moment of an empty cell would not exist.
    for counts in (np.array([[5, 3]]), np.array([[5, 0]])):
        assert en.kl_mean(counts, 0.5) == pytest.approx(0, abs=1e-14)
        assert en.squared_hellinger_mean(counts, 0.5) == pytest.approx(0, abs=1e-14)
        assert en.power_integral_mean(counts, 0.5, 2.0) == 1


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_power_integral_is_one_at_the_ends(alpha: float) -> None:
    counts = np.array([[4, 1], [0, 3], [2, 2]])
    assert en.power_integral_mean(counts, 0.5, alpha) == pytest.approx(1)


# Chains

SMALL = {
    "1-d": en.Problem(random_sets(1, (4, 3), 1), 1, 0.5, 2.0, 5),
    "2-d": en.Problem(random_sets(2, (3, 4), 2), 2, 0.5, 2.0, 4),
    "3 sets": en.Problem(random_sets(3, (2, 3, 1), 2), 2, 0.8, 1.0, 4),
    "depth 2, sparse free": en.Problem(random_sets(4, (3, 2), 2), 2, 0.5, 1.0, 4, 2, True),
    "depth 2, hard": en.Problem(random_sets(5, (3, 2), 1), 1, 0.5, 1.0, None, 2, False),
}
small_problems = pytest.mark.parametrize("problem", SMALL.values(), ids=SMALL.keys())
all_chains = pytest.mark.parametrize(
    ("chain", "kernel"), list(itertools.product(["sequence", "cherry"], ["guided", "uniform"]))
)


@all_chains
@small_problems
def test_detailed_balance(
    problem: en.Problem, chain: kernels.Chain, kernel: kernels.Kernel
) -> None:
    table = kernels.chain_table(problem, chain, kernel)
    np.testing.assert_allclose(table.matrix.sum(axis=1), 1, atol=1e-14)
    assert kernels.detailed_balance_error(table) < 1e-12
    np.testing.assert_allclose(table.target @ table.matrix, table.target, atol=1e-15)

    # The target is the enumerated posterior, and the chain gets there from the unsplit space.
    posterior = en.enumerate_problem(problem).leaf_probabilities()
    start = np.zeros(len(table.states))
    start[0] = 1
    late = start @ np.linalg.matrix_power(table.matrix, 100_000)
    for leaves, probability in posterior.items():
        here = table.leaves == leaves
        assert table.target[here].sum() == pytest.approx(probability, abs=1e-13)
        assert late[here].sum() == pytest.approx(probability, abs=1e-9)


@all_chains
def test_forgetting_the_edge_factor_breaks_detailed_balance(
    monkeypatch: pytest.MonkeyPatch, chain: kernels.Chain, kernel: kernels.Kernel
) -> None:
    monkeypatch.setattr(kernels, "log_edge_factor", lambda leaves: 0.0)
    table = kernels.chain_table(SMALL["2-d"], chain, kernel)
    assert kernels.detailed_balance_error(table) > 0.1


def test_uniform_cherries_without_correction_break_detailed_balance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def uniform(tree: en.Tree, d: int) -> dict[en.Tree, float]:
        smaller = [small for small, _ in en.pruned(tree, en.whole_space(d))]
        return {small: 1 / len(smaller) for small in smaller}

    monkeypatch.setattr(kernels, "cherry_probabilities", uniform)
    # Up to four leaves all cherries of a tree are alike; with five they need not be.
    assert kernels.detailed_balance_error(kernels.chain_table(SMALL["2-d"], "cherry")) < 1e-12
    assert kernels.detailed_balance_error(kernels.chain_table(SMALL["1-d"], "cherry")) > 0.1


def test_a_tree_target_without_orders_breaks_detailed_balance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def one_order(tree: en.Tree, problem: en.Problem) -> float:
        return problem.log_weight(en.leaves_of_tree(tree, en.whole_space(problem.d)))

    monkeypatch.setattr(kernels, "tree_log_target", one_order)
    assert kernels.detailed_balance_error(kernels.chain_table(SMALL["2-d"], "cherry")) > 0.1


def test_one_step_by_hand() -> None:
    # One point, delta = 1, sigma = 0: sequences weigh 1 (l = 1), 1 (l = 2), 2/3 and 1/3 (l = 3).
    problem = en.Problem((column(0.3),), 1, 1.0, 0.0, 3)
    root, low, high = en.whole_space(1), ((1, 0),), ((1, 1),)
    one, two = (), ((root, 0),)
    # Growing from one leaf is certain, coming back has chance 1/2: accept with 1/2.
    assert kernels.transition_probabilities(one, problem) == pytest.approx({one: 0.5, two: 0.5})
    # Z = 2 + 1 and Gamma(3) / Gamma(4) = 1/3: splits are accepted for certain.
    assert kernels.transition_probabilities(two, problem) == pytest.approx(
        {one: 1 / 2, (*two, (low, 0)): 1 / 3, (*two, (high, 0)): 1 / 6, two: 0}, abs=1e-15
    )
    # The uniform kernel proposes each split with 1/2; Hastings ratios 2/3 * 2 and 1/3 * 2.
    assert kernels.transition_probabilities(two, problem, "uniform") == pytest.approx(
        {one: 1 / 2, (*two, (low, 0)): 1 / 4, (*two, (high, 0)): 1 / 6, two: 1 / 12}
    )


@small_problems
def test_closed_form_acceptance_is_the_hastings_ratio(problem: en.Problem) -> None:
    root = en.whole_space(problem.d)
    for kernel in ("guided", "uniform"):
        for trees in itertools.islice(en.trees_by_leaves(problem), 3):
            for tree in trees:
                leaves = en.leaves_of_tree(tree, root)
                proposals = kernels.split_proposals(leaves, problem, kernel)
                total = math.fsum(split.probability for split in proposals.values())
                assert total == pytest.approx(1) or kernel == "uniform" or not proposals
                for bigger, decision in en.grown(tree, root, problem):
                    there = kernels.grow_probability(len(leaves)) * proposals[decision].probability
                    back = 0.5 * kernels.cherry_probabilities(bigger, problem.d)[tree]
                    log_hastings = (
                        kernels.tree_log_target(bigger, problem)
                        - kernels.tree_log_target(tree, problem)
                        + math.log(back / there)
                    )
                    closed_form = proposals[decision].log_acceptance
                    assert closed_form == pytest.approx(log_hastings, abs=1e-12)


@pytest.mark.parametrize("kernel", ["guided", "uniform"])
def test_cherry_chain_is_the_sequence_chain_with_a_fresh_order(kernel: kernels.Kernel) -> None:
    problem = SMALL["1-d"]
    by_tree: dict[en.Tree, list[en.Sequence]] = {}
    for sequence in en.decision_sequences(problem):
        by_tree.setdefault(en.tree_of_sequence(sequence, problem.d), []).append(sequence)
    for tree, sequences in by_tree.items():
        average: dict[en.Tree, float] = {}
        for sequence in sequences:
            moves = kernels.transition_probabilities(sequence, problem, kernel)
            for following, chance in moves.items():
                after = en.tree_of_sequence(following, problem.d)
                average[after] = average.get(after, 0.0) + chance / len(sequences)
        expected = kernels.cherry_transition_probabilities(tree, problem, kernel)
        assert average == pytest.approx(expected, abs=1e-14)


def test_cherry_probabilities() -> None:
    def by_descent(tree: en.Tree) -> dict[en.Tree, float]:
        """Walk down from the root, to either side in proportion to its number of splits."""
        assert tree is not None
        dimension, left, right = tree
        below = en.splits(left) + en.splits(right)
        if below == 0:
            return {None: 1.0}
        reached: dict[en.Tree, float] = {}
        for side, other, swap in ((left, right, False), (right, left, True)):
            if side is not None:
                for new, chance in by_descent(side).items():
                    smaller = (dimension, other, new) if swap else (dimension, new, other)
                    reached[smaller] = chance * en.splits(side) / below
        return reached

    problem = en.Problem((nothing(1),), 1, 1.0, 0.0, 6)
    last_removed: dict[en.Tree, Counter[en.Tree]] = {}
    for sequence in en.decision_sequences(problem):
        if sequence:
            tree = en.tree_of_sequence(sequence, 1)
            last_removed.setdefault(tree, Counter())[en.tree_of_sequence(sequence[:-1], 1)] += 1
    for tree, counter in last_removed.items():
        chances = kernels.cherry_probabilities(tree, 1)
        assert math.fsum(chances.values()) == pytest.approx(1)
        literal = {smaller: n / counter.total() for smaller, n in counter.items()}
        assert chances == pytest.approx(literal)
        assert chances == pytest.approx(by_descent(tree))
