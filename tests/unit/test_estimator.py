"""The classifier: what it promises, and what scikit-learn asks of every estimator."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.utils.estimator_checks import parametrize_with_checks

import cobpm
from cobpm import CoBPM
from tests.unit.test_mean_density import by_partition

EXPECTED_TO_FAIL: dict[str, str] = {}  # name of a check: why it cannot be met

RNG = np.random.default_rng(11)
X = np.vstack([RNG.normal(m, 1, (200 + 100 * k, 2)) for k, m in enumerate((0.0, 1.5, 3.0))])
Y = np.repeat(["north", "south", "west"], (200, 300, 400))
GRID = np.stack(np.meshgrid(np.linspace(-2, 5, 15), np.linspace(-2, 5, 15))).reshape(2, -1).T


@parametrize_with_checks(
    [CoBPM(draws=200)], expected_failed_checks=lambda estimator: EXPECTED_TO_FAIL
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def model():
    return CoBPM(random_state=1, draws=500).fit(X, Y)


def test_probabilities_are_those_of_the_posterior(model):
    post = model.posterior_
    joint = by_partition(post, post.frames[0].codes(GRID)) * [2 / 9, 3 / 9, 4 / 9]
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(GRID), expected, rtol=1e-10)
    np.testing.assert_allclose(model.predict_log_proba(GRID), np.log(expected), rtol=1e-9)
    np.testing.assert_array_equal(model.decision_function(GRID), model.predict_log_proba(GRID))
    assert set(model.predict(GRID)) == {"north", "south", "west"}
    np.testing.assert_array_equal(model.predict(GRID), model.classes_[expected.argmax(axis=1)])


def test_densities_are_those_of_the_posterior_up_to_noise(model):
    inside = GRID[model.posterior_.domain.inside(GRID)]
    post = model.posterior_
    # Posterior.density averages over draws of the masses, too.
    leaf = post.partitions.locate(post.frames[0].codes(inside))
    for k, name in enumerate(post.names):
        alone = CoBPM(random_state=1, draws=500, priors=np.eye(3)[k]).fit(X, Y)
        relative = post.masses[leaf, k] / post.masses[leaf, k].mean(axis=0)
        error = relative.std(axis=0) / 500**0.5
        ratio = np.exp(alone.score_samples(inside)) / post.density(inside, name)
        assert (np.abs(ratio - 1) < 5 * error).all()


def test_fit_is_that_of_the_library(model):
    sets = {name: X[name == Y] for name in np.unique(Y)}
    post = cobpm.fit(sets, rng=1, draws=500, model="paper")
    np.testing.assert_array_equal(model.posterior_.masses, post.masses)
    assert model.posterior_.names == ("north", "south", "west")


def test_known_probabilities():
    # Two densities with a step in the middle: P(a | x) is 8/11 on the left and 2/9 on the right.
    n = 20_000
    rng = np.random.default_rng(5)
    below = rng.random((2, n)) < [[0.8], [0.3]]
    x = (rng.random((2, n)) / 2 + np.where(below, 0.0, 0.5)).reshape(-1, 1)
    model = CoBPM(bounds=(0, 1), random_state=0, draws=1000).fit(x, np.repeat(["a", "b"], n))
    found = model.predict_proba([[0.1], [0.4], [0.6], [0.9]])[:, 0]
    truth = np.repeat([8 / 11, 2 / 9], 2)
    # The log odds are the difference of the logs of two binomial shares.
    error = np.sqrt(np.repeat([0.2 / 0.8 + 0.7 / 0.3, 0.8 / 0.2 + 0.3 / 0.7], 2) / n)
    assert (np.abs(found - truth) < 4 * truth * (1 - truth) * error).all()
    assert (np.abs(found - truth) > 0).all()


def test_it_learns():
    x, y = make_moons(2000, noise=0.2, random_state=0)
    model = CoBPM(random_state=0, draws=300).fit(x[:1000], y[:1000])
    assert model.score(x[1000:], y[1000:]) > 0.93
    held_out = model.predict_proba(x[1000:])[np.arange(1000), y[1000:]]
    assert -np.log(held_out).mean() < 0.25  # a fair coin has 0.69


def test_priors(model):
    priors = np.array([0.7, 0.2, 0.1])
    other = CoBPM(random_state=1, draws=500, priors=priors).fit(X, Y)
    np.testing.assert_allclose(model.priors_, [2 / 9, 3 / 9, 4 / 9])
    np.testing.assert_array_equal(other.priors_, priors)
    odds = other.predict_proba(GRID) / model.predict_proba(GRID) * model.priors_ / priors
    np.testing.assert_allclose(odds, np.repeat(odds[:, :1], 3, axis=1), rtol=1e-10)
    never = CoBPM(random_state=1, draws=100, priors=[0.5, 0.5, 0]).fit(X, Y)
    assert (never.predict_proba(GRID)[:, 2] == 0).all()
    assert np.isneginf(never.predict_log_proba(GRID)[:, 2]).all()


@pytest.mark.parametrize("priors", [[1.0], [0.5, 0.5, 0.5], [1.5, -0.5, 0], 1.0, ["a", "b", "c"]])
def test_priors_that_are_none(priors):
    with pytest.raises(cobpm.InputError, match="hold 3 probabilities that sum to 1"):
        CoBPM(priors=priors).fit(X, Y)


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({"draws": 0}, "draws"),
        ({"engine": "exakt"}, "engine"),
        ({"delta": -1}, "delta"),
        ({"sigma": "x"}, "sigma"),
        ({"bounds": (0, 1)}, "bounds"),
        ({"max_regions": 1}, "max_regions"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_settings_are_checked_when_fitting(settings, parameter):
    model = CoBPM(**settings)  # stored as given
    assert model.get_params()[parameter] == settings[parameter]
    with pytest.raises(cobpm.InputError, match=f"'{parameter}' parameter"):
        model.fit(X, Y)


def test_two_classes_have_log_odds():
    two = Y != "west"
    model = CoBPM(random_state=1, draws=100).fit(X[two], Y[two])
    logs = model.predict_log_proba(GRID)
    np.testing.assert_allclose(model.decision_function(GRID), logs[:, 1] - logs[:, 0])


def test_outside_the_domain(model):
    low, high = X.min(axis=0), X.max(axis=0)
    far = np.array([[1e6, 0.0], [-1e6, -1e6], high + 0.1])
    np.testing.assert_array_equal(
        model.predict_proba(far), model.predict_proba(np.clip(far, low, high))
    )
    assert np.isneginf(model.score_samples(far)).all()
    assert np.isfinite(model.score_samples(X)).all()
    roomy = CoBPM(random_state=1, draws=100, bounds=(-10, 20)).fit(X, Y)
    outside = roomy.score_samples([[18.0, 18.0], [high[0] + 0.1, high[1] + 0.1]])
    assert (outside < np.quantile(roomy.score_samples(X), 0.01)).all()
    assert np.isfinite(outside).all()


def test_log_density_of_all_classes():
    model = CoBPM(random_state=1, draws=100, bounds=(-4, 8)).fit(X, Y)
    middles = -4 + 12 * (np.arange(256) + 0.5) / 256
    grid = np.stack(np.meshgrid(middles, middles)).reshape(2, -1).T
    assert np.exp(model.score_samples(grid)).mean() * 144 == pytest.approx(1, abs=1e-3)
    assert model.score_samples([[1.5, 1.5]]) > model.score_samples([[1.5, 6.5]])


def test_repeated_values():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    x = np.column_stack([rng.random(2000) < np.where(y, 0.8, 0.3), rng.random(2000)])
    model = CoBPM(random_state=0, draws=200, bounds={"c2": (0, 1)}).fit(x, y)
    share = [(x[y == k, 0]).mean() for k in (0, 1)]
    found = model.predict_proba([[1.0, 0.5]])[0, 1]
    assert found == pytest.approx(share[1] / (share[0] + share[1]), abs=0.05)
    # A probability in the first column, a density in the second, which is uniform.
    at_one = np.exp(model.score_samples([[1.0, 0.5]])).item()
    assert at_one == pytest.approx(x[:, 0].mean(), abs=0.05)


def test_random_state(model):
    def found(random_state):
        fitted = CoBPM(draws=100, random_state=random_state).fit(X, Y)
        return fitted.predict_proba(GRID)

    np.testing.assert_array_equal(found(3), found(3))
    np.testing.assert_array_equal(found(3), found(np.random.default_rng(3)))
    state = np.random.RandomState
    np.testing.assert_array_equal(found(state(3)), found(state(3)))
    assert (found(3) != found(4)).any()
    assert (found(state(3)) != found(state(4))).any()
    assert (found(None) != found(None)).any()


def test_copies(model):
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(GRID), model.predict_proba(GRID))
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "classes_")
    np.testing.assert_array_equal(fresh.fit(X, Y).predict_proba(GRID), model.predict_proba(GRID))


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda x, columns: pl.DataFrame(x, columns)])
def test_data_frames(frame, model):
    table = frame(X, columns=["height", "weight"])
    named = CoBPM(random_state=1, draws=500, bounds={"weight": (-10, 20)}).fit(table, Y)
    assert list(named.feature_names_in_) == ["height", "weight"]
    assert named.posterior_.columns == ("height", "weight")
    regions = named.posterior_.regions(first="north", second="west")
    assert {"height_low", "weight_high"} <= set(regions.columns)
    other = frame(X, columns=["weight", "height"])
    with pytest.raises(ValueError, match="feature names"):
        named.predict(other)
    plain = CoBPM(random_state=1, draws=500).fit(table, Y)
    np.testing.assert_array_equal(plain.predict_proba(table), model.predict_proba(X))


def test_labels_of_any_kind(model):
    for labels in (Y.astype(object), pd.Series(Y), pd.Series(Y, dtype="category")):
        fitted = CoBPM(random_state=1, draws=500).fit(X, labels)
        np.testing.assert_array_equal(fitted.predict_proba(GRID), model.predict_proba(GRID))
    truth = CoBPM(random_state=1, draws=50).fit(X, Y == "west")
    assert truth.predict(GRID).dtype == bool
    whole = CoBPM(random_state=1, draws=50).fit(X, np.repeat([-2.0, 10.0, 9.0], (200, 300, 400)))
    assert whole.classes_.tolist() == [-2.0, 9.0, 10.0]
    with pytest.raises(ValueError, match="continuous"):
        CoBPM().fit(X, X[:, 0])


def test_one_class():
    model = CoBPM(random_state=0, draws=100).fit(X, ["all"] * len(X))
    assert set(model.predict(GRID)) == {"all"}
    assert (model.predict_proba(GRID) == 1).all()
    assert model.decision_function(GRID).shape == (len(GRID), 1)
    assert model.score_samples([[1.5, 1.5]]) > model.score_samples([[-1.0, 3.5]])


def test_many_classes():
    rng = np.random.default_rng(2)
    centres = np.stack(np.meshgrid(np.arange(15), np.arange(14))).reshape(2, -1).T[:200]
    y = np.repeat([f"class {k}" for k in range(200)], 30)
    x = np.repeat(centres, 30, axis=0) + rng.normal(0, 0.15, (6000, 2))
    new = centres + rng.normal(0, 0.15, (200, 2))
    model = CoBPM(random_state=0, draws=50, delta=0.3).fit(x, y)
    assert model.predict_proba(new).shape == (200, 200)
    assert (model.predict(new) == y[::30]).mean() > 0.7  # by chance 0.005


def test_a_class_of_one_point():
    model = CoBPM(random_state=0, draws=100).fit(X[:301], np.repeat(["many", "one"], (300, 1)))
    assert np.isfinite(model.predict_log_proba(GRID)).all()


def test_without_scikit_learn():
    script = """
import sys
sys.modules["sklearn"] = None
import cobpm
cobpm.compare([1.0, 2.0], [2.0, 3.0], rng=1, draws=10)
try:
    cobpm.CoBPM
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install cobpm[sklearn]" in done.stdout, done.stderr


def test_what_it_refuses():
    holes = X.copy()
    holes[3, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        CoBPM().fit(holes, Y)
    with pytest.raises(ValueError, match="contains NaN"):
        CoBPM(draws=10).fit(X, Y).predict(holes)
    with pytest.raises(TypeError, match="sample_weight"):
        CoBPM().fit(X, Y, sample_weight=np.ones(len(X)))
