"""Any chunking, any order, any number of pieces, files in between: the same sketch."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cobpm
from cobpm import Grid, GridBuilder, Sketch, SketchBuilder
from cobpm.grid_builder import Bins
from tests.oracles import sketches as oracle

NAMES = ("a", "b", "c")
# Values on and off the cuts, repeated, far out.
VALUES = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, 1.0, 0.25, 1 / 3, -7.0, 1e300]),
    st.floats(-1.0, 2.0, allow_nan=False),
)


@st.composite
def tables(draw, most_rows=40):
    """Rows with the set of each."""
    d = draw(st.integers(1, 3))
    n = draw(st.integers(1, most_rows))
    rows = draw(st.lists(st.tuples(*[VALUES] * d), min_size=n, max_size=n))
    sets = draw(st.lists(st.sampled_from(NAMES), min_size=n, max_size=n))
    return np.array(rows), np.array(sets)


@st.composite
def pieces(draw, n):
    """A random order of n rows, cut into pieces."""
    order = draw(st.permutations(range(n)))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=5)))
    return [list(order[a:b]) for a, b in zip([0, *cuts], [*cuts, n], strict=True)]


def grids(rows):
    d = rows.shape[1]
    columns = [f"c{j + 1}" for j in range(d)]
    return [Grid.from_bounds(columns, (0.0, 1.0)), GridBuilder().add(rows).grid()]


def by_name(rows, sets):
    return {name: rows[sets == name] for name in NAMES if (sets == name).any()}


def cells(sketch):
    """Counts by cell, decoded from the names of the cells."""
    own = oracle.column_bits(sketch.bits, sketch.grid.d)
    found = {}
    for name, counted in sketch.sets.items():
        found[name] = Counter()
        for key, count in zip(counted.keys.tolist(), counted.counts.tolist(), strict=True):
            cell = []
            for bits in reversed(own):
                cell.append(key & ((1 << bits) - 1))
                key >>= bits
            found[name][tuple(reversed(cell))] = count
    return found


@settings(max_examples=60, deadline=None)
@given(st.data(), tables(), st.integers(1, 30), st.booleans())
def test_it_counts_as_the_oracle_does(data, table, max_cells, ranks):
    rows, sets = table
    grid = grids(rows)[ranks]
    sketch = Sketch.of(by_name(rows, sets), grid=grid, max_cells=max_cells)
    bits, counts = oracle.sketch(by_name(rows, sets), list(grid.cuts), max_cells)
    assert sketch.bits == bits
    assert cells(sketch) == counts
    assert sketch.cells == len(set().union(*counts.values())) <= max_cells


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data(), tables(), st.integers(1, 30))
def test_pieces_in_any_order_add_up(tmp_path, data, table, max_cells):
    rows, sets = table
    (grid, _) = grids(rows)
    whole = Sketch.of(by_name(rows, sets), grid=grid, max_cells=max_cells)
    parts = []
    for piece in data.draw(pieces(len(rows))):
        builder = SketchBuilder(grid, max_cells=max_cells)
        for name in NAMES:
            if name in whole.names:
                builder.add(rows[piece][sets[piece] == name], name)
            if data.draw(st.booleans()):
                builder.sketch()  # looking does not change what comes out in the end
        parts.append(builder.sketch())
        if data.draw(st.booleans()):
            parts[-1].save(tmp_path / "part")
            parts[-1] = Sketch.load(tmp_path / "part")
    while len(parts) > 1:  # in any order and any nesting
        i = data.draw(st.integers(0, len(parts) - 1))
        one = parts.pop(i)
        j = data.draw(st.integers(0, len(parts) - 1))
        parts[j] = one + parts[j] if data.draw(st.booleans()) else parts[j] + one
    assert parts[0] == whole
    assert {name: rows for name, rows in zip(parts[0].names, parts[0].sizes, strict=True)} == {
        name: int((sets == name).sum()) for name in whole.names
    }


@settings(max_examples=40, deadline=None)
@given(tables(), st.integers(1, 30), st.integers(1, 30))
def test_coarser_later_is_coarse_from_the_start(table, one, other):
    rows, sets = table
    grid = grids(rows)[0]
    fine, coarse = max(one, other), min(one, other)
    by = by_name(rows, sets)
    found = Sketch.of(by, grid=grid, max_cells=fine).within(coarse)
    assert found == Sketch.of(by, grid=grid, max_cells=coarse)
    # The smaller of two limits holds when sketches are merged.
    assert Sketch.of(by, grid=grid, max_cells=fine) + Sketch.of(
        by, grid=grid, max_cells=coarse
    ) == Sketch.merge([Sketch.of(by, grid=grid, max_cells=coarse)] * 2)


@settings(max_examples=60, deadline=None)
@given(st.data(), tables(80), st.integers(2, 12))
def test_bins_do_not_depend_on_the_pieces(data, table, most):
    rows, _ = table
    whole = Bins.of(rows[:, 0], most)
    parts = [Bins.of(rows[piece, 0], most) for piece in data.draw(pieces(len(rows)))]
    merged = parts[0]
    for part in parts[1:]:
        merged = (
            part.merged(merged, most) if data.draw(st.booleans()) else merged.merged(part, most)
        )
    assert merged.dropped == whole.dropped
    for name in ("keys", "counts", "low", "high"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))
    assert len(whole.keys) <= most
    assert whole.counts.sum() == len(rows)


@pytest.mark.parametrize("model", ["ratio", "paper"])
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_the_same_posterior(tmp_path, model, data):
    seed = data.draw(st.integers(0, 100))
    rng = np.random.default_rng(seed)
    rows = np.round(rng.normal(size=(300, 2)), data.draw(st.sampled_from([1, 9])))
    sets = rng.choice(["a", "b"], size=300)
    grid = grids(rows)[data.draw(st.booleans())]
    whole = Sketch.of(by_name(rows, sets), grid=grid, max_cells=100)
    parts = [
        Sketch.of(
            {name: rows[piece][sets[piece] == name] for name in "ab"}, grid=grid, max_cells=100
        )
        for piece in data.draw(pieces(300))
    ]
    for part in parts:
        part.save(tmp_path / "part")
    parts[-1] = Sketch.load(tmp_path / "part")
    mine, theirs = (
        cobpm.fit(sketch, model=model, draws=40, rng=seed) for sketch in (whole, sum(parts))
    )
    np.testing.assert_array_equal(mine.masses, theirs.masses)
    np.testing.assert_array_equal(mine.partitions.splits, theirs.partitions.splits)
    assert mine.log_evidence == theirs.log_evidence
