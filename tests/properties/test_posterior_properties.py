"""What holds for the posterior of any data."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import cobpm

LARGEST = {"tv": 1.0, "hellinger": 1.0, "squared_hellinger": 1.0, "js": np.log(2)}
few = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)

# Coarse numbers give ties, atoms and constant columns; fine ones give none of these.
coarse = st.integers(-3, 3).map(float)
fine = st.floats(-1e3, 1e3, allow_subnormal=False)


@st.composite
def pairs(draw):
    d = draw(st.integers(1, 3))
    numbers = draw(st.sampled_from([coarse, fine]))
    return tuple(draw(arrays(float, (draw(st.integers(1, 25)), d), elements=numbers)) for _ in "xy")


def compare(x, y, **given):
    return cobpm.compare(x, y, draws=30, rng=1, max_regions=20_000, **given, model="paper")


@few
@given(pairs(), st.sampled_from([None, "ranks"]))
@pytest.mark.filterwarnings("ignore::cobpm.diagnostics.ConvergenceWarning")
def test_any_data(pair, bounds):
    x, y = pair
    post = compare(x, y, bounds=bounds)
    for name in ("kl", "reverse_kl", "tv", "hellinger", "js", "chi2", "renyi:2", "alpha:0.5"):
        drawn = post.draws(name)
        assert not np.isnan(drawn).any()
        assert (drawn >= 0).all()
        assert (drawn <= LARGEST.get(name, np.inf)).all()
    assert (post.draws("tv") ** 2 <= post.draws("kl") / 2 + 1e-12).all()  # Pinsker

    regions = post.regions()
    np.testing.assert_allclose(regions[["mass_x", "mass_y"]].sum(), 1)
    assert list(regions[["points_x", "points_y"]].sum()) == [len(x), len(y)]
    assert not regions.iloc[:, 9:].duplicated().any() or not post.domain.active
    for column in (f"c{j + 1}" for j in post.domain.active):
        assert (regions[f"{column}_low"] <= regions[f"{column}_high"]).all()

    # Densities are positive where points are, and the ratio goes with them.
    ratio = post.log_ratio(x, level=0.5)
    assert np.isfinite(ratio.estimate).all()
    assert (ratio.low <= ratio.high).all()
    assert (post.density(x, "x") > 0).all()


@few
@given(pairs())
@pytest.mark.filterwarnings("ignore::cobpm.diagnostics.ConvergenceWarning")
def test_more_sets_than_two_and_fewer(pair):
    x, y = pair
    three = cobpm.fit({"x": x, "y": y, "z": x}, draws=10, rng=1, max_regions=20_000, model="paper")
    assert three.draws("tv", "x", "z").shape == (10,)
    np.testing.assert_allclose(
        three.draws("kl", "x", "y"), three.draws("reverse_kl", "y", "x"), atol=1e-12
    )
    one = cobpm.fit([x], draws=10, rng=1, max_regions=20_000, model="paper")
    assert one.regions()["mass_1"].sum() == pytest.approx(1)
