"""The exact engine against a list of every partition there is."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from cobpm import engines
from cobpm.cells import Cells
from cobpm.diagnostics import check_partitions
from cobpm.divergences import parse
from cobpm.engines import exact
from cobpm.engines.fit import Plan
from cobpm.engines.moments import Moments
from cobpm.model import PaperModel, improper_because
from cobpm.partitions import Partitions
from tests.cases import beta_mixtures, cells_of
from tests.oracles import enumeration

PLAN = Plan(
    draws=200,
    burn_in=50,
    chains=2,
    thin=None,
    kernel="cherry",
    seed=11,
    threads=2,
    max_regions=200_000,
)
SIZES = (5, 3, 2)  # unequal, and the third set has a point less again
MOST_LEAVES = {1: 8, 2: 6, 3: 5}  # as many as can be written out in a moment
PROPER = [
    (sets, delta, sigma)
    for sets in (1, 2, 3)
    for delta, sigma in ((1.3, 0.5), (1.05, 2.0), (2.0, 4.0), (0.6, 2.0), (0.5, 3.5))
    if improper_because(delta, sigma, 3, sets) is None
]
CLOSED_FORMS = {
    "kl": enumeration.kl_mean,
    "reverse_kl": enumeration.reverse_kl_mean,
    "jeffreys": lambda *where: enumeration.kl_mean(*where) + enumeration.reverse_kl_mean(*where),
    "squared_hellinger": enumeration.squared_hellinger_mean,
    # Tsallis of order a is (integral of p^a q^(1-a), less 1) / (a - 1).
    "tsallis:0.5": lambda counts, delta, i, j: (
        (enumeration.power_integral_mean(counts, delta, 0.5, i, j) - 1) / -0.5
    ),
    "tsallis:0.8": lambda counts, delta, i, j: (
        (enumeration.power_integral_mean(counts, delta, 0.8, i, j) - 1) / -0.2
    ),
}


def sets_in(d, sets):
    rng = np.random.default_rng([d, sets])
    return tuple(rng.random((n, d)) ** 1.5 for n in SIZES[:sets])


def model_of(cells, delta, sigma):
    return PaperModel(delta, sigma, cells.d, tuple(cells.sizes.tolist()))


def solved(cells, model, depth):
    recursion = exact.start(cells, model, depth, PLAN)
    return recursion, exact.solve(recursion, model, PLAN)


def log_totals(root):
    """Log of the summed weight of all sequences with l leaves, for every l the engine has."""
    return dict(zip(root.leaves.tolist(), np.log(root.probabilities) + root.log_total, strict=True))


def drawn(recursion, root, d, draws, seed=3):
    packed, _, _ = recursion.draw(root.cumulative, root.first, draws, seed, 2)
    return Partitions.from_core(packed, d)


# Every partition written out


@pytest.mark.parametrize(("sets", "delta", "sigma"), PROPER)
@pytest.mark.parametrize("depth", [0, 1, 2, 4])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_equals_enumeration(d, sets, depth, delta, sigma):
    points = sets_in(d, sets)
    listed = enumeration.enumerate_posterior(
        points, d, delta=delta, sigma=sigma, max_leaves=MOST_LEAVES[d], max_depth=depth
    )
    cells = cells_of(points)
    model = model_of(cells, delta, sigma)
    recursion, root = solved(cells, model, depth)

    found = log_totals(root)
    largest = max(listed.log_total.values())
    for leaves, log_total in listed.log_total.items():
        if leaves in found or log_total > largest - 32:  # the rest is below rounding, and trimmed
            assert found.get(leaves, -math.inf) == pytest.approx(log_total, abs=1e-10, rel=0)

    # Given l <= most, so that both are over the same finite list.
    few = np.where(root.leaves <= MOST_LEAVES[d], root.probabilities, 0.0)
    few /= few.sum()
    for leaves, probability in listed.leaf_probabilities().items():
        here = few[root.leaves == leaves].sum()
        assert here == pytest.approx(probability, abs=1e-10, rel=0)
    moments = Moments(recursion, model, root.leaves, few)
    pairs = [(0, 1), (1, 0), (2, 1)][: {1: 0, 2: 2, 3: 3}[sets]]
    for name, mean_given_counts in CLOSED_FORMS.items():
        for first, second in pairs:
            expected = listed.expectation(
                lambda counts, leaves, mean=mean_given_counts, i=first, j=second: mean(
                    counts, delta, i, j
                )
            )
            assert moments.mean(parse(name, "test"), first, second) == pytest.approx(
                expected, abs=1e-10, rel=0
            )


def test_means_given_the_number_of_leaves():
    points = sets_in(2, 2)
    listed = enumeration.enumerate_posterior(
        points, 2, delta=0.7, sigma=1.5, max_leaves=6, max_depth=4
    )
    cells = cells_of(points)
    model = model_of(cells, 0.7, 1.5)
    recursion, root = solved(cells, model, 4)
    for leaves in range(1, 7):
        only = (root.leaves == leaves).astype(float)
        found = Moments(recursion, model, root.leaves, only).mean(parse("kl", "test"), 0, 1)
        expected = listed.expectation(
            lambda counts, _: enumeration.kl_mean(counts, 0.7), leaves=leaves
        )
        assert found == pytest.approx(expected, abs=1e-10, rel=0)


def test_wrong_weights_are_told_apart():
    """The comparison above is worth something: small changes of the model break it by far."""
    points = sets_in(2, 2)
    listed = enumeration.enumerate_posterior(
        points, 2, delta=0.7, sigma=1.5, max_leaves=5, max_depth=4
    )
    cells = cells_of(points)
    for delta, sigma, depth in [(0.7001, 1.5, 4), (0.7, 1.5001, 4), (0.7, 1.5, 3)]:
        found = log_totals(solved(cells, model_of(cells, delta, sigma), depth)[1])
        off = max(abs(found[leaves] - value) for leaves, value in listed.log_total.items())
        assert off > 1e-6


def test_evidence_is_the_sum_of_all_weights():
    """With dear leaves, partitions that are not listed weigh less than rounding does."""
    points = sets_in(1, 2)
    delta, sigma = 2.0, 9.0
    listed = enumeration.enumerate_posterior(
        points, 1, delta=delta, sigma=sigma, max_leaves=9, max_depth=12
    )
    prior = [
        enumeration.prior_leaf_log_weight(leaves, 1, 2, delta, sigma) for leaves in range(1, 10)
    ]
    assert listed.log_total[9] < listed.log_normaliser - 35
    assert prior[-1] < max(prior) - 35
    cells = cells_of(points)
    fit = exact.run(cells, model_of(cells, delta, sigma), PLAN, "asked for")
    expected = listed.log_normaliser - enumeration.log_sum(prior)
    assert fit.log_evidence == pytest.approx(expected, abs=1e-10, rel=0)


# Regions grown as needed


@pytest.mark.parametrize(("d", "sets"), [(1, 2), (2, 1), (2, 3), (3, 2)])
def test_grown_regions_give_the_same_as_dense_ones(d, sets):
    cells = cells_of(sets_in(d, sets))
    model = model_of(cells, 1.1, 1.0)
    grown = exact.start(cells, model, 0, PLAN)
    for depth in range(1, 7):
        grown.expand(grown.frontier(), 2)
        root = exact.solve(grown, model, PLAN)
        dense, dense_root = solved(cells, model, depth)
        assert root.log_total == pytest.approx(dense_root.log_total, abs=1e-12)
        found, expected = log_totals(root), log_totals(dense_root)
        shared = [leaves for leaves in expected if leaves <= 12 and leaves in found]
        assert len(shared) >= 2
        for leaves in shared:
            assert found[leaves] == pytest.approx(expected[leaves], abs=1e-10)
        if sets > 1:
            kl = parse("kl", "test")
            means = [
                Moments(recursion, model, r.leaves, r.probabilities).mean(kl, 0, 1)
                for recursion, r in ((grown, root), (dense, dense_root))
            ]
            assert means[0] == pytest.approx(means[1], abs=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_base_depths_agree_once_all_is_grown(d):
    rng = np.random.default_rng(d)
    cells = cells_of([rng.random((12, d)), rng.random((7, d)) ** 2])
    model = model_of(cells, 0.5, d + 1.0)
    kl = parse("kl", "test")
    found = []
    for depth in (0, 1, 3, 5):
        recursion = exact.start(cells, model, depth, PLAN)
        while len(recursion.frontier()):
            recursion.expand(recursion.frontier(), 2)
        root = exact.solve(recursion, model, PLAN)
        mean = Moments(recursion, model, root.leaves, root.probabilities).mean(kl, 0, 1)
        found.append((root.log_total, root.mean_leaves, mean))
    for other in found[1:]:
        assert other == pytest.approx(found[0], abs=1e-10, rel=1e-12)


def test_means_beyond_the_grid_of_small_numbers():
    """A few hundred points: E[l] and E[KL] by the recursion are those of the draws."""
    cells = cells_of(beta_mixtures(150, np.random.default_rng(5)))
    model = model_of(cells, 0.5, 4.0)
    fit = exact.run(cells, model, replace(PLAN, draws=20_000), "asked for")
    leaves = fit.partitions.leaves
    mean = fit.leaf_probabilities @ np.arange(len(fit.leaf_probabilities))
    assert abs(leaves.mean() - mean) < 4.5 * leaves.std() / math.sqrt(len(leaves))
    a, b = (0.5 + fit.partitions.counts[:, k] for k in (0, 1))
    for name in CLOSED_FORMS:
        divergence = parse(name, "test")
        given = divergence.mean_given_partition(a, b, fit.partitions.starts)
        error = given.std() / math.sqrt(len(given))
        assert abs(given.mean() - fit.moments.mean(divergence, 0, 1)) < 4.5 * error


# Draws


def preorder(tree):
    return (-1,) if tree is None else (tree[0], *preorder(tree[1]), *preorder(tree[2]))


def goodness_of_fit(frequencies, probabilities):
    """p-value of the chi-square test; trees that are expected less than ten times count as one."""
    draws = sum(frequencies.values())
    common = [tree for tree, probability in probabilities.items() if draws * probability >= 10]
    observed = [frequencies[tree] for tree in common]
    expected = [draws * probabilities[tree] for tree in common]
    observed.append(draws - sum(observed))
    expected.append(draws - sum(expected))
    assert len(common) > 20
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    return stats.chi2.sf(statistic, len(common))


@pytest.mark.parametrize(("d", "delta", "sigma"), [(1, 0.6, 1.0), (2, 0.7, 1.5), (3, 1.1, 1.0)])
def test_trees_are_drawn_with_their_probabilities(d, delta, sigma):
    points = sets_in(d, 2)
    most = MOST_LEAVES[d]
    listed = enumeration.enumerate_posterior(
        points, d, delta=delta, sigma=sigma, max_leaves=most, max_depth=4
    )
    cells = cells_of(points)
    recursion, root = solved(cells, model_of(cells, delta, sigma), 4)
    partitions = drawn(recursion, root, d, 20_000)
    frequencies = Counter(
        tuple(partitions.splits[start:end].tolist())
        for start, end in zip(partitions.node_starts[:-1], partitions.node_starts[1:], strict=True)
    )
    frequencies = Counter({t: c for t, c in frequencies.items() if len(t) <= 2 * most - 1})

    probabilities = {preorder(t): p for t, p in listed.tree_probabilities().items()}
    assert goodness_of_fit(frequencies, probabilities) > 1e-4

    # The same test must notice draws that forget the orders of splits, or that mix up two sigmas.
    log_weights = {preorder(t): r.sequence_log_weight for t, r in listed.records.items()}
    total = logsumexp(list(log_weights.values()))
    no_orders = {tree: math.exp(value - total) for tree, value in log_weights.items()}
    assert goodness_of_fit(frequencies, no_orders) < 1e-6
    tilted = {tree: p * 1.1 ** len(tree) for tree, p in probabilities.items()}
    whole = math.fsum(tilted.values())
    assert goodness_of_fit(frequencies, {t: p / whole for t, p in tilted.items()}) < 1e-6


@pytest.mark.parametrize("engine", ["exact", "pruned", "mcmc"])
@pytest.mark.parametrize(("d", "sets"), [(1, 2), (2, 1), (3, 2), (3, 3)])
def test_stored_partitions_are_valid_and_count_the_points(engine, d, sets):
    rng = np.random.default_rng([d, sets, 1])
    cells = cells_of([rng.random((n, d)) ** (1 + n % 2) for n in (90, 41, 0)[:sets]])
    model = model_of(cells, 1.1, 1.5)
    kernels = ("cherry", "guided", "uniform") if engine == "mcmc" else ("cherry",)
    for kernel in kernels:
        fit = engines.run(cells, model, engine, replace(PLAN, kernel=kernel, max_regions=20_000))
        partitions = fit.partitions
        assert (
            check_partitions(
                partitions.splits,
                partitions.node_starts[:-1],
                partitions.counts,
                partitions.leaf_starts[:-1],
                cells.sizes,
                d,
            )
            == []
        )
        recount = np.zeros_like(partitions.counts)
        np.add.at(recount, (partitions.locate(cells.codes), cells.sets[None, :]), 1)
        np.testing.assert_array_equal(recount, partitions.counts)
        # The slowest count of all: does the box of a leaf hold the code?
        levels, indices = partitions.boxes()
        for leaf in rng.integers(len(levels), size=50):
            shift = (52 - levels[leaf].astype(np.uint64))[:, None]
            inside = ((cells.codes >> shift) == indices[leaf][:, None]).all(axis=0)
            counts = np.bincount(cells.sets[inside], minlength=sets)
            np.testing.assert_array_equal(counts, partitions.counts[leaf])
            assert partitions.depths[leaf] == levels[leaf].sum()


def test_weights_of_stored_partitions_are_those_of_the_enumeration():
    points = sets_in(2, 2)
    listed = enumeration.enumerate_posterior(
        points, 2, delta=0.7, sigma=1.5, max_leaves=6, max_depth=4
    )
    cells = cells_of(points)
    model = model_of(cells, 0.7, 1.5)
    recursion, root = solved(cells, model, 4)
    partitions = drawn(recursion, root, 2, 300)
    expected = {preorder(t): r.log_weight for t, r in listed.records.items()}
    compared = 0
    for which, log_weight in enumerate(model.log_weights(partitions)):
        tree = tuple(partitions.one(which).splits.tolist())
        if tree in expected:
            assert log_weight == pytest.approx(expected[tree], abs=1e-10)
            compared += 1
    assert compared > 100


def test_threads_do_not_change_a_draw():
    cells = cells_of(beta_mixtures(100, np.random.default_rng(2)))
    model = model_of(cells, 0.5, 4.0)
    one, two = (
        exact.run(cells, model, replace(PLAN, threads=threads), "asked for") for threads in (1, 2)
    )
    np.testing.assert_array_equal(one.partitions.splits, two.partitions.splits)
    np.testing.assert_array_equal(one.leaf_probabilities, two.leaf_probabilities)
    assert one.log_evidence == two.log_evidence


# Without data


@pytest.mark.parametrize("depth", [0, 3])
@pytest.mark.parametrize(
    ("d", "sets", "delta", "sigma"),
    [(1, 2, 0.5, 2.0), (2, 2, 0.5, 3.0), (3, 1, 1.5, 1.0), (2, 3, 0.5, 2.5), (1, 1, 1.0, 1.5)],
)
def test_without_data_the_posterior_is_the_prior(d, sets, delta, sigma, depth):
    cells = Cells(
        np.zeros((d, 0), dtype=np.uint64), np.zeros(0, dtype=np.uint16), np.zeros(sets, dtype=int)
    )
    model = PaperModel(delta, sigma, d, (0,) * sets)
    _, root = solved(cells, model, depth)
    found = root.leaf_probabilities()[1:]
    prior = model.prior_leaf_probabilities()
    shared = min(len(found), len(prior))
    assert prior[shared:].sum() < 1e-12
    np.testing.assert_allclose(found[:shared], prior[:shared], rtol=0, atol=1e-12)
    assert root.log_total == pytest.approx(model.log_prior_total, abs=1e-12)
    for leaves in (1, 2, 7):
        closed = enumeration.prior_leaf_log_probability(leaves, d, sets, delta, sigma)
        assert found[leaves - 1] == pytest.approx(math.exp(closed), abs=1e-12)
