"""The ratio model's formulas against products, sums over all labels, and plain simulation."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

import cobpm
from cobpm import _core
from cobpm.divergences import parse
from cobpm.engines import ratio
from cobpm.engines.ratio_moments import RatioMoments
from cobpm.partitions import Partitions
from cobpm.ratio_model import (
    CALIBRATED_SIZE,
    DELTAS,
    FEW_POINTS,
    MANY_DELTAS,
    RatioModel,
)
from tests.cases import beta_mixtures, cells_of
from tests.oracles.ratio import RatioPosterior, label_probability

SIZES = {2: (30, 20), 3: (30, 20, 25)}
COUNTS = {
    2: np.array([[6, 1], [0, 9], [14, 10], [10, 0]]),
    3: np.array([[6, 1, 0], [0, 9, 5], [14, 10, 15], [10, 0, 5]]),
}
KNOWN = (
    *("kl", "reverse_kl", "jeffreys", "tv", "squared_hellinger"),
    *("alpha:0.5", "tsallis:0.5", "tsallis:0.3", "alpha:-0.1", "tsallis:1.1"),
)


# The law of labels in a leaf


@pytest.mark.parametrize("sizes", [(5, 3), (100, 2), (4, 3, 2), (1, 1, 1, 1)])
def test_leaf_is_a_product_of_draws_one_by_one(sizes):
    model = RatioModel(2, sizes)
    for counts in itertools.product(*(range(min(n, 4) + 1) for n in sizes)):
        product = label_probability(counts, sizes, model.concentrations.tolist())
        assert model.log_leaf(np.array(counts)) == pytest.approx(math.log(product), abs=1e-10)
    assert model.log_same() == pytest.approx(
        math.log(label_probability(sizes, sizes, model.concentrations.tolist())), abs=1e-9
    )


@pytest.mark.parametrize("sizes", [(5, 3), (90, 10), (4, 3, 2)])
@pytest.mark.parametrize("points", [1, 2, 6])
def test_all_labels_together_are_certain(sizes, points):
    model = RatioModel(1, sizes)
    labels = itertools.product(range(len(sizes)), repeat=points)
    counts = np.array([np.bincount(one, minlength=len(sizes)) for one in labels])
    assert logsumexp(model.log_leaf(counts)) == pytest.approx(0, abs=1e-10)
    # Each set's share of the labels is what it is in the pool.
    expected = np.exp(model.log_leaf(counts)) @ counts / points
    np.testing.assert_allclose(expected, model.shares, atol=1e-12)


def test_concentrations():
    np.testing.assert_allclose(RatioModel(1, (7, 7)).concentrations, 2 * np.array(DELTAS))
    np.testing.assert_allclose(RatioModel(1, (7, 7, 7)).concentrations, 3 * np.array(MANY_DELTAS))
    np.testing.assert_allclose(RatioModel(1, (7, 7)).reading, 2 * np.array(DELTAS))
    # The smaller of two sets keeps its pseudo-counts however large the other one is.
    for large in (10, 1000, 10**6):
        model = RatioModel(1, (large, 10))
        np.testing.assert_allclose(model.concentrations * model.shares[1], DELTAS)
        np.testing.assert_allclose(model.reading * model.shares[1], DELTAS)
        assert model.least_pseudo_count == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("sizes", "odds"), [((100, 100), 0.5), ((200, 9000), 0.5), ((2000, 2000), 0.05)]
)
def test_prior_odds_of_one_distribution(sizes, odds):
    assert math.exp(RatioModel(2, sizes).log_same_odds) == pytest.approx(odds)


def test_weights_of_components():
    model = RatioModel(1, (30, 20))
    weights = model.weights(COUNTS[2])
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    for counts, row in zip(COUNTS[2].tolist(), weights, strict=True):
        each = [label_probability(counts, (30, 20), [a]) for a in model.reading.tolist()]
        np.testing.assert_allclose(row, np.array(each) / sum(each), rtol=1e-9)


# Masses


def leaf_ratios(model, counts, draws, rng):
    """θ/π in leaves, drawn from the mixture without any of the library's arithmetic on it."""
    found = np.empty((draws, *counts.shape))
    for leaf, row in enumerate(counts):
        each = [label_probability(row.tolist(), model.sizes, [a]) for a in model.reading.tolist()]
        which = rng.choice(len(each), size=draws, p=np.array(each) / sum(each))
        for k, a in enumerate(model.reading):
            here = np.flatnonzero(which == k)
            found[here, leaf] = rng.dirichlet(a * model.shares + row, size=len(here))
    return found / model.shares


def within(found, draws, errors=4.0):
    """Whether the mean of draws is what it should be."""
    error = draws.std(axis=0) / math.sqrt(len(draws))
    return np.all(np.abs(found - draws.mean(axis=0)) <= errors * error + 1e-12)


@pytest.mark.parametrize("sets", [2, 3])
def test_masses_are_drawn_from_their_law(sets):
    model, counts, copies = RatioModel(2, SIZES[sets]), COUNTS[sets], 20_000
    starts = np.arange(copies) * len(counts)
    rng = np.random.default_rng(1)
    drawn = model.draw_masses(np.tile(counts, (copies, 1)), starts, rng)
    drawn = drawn.reshape(copies, *counts.shape)
    np.testing.assert_allclose(drawn.sum(axis=1), 1)
    pooled = rng.dirichlet(counts.sum(axis=1), size=copies)
    masses = pooled[:, :, None] * leaf_ratios(model, counts, copies, rng)
    masses /= masses.sum(axis=1, keepdims=True)
    for power in (1, 2):  # means and spreads
        one, two = drawn**power, masses**power
        error = np.hypot(one.std(axis=0), two.std(axis=0)) / math.sqrt(copies)
        assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < 4.5 * error).all()
    # The mean masses are near, and another model's are not.
    means = model.mean_masses(counts, np.array([0]))
    np.testing.assert_allclose(means.sum(axis=0), 1)
    np.testing.assert_allclose(means, drawn.mean(axis=0), atol=0.03)
    assert not within(means[::-1], drawn)


def test_masses_of_empty_leaves():
    model = RatioModel(1, (3, 2))
    counts, starts = np.array([[3, 2], [0, 0], [0, 0], [3, 2]]), np.array([0, 2])
    drawn = model.draw_masses(counts, starts, np.random.default_rng(1))
    for masses in (drawn, model.mean_masses(counts, starts)):
        assert (masses > 0).all()
        np.testing.assert_allclose(masses[[0, 3]], 1)
        assert masses[1:3].max() < 1e-200


# Means in closed form


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("sets", [2, 3])
def test_means_over_ratios(sets, name):
    model, counts = RatioModel(2, SIZES[sets]), COUNTS[sets]
    divergence = parse(name, "estimate")
    moments = RatioMoments(model, counts.astype(float), np.ones(len(counts)), 0.0)
    assert moments.knows(divergence)
    rng = np.random.default_rng(2)
    ratios = leaf_ratios(model, counts, 40_000, rng)
    share = counts.sum(axis=1) / sum(model.sizes)

    def f(p, q):
        if name in ("kl", "reverse_kl", "jeffreys"):
            there, back = p * np.log(p / q), q * np.log(q / p)
            return {"kl": there, "reverse_kl": back, "jeffreys": there + back}[name]
        if name == "tv":
            return np.abs(p - q) / 2
        if name == "squared_hellinger":
            return 1 - np.sqrt(p * q)
        family, order = name.split(":")
        alpha = float(order)
        scale = 1 / (alpha - 1) / (alpha if family == "alpha" else 1)
        return scale * (p**alpha * q ** (1 - alpha) - 1)

    for i, j in ((0, 1), (1, 0)) if sets == 2 else ((0, 2), (2, 1)):
        p, q = np.maximum(ratios[:, :, [i, j]], 1e-300).transpose(2, 0, 1)
        values = f(p, q) @ share
        assert within(moments.mean(divergence, i, j), values), (i, j)
        assert not within(1.1 * moments.mean(divergence, i, j) + 0.01, values)


def test_means_that_do_not_exist_or_are_not_known():
    model = RatioModel(2, (30, 20))
    moments = RatioMoments(model, COUNTS[2].astype(float), np.ones(4), 0.0)
    for name in ("js", "hellinger", "renyi:2", "renyi:0.5"):
        assert not moments.knows(parse(name, "estimate"))
    for name, exists in (("chi2", False), ("tsallis:1.4", True), ("tsallis:1.6", False)):
        assert parse(name, "estimate").mean_exists(model.least_pseudo_count) == exists


def tiny_sets(sets):
    rng = np.random.default_rng([7, sets])
    return tuple(rng.random((n, 2)) ** (1 + s) for s, n in enumerate((6, 4, 3)[:sets]))


@pytest.mark.parametrize("name", ["kl", "tv", "squared_hellinger", "alpha:0.5"])
@pytest.mark.parametrize("sets", [2, 3])
def test_means_over_all_partitions(sets, name):
    """The core's leaves and the closed form, against a list of all trees and a list of leaves."""
    points = tiny_sets(sets)
    cells = cells_of(points)
    model = RatioModel(2, tuple(len(p) for p in points))
    listed = RatioPosterior(points, 2, model.concentrations.tolist(), model.stop, 3)
    recursion = _core.Ratio(
        cells.codes, cells.sets, sets, 3, model.concentrations, model.stop, 1, None
    )
    view = ratio.View(None, model, recursion, recursion.up(1, None), 3)
    assert view.log_evidence == pytest.approx(math.log(listed.evidence), abs=1e-10)
    whole = 1 - view.cut_probability
    assert whole == pytest.approx(
        model.stop
        * label_probability(listed.sizes, listed.sizes, model.concentrations.tolist())
        / listed.evidence
    )
    moments = ratio.moments_of([view], np.array([1.0]), whole)
    divergence = parse(name, "estimate")
    known = {}

    def of_leaf(region):
        counts = listed.counts(region)
        if counts == listed.sizes or not sum(counts):
            return 0.0
        if counts not in known:
            one = RatioMoments(model, np.array([counts], dtype=float), np.ones(1), 1.0)
            # E[f] of one leaf, the constant of I(α) − 1 being spread over leaves by their share
            part = sum(counts) / sum(listed.sizes)
            constant = {"squared_hellinger": 1.0, "alpha:0.5": 4.0}.get(name, 0.0)
            known[counts] = _raw(one, divergence) + part * constant
        return known[counts]

    expected = listed.expectation(of_leaf)
    assert moments.mean(divergence, 0, 1) == pytest.approx(expected, abs=1e-3)
    assert expected > 0.02
    # Whatever else says how probable it is that the sets are the same.
    for same in (0.0, 0.9, 1.0):
        other = ratio.moments_of([view], np.array([1.0]), same).mean(divergence, 0, 1)
        assert other == pytest.approx(expected * (1 - same) / (1 - whole), abs=1e-3)


def _raw(moments, divergence):
    """The sum over leaves before it is held above zero."""
    from cobpm.engines.ratio_moments import _leaf

    model, counts = moments.model, moments.counts
    a, b = (model.reading * model.shares[k] + counts[:, k, None] for k in (0, 1))
    total = model.reading + counts.sum(axis=1)[:, None]
    given = _leaf(divergence, a, b, total, model.shares[0], model.shares[1])
    share = counts.sum(axis=1) / sum(model.sizes)
    return float(share @ (model.weights(counts) * given).sum(axis=1))


def test_differences_are_weighed_without_the_single_leaf():
    model = RatioModel(3, (40, 60))
    for differs in (-8.0, -1.0, 0.0, 30.0, 900.0):
        log_ratio = np.logaddexp(math.log(model.stop), math.log1p(-model.stop) + differs)
        assert model.log_differs(log_ratio) == pytest.approx(differs, abs=1e-9)
        cut = math.exp(math.log1p(-model.stop) + differs - log_ratio)
        assert model.cut_probability(log_ratio) == pytest.approx(cut)
    assert model.cut_probability(math.log(model.stop) - 1e-16) == 0
    assert model.log_differs(math.log(model.stop)) < -500
    assert RatioModel(0, (40, 60)).log_differs(0.0) == 0
    assert RatioModel(0, (40, 60)).cut_probability(0.0) == 0


def views_that_find(*differs):
    """Views with given log D/L."""
    model = RatioModel(2, (50, 50))
    stop, cut = math.log(model.stop), math.log1p(-model.stop)
    logs = [model.log_same() + np.logaddexp(stop, cut + one) for one in differs]
    return [ratio.View(None, model, None, log, 3) for log in logs]


def test_one_frame_is_enough_to_see_a_difference():
    stop = RatioModel.stop
    for differs in ((0.0,), (-3.0, -3.0), (8.0, -3.0, -3.0, -3.0)):
        factor = np.mean(np.exp(differs))
        expected = stop / (stop + (1 - stop) * factor)
        assert ratio.same_probability_of(views_that_find(*differs)) == pytest.approx(expected)
    assert ratio.same_probability_of(views_that_find(8.0, *[-3.0] * 15)) < 0.01
    weights = ratio.weights_of(views_that_find(8.0, -2.0))
    assert weights[0] / weights[1] == pytest.approx(math.exp(ratio.POWER * 10))


@pytest.mark.parametrize("kind", ["same", "weak", "strong"])
def test_draws_without_a_cut_are_as_many_as_they_should_be(kind):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 100, 2))
    post = cobpm.compare(x, y + {"same": 0, "weak": 0.25, "strong": 1}[kind], rng=1, draws=2000)
    zero = np.mean(post.draws("tv") == 0)
    assert zero == np.mean(post.partitions.leaves == 1)
    assert {"same": 0.5 < zero < 1, "weak": 0.01 < zero < 0.99, "strong": zero == 0}[kind]


def test_distinct_rows():
    rng = np.random.default_rng(0)
    for sizes in ((5, 4), (3, 2, 4), (2**31 - 1, 2**31 - 1, 2)):  # the last: no number holds it
        counts = np.stack([rng.integers(0, min(n, 5) + 1, 200) for n in sizes], axis=1)
        found, which = ratio._distinct(counts, sizes)
        np.testing.assert_array_equal(found, np.unique(counts, axis=0))
        np.testing.assert_array_equal(found[which], counts)


# Intervals


@pytest.mark.parametrize("points", [2, 3, 10, FEW_POINTS, 1000, CALIBRATED_SIZE, 10**5, 10**7])
def test_tails(points):
    model = RatioModel(1, (1, 1))
    levels = [0.01, 0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999]
    ends = [model.tails(level, points) for level in levels]
    for low, high in ends:
        assert 0 < low < high < 1
        assert low == pytest.approx(1 - high)
    lows = [low for low, _ in ends]
    assert lows == sorted(lows, reverse=True)
    assert len(set(lows)) == len(lows)
    fewer = [model.tails(level, max(2, points // 2))[0] for level in levels]
    wider = points <= FEW_POINTS  # of a few points, the fewer they are
    assert all(
        (one >= other) != wider for one, other in zip(fewer, lows, strict=True) if one != other
    )
    if points == CALIBRATED_SIZE:
        np.testing.assert_allclose([high - low for low, high in ends], levels)


# Partitions


def leaf_statistics(drawn, sizes):
    """Leaves of each draw by their number of points: none, one, some, many."""
    total = drawn.counts.sum(axis=1)
    kinds = np.searchsorted([1, 2, sum(sizes) // 20], total, side="right")
    return np.stack([np.add.reduceat(kinds == k, drawn.starts) for k in range(4)], axis=1)


@pytest.mark.parametrize("stop", [1 / 3, 0.9])
def test_draws_agree_with_leaf_probabilities(stop):
    """Numbers of leaves in draws against the core's probabilities; those of another law differ."""
    cells = cells_of(beta_mixtures(150, np.random.default_rng(4)))
    model = RatioModel(3, (150, 150))
    recursions = {}
    for law in (stop, 1 / 3, 0.9):
        recursions[law] = _core.Ratio(
            cells.codes, cells.sets, 2, 6, model.concentrations, law, 1, None
        )
        recursions[law].up(1, None)
    drawn = Partitions.from_core(recursions[stop].draw(4000, 3, 1)[0], 3)
    found = leaf_statistics(drawn, model.sizes)
    error = np.maximum(found.std(axis=0), 0.1) / math.sqrt(len(drawn))  # some are never seen

    def distances(recursion):
        _, counts, probabilities, singles, unstored = recursion.leaves(0.0)
        total = counts.sum(axis=1)
        kinds = np.searchsorted([1, 2, sum(model.sizes) // 20], total, side="right")
        expected = np.bincount(kinds, weights=probabilities, minlength=4)
        expected[0] += unstored
        expected[1] += singles.sum()
        return np.abs(found.mean(axis=0) - expected) / error

    assert distances(recursions[stop]).max() < 4.5
    other = 0.9 if stop < 0.5 else 1 / 3
    assert distances(recursions[other]).max() > 30


def test_draws_of_all_frames_agree_with_the_means():
    """Means over leaves of all frames, in closed form, against those of the draws."""
    x, y = beta_mixtures(400, np.random.default_rng(9))
    post = cobpm.compare(x, y, model="ratio", rng=3, draws=6000)
    for name in ("kl", "tv", "squared_hellinger"):
        exact, drawn = post.estimate(name, read_out="mean"), post.draws(name)
        # Draws are divided by their sum, closed forms are not: close, not equal.
        assert exact == pytest.approx(drawn.mean(), rel=0.04)
