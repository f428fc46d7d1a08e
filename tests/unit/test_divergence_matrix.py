"""All pairs by matrix products equal the formula for a single pair."""

import numpy as np
import pytest

from cobpm.divergence_matrix import divergence_matrix
from cobpm.divergences import parse

NAMES = [
    *("tv", "hellinger", "squared_hellinger", "kl", "reverse_kl", "jeffreys", "js", "chi2"),
    *("renyi:0.5", "renyi:2", "renyi:0.9999", "renyi:30", "renyi:inf"),
    *("tsallis:0.5", "tsallis:3", "alpha:0.5", "alpha:-1.5", "alpha:1.0001"),
]


def masses(rng, cells, sets, concentration=1.0):
    return rng.dirichlet(np.full(cells, concentration), size=sets).T + 1e-300


def one_by_one(divergence, p, q):
    starts = np.array([0])
    return np.array(
        [[divergence.of_masses(a.copy(), b.copy(), starts)[0] for b in q.T] for a in p.T]
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("concentration", [0.05, 0.5, 20.0, 1e6])
def test_products_equal_the_formula(name, concentration):
    rng = np.random.default_rng([len(name), int(concentration * 100)])
    divergence = parse(name, "test")
    p, q = masses(rng, 17, 5, concentration), masses(rng, 17, 4, concentration)
    found = divergence_matrix(divergence, p, q)
    np.testing.assert_allclose(found, one_by_one(divergence, p, q), rtol=1e-6, atol=1e-13)
    assert found.shape == (5, 4)
    assert (found >= 0).all()


def test_functions_of_the_user():
    rng = np.random.default_rng(5)
    p, q = masses(rng, 9, 3), masses(rng, 9, 6)
    neyman = parse(lambda t: (t - 1) ** 2, "test")
    np.testing.assert_allclose(divergence_matrix(neyman, p, q), one_by_one(neyman, p, q))
    there, back = (divergence_matrix(parse("chi2", "test"), *pair) for pair in ((p, q), (q, p)))
    np.testing.assert_allclose(divergence_matrix(neyman, p, q), back.T)
    assert not np.allclose(there, back.T)


@pytest.mark.parametrize("name", NAMES)
def test_equal_sets_are_at_zero(name):
    rng = np.random.default_rng(1)
    p = masses(rng, 30, 4, 3.0)
    found = divergence_matrix(parse(name, "test"), p, p)
    np.testing.assert_allclose(np.diag(found), 0.0, atol=1e-6)
    single = np.ones((1, 3))  # a partition into one cell tells no sets apart
    np.testing.assert_array_equal(divergence_matrix(parse(name, "test"), single, single), 0.0)


@pytest.mark.parametrize("name", ["kl", "hellinger", "renyi:0.5", "renyi:2", "chi2"])
def test_nearly_equal_sets_keep_their_digits(name):
    rng = np.random.default_rng(2)
    p = masses(rng, 12, 1, 5.0)
    q = p * (1 + 1e-6 * rng.normal(size=p.shape))
    q /= q.sum()
    divergence = parse(name, "test")
    expected = one_by_one(divergence, p, q)
    np.testing.assert_allclose(divergence_matrix(divergence, p, q), expected, rtol=1e-6)
    assert expected > 1e-13  # the product alone has no digit left there
