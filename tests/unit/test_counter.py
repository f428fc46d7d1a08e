"""Counting many rows, where the counter sorts, merges and moves to a plain array."""

import numpy as np
import pytest

from cobpm import Grid, GridBuilder, _core
from cobpm.grid import FINEST
from cobpm.grid_builder import Bins

ROWS = 2_300_000  # so many that none of these ways is left out


def oracle(grid, rows, max_cells):
    """Bits, cells and counts by looking at every number of bits."""
    indices = [np.searchsorted(cuts, rows[:, j], side="right") for j, cuts in enumerate(grid.cuts)]
    for bits in range(grid.finest, -1, -1):
        keys = np.zeros(len(rows), dtype=np.uint64)
        for own, index in zip(grid.bits_of(bits), indices, strict=True):
            keys = (keys << np.uint64(own)) | (index >> (FINEST - own)).astype(np.uint64)
        cells, counts = np.unique(keys, return_counts=True)
        if len(cells) <= max_cells:
            return bits, cells, counts
    raise AssertionError


def same(counter, expected):
    bits, cells, counts = expected
    assert counter.bits == bits
    assert counter.size == len(cells)
    found = counter.cells()
    np.testing.assert_array_equal(found[0], cells)
    np.testing.assert_array_equal(found[1], counts)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    first = rng.normal(size=ROWS)
    return np.column_stack([first, 0.6 * first + rng.normal(size=ROWS)])


@pytest.mark.parametrize("max_cells", [1_000, 300_000, 900_000])
@pytest.mark.parametrize("kind", ["bounds", "ranks"])
def test_many_rows(rows, kind, max_cells):
    grid = Grid.from_bounds("xy", (-4, 4))
    if kind == "ranks":
        grid = GridBuilder("xy").add(rows[:50_000]).grid()
    expected = oracle(grid, rows, max_cells)
    counter = grid.counter(None, max_cells)
    counter.add_rows(rows)
    assert counter.bits_so_far >= expected[0]
    same(counter, expected)
    # In pieces, by two counters of unequal shares, in either order; columns instead of rows.
    for turned in (False, True):
        pair = [grid.counter(None, max_cells) for _ in range(2)]
        for k, piece in enumerate(np.array_split(rows, 9)):
            pair[k % 8 == 0].add_columns([np.ascontiguousarray(column) for column in piece.T])
        pair = pair[::-1] if turned else pair
        pair[0].absorb(pair[1])
        same(pair[0], expected)
        assert pair[1].size == 0
    # Cells instead of rows.
    again = grid.counter(None, max_cells)
    for piece in np.array_split(rows, 3):
        part = grid.counter(None, max_cells)
        part.add_rows(piece)
        again.add_cells(*part.cells(), part.bits)
    same(again, expected)
    # Fewer bits, before and after.
    coarse = grid.counter(7, max_cells)
    coarse.add_rows(rows)
    counter.coarsen(7)
    same(counter, (7, *coarse.cells()))


def test_even_cells_far_from_zero():
    low = 1e16
    grid = Grid.from_bounds("x", (low, low + 64))  # fewer numbers than cells
    points = low + np.arange(0.0, 66.0, 2.0)[:, None]
    counter = grid.counter()
    counter.add_rows(points)
    same(counter, oracle(grid, points, 10**6))


@pytest.mark.parametrize("most", [2, 50, 4_000, 65_536])
def test_bins_do_not_depend_on_pieces(rows, most):
    values = np.ascontiguousarray(rows[:400_000, 0])
    values[::7] = -0.0
    whole = Bins.of(values, most)
    assert whole.counts.sum() == len(values)
    assert len(whole.keys) <= most
    for sizes in (3, 40):
        counter = _core.BinCounter(most)
        for piece in np.array_split(values, sizes):
            counter.add(piece)
        merged = Bins(*counter.bins())
        parts = [Bins.of(piece, most) for piece in np.array_split(values, sizes)]
        for part in parts[1:]:
            parts[0] = parts[0].merged(part, most)
        pair = [_core.BinCounter(most) for _ in range(2)]
        for k, piece in enumerate(np.array_split(values, sizes)):
            pair[k % 3 == 0].add(piece)
        pair[0].add_all(pair[1])
        for other in (merged, parts[0], Bins(*pair[0].bins())):
            assert other.dropped == whole.dropped
            for name in ("keys", "counts", "low", "high"):
                np.testing.assert_array_equal(getattr(other, name), getattr(whole, name))
    if most > 2:  # no bit was dropped in vain
        distinct = np.unique(values)
        ordered = distinct.view(np.uint64)
        top = np.uint64(1 << 63)
        keys = np.where(ordered & top, ~ordered, ordered | top)
        finer = np.unique(keys >> np.uint64(max(whole.dropped - 1, 0)))
        assert whole.dropped == 0 or len(finer) > most
