"""The choice between engines, and what bounds their work."""

import numpy as np
import pytest

import cobpm
from cobpm import _core
from cobpm.diagnostics import ConvergenceWarning
from cobpm.engines import exact
from tests.cases import beta_mixtures, cells_of


@pytest.mark.parametrize(("d", "depth"), [(1, 5), (2, 4), (3, 3), (7, 2), (0, 3)])
def test_dense_regions_are_counted_before_they_are_made(d, depth):
    cells = cells_of([np.random.default_rng(0).random((5, d)) for _ in range(2)])
    made = _core.Exact(cells.codes, cells.sets, 2, depth, np.zeros(9), 1)
    assert made.size == exact.dense_regions(d, depth)


def test_deepest_depth_respects_both_budgets(monkeypatch):
    cells = cells_of([np.random.default_rng(0).random((500, 3))])
    depth = exact.deepest_within(cells, 1000)
    assert exact.dense_regions(3, depth) <= 1000 < exact.dense_regions(3, depth + 1)
    monkeypatch.setattr(exact, "MOST_VISITS", 500 * 10)  # ten passes over the points
    assert exact.deepest_within(cells, 10**9) == 3  # C(5, 3) = 10 level vectors of depth 3


@pytest.mark.parametrize(
    ("made", "depth", "expected"),
    [
        ([3000, 1000, 100], 3, 0.1 * 0.1),
        ([1000, 1000, 1000], 3, 1.0),  # no decay: as much again
        ([1000], 3, 0.0),  # nothing near the end
        ([3000, 1000, 100, 10], 3, 0.01 * 0.1),  # grown below the dense part
    ],
)
def test_what_deeper_regions_would_add(made, depth, expected):
    assert exact.expected_beyond(np.array(made), depth, 1000) == pytest.approx(expected)


def test_auto_is_exact_where_that_reaches_far_enough():
    x, y = beta_mixtures(200, np.random.default_rng(1))
    post = cobpm.compare(x, y, rng=1, draws=200, model="paper")
    assert post.report.engine == "exact"
    assert post.report.left_out < exact.NEGLIGIBLE
    assert "within the budget" in post.report.reason


def test_auto_turns_to_pruned_when_the_budget_is_short():
    x, y = beta_mixtures(200, np.random.default_rng(1))
    post = cobpm.compare(x, y, rng=1, draws=200, max_regions=2000, model="paper")
    assert post.report.engine == "pruned"
    assert post.report.regions <= 2000
    assert "splits per draw would be missing" in post.report.reason


def test_exact_says_what_it_misses():
    x, y = beta_mixtures(200, np.random.default_rng(1))
    with pytest.warns(ConvergenceWarning, match="splits per draw are missing"):
        post = cobpm.compare(
            x, y, rng=1, draws=200, max_regions=1000, engine="exact", model="paper"
        )
    assert post.report.left_out > 5 * exact.NEGLIGIBLE


def test_crowded_points_are_followed_to_the_end_of_the_grid():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=300), rng.normal(size=300) + 1
    far = np.concatenate([x, [1e12]])
    post = cobpm.compare(far, y, rng=1, draws=500, model="paper")
    assert post.report.engine == "exact"
    assert post.report.left_out == 0.0  # every region with two points or more is in the recursion
    # All but one of the points lie in 2^-37 of the range, and are told apart there.
    assert post.partitions.depths.max() > 37
    assert post.estimate("tv") > 0.2


def test_recursion_refuses_to_draw_when_it_is_out_of_date():
    cells = cells_of([np.random.default_rng(0).random((30, 2))])
    made = _core.Exact(cells.codes, cells.sets, 1, 1, np.zeros(40), 1)
    made.up(-5.0, 1)
    made.expand(made.frontier(), 1)
    with pytest.raises(RuntimeError, match="run up"):
        made.draw(np.array([1.0]), 0, 1, 1, 1)


@pytest.mark.parametrize("engine", ["exact", "pruned", "mcmc"])
@pytest.mark.parametrize("kernel", ["cherry", "guided", "uniform"])
def test_no_column_to_split_along(engine, kernel):
    post = cobpm.compare(
        [1.0, 1.0, 1.0], [1.0, 1.0], engine=engine, kernel=kernel, draws=400, rng=1, model="paper"
    )
    assert (post.leaves == 1).all()
    assert post.estimate("kl") == 0.0
    if engine == "exact":
        assert post.log_evidence == pytest.approx(0.0, abs=1e-12)


def test_prior_that_expects_thousands_of_cells_is_refused():
    rng = np.random.default_rng(3)
    x, y = rng.random((5, 3)), rng.random((5, 3))
    with pytest.raises(cobpm.InputError, match="the prior expects"):
        cobpm.compare(x, y, delta=0.6, sigma=0.5, model="paper")
    post = cobpm.compare(x, y, delta=0.6, sigma=1.5, draws=50, rng=1, model="paper")
    assert post.leaf_probabilities[-1] < 1e-6


def test_one_run_cannot_vouch_for_itself():
    x, y = beta_mixtures(60, np.random.default_rng(5))
    with pytest.warns(ConvergenceWarning, match="chains=1"):
        cobpm.compare(x, y, engine="pruned", chains=1, draws=50, rng=1, model="paper")
