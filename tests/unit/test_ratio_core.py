"""The recursion of the ratio model against a list of every tree there is."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from cobpm import _core
from cobpm.diagnostics import check_partitions
from cobpm.partitions import Partitions
from tests.cases import beta_mixtures, cells_of
from tests.oracles.enumeration import contains
from tests.oracles.ratio import RatioPosterior, label_probability

CONCENTRATIONS = np.array([1.0, 4.0, 16.0])
SIZES = (7, 4, 3)
DEPTHS = {1: 5, 2: 3, 3: 3}


def sets_in(d, sets):
    rng = np.random.default_rng([d, sets])
    return tuple(rng.random((n, d)) ** (1 + s) for s, n in enumerate(SIZES[:sets]))


def ratio_of(cells, depth, concentrations=CONCENTRATIONS, stop=0.5, threads=2):
    sets = len(cells.sizes)
    return _core.Ratio(cells.codes, cells.sets, sets, depth, concentrations, stop, threads)


def oracle(d, sets, depth=None, stop=0.5, concentrations=CONCENTRATIONS):
    points = sets_in(d, sets)
    return RatioPosterior(points, d, concentrations.tolist(), stop, depth or DEPTHS[d])


def grow_to(ratio, depth):
    for _ in range(depth):
        ratio.expand(ratio.frontier(), 2)


def expected_by_counts(ratio):
    """Expected number of leaves with given counts; leaves without points left out."""
    _, counts, probabilities, singles, _ = ratio.leaves(1e-14)
    found = Counter()
    for row, probability in zip(counts.tolist(), probabilities.tolist(), strict=True):
        found[tuple(row)] += probability
    for s, number in enumerate(singles.tolist()):
        found[tuple(int(s == t) for t in range(len(singles)))] += number
    return {counts: number for counts, number in found.items() if sum(counts) and number > 1e-12}


# Every tree written out


@pytest.mark.parametrize("stop", [0.5, 0.2])
@pytest.mark.parametrize("base", ["dense", "grown", "both"])
@pytest.mark.parametrize("sets", [2, 3])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_equals_enumeration(d, sets, base, stop):
    listed = oracle(d, sets, stop=stop)
    depth = DEPTHS[d]
    dense = {"dense": depth, "grown": 0, "both": 1}[base]
    ratio = ratio_of(cells_of(listed.sets), dense, stop=stop)
    grow_to(ratio, depth - dense)
    assert ratio.up(2) == pytest.approx(math.log(listed.evidence), abs=1e-10, rel=0)

    expected = Counter()
    for region, probability in listed.leaf_probabilities().items():
        expected[listed.counts(region)] += probability
    empty = expected.pop((0,) * sets, 0.0)
    assert expected_by_counts(ratio) == pytest.approx(
        {counts: number for counts, number in expected.items() if number > 1e-12}, abs=1e-10, rel=0
    )
    ids, counts, probabilities, _, unstored = ratio.leaves(1e-14)
    np.testing.assert_array_equal(ratio.counts()[ids], counts)
    stored = probabilities[counts.sum(axis=1) == 0].sum()
    assert stored + unstored == pytest.approx(empty, abs=1e-10)
    # All points lie in some leaf.
    assert sum(sum(c) * p for c, p in expected.items()) == pytest.approx(sum(SIZES[:sets]))


def test_wrong_laws_are_told_apart():
    listed = oracle(2, 2)
    cells = cells_of(listed.sets)
    truth = math.log(listed.evidence)
    for depth, concentrations, stop in [
        (2, CONCENTRATIONS, 0.5),
        (3, CONCENTRATIONS * 1.001, 0.5),
        (3, CONCENTRATIONS, 0.501),
    ]:
        assert abs(ratio_of(cells, depth, concentrations, stop).up(1) - truth) > 1e-6


@pytest.mark.parametrize("base", [0, 1, 3])
@pytest.mark.parametrize("sets", [2, 3])
def test_means_at_points(sets, base):
    listed = oracle(2, sets)
    ratio = ratio_of(cells_of(listed.sets), base)
    grow_to(ratio, 3 - base)
    ratio.up(2)

    def functions(counts):
        return [math.log(1 + counts[0]), counts[-1] / (1.0 + sum(counts))]

    singles = np.eye(sets, dtype=int).tolist()
    found = ratio.at_points(
        np.array([functions(counts) for counts in ratio.leaves(1e-14)[1].tolist()]),
        np.array([functions(counts) for counts in singles]),
        2,
    )
    for point, values in zip(np.vstack(listed.sets), found, strict=True):
        for g in (0, 1):
            expected = listed.expectation(
                lambda region, x=point, g=g: (
                    functions(listed.counts(region))[g] if contains(region, x) else 0.0
                )
            )
            assert values[g] == pytest.approx(expected, abs=1e-10)


def test_likelihood_of_many_points():
    """Beyond all tables and far beyond the range of a double, the closed form must come out."""
    sizes = np.array([6000, 9000])
    rng = np.random.default_rng(0)
    halves = [rng.random((n, 1)) / 2 + s / 2 for s, n in enumerate(sizes)]
    cells = cells_of(halves)

    def log_leaf(counts):
        a, shares = CONCENTRATIONS[:, None], sizes / sizes.sum()
        terms = (gammaln(a * shares + counts) - gammaln(a * shares)).sum(axis=1)
        terms += gammaln(CONCENTRATIONS) - gammaln(CONCENTRATIONS + sum(counts))
        return logsumexp(terms) - math.log(3)

    whole, split = log_leaf(sizes), log_leaf([6000, 0]) + log_leaf([0, 9000])
    assert ratio_of(cells, 0).up(2) == pytest.approx(whole, rel=1e-12)
    expected = np.logaddexp(whole, split) - math.log(2)
    assert ratio_of(cells, 1).up(2) == pytest.approx(expected, rel=1e-12)
    assert ratio_of(cells, 8).up(2) < expected  # pure halves are not worth cutting
    small = label_probability((6, 2), (6000, 9000), CONCENTRATIONS.tolist())
    assert log_leaf([6, 2]) == pytest.approx(math.log(small), rel=1e-10)


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
    assert len(common) > 10
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    return stats.chi2.sf(statistic, len(common))


@pytest.mark.parametrize("base", ["dense", "grown"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_trees_are_drawn_with_their_probabilities(d, base):
    listed = oracle(d, 2)
    depth = DEPTHS[d]
    ratio = ratio_of(cells_of(listed.sets), depth if base == "dense" else 0)
    grow_to(ratio, 0 if base == "dense" else depth)
    ratio.up(2)
    drawn = Partitions.from_core(ratio.draw(20_000, 5, 2)[0], d)
    frequencies = Counter(
        tuple(drawn.splits[start:end].tolist())
        for start, end in zip(drawn.node_starts[:-1], drawn.node_starts[1:], strict=True)
    )
    probabilities = {preorder(tree): p for tree, p in listed.tree_probabilities().items()}
    assert goodness_of_fit(frequencies, probabilities) > 1e-4

    # The same test must notice draws from the prior, or from another probability to stop.
    prior = {preorder(one.tree): one.prior for one in listed.listed}
    assert goodness_of_fit(frequencies, prior) < 1e-6
    other = oracle(d, 2, stop=0.45).tree_probabilities()
    assert goodness_of_fit(frequencies, {preorder(t): p for t, p in other.items()}) < 1e-6


@pytest.mark.parametrize("d", [1, 2, 3])
def test_trees_are_drawn_given_that_the_root_is_cut(d):
    listed = oracle(d, 2)
    ratio = ratio_of(cells_of(listed.sets), DEPTHS[d])
    ratio.up(2)
    drawn = Partitions.from_core(ratio.draw(20_000, 5, 2, None, 4000)[0], d)
    assert (drawn.leaves[:4000] == 1).all()
    assert (drawn.leaves[4000:] > 1).all()
    frequencies = Counter(
        tuple(drawn.splits[start:end].tolist())
        for start, end in zip(drawn.node_starts[4000:-1], drawn.node_starts[4001:], strict=True)
    )
    trees = {preorder(tree): p for tree, p in listed.tree_probabilities().items()}
    cut = {tree: p for tree, p in trees.items() if len(tree) > 1}
    given = {tree: p / sum(cut.values()) for tree, p in cut.items()}
    assert goodness_of_fit(frequencies, given) > 1e-4
    for whole, threads in ((0, 1), (4000, 1), (20_000, 2), (30_000, 2)):
        again = Partitions.from_core(ratio.draw(20_000, 5, threads, None, whole)[0], d)
        assert (again.leaves == 1).sum() == min(whole, 20_000)
        if whole == 4000:
            np.testing.assert_array_equal(again.splits, drawn.splits)


def test_drawn_partitions_are_valid_and_agree_with_the_means():
    cells = cells_of(beta_mixtures(200, np.random.default_rng(4)))
    ratio = ratio_of(cells, 7)
    ratio.up(2)
    packed, open_leaves = ratio.draw(4000, 3, 2)
    drawn = Partitions.from_core(packed, 3)
    starts = drawn.node_starts[:-1], drawn.leaf_starts[:-1]
    found = check_partitions(drawn.splits, starts[0], drawn.counts, starts[1], cells.sizes, 3)
    assert found == []
    assert drawn.depths.max() <= 7
    assert len(open_leaves) == ((drawn.depths == 7) & (drawn.counts.sum(axis=1) > 1)).sum()
    probabilities = ratio.leaves(1e-14)[2]
    spread = drawn.leaves.std() / math.sqrt(len(drawn))
    assert abs(drawn.leaves.mean() - probabilities.sum()) < 4.5 * spread


def test_regions_hardly_ever_reached_count_as_leaves():
    cells = cells_of(beta_mixtures(200, np.random.default_rng(4)))
    ratio = ratio_of(cells, 7)
    ratio.up(2)
    _, counts, all_of_them, _, _ = ratio.leaves(0.0)
    assert all_of_them @ counts.sum(axis=1) == pytest.approx(400)
    _, counts, probabilities, _, _ = ratio.leaves(1e-2)
    assert len(probabilities) < len(all_of_them) / 2
    assert probabilities @ counts.sum(axis=1) == pytest.approx(400)  # no point gets lost
    with pytest.raises(ValueError, match="row for each"):
        ratio.at_points(np.zeros((3, 1)), np.zeros((2, 1)), 1)


# The same answer however it is computed


@pytest.mark.parametrize("base", [3, 7])
def test_threads_do_not_matter(base):
    cells = cells_of(beta_mixtures(300, np.random.default_rng(2)))
    found = []
    for threads in (1, 2):
        ratio = ratio_of(cells, base, threads=threads)
        for _ in range(2):
            ratio.expand(ratio.frontier(), threads)
        total = ratio.up(threads)
        (splits, nodes, counts, _), open_leaves = ratio.draw(300, 9, threads)
        leaves = ratio.leaves(1e-14)
        values = np.log1p(leaves[1].astype(float))
        at_points = ratio.at_points(values, np.log1p(np.eye(2)), threads)
        order = np.sort(open_leaves)
        found.append((total, splits, nodes, counts, order, at_points, *leaves))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("base", [0, 2, 6])
def test_relabelling_equals_building_anew(base):
    cells = cells_of(beta_mixtures(60, np.random.default_rng(1)))
    rng = np.random.default_rng(8)
    ratio = ratio_of(cells, base)
    grow_to(ratio, 6 - base)
    before = ratio.up(2)
    for labels in (rng.permutation(cells.sets), (rng.random(120) < 0.3).astype(np.uint16)):
        ratio.relabel(labels, 2)
        with pytest.raises(RuntimeError, match="run up"):
            ratio.draw(1, 1, 1)
        again = _core.Ratio(cells.codes, labels, 2, base, CONCENTRATIONS, 0.5, 2)
        grow_to(again, 6 - base)
        assert ratio.up(2) == again.up(2) != before
        np.testing.assert_array_equal(ratio.counts(), again.counts())
        for one, two in zip(ratio.leaves(1e-14), again.leaves(1e-14), strict=True):
            np.testing.assert_array_equal(one, two)
    ratio.relabel(cells.sets, 2)
    assert ratio.up(2) == before


def test_growing_where_it_matters():
    """Expanding regions that are reached at all gives what the dense regions give."""
    cells = cells_of(beta_mixtures(100, np.random.default_rng(6)))
    dense = ratio_of(cells, 8)
    truth = dense.up(2)
    ratio = ratio_of(cells, 4)
    ratio.up(2)
    for _ in range(4):
        ids, _, probabilities, _, _ = ratio.leaves(1e-14)
        ids = np.intersect1d(ids[probabilities > 1e-9], ratio.frontier())
        ratio.expand(ids, 2)
        total = ratio.up(2)
        assert np.isfinite(ratio.split_log_odds(ids)).all()
    assert total == pytest.approx(truth, abs=1e-6)
    assert ratio.size < dense.size


@pytest.mark.parametrize("d", [0, 1, 2])
@pytest.mark.parametrize("sizes", [(0, 0), (1, 0), (0, 1), (5, 0)])
def test_hardly_any_points(d, sizes):
    rng = np.random.default_rng(3)
    cells = cells_of([rng.random((n, d)) for n in sizes])
    ratio = ratio_of(cells, 3)
    assert ratio.up(1) == pytest.approx(0.0, abs=1e-12)  # one set alone: labels are certain
    _, counts, probabilities, _, _ = ratio.leaves(1e-14)
    assert probabilities @ counts.sum(axis=1) == pytest.approx(sum(sizes))
    assert len(ratio.draw(3, 1, 1)[0][1]) == 3


@pytest.mark.parametrize(
    ("concentrations", "stop"), [([], 0.5), ([0.0], 0.5), ([np.inf], 0.5), ([1.0], 0.0)]
)
def test_impossible_models_are_refused(concentrations, stop):
    cells = cells_of([np.full((2, 1), 0.5), np.full((2, 1), 0.2)])
    with pytest.raises(ValueError):
        ratio_of(cells, 1, np.array(concentrations, dtype=float), stop)
