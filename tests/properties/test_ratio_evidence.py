"""The evidence of the ratio model for sets of any sizes, against plain logarithms in Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cobpm import _core
from cobpm.ratio_model import RatioModel
from tests.cases import cells_of
from tests.oracles.ratio import log_evidence

STOP = 1 / 3


def of_core(sets, weights, concentrations, depth):
    cells = cells_of(sets)
    counted = None if weights is None else np.concatenate(weights).astype(np.uint32)
    recursion = _core.Ratio(
        *(cells.codes, cells.sets, len(sets), depth, np.asarray(concentrations), STOP, 1),
        *(None, counted),
    )
    return recursion.up(1), recursion


def check(sets, depth, weights=None):
    sizes = [len(rows) for rows in sets] if weights is None else [int(w.sum()) for w in weights]
    model = RatioModel(sets[0].shape[1], tuple(sizes))
    concentrations = model.concentrations.tolist()
    expected = log_evidence(tuple(sets), weights, concentrations, STOP, depth)
    found, recursion = of_core(sets, weights, concentrations, depth)
    # Gamma functions of huge numbers lose digits to the size of their logarithms.
    assert found == pytest.approx(expected, rel=1e-11, abs=1e-8 + 1e-14 * sum(sizes))
    _, counts, probabilities, singles, _ = recursion.leaves(0.0)
    assert np.isfinite(probabilities).all()
    assert probabilities @ counts.sum(axis=1) + singles.sum() == pytest.approx(sum(sizes))
    packed, _ = recursion.draw(20, 1, 1)
    assert len(packed[1]) == 20


@pytest.mark.parametrize("depth", [0, 1, 6, 12])
@pytest.mark.parametrize("sizes", [(5, 5000), (1, 1000), (30, 20_000), (200, 8000), (64, 3000)])
@pytest.mark.parametrize("law", ["same", "apart", "one place"])
def test_very_unequal_sizes(sizes, depth, law):
    rng = np.random.default_rng(sizes)
    sets = [rng.random((n, 1)) for n in sizes]
    if law == "apart":  # the smaller set alone in a corner
        sets = [sets[0] / 64, 0.1 + 0.9 * sets[1]]
    if law == "one place":
        sets = [np.full_like(rows, 0.3) for rows in sets]
    check(sets, depth)


@pytest.mark.parametrize("small", ["alike", "tiny"])
@pytest.mark.parametrize("sets", [3, 13, 60, 300])
def test_many_sets_of_one_law(sets, small):
    rng = np.random.default_rng(sets)
    sizes = np.full(sets, 200)
    if small == "tiny":
        sizes[::2] = 2
    check([rng.random((n, 1)) for n in sizes], 5)


@pytest.mark.parametrize("heavy", [10**3, 10**6, 10**9])
@pytest.mark.parametrize("depth", [0, 3, 9])
def test_points_that_stand_for_many(heavy, depth):
    rng = np.random.default_rng(depth)
    sets = [rng.random((40, 2)), rng.random((30, 2)) ** 2]
    weights = (rng.integers(1, 9, 40), rng.integers(heavy // 100, heavy // 9, 30))
    check(sets, min(depth, 6), weights)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(1, 400), min_size=2, max_size=6),
    st.integers(1, 3),
    st.integers(0, 5),
    st.sampled_from([1, 50, 10**4, 10**6]),
    st.sampled_from([1, 4, 64, 2**20]),
    st.integers(0, 10**6),
)
def test_any_sizes(sizes, d, depth, heaviest, places, seed):
    """Up to six sets; `places` of 1 puts all points into one, a few make ties."""
    rng = np.random.default_rng(seed)
    sets = [rng.integers(0, places, (n, d)) / places for n in sizes]
    sets = [rows ** rng.uniform(0.5, 3) for rows in sets]
    weights = None
    if heaviest > 1:
        weights = tuple(rng.integers(1, rng.integers(2, heaviest + 1), n) for n in sizes)
    check(sets, depth, weights)


@pytest.mark.parametrize("depth", [6, 9])
def test_given_labels_of_very_unequal_sets(depth):
    """Labels that are handed over have the evidence they have when they are the points' own."""
    rng = np.random.default_rng(1)
    rows = np.sort(rng.random((5000, 1)), axis=0)
    model = RatioModel(1, (60, 4940))
    labels = np.ones((8, 5000), dtype=np.uint16)
    labels[0, :60] = 0  # all in a corner
    for lane in range(1, 8):
        labels[lane, rng.choice(5000, 60, replace=False)] = 0
    given_labels = np.ascontiguousarray((labels == 0).T[np.newaxis].astype(np.uint32))
    cells = cells_of([rows[:60], rows[60:]])
    recursions = [
        _core.Ratio(cells.codes, one, 2, depth, model.concentrations, STOP, 1) for one in labels
    ]
    found = recursions[0].given(given_labels, 1)
    expected = [recursion.up(1) for recursion in recursions]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert expected[0] > max(expected[1:]) + 100
