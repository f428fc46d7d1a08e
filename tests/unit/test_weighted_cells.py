"""Rows that stand for many points: the same answers as from the points themselves."""

from dataclasses import replace

import numpy as np
import pytest

from cobpm import _core, engines
from cobpm.cells import Cells
from cobpm.engines import Plan
from cobpm.model import PaperModel
from cobpm.ratio_model import RatioModel

PLAN = Plan(
    draws=200,
    burn_in=20,
    chains=2,
    thin=None,
    kernel="cherry",
    seed=3,
    threads=1,
    max_regions=100_000,
    progress=None,
)
BITS = (3, 5)


def points(seed=1, sizes=(300, 200)):
    """Points on a coarse grid, with and without repetitions pooled."""
    rng = np.random.default_rng(seed)
    sets = np.repeat(np.arange(2, dtype=np.uint16), sizes)
    coarse = np.stack([(rng.beta(2 + sets, 3) * 2**bits).astype(np.uint64) for bits in BITS])
    codes = coarse << np.array([[52 - bits] for bits in BITS], dtype=np.uint64)
    one = Cells(
        codes, sets, np.array(sizes), np.ones(len(sets), np.uint32), np.array(BITS, np.uint8)
    )
    rows, counts = np.unique(np.vstack([codes, sets]), axis=1, return_counts=True)
    pooled = replace(
        one,
        codes=np.ascontiguousarray(rows[:2]),
        sets=rows[2].astype(np.uint16),
        weights=counts.astype(np.uint32),
    )
    assert pooled.rows < one.rows
    assert pooled.n == one.n == sum(sizes)
    return one, pooled


def assert_same(a, b):
    for name in ("splits", "node_starts", "counts", "leaf_starts"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("engine", ["exact", "mcmc", "pruned"])
@pytest.mark.filterwarnings("ignore::cobpm.diagnostics.ConvergenceWarning")
def test_the_papers_posterior(engine):
    one, pooled = points()
    model = PaperModel(0.5, 3.0, 2, (300, 200))
    a, b = (engines.run(cells, model, engine, PLAN) for cells in (one, pooled))
    assert_same(a.partitions, b.partitions)
    assert a.log_evidence == b.log_evidence


def test_counts_beyond_the_table(monkeypatch):
    _, pooled = points()
    model = PaperModel(0.7, 3.0, 2, (300, 200))
    long = engines.run(pooled, model, "exact", PLAN)
    monkeypatch.setattr("cobpm.model.MOST_TABLED", 5)
    assert len(model.log_gamma()) == 5
    short = engines.run(pooled, model, "exact", PLAN)
    assert short.log_evidence == pytest.approx(long.log_evidence, rel=1e-13)
    assert_same(long.partitions, short.partitions)


def ratio(cells, depth=9):
    model = RatioModel(2, (300, 200))
    found = _core.Ratio(
        cells.codes,
        cells.sets,
        2,
        depth,
        model.concentrations,
        model.stop,
        1,
        None,
        cells.weights,
        cells.resolution,
    )
    return found.up(1), found


def test_the_ratio_model():
    one, pooled = points()
    (log_one, a), (log_pooled, b) = ratio(one), ratio(pooled)
    assert log_one == log_pooled
    for x, y in zip(a.draw(100, 5, 1)[0], b.draw(100, 5, 1)[0], strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(a.counts(), b.counts())
    grown = np.concatenate([a.frontier(), a.frontier()])
    a.expand(grown, 1)
    b.expand(grown, 1)
    np.testing.assert_array_equal(a.counts(), b.counts())


def test_no_cut_is_finer_than_the_grid():
    one, _ = points()
    _, found = ratio(one)
    splits = found.draw(300, 1, 1)[0][0]
    # No path from the root holds a column more often than it has bits. Preorder: walk it.
    deepest = np.zeros(2, dtype=int)
    path = [np.zeros(2, dtype=int)]
    for split in splits:
        here = path.pop()
        deepest = np.maximum(deepest, here)
        if split >= 0:
            below = here + (np.arange(2) == split)
            path += [below, below]
        if not path:
            path = [np.zeros(2, dtype=int)]
    assert (deepest <= BITS).all()
    assert deepest[0] == BITS[0]  # the limit is reached, so that it was tested
    # Without the limit it is passed.
    _, free = ratio(replace(one, resolution=None))
    assert free.up(1) != found.up(1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.ones(3, np.uint32)}, "differ in length"),
        ({"weights": np.zeros(500, np.uint32)}, "a weight is zero"),
        ({"weights": np.full(500, 2**31, np.uint32)}, "more points than can be counted"),
        ({"resolution": np.array([3], np.uint8)}, "a resolution is needed for each column"),
        ({"resolution": np.array([3, 53], np.uint8)}, "finer than the grid"),
    ],
)
def test_what_the_core_refuses(change, message):
    one, _ = points()
    with pytest.raises(ValueError, match=message):
        ratio(replace(one, **change))
