"""What travels between processes is small and exact."""

import pickle

import numpy as np
import pytest

from cobpm import Grid, GridBuilder, Sketch, SketchBuilder
from cobpm.grid_builder import MOST_BINS


def rows(n=5000, d=2, seed=1):
    return np.random.default_rng(seed).normal(size=(n, d)).round(4)


def copied(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("by_bounds", [True, False])
def test_grid(by_bounds):
    builder = GridBuilder(["a", "b"]).add(rows())
    grid = Grid.from_bounds(["a", "b"], (-3, 4)) if by_bounds else builder.grid()
    before = len(pickle.dumps(grid))
    assert copied(grid) == grid  # which works out the cuts
    assert len(pickle.dumps(grid)) == before
    assert before < (2_000 if by_bounds else 60_000)
    for mine, theirs in zip(copied(grid).cuts, grid.cuts, strict=True):
        assert mine.tobytes() == theirs.tobytes()


def test_sketch():
    sketch = Sketch.of({"x": rows(), "y": rows(seed=2)}, max_cells=3000)
    assert copied(sketch) == sketch
    assert copied(sketch).sets["x"].keys.tobytes() == sketch.sets["x"].keys.tobytes()
    numbers = sum(len(counted.keys) for counted in sketch.sets.values())
    assert len(pickle.dumps(sketch)) < 16 * numbers + len(pickle.dumps(sketch.grid)) + 2_000


@pytest.mark.parametrize("n", [0, 5000, 3 * MOST_BINS])
def test_grid_builder(n):
    builder = GridBuilder(["a", "b"])
    if n:
        # More digits than 'rows' has, so that bins must give up bits.
        builder.add(rows(n) + np.random.default_rng(3).normal(size=(n, 2)))
    other = copied(builder)
    assert len(pickle.dumps(other)) < 2_000 + 24 * 2 * min(n, MOST_BINS)
    for mine, theirs in zip(other._bins, builder._bins, strict=True):
        assert mine.dropped == theirs.dropped
        assert (mine.dropped > 0) == (n > MOST_BINS)
        for a, b in zip(mine._arrays, theirs._arrays, strict=True):
            assert a.tobytes() == b.tobytes()
    more = rows(seed=4)
    assert other.add(more).grid() == builder.add(more).grid()


def test_grid_builder_with_zeros_of_both_signs():
    builder = GridBuilder().add(np.array([-0.0, 0.0, -1.0, 1.0] * 9))
    assert copied(builder)._bins[0].keys.tobytes() == builder._bins[0].keys.tobytes()


def test_sketch_builder():
    grid = Grid.from_bounds(["a", "b"], (-3, 4))
    builder = SketchBuilder(grid, max_cells=700, missing="drop").add(rows(), "x").add(rows(9), "y")
    builder.add(np.array([[np.nan, 0.0]]), "y")
    other = copied(builder)
    more = np.vstack([rows(seed=4), [[np.inf, 9.0]]])
    assert other.add(more, "y").sketch() == builder.add(more, "y").sketch()
    assert other.sketch().sets["y"].dropped == 2
