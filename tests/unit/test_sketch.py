"""Sketches: what they take, what they say, what they refuse."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import cobpm
from cobpm import Grid, GridBuilder, InputError, Sketch, SketchBuilder

GRID = Grid.from_bounds(["u", "v"], {"v": (0, 10), "u": (0, 1)})


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.random(n), 10 * rng.random(n)])


def test_what_rows_can_be():
    table = rows()
    expected = Sketch.of(table, grid=GRID)
    shuffled = pd.DataFrame({"v": table[:, 1], "u": table[:, 0]})
    assert Sketch.of(shuffled, grid=GRID) == expected
    assert Sketch.of(pl.from_pandas(shuffled), grid=GRID) == expected
    assert Sketch.of(table.tolist(), grid=GRID) == expected
    assert Sketch.of({"rows": table}, grid=GRID) == expected
    assert Sketch.of([table, table], grid=GRID).names == ("1", "2")
    assert Sketch.of([0.5, 0.25]).columns == ("c1",)
    assert Sketch.of(pd.Series([1.0, 2.0, 3.0], name="age")).columns == ("age",)
    assert expected.sizes == (200,)
    assert expected.columns == ("u", "v")


def test_even_cells_are_where_they_should_be():
    grid = Grid.from_bounds(["u"], (0, 1))
    found = Sketch.of(np.array([0.0, 1 / 4096, 0.5, 1.0, -3.0, 7.0]), grid=grid)
    counted = found.sets["rows"]
    assert counted.keys.tolist() == [0, 1, 2048, 4095]
    assert counted.counts.tolist() == [2, 1, 1, 2]
    assert counted.beyond == 2
    assert "2 rows of 'rows' lie beyond the grid." in repr(found)


def test_what_it_says():
    sketch = Sketch.of({"monday": rows(300), "tuesday": rows(100, 1)}, grid=GRID, max_cells=40)
    text = repr(sketch)
    assert text.startswith("Sketch of monday (300 rows), tuesday (100 rows): ")
    assert f"{sketch.cells} cells of at most 40, 5 bits (u 3, v 2)" in text
    assert sketch.column_bits == {"u": 3, "v": 2}
    assert sketch.cells <= 40


def test_names():
    a = Sketch.of(rows(), grid=GRID)
    assert a.rename("monday").names == ("monday",)
    both = a.rename("monday") + a.rename("tuesday")
    assert both.rename({"monday": "first"}).names == ("first", "tuesday")
    assert both.select("tuesday").rename("rows") == a
    assert (a + a).sizes == (400,)
    assert sum([a, a, a]).sizes == (600,)
    for wrong in (lambda: both.rename("x"), lambda: both.rename({"monday": "tuesday"})):
        with pytest.raises(InputError, match="names"):
            wrong()
    with pytest.raises(InputError, match="The sets are 'monday', 'tuesday'"):
        both.select("friday")
    with pytest.raises(InputError, match="start from sets that exist"):
        both.rename({"friday": "x"})
    with pytest.raises(TypeError):
        a + 1


def test_what_was_coarse_stays_coarse():
    fine, coarse = (Sketch.of(rows(), grid=GRID, max_cells=most) for most in (1000, 20))
    nothing = replace(coarse.select(), max_cells=1000)
    assert nothing.names == ()
    assert (nothing + fine).bits == (fine + nothing).bits == coarse.bits < fine.bits


def test_what_makes_sketches_differ():
    a = Sketch.of(rows(), grid=GRID)
    assert a == pickle.loads(pickle.dumps(a))
    assert a != Sketch.of(rows(199), grid=GRID)
    assert a != Sketch.of(rows(), grid=Grid.from_bounds(["u", "v"], (0, 10)))
    assert a != Sketch.of(rows(), grid=GRID, max_cells=1000)
    assert a != a.rename("b")
    assert a != "a"


def test_grids_that_differ_are_refused():
    a = Sketch.of(rows(), grid=GRID)
    with pytest.raises(InputError, match="column 'u' is cut between"):
        a + Sketch.of(rows(), grid=Grid.from_bounds(["u", "v"], (0, 10)))
    with pytest.raises(InputError, match=r"the columns are \['u', 'v'\] and \['c1', 'c2'\]"):
        a + Sketch.of(rows())
    by_ranks = [Sketch.of(rows(seed=seed)) for seed in (0, 1)]
    with pytest.raises(InputError, match=r"Sketch.of\(rows, grid=sketch.grid\)"):
        by_ranks[0] + by_ranks[1]


def test_missing_values():
    table = rows()
    table[3, 0], table[7, 1] = np.nan, np.inf
    with pytest.raises(InputError, match=r"1 missing \(NaN\) and 1 infinite"):
        Sketch.of(table, grid=GRID)
    found = Sketch.of(table, grid=GRID, missing="drop")
    assert found.sizes == (198,)
    assert found.sets["rows"].dropped == 2
    assert (found + found).sets["rows"].dropped == 4
    assert "2 rows of 'rows' had missing values." in repr(found)
    assert Sketch.of(table, missing="drop").sizes == (198,)
    with pytest.raises(InputError, match="one of 'error', 'drop'"):
        Sketch.of(table, missing="ignore")


def test_pieces_may_be_empty():
    builder = SketchBuilder(GRID)
    builder.add(rows()[:0]).add(pd.DataFrame({"u": [], "v": []}, dtype=float))
    empty = builder.sketch()
    assert empty.sizes == (0,)
    assert "rows (0 rows): 0 cells" in repr(empty)
    full = Sketch.of(rows(), grid=GRID)
    assert empty + full == full
    assert SketchBuilder(GRID).sketch() + full == full
    with pytest.raises(InputError, match="hold rows"):
        cobpm.compare(empty, full)
    with pytest.raises(InputError, match="hold rows"):
        cobpm.fit(SketchBuilder(GRID).sketch())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Sketch.of(rows(), grid=GRID, bounds=(0, 1)), "be left out where a grid is given"),
        (lambda: Sketch.of(rows(), bounds=(1, 0)), "low < high"),
        (lambda: Sketch.of(rows(), bounds={"c1": (0, 1)}), "none for column 'c2'"),
        (lambda: Sketch.of(rows(), max_cells=0), "max_cells"),
        (lambda: Sketch.of(rows()[:, :1], grid=GRID), "as many columns"),
        (lambda: Sketch.of(pd.DataFrame({"u": [1.0], "w": [1.0]}), grid=GRID), "'w' only in"),
        (lambda: Sketch.of({}), "hold one set or more"),
        (lambda: Sketch.of({1: rows(), "1": rows()}), "differ as text"),
        (lambda: Sketch.of(np.empty((0, 2))), "no rows"),
        (lambda: SketchBuilder("grid"), "be a Grid"),
        (lambda: Sketch.merge([]), "one sketch or more"),
        (lambda: Grid.from_bounds([f"c{j}" for j in range(64)], (0, 1)), "1 to 63"),
        (lambda: GridBuilder().grid(), "no rows"),
        (lambda: GridBuilder().add(rows()) + GridBuilder(["u"]), "same in all pieces"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_columns_in_any_number_share_63_bits():
    grid = Grid.from_bounds([f"c{j}" for j in range(63)], (0, 1))
    table = np.random.default_rng(0).random((50, 63))
    found = Sketch.of(table, grid=grid)
    assert found.bits == 63
    expected = np.unique(table >= 0.5, axis=0)
    assert found.cells == len(expected) == 50


def test_more_rows_than_fit_into_32_bits():
    a = Sketch.of(rows(), grid=GRID)
    many = a
    for _ in range(24):
        many = many + many
    assert many.sizes == (200 * 2**24,)
    with pytest.raises(InputError, match=r"at most 4,294,967,295 rows together. Got 6,710,886,400"):
        cobpm.compare(many, many)


def test_threads_may_share_a_builder():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(400_000, 2))
    grid = Grid.from_bounds(["a", "b"], (-5, 5))
    pieces = np.array_split(rows, 200)
    whole = Sketch.of(rows, grid=grid, max_cells=5_000)
    for _ in range(3):
        builder, looker = SketchBuilder(grid, max_cells=5_000), GridBuilder(["a", "b"])
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(builder.add, pieces))
            list(pool.map(looker.add, pieces))
            asked = [pool.submit(builder.sketch) for _ in range(16)]
            assert all(one.result() == whole for one in asked)
        assert builder.sketch() == whole
        assert looker.grid() == GridBuilder(["a", "b"]).add(rows).grid()
