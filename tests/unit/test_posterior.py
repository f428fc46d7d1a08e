"""What is read off the draws."""

import pickle

import numpy as np
import pytest

import cobpm
from cobpm import divergences
from cobpm.model import PaperModel
from cobpm.partitions import Partitions
from cobpm.posterior import Band, Interval, draw_masses

RNG = np.random.default_rng(3)
X, Y = RNG.beta(2, 4, size=(400, 2)), RNG.beta(4, 2, size=(300, 2))


@pytest.fixture(scope="module")
def post():
    return cobpm.compare(X, Y, rng=1, draws=800, model="paper")


@pytest.fixture(scope="module")
def tied():
    x = np.where(RNG.random(400) < 0.3, 0.0, RNG.exponential(size=400))
    y = np.where(RNG.random(400) < 0.6, 0.0, RNG.exponential(size=400))
    return cobpm.compare(x, y, rng=1, draws=300, model="paper")


def test_draws(post):
    for name in (*divergences.NAMES, "renyi:inf", "tsallis:0.5", "alpha:-1"):
        drawn = post.draws(name)
        assert drawn.shape == (800,)
        assert (drawn >= 0).all()
    np.testing.assert_allclose(
        post.draws("jeffreys"), post.draws("kl") + post.draws("reverse_kl"), rtol=1e-9
    )
    np.testing.assert_allclose(post.draws("hellinger") ** 2, post.draws("squared_hellinger"))
    assert (post.draws("tv") <= 1).all()
    np.testing.assert_allclose(post.draws(lambda t: -np.log(t)), post.draws("kl"), rtol=1e-9)
    np.testing.assert_allclose(post.draws("kl", "y", "x"), post.draws("reverse_kl"), rtol=1e-9)


def test_estimates(post):
    drawn = post.draws("kl")
    assert post.estimate("kl") == pytest.approx(drawn.mean(), abs=4 * drawn.std() / 800**0.5)
    assert post.estimate("kl", read_out="median") == np.median(drawn)
    plug = post.estimate("kl", read_out="plug")
    assert 0 < plug < post.estimate("kl")  # the mean adds the uncertainty of the masses
    assert isinstance(post.estimate("tv"), float)


def test_intervals(post):
    interval = post.interval("kl", 0.9)
    assert isinstance(interval, Interval)
    assert (interval.low, interval.high) == tuple(np.quantile(post.draws("kl"), [0.05, 0.95]))
    wide = post.interval("kl", 0.99)
    assert wide.low < interval.low < interval.high < wide.high


def test_summary(post):
    table = post.summary()
    assert list(table.columns) == ["mean", "median", "low", "high", "note"]
    assert table.loc["kl", "mean"] == post.estimate("kl")
    assert table.loc["kl", "low"] == post.interval("kl").low
    assert list(post.summary("kl").index) == ["kl"]
    assert list(post.summary(["tv", "renyi:0.5"]).index) == ["tv", "renyi:0.5"]
    assert len(post.summary(lambda t: (t - 1) ** 2)) == 1
    exchanged = post.summary("kl", first="y", second="x")
    assert exchanged.loc["kl", "mean"] == pytest.approx(post.estimate("reverse_kl"))


def test_means_that_do_not_exist(post):
    row = post.summary().loc["chi2"]
    assert row["note"] == "mean does not exist"
    assert np.isnan(row["mean"])
    assert row["low"] < row["median"] < row["high"]
    assert post.estimate("chi2", read_out="median") == row["median"]
    with pytest.raises(cobpm.InputError, match="does not exist"):
        post.estimate("chi2")
    enough = cobpm.compare(X, Y, rng=1, draws=200, delta=1.5, model="paper")
    assert enough.summary().loc["chi2", "note"] == ""
    assert enough.estimate("chi2") > 0


def test_leaves(post):
    assert post.leaves.shape == (800,)
    probabilities = post.leaf_probabilities
    assert probabilities.sum() == pytest.approx(1)
    mean = probabilities @ np.arange(len(probabilities))
    assert post.leaves.mean() == pytest.approx(mean, abs=4 * post.leaves.std() / 800**0.5)


def test_density_integrates_to_one(post):
    (low1, low2), (high1, high2) = np.vstack([X, Y]).min(axis=0), np.vstack([X, Y]).max(axis=0)
    middles = (np.arange(128) + 0.5) / 128
    grid = np.stack(np.meshgrid(low1 + middles * (high1 - low1), low2 + middles * (high2 - low2)))
    points = grid.reshape(2, -1).T
    for name in "xy":
        total = post.density(points, name).mean() * (high1 - low1) * (high2 - low2)
        assert total == pytest.approx(1, abs=1e-3)  # few cuts are finer than the grid
    assert (post.density([[-1.0, 0.5], [0.5, 2.0]], "x") == 0).all()


def test_density_at_an_atom_is_a_probability(tied):
    low, high = tied.domain.interval(0, 0.0, 1.0)
    assert low == 0
    cells = 20_000
    middles = (np.arange(cells) + 0.5) / cells * high
    for name in "xy":
        atom = tied.density([0.0], name)[0]
        assert 0 < atom < 1
        assert atom + tied.density(middles, name).mean() * high == pytest.approx(1, abs=1e-3)


def test_log_ratio_agrees_with_densities(post):
    ratio = post.log_ratio(X)
    assert ratio.shape == (400,)
    band = post.log_ratio(X, level=0.9)
    assert isinstance(band, Band)
    np.testing.assert_array_equal(band.estimate, ratio)
    assert (band.low <= band.estimate).all()
    assert (band.estimate <= band.high).all()
    np.testing.assert_allclose(post.log_ratio(X, "y", "x"), -ratio, atol=1e-12)
    # With a single draw, the mean of the log ratio is the log of the ratio of the means.
    one = cobpm.compare(X, Y, rng=1, draws=1, model="paper")
    expected = np.log(one.density(X, "x")) - np.log(one.density(X, "y"))
    np.testing.assert_allclose(one.log_ratio(X), expected, atol=1e-9)


def test_band_of_a_density(post):
    band = post.density(X[:5], "x", level=0.5)
    wide = post.density(X[:5], "x", level=0.99)
    assert (wide.low < band.low).all()
    assert (band.high < wide.high).all()
    np.testing.assert_array_equal(band.estimate, post.density(X[:5], "x"))


def test_many_points_come_in_pieces(post):
    points = np.tile(X, (20, 1))
    np.testing.assert_array_equal(post.log_ratio(points), np.tile(post.log_ratio(X), 20))


def test_repr(post, tied):
    assert repr(post).startswith("Posterior of x (400), y (300) in 2 columns: 800 draws by engine")
    assert "in 1 column:" in repr(tied)
    assert "\n" not in repr(post)


def test_pickle(post):
    copy = pickle.loads(pickle.dumps(post))
    np.testing.assert_array_equal(copy.draws("kl"), post.draws("kl"))
    assert copy.estimate("kl") == pytest.approx(post.estimate("kl"), rel=0.05)


def test_provenance(post):
    about = post.provenance
    assert about["cobpm"] == cobpm.__version__
    assert about["settings"]["seed"] == 1
    assert about["sets"] == {"x": 400, "y": 300}
    other = cobpm.compare(X + 1, Y, rng=1, draws=5, model="paper").provenance
    assert other["data_sha256"] != about["data_sha256"]


def test_masses_are_dirichlet():
    # One partition into three leaves, many times.
    counts = np.array([[5, 0], [1, 2], [0, 9]])
    draws, delta = 20_000, 0.5
    splits = np.tile(np.array([0, -1, 0, -1, -1], dtype=np.int16), draws)
    partitions = Partitions(
        splits, 5 * np.arange(draws + 1), np.tile(counts, (draws, 1)), 3 * np.arange(draws + 1), 1
    )
    model = PaperModel(delta, 2.0, 1, (6, 11))
    masses = np.asarray(draw_masses(partitions, model, 1)).reshape(draws, 3, 2)
    np.testing.assert_allclose(masses.sum(axis=1), 1)
    a = delta + counts
    total = a.sum(axis=0)
    expected = a / total
    spread = np.sqrt(expected * (1 - expected) / (total + 1))
    assert (np.abs(masses.mean(axis=0) - expected) < 4 * spread / draws**0.5).all()
    np.testing.assert_allclose(masses.std(axis=0), spread, rtol=0.05)


def test_masses_stay_positive():
    partitions = Partitions(
        np.array([0, -1, -1], dtype=np.int16),
        np.array([0, 3]),
        np.array([[0], [1_000_000]]),
        np.array([0, 2]),
        1,
    )
    masses = draw_masses(partitions, PaperModel(1e-3, 2.0, 1, (1_000_000,)), 0)
    assert (masses > 0).all()


@pytest.mark.parametrize("name", ["chi2", "renyi:2", "kl"])
@pytest.mark.parametrize("model", ["ratio", "paper"])
def test_what_is_shown_exists(model, name):
    """The command line and the monitor read off what `estimate` does, but never refuse."""
    x, y = np.random.default_rng(4).random((2, 80, 1)) ** [[[1.0]], [[1.5]]]
    post = cobpm.compare(x, y, rng=1, draws=100, model=model)
    shown = post.read_out_of(divergences.parse(name, "test"))
    assert np.isfinite(post.estimate(name, read_out=shown))
    if (model, name) == ("paper", "chi2"):
        assert shown == "median"
        with pytest.raises(cobpm.InputError, match="does not exist"):
            post.estimate(name)
    else:
        assert post.estimate(name) == post.estimate(name, read_out=shown)
