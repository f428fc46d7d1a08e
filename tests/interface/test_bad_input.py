"""Whatever cannot be used is refused: the parameter, the rule, what was seen, and a way out."""

import re

import numpy as np
import pytest

import cobpm
from cobpm.model import improper_because

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(40, 2)), RNG.normal(size=(30, 2))
SHAPE = re.compile(r"^The '.+' parameter of \w+\(\) must .+\. Got .+ instead\.( .+[.?])?$", re.S)


def refusal(call, *args, **kwargs):
    """The message, which has one shape whatever is wrong."""
    with pytest.raises(cobpm.InputError) as caught:
        call(*args, **kwargs)
    message = str(caught.value)
    assert SHAPE.match(message), message
    return message


def with_entry(value):
    sample = Y.copy()
    sample[3, 1] = value
    return sample


@pytest.fixture(scope="module")
def post():
    return cobpm.compare(X, Y, draws=50, rng=1, model="paper")


@pytest.fixture(scope="module")
def three():
    return cobpm.fit({"a": X, "b": Y, "c": Y + 1}, draws=20, rng=1, model="paper")


SAMPLES = [
    (with_entry(np.nan), "1 missing (NaN) of 60 values (column 'c2'; first in row 3)"),
    (with_entry(-np.inf), "1 infinite of 60 values"),
    (np.empty((0, 2)), "0 rows"),
    ([], "at least one point"),
    (np.zeros((4, 3)), "3 columns"),
    (Y[:, 0], "1 column instead"),
    ([["a", "b"]], "text"),
    (np.zeros((4, 2, 2)), "shape (4, 2, 2)"),
    (None, "Got None"),
    (3.0, "Got 3.0"),
    ([[1, 2], [3]], "inhomogeneous"),
    (Y * 1j, "complex"),
    ({"a": [1, 2]}, "sequence of numbers"),
]


@pytest.mark.parametrize(("sample", "words"), SAMPLES)
def test_samples(sample, words):
    assert words in refusal(cobpm.compare, X, sample)
    message = refusal(cobpm.compare, sample, X)
    assert "'x' parameter of compare()" in message or "as many columns as" in message
    # What the user reads is what the user wrote: fit(samples).
    message = refusal(cobpm.fit, [X, sample])
    assert words in message
    assert "'samples[1]' parameter of fit()" in message
    assert "'samples['b']' parameter of fit()" in refusal(cobpm.fit, {"a": X, "b": sample})


@pytest.mark.parametrize("samples", ["abc", X, [], {}, None, {1: X, "1": Y}])
def test_collections_of_samples(samples):
    assert "'samples' parameter of fit()" in refusal(cobpm.fit, samples)


def test_different_or_textual_columns():
    pd = pytest.importorskip("pandas")
    x, y = pd.DataFrame(X, columns=["a", "b"]), pd.DataFrame(Y, columns=["a", "c"])
    message = refusal(cobpm.compare, x, y)
    assert "'c' only in 'y'" in message
    assert "'b' only in 'x'" in message
    assert "'b (String)'" in refusal(cobpm.compare, x.assign(b="text"), x)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((9, -9), "low < high"),
        ((0, 0), "low < high"),
        ((-np.inf, 9), "finite"),
        ((np.nan, 9), "be None, 'ranks', (low, high), 2 such pairs"),
        ((-1, 1), "points of 'x' outside [-1, 1] in column 'c1'"),
        ([(-9, 9)], "2 such pairs"),
        ([(-9, 9)] * 3, "2 such pairs"),
        ((-9, 0, 9), "2 such pairs"),
        ({"q": (0, 1)}, "name columns out of 'c1', 'c2'. Got 'q'"),
        ({"c1": (9, -9)}, "(9, -9) for column 'c1'"),
        ({"c1": 3}, "pairs by column name"),
        ([(None, 1), (0, 1)], "2 such pairs"),
        ([["a", "b"], ["c", "d"]], "2 such pairs"),
        (5, "2 such pairs"),
        ("rank", "Did you mean 'ranks'?"),
    ],
)
def test_bounds(bounds, words):
    assert words in refusal(cobpm.compare, X, Y, bounds=bounds)
    assert words.replace("'x'", "'1'") in refusal(cobpm.fit, [X, Y], bounds=bounds)


@pytest.mark.parametrize("value", [0, -1, np.nan, np.inf, "1", True, [1.0], 0.5 + 0j])
@pytest.mark.parametrize("name", ["delta", "sigma"])
def test_prior_parameters(name, value):
    message = refusal(cobpm.compare, X, Y, model="paper", **{name: value})
    assert f"'{name}' parameter of compare() must be a positive number" in message
    assert "parameter of fit()" in refusal(cobpm.fit, [X, Y], model="paper", **{name: value})


@pytest.mark.parametrize(
    ("sets", "settings"),
    [
        (2, {"delta": 0.3}),
        (2, {"delta": 0.5, "sigma": 0.3}),
        (1, {"delta": 0.5}),
        (1, {"delta": 1.0, "sigma": 0.1}),
        (3, {"delta": 0.2}),
        (3, {"delta": 1 / 3}),
        (3, {"delta": 1 / 3, "sigma": 3.0}),
        (7, {"delta": 0.01}),
    ],
)
def test_improper_settings_come_with_values_that_will_do(sets, settings):
    samples = [X + i for i in range(sets)]
    message = refusal(cobpm.fit, samples, draws=10, model="paper", **settings)
    assert "split for ever" in message
    blamed, advice = re.match(r"The '(\w+)'.*split for ever(.*)", message).groups()
    better = {blamed: float(re.search(rf"{blamed}=(\d+\.?\d*)", advice)[1])}
    settings = {"sigma": 3.0, **settings, **better}
    assert improper_because(settings["delta"], settings["sigma"], 2, sets) is None


@pytest.mark.parametrize("value", [-3, 2.5, "10", np.nan, np.inf, True, 1e30])
@pytest.mark.parametrize("name", ["draws", "burn_in", "chains", "thin", "max_regions"])
def test_counts(name, value):
    assert f"'{name}' parameter of compare()" in refusal(cobpm.compare, X, Y, **{name: value})


@pytest.mark.parametrize("name", ["draws", "chains", "thin"])
def test_none_of_something(name):
    assert "whole number of at least 1. Got 0" in refusal(cobpm.compare, X, Y, **{name: 0})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("engine", "exat", "one of 'auto', 'exact', 'pruned', 'mcmc'. Got 'exat' instead. Did you"),
        ("engine", None, "Got None"),
        ("kernel", "gided", "one of 'cherry', 'guided', 'uniform'. Got 'gided' instead. Did you"),
        ("model", "papers", "Did you mean 'paper'?"),
        ("rng", -1, "non-negative integer"),
        ("rng", "seed", "non-negative integer"),
        ("rng", 1.5, "default_rng(seed)"),
    ],
)
def test_choices(name, value, words):
    assert words in refusal(cobpm.compare, X, Y, **{name: value})
    assert words in refusal(cobpm.fit, [X, Y], **{name: value})


@pytest.mark.parametrize(
    ("divergence", "words"),
    [
        ("kll", "Did you mean 'kl'?"),
        ("", "The names are 'kl', 'reverse_kl'"),
        (None, "a name or a convex function"),
        (3, "a name or a convex function"),
        ("renyi", "'renyi:2'"),
        ("renyi:two", "'renyi:2'"),
        ("renyi:nan", "'renyi:2'"),
        ("renyi:0", "always 0"),
        ("renyi:-1", "ask for 'renyi:2' that way round"),
        ("tsallis:0", "always 0"),
        (lambda t: -t * np.log(t), "convex"),
        (lambda t: t * t, "phi(1) = 0"),
        (lambda t: "text", "array"),
    ],
)
def test_divergences(post, divergence, words):
    for ask in (post.draws, post.estimate, post.interval, post.summary):
        assert words in refusal(ask, divergence)
    assert words in refusal(post.summary, ["kl", divergence])


def test_order_one_is_kl(post):
    np.testing.assert_array_equal(post.draws("renyi:1"), post.draws("kl"))
    # Order −1 as the message says: −½ times order 2, the other way round.
    p, q = (np.asarray(post.masses[:, k]) for k in (0, 1))
    starts = post.partitions.starts
    minus_one = np.log(np.add.reduceat(q**2 / p, starts)) / -2
    np.testing.assert_allclose(minus_one, -0.5 * post.draws("renyi:2", "y", "x"))


@pytest.mark.parametrize("level", [0, 1, -1, 90, 1.5, np.nan, "0.9", None, True])
def test_levels(post, level):
    asks = [
        lambda: post.interval("kl", level),
        lambda: post.summary(level=level),
        lambda: post.regions(level=level),
    ]
    if level is not None:  # there, None asks for no interval
        asks += [
            lambda: post.log_ratio(X, level=level),
            lambda: post.density(X, "x", level=level),
        ]
    for ask in asks:
        message = refusal(ask)
        assert "between 0 and 1" in message
        assert ("Did you mean 0.9?" in message) == (level == 90)


def test_names_of_sets(post, three):
    assert "Got 'z' instead. The sets are 'x', 'y'" in refusal(post.draws, "kl", "x", "z")
    assert "'second' parameter" in refusal(post.draws, "kl", "x")
    assert "another set than the first" in refusal(post.draws, "kl", "x", "x")
    for ask in (three.draws, three.estimate, three.interval):
        assert "The sets are 'a', 'b', 'c'" in refusal(ask, "kl")
    for ask in (three.summary, three.regions, lambda: three.log_ratio(X)):
        assert "first='a'" in refusal(ask)
    assert "which='x'" in refusal(post.density, X)
    assert "Got 'q'" in refusal(post.density, X, "q")
    alone = cobpm.fit([X], draws=5, rng=1, model="paper")
    for ask in (lambda: alone.draws("kl"), alone.summary, lambda: alone.log_ratio(X)):
        assert "single set '1'" in refusal(ask)


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (X[:, :1], "1 column instead"),
        (np.zeros(3), "1 column instead"),
        (np.zeros((2, 2, 2)), "shape (2, 2, 2)"),
        ([[np.nan, 0.0]], "1 missing"),
        ([["a", "b"]], "text"),
        (np.empty((0, 2)), "at least one point"),
    ],
)
def test_points(post, points, words):
    assert words in refusal(post.log_ratio, points)
    assert words in refusal(post.density, points, "x")


def test_read_outs(post):
    assert "'mean', 'median', 'plug'" in refusal(post.estimate, "kl", read_out="mode")
    message = refusal(post.estimate, "chi2")
    assert "does not exist with delta=0.5" in message
    assert "unless delta is above 1" in message
    assert "read_out='median'" in message
