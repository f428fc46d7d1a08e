"""Regions grown where partitions go, against all of them."""

import math

import numpy as np
import pytest

import cobpm
from cobpm import _core
from cobpm.engines import growth, ratio
from cobpm.engines.exact import dense_regions
from cobpm.ratio_model import RatioModel
from tests.cases import cells_of


def bump(n, d, rng):
    """A fifth of one set sits in a small box of the first three columns."""
    x, y = rng.random((2, n, d))
    moved = rng.random(n) < 0.2
    y[moved, :3] = 0.25 + 0.25 * y[moved, :3]
    return x, y


def recursion_of(cells, depth):
    model = RatioModel(cells.d, tuple(cells.sizes.tolist()))
    made = _core.Ratio(
        *(cells.codes, cells.sets, len(cells.sizes), depth, model.concentrations, model.stop, 1)
    )
    return made, made.up(1), model


def grown(cells, base, deepest, max_regions=10**6):
    made, before, model = recursion_of(cells, base)
    cut = model.cut_probability(before - model.log_same())
    return made, before, growth.grow(made, cells, base, deepest, cut, max_regions, 1)


@pytest.fixture
def few_columns(monkeypatch):
    """Growth where all regions could be held, to compare with."""
    monkeypatch.setattr(growth, "FROM_COLUMNS", 1)
    monkeypatch.setattr(growth, "FEWEST_POINTS", 2)
    monkeypatch.setattr(growth, "FEWEST_OTHERS", 0)
    monkeypatch.setattr(growth, "REACHED", 1e-12)
    monkeypatch.setattr(growth, "MOST_AT_ONCE", 10**6)


@pytest.mark.parametrize("base", [0, 2, 4])
def test_all_that_is_reached_gives_what_all_regions_give(base, few_columns):
    """Where everything that is reached is grown, the sum is that over all regions."""
    cells = cells_of(bump(150, 3, np.random.default_rng(2)))
    _, _, found = grown(cells, base, 7)
    truth = recursion_of(cells, 7)[1]
    assert found is not None
    assert found[1] == 7
    assert found[0] == pytest.approx(truth, abs=1e-6)
    assert abs(recursion_of(cells, 6)[1] - truth) > 1e-3


def test_what_takes_several_columns_is_found():
    rng = np.random.default_rng(3)
    cells = cells_of(bump(4000, 12, rng))
    made, before, found = grown(cells, 3, 12)
    assert found is not None
    assert found[0] > before + 50
    assert found[0] > recursion_of(cells, 5)[1] + 20
    assert made.size < dense_regions(12, 5)
    # The same again, with as many threads as there are.
    other, _, again = grown(cells, 3, 12)
    assert again == found
    drawn = [r.draw(50, 1, threads)[0][0] for r, threads in ((made, 1), (other, 2))]
    np.testing.assert_array_equal(*drawn)


def test_bounds_are_kept():
    cells = cells_of(bump(2000, 9, np.random.default_rng(4)))
    size = dense_regions(9, 3)
    made, _, found = grown(cells, 3, 12, max_regions=size + 500)
    assert size < made.size <= size + 500
    assert found is not None
    assert grown(cells, 3, 3)[2] is None  # no deeper than asked
    assert grown(cells, 3, 12, max_regions=size)[2] is None
    alone = cells_of([np.random.default_rng(1).random((50, 9))])
    assert grown(alone, 2, 12)[2] is None  # of one set alone there is nothing to tell
    few = cells_of(bump(2000, 7, np.random.default_rng(4)))
    assert grown(few, 3, 12)[2] is None  # all regions go deep enough


@pytest.mark.parametrize(
    ("d", "affordable", "useful", "base"),
    [(3, 8, 10, 8), (10, 5, 5, 5), (20, 4, 5, 3), (20, 3, 5, 3), (20, 2, 5, 2), (60, 1, 5, 1)],
)
def test_base(d, affordable, useful, base):
    assert growth.base(d, affordable, useful) == base


def test_no_evidence_where_there_is_no_difference():
    """The mean over labels of D/L is at most one: regions are grown before it is seen if they pay.

    By Markov's inequality hardly any run may exceed a large factor.
    """
    factors = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(300, 9))
        labels = rng.permutation(300) < 150
        cells = cells_of(
            [np.clip(rows[labels] / 8 + 0.5, 0, 0.999)] * 1
            + [np.clip(rows[~labels] / 8 + 0.5, 0, 0.999)]
        )
        _, before, found = grown(cells, 2, 8)
        after = before if found is None else found[0]
        model = RatioModel(9, (150, 150))
        factors.append(model.log_differs(after - model.log_same()))
    # Conditioned on the sizes the mean is a little off one.
    assert np.mean(np.array(factors) > math.log(20)) < 0.05
    assert np.median(factors) < 0


def test_compare_in_many_columns():
    x, y = bump(3000, 16, np.random.default_rng(5))
    post = cobpm.compare(x, y, rng=1, draws=300, max_regions=400_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growth, "FROM_COLUMNS", 99)
        dense = cobpm.compare(x, y, rng=1, draws=300, max_regions=400_000)
    truth = 0.179
    assert post.log_bayes_factor > dense.log_bayes_factor + 20
    assert abs(post.estimate("kl") - truth) < abs(dense.estimate("kl") - truth)
    assert post.partitions.depths.max() > 4
    assert len(post.regions()) > 1
    assert ratio.depth_for(cells_of([x, y]), 10**7) == 5
