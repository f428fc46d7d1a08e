"""Grids that adapt to rows: equal shares, values with cells of their own, extremes."""

import numpy as np
import pytest

from cobpm import GridBuilder, Sketch
from cobpm.grid_builder import MOST_BINS, Bins

N = 100_000


def grid_of(column):
    return GridBuilder().add(column).grid()


def shares(column, bits=10):
    """Share of the points in each cell of a coarse grid."""
    index = np.searchsorted(grid_of(column).cuts[0], column, side="right")
    return np.bincount(index >> (12 - bits), minlength=2**bits) / len(column)


@pytest.mark.parametrize(
    "law",
    [
        lambda rng: rng.normal(size=N),
        lambda rng: 1.7e9 + 86400 * rng.random(N),
        lambda rng: -np.exp(3 * rng.normal(size=N)),
        lambda rng: rng.standard_cauchy(N),
        lambda rng: rng.random(N) * 1e-310,  # below the smallest normal number
    ],
    ids=["normal", "a day", "lognormal", "cauchy", "subnormal"],
)
def test_cells_hold_about_equal_shares(law):
    found = shares(law(np.random.default_rng(0)), bits=8)
    # Counts of 390 points, and tails in which a map of 1,025 knots is not straight enough.
    assert np.quantile(found, [0.02, 0.98]) == pytest.approx([1 / 256, 1 / 256], rel=0.2)
    assert found.max() < 2 / 256


def test_a_few_values_have_a_cell_each():
    column = np.random.default_rng(1).poisson(3.0, N).astype(float)
    counts = Sketch.of(column).sets["rows"].counts
    np.testing.assert_array_equal(counts, np.unique(column, return_counts=True)[1])
    # So they have when few bits are left.
    values = len(counts)
    np.testing.assert_array_equal(Sketch.of(column, max_cells=values).sets["rows"].counts, counts)


def test_a_value_that_repeats_among_others_has_a_cell():
    rng = np.random.default_rng(2)
    for value in (0.1234567, 0.0, -2.5e-7):
        column = np.where(rng.random(N) < 0.3, value, rng.normal(size=N))
        repeated = int((column == value).sum())
        found = Sketch.of(column).sets["rows"]
        assert found.counts.max() == repeated
        # In a coarse grid it shares its cell with next to nothing.
        coarse = Sketch.of(column, max_cells=16).sets["rows"]
        assert repeated <= coarse.counts.max() <= 1.01 * repeated


def test_it_shares_its_interval_where_a_bin_holds_other_values():
    rng = np.random.default_rng(3)
    # Half of the values are far away, so few bits are left for those near a billion.
    near = np.where(rng.random(N) < 0.5, 1e9 + 7.3, 1e9 + rng.normal(size=N))
    column = np.concatenate([near, rng.standard_cauchy(4 * N) ** 3])
    bins = Bins.of(column)
    assert len(bins.keys) > MOST_BINS // 4
    mixed = int(bins.counts[(bins.low < 1e9) & (bins.high > 1e9)].max())
    assert mixed > 0.9 * N  # one bin holds what is near a billion
    counts = Sketch.of(column).sets["rows"].counts
    assert counts.max() < 1.2 * (column == 1e9 + 7.3).sum()
    assert (counts > 50).sum() > 600  # and yet others near it are told apart


@pytest.mark.parametrize("value", [0.0, 7.0, -1e308, 5e-324])
def test_a_constant_column_leaves_room_for_others(value):
    grid = grid_of(np.full(10, value))
    below, above = np.nextafter(value, -np.inf), np.nextafter(value, np.inf)
    found = Sketch.of(np.array([below, value, value, above]), grid=grid).sets["rows"]
    assert found.counts.tolist() == [1, 2, 1]


def test_extremes():
    column = np.array([-1.7e308, 1.7e308, 0.0, 1.0, 5e-324] * 100)
    found = Sketch.of(column)
    assert found.sizes == (500,)
    assert found.sets["rows"].beyond == 0
    assert found.cells == 5


def test_minus_zero_is_zero():
    a, b = (grid_of(np.array([zero, 1.0, 2.0, zero])) for zero in (0.0, -0.0))
    assert a == b


def test_small_pieces_and_buffers_used_again():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(1000, 2))
    builder, buffer = GridBuilder(), np.empty((10, 2))
    for first in range(0, 1000, 10):
        buffer[:] = rows[first : first + 10]
        builder.add(buffer)
    whole = GridBuilder().add(rows)
    assert builder.grid() == whole.grid()
    halves = GridBuilder().add(rows[500:]) + GridBuilder().add(rows[:500])
    assert halves.grid() == whole.grid()
    assert (GridBuilder() + whole).grid() == whole.grid()


def test_missing_values_are_passed_over():
    rows = np.random.default_rng(5).normal(size=(100, 2))
    holed = np.vstack([rows, [[np.nan, 9.0], [9.0, np.inf]]])
    assert GridBuilder(missing="drop").add(holed).grid() == GridBuilder().add(rows).grid()
    with pytest.raises(ValueError, match="finite numbers only"):
        GridBuilder().add(holed)
