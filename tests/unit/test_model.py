"""The paper's equations, and the settings under which they have a posterior."""

import numpy as np
import pytest
from scipy.special import gammaln

from cobpm.model import PaperModel, improper_because
from tests.oracles import enumeration


def test_leaf_and_size_terms_are_the_oracle_s():
    model = PaperModel(0.7, 2.5, 2, (9, 4))
    counts = np.array([[3, 0], [6, 4]])
    depths = np.array([2, 5])
    expected = [enumeration.leaf_log_weight(c, m, 0.7) for c, m in zip(counts, depths, strict=True)]
    assert model.log_leaf(counts, depths) == pytest.approx(expected, rel=1e-12)
    sizes = [enumeration.size_log_term(leaves, (9, 4), 0.7, 2.5) for leaves in (1, 2, 7)]
    assert model.log_size(np.array([1.0, 2.0, 7.0])) == pytest.approx(sizes, rel=1e-12)


def test_price_is_the_ratio_of_neighbouring_size_terms():
    model = PaperModel(0.5, 3.0, 2, (5, 6))
    price = model.log_price(10)
    for leaves in range(1, 10):
        now, then = model.log_size(np.array([leaves, leaves + 1.0]))
        assert price[leaves] == pytest.approx(then - now, rel=1e-12)


def test_tilt_is_the_slope_of_the_leaf_term():
    model = PaperModel(0.5, 4.0, 3, (500, 700))

    def term(leaves):
        return float(model.log_size(np.array(leaves)) + gammaln(leaves))

    slope = (term(40.001) - term(39.999)) / 0.002
    assert model.log_tilt(40.0) == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize(("d", "sets", "delta", "sigma"), [(1, 2, 0.5, 2.0), (3, 2, 0.8, 4.0)])
def test_prior_is_the_oracle_s(d, sets, delta, sigma):
    model = PaperModel(delta, sigma, d, (0,) * sets)
    found = model.prior_leaf_probabilities()
    for leaves in (1, 2, 5, 20):
        expected = np.exp(enumeration.prior_leaf_log_probability(leaves, d, sets, delta, sigma))
        got = found[leaves - 1] if leaves <= len(found) else 0.0
        assert got == pytest.approx(expected, rel=1e-9, abs=1e-18)


@pytest.mark.parametrize("sets", [1, 2, 3, 7, 30])
@pytest.mark.parametrize("d", [1, 3, 12])
@pytest.mark.parametrize(("delta", "sigma"), [(0.01, 2.0), (0.01, 0.1), (None, 0.1)])
def test_what_would_do_does(sets, d, delta, sigma):
    delta = 1 / sets if delta is None else delta
    problem = improper_because(delta, sigma, d, sets)
    while problem is not None:
        parameter, way_out = problem
        value = float(way_out.split(f"{parameter}=")[1].split()[0])
        before = delta if parameter == "delta" else sigma
        assert value > before
        delta, sigma = (value, sigma) if parameter == "delta" else (delta, value)
        problem = improper_because(delta, sigma, d, sets)
        assert problem is None


def test_paper_s_settings_are_proper_in_any_dimension():
    assert all(improper_because(0.5, d + 1.0, d, 2) is None for d in range(1, 200))
    assert improper_because(0.5, 1.0, 1, 2)[0] == "sigma"  # below ln(2π)
    assert improper_because(0.49, 50.0, 1, 2)[0] == "delta"
