"""The same question has the same answer: seeds, threads, order of the sets, units."""

import numpy as np
import pytest

import cobpm

RNG = np.random.default_rng(7)
X, Y = RNG.normal(size=(300, 2)), RNG.normal(size=(200, 2)) + 0.7
ENGINES = [
    {"engine": "exact"},
    {"engine": "pruned", "max_regions": 20_000, "chains": 2},
    {"engine": "mcmc", "kernel": "cherry", "burn_in": 100},
    {"engine": "mcmc", "kernel": "guided", "burn_in": 100},
    {"engine": "mcmc", "kernel": "uniform", "burn_in": 100},
]
anyway = pytest.mark.filterwarnings("ignore::cobpm.diagnostics.ConvergenceWarning")


def assert_same(one, other):
    for name in ("splits", "node_starts", "counts", "leaf_starts"):
        np.testing.assert_array_equal(
            getattr(one.partitions, name), getattr(other.partitions, name)
        )
    np.testing.assert_array_equal(one.masses, other.masses)


@anyway
@pytest.mark.parametrize("settings", ENGINES, ids=lambda s: s.get("kernel", s["engine"]))
def test_threads_do_not_matter(settings, monkeypatch):
    results = []
    for threads in "123":
        monkeypatch.setenv("COBPM_THREADS", threads)
        results.append(cobpm.compare(X, Y, draws=200, rng=3, **settings, model="paper"))
    for other in results[1:]:
        assert_same(results[0], other)
        assert other.estimate("kl") == results[0].estimate("kl")
    monkeypatch.setenv("COBPM_THREADS", "2")
    assert (
        cobpm.compare(X, Y, draws=200, rng=4, **settings, model="paper").masses[:5]
        != other.masses[:5]
    ).any()


@anyway
@pytest.mark.parametrize("settings", ENGINES, ids=lambda s: s.get("kernel", s["engine"]))
def test_compare_is_fit_of_two(settings):
    one = cobpm.compare(X, Y, draws=100, rng=3, **settings, model="paper")
    other = cobpm.fit({"x": X, "y": Y}, draws=100, rng=3, **settings, model="paper")
    assert_same(one, other)
    assert one.summary().equals(other.summary())
    assert cobpm.fit([X, Y], draws=10, rng=3, model="paper").names == ("1", "2")


def test_a_generator_moves_on():
    generator = np.random.default_rng(11)
    first, second = (cobpm.compare(X, Y, draws=50, rng=generator, model="paper") for _ in range(2))
    assert (first.draws("kl") != second.draws("kl")).any()
    assert_same(first, cobpm.compare(X, Y, draws=50, rng=np.random.default_rng(11), model="paper"))
    assert_same(first, cobpm.compare(X, Y, draws=50, rng=11, model="paper"))
    unseeded = [cobpm.compare(X, Y, draws=50, model="paper").draws("kl") for _ in range(2)]
    assert (unseeded[0] != unseeded[1]).any()


def test_exact_estimates_need_no_seed():
    one, other = (cobpm.compare(X, Y, draws=20, rng=seed, model="paper") for seed in (1, 2))
    for name in ("kl", "reverse_kl", "jeffreys", "squared_hellinger", "alpha:0.5"):
        assert one.estimate(name) == pytest.approx(other.estimate(name), rel=1e-12)
        assert one.estimate(name) == one.estimate(name)
    np.testing.assert_allclose(one.leaf_probabilities, other.leaf_probabilities, rtol=1e-9)
    many = cobpm.compare(X, Y, draws=4000, rng=1, model="paper")
    drawn = many.draws("kl")
    error = drawn.std() / len(drawn) ** 0.5
    assert many.estimate("kl") == pytest.approx(drawn.mean(), abs=4 * error)


def test_exchanging_the_sets_exchanges_the_divergences():
    there, back = (
        cobpm.compare(X, Y, draws=20, rng=1, model="paper"),
        cobpm.compare(Y, X, draws=20, rng=1, model="paper"),
    )
    assert there.estimate("kl") == pytest.approx(back.estimate("reverse_kl"), rel=1e-9)
    assert there.estimate("reverse_kl") == pytest.approx(back.estimate("kl"), rel=1e-9)
    assert there.estimate("jeffreys") == pytest.approx(back.estimate("jeffreys"), rel=1e-9)
    named = there.estimate("kl", "y", "x")
    assert named == pytest.approx(there.estimate("reverse_kl"), rel=1e-9)


def test_order_of_rows_and_of_columns_does_not_matter():
    one = cobpm.compare(X, Y, draws=20, rng=1, model="paper")
    rows = cobpm.compare(RNG.permutation(X), Y[::-1], draws=20, rng=1, model="paper")
    assert_same(one, rows)
    columns = cobpm.compare(X[:, ::-1], Y[:, ::-1], draws=20, rng=1, model="paper")
    assert columns.estimate("kl") == pytest.approx(one.estimate("kl"), rel=1e-9)


@pytest.mark.parametrize("bounds", [None, "ranks"])
def test_units_change_nothing_but_the_units(bounds):
    # Powers of two, so that the map onto the unit cube is the same to the last bit.
    factor = np.array([1024.0, 2.0**-9])
    one = cobpm.compare(X, Y, draws=100, rng=1, bounds=bounds, model="paper")
    other = cobpm.compare(X * factor, Y * factor, draws=100, rng=1, bounds=bounds, model="paper")
    assert_same(one, other)
    ours, theirs = one.regions(), other.regions()
    for column, scale in zip(("c1", "c2"), factor, strict=True):
        for end in ("low", "high"):
            np.testing.assert_allclose(
                ours[f"{column}_{end}"] * scale, theirs[f"{column}_{end}"], rtol=1e-12
            )
    assert ours["log_ratio"].equals(theirs["log_ratio"])
    np.testing.assert_allclose(
        one.density(X, "x"), other.density(X * factor, "x") * factor.prod(), rtol=1e-9
    )
    np.testing.assert_allclose(one.log_ratio(X), other.log_ratio(X * factor), rtol=1e-9)


def test_offsets_and_flips():
    expected = cobpm.compare(X, Y, draws=20, rng=1, model="paper").estimate("kl")
    moved = cobpm.compare(3 * X + 5, 3 * Y + 5, draws=20, rng=1, model="paper").estimate("kl")
    assert moved == pytest.approx(expected, rel=1e-9)
    flipped = cobpm.compare(-X, -Y, draws=20, rng=1, model="paper").estimate("kl")
    assert flipped == pytest.approx(expected, rel=1e-9)


def test_ranks_do_not_see_monotone_changes():
    one = cobpm.compare(X, Y, draws=20, rng=1, bounds="ranks", model="paper").estimate("kl")
    other = cobpm.compare(
        np.exp(X), np.exp(Y), draws=20, rng=1, bounds="ranks", model="paper"
    ).estimate("kl")
    assert one == pytest.approx(other, rel=1e-9)
