"""Any pieces and any tree give one sketch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cobpm import Sketch, clusters, grid_builder

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


@st.composite
def cases(draw):
    """Rows with ties and gaps, and two ways to cut them into pieces, empty ones among them."""
    d = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sets = {}
    for name in ("x", "y"):
        n = draw(st.integers(1, 60))
        rows = rng.normal(size=(n, d)).round(draw(st.integers(0, 4))) * 10.0 ** rng.integers(-3, 4)
        rows[rng.random(rows.shape) < draw(st.sampled_from([0, 0.1]))] = np.nan
        rows[0] = 1.0
        ends = sorted(draw(st.lists(st.integers(0, n), max_size=12)))
        sets[name] = rows, tuple(np.diff([0, *ends, n]).tolist())
    return sets


def in_blocks(rows, sizes):
    return da.from_array(rows, chunks=(sizes, rows.shape[1]))


@settings(deadline=None, max_examples=60)
@given(
    cases(),
    st.integers(2, 9),
    st.sampled_from([1, 2, 5, 20, 1000]),
    st.sampled_from([None, (-1, 2)]),
    st.sampled_from([2, 8, 2**16]),
)
def test_any_pieces_and_any_tree(sets, together, max_cells, bounds, bins):
    with pytest.MonkeyPatch.context() as patch, dask.config.set(scheduler="synchronous"):
        patch.setattr(grid_builder, "MOST_BINS", bins)
        patch.setattr(grid_builder.Bins.of.__func__, "__defaults__", (bins,))
        patch.setattr(grid_builder.Bins.merged, "__defaults__", (bins,))
        given = {"bounds": bounds, "max_cells": max_cells, "missing": "drop"}
        wanted = Sketch.of({name: rows for name, (rows, _) in sets.items()}, **given)
        found = clusters.sketch(
            {name: in_blocks(*set_) for name, set_ in sets.items()},
            ("x", "y"),
            owner="test",
            grid=None,
            together=together,
            **given,
        )
    assert found == wanted
    assert found.names == wanted.names
    for mine, theirs in zip(found.grid.cuts, wanted.grid.cuts, strict=True):
        assert mine.tobytes() == theirs.tobytes()
