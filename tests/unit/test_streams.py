"""Files read piece by piece: the same rows and rules as whole files, and messages with a place."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from cobpm import counting
from cobpm.counting import sketch_files, sketch_streams
from cobpm.samples import InputError
from cobpm.sets import Choice
from cobpm.sketch import Sketch
from cobpm.streams import are_large, files_in, open_streams


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=n).round(4), rng.poisson(3.0, n)])


def written(kind, values, name="rows"):
    """A file of two columns, 'size' and 'count'."""
    table = pa.table({"size": values[:, 0], "count": values[:, 1].astype(int)})
    path = f"{name}.{kind}"
    if kind == "parquet":
        pa.parquet.write_table(table, path, row_group_size=700)
    elif kind == "feather":
        pa.feather.write_feather(table, path, chunksize=900)
    else:
        head = "size,count\n"
        lines = [f"{a!r},{int(b)}" for a, b in values.tolist()]
        if kind.startswith("jsonl"):
            head = ""
            lines = [json.dumps({"size": a, "count": int(b)}) for a, b in values.tolist()]
        text = (head + "\n".join(lines)).encode()
        opened = gzip.open if kind.endswith("gz") else open
        with opened(path, "wb") as file:
            file.write(text)
    return path


def counted(path, size=None, **given):
    return sketch_streams(open_streams({"rows": [path]}), rows=size, **given)


# --- the same as rows in memory ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv", "csv.gz", "jsonl", "jsonl.gz"])
def test_every_format_and_any_size_of_pieces(kind, monkeypatch):
    values = rows()
    path = written(kind, values)
    expected = Sketch.of({"rows": pa.table({"size": values[:, 0], "count": values[:, 1]})})
    assert counted(path) == expected
    assert expected.cells > 1000
    for size, threads in ((1, 2), (37, 1), (1000, 3)):
        monkeypatch.setenv("COBPM_THREADS", str(threads))
        assert counted(path, size) == expected


def test_cells_are_given_up_alike_whatever_the_pieces(monkeypatch):
    path = written("parquet", rows())
    few = [counted(path, size, max_cells=100) for size in (3, 400, None)]
    assert few[0] == few[1] == few[2]
    assert few[0].bits < few[0].grid.finest
    monkeypatch.setenv("COBPM_THREADS", "3")
    assert counted(path, 50, max_cells=100) == few[0]


def test_large_row_groups_are_read_through_a_buffer(monkeypatch):
    path = written("parquet", rows())
    whole = counted(path)
    monkeypatch.setattr("cobpm.streams.LARGE_GROUP", 100)
    assert counted(path) == whole


def test_bounds_and_grids():
    values = rows()
    path = written("csv", values)
    bounds = {"size": (-2, 2), "count": (0, 20)}
    found = counted(path, bounds=bounds)
    assert found == Sketch.of({"rows": dict_of(values)}, bounds=bounds)
    assert found.sets["rows"].beyond == (np.abs(values[:, 0]) > 2).sum()
    other = counted(written("parquet", rows(300, 5), "other"), grid=found.grid)
    assert (found + other).sizes == (5300,)


def dict_of(values):
    return pa.table({"size": values[:, 0], "count": values[:, 1]})


def test_folders_and_several_files():
    import os

    values = rows()
    os.makedirs("days/deep")
    written("parquet", values[:2000], "days/a")
    written("csv", values[2000:], "days/deep/b")
    with open("days/_SUCCESS", "w") as file:
        file.write("no table")
    assert [path.replace(os.sep, "/") for path in files_in(["days"])] == [
        "days/a.parquet",
        "days/deep/b.csv",
    ]
    assert counted("days") == counted(written("parquet", values))


def test_a_grid_from_some_parts_reaches_to_the_ends(monkeypatch):
    values = rows(20_000)
    path = written("parquet", values)
    whole = counted(path)
    monkeypatch.setattr(counting, "LOOKED_AT", 2000)
    some = counted(path)
    assert some.sizes == whole.sizes == (20_000,)
    assert some.grid != whole.grid
    assert some.sets["rows"].beyond == 0  # the ends are in the file's statistics
    assert counted(path, 55) == some


# --- rules ---------------------------------------------------------------------------------------


def test_text_dates_and_gaps():
    lines = ["day,ward,size,note,flag"]
    for k in range(400):
        size = "" if k % 50 == 0 else f"{k / 7:.3f}"
        lines.append(f"2024-01-{k % 28 + 1:02},w{k % 3},{size},,{'true' if k % 2 else 'false'}")
    with open("a.csv", "w") as file:
        file.write("\n".join(lines))
    stream = open_streams({"a": ["a.csv"]})["a"]
    assert stream.columns == ("size", "flag")
    said = " ".join(stream.agreement.notices)
    assert "Text, left out: 'ward'." in said
    assert "Dates, left out: 'day'." in said
    assert "Column 'note' was left out: missing in 100%" in said
    found = sketch_streams({"a": stream})
    assert (found.sizes, found.sets["a"].dropped) == ((392,), 8)
    assert found.grid.domain.kinds == ("number", "boolean")
    with pytest.raises(InputError, match=r"a\.csv' must have no missing .* 'size'"):
        sketch_streams({"a": stream}, missing="error")
    dated = open_streams({"a": ["a.csv"]}, Choice(columns=("day",)))
    assert sketch_streams(dated).grid.domain.kinds == ("date",)


def test_whole_numbers_may_get_decimals_later():
    values = np.column_stack([np.arange(200_000.0), np.zeros(200_000)])
    values[-1, 0] = 0.5
    path = written("csv", values)
    stream = open_streams({"rows": [path]})["rows"]
    assert stream.agreement.kinds == ("integer", "integer")
    found = sketch_streams({"rows": stream})
    assert found.grid.domain.kinds == ("number", "integer")
    assert found.sizes == (200_000,)


def test_columns_that_all_files_have():
    for name, header in (("a", "x,y,z"), ("b", "y,x,w")):
        with open(f"{name}.csv", "w") as file:
            file.write(header + "\n" + "1,2,3\n4,5,6\n")
    streams = open_streams({"a": ["a.csv"], "b": ["b.csv"]})
    assert streams["a"].columns == streams["b"].columns == ("x", "y")
    (piece,) = streams["b"].pieces()
    assert np.array_equal(np.column_stack(piece.columns()), [[2, 1], [5, 4]])


# --- files that go wrong half-way ----------------------------------------------------------------


def long_csv(last):
    lines = ["size,count", *(f"{k / 8},{k % 5}" for k in range(400_000)), last]
    with open("long.csv", "w") as file:
        file.write("\n".join(lines) + "\n")
    return "long.csv"


def test_a_column_becomes_text():
    with pytest.raises(InputError, match=r"long\.csv.*'size' after row [1-9][\d,]+ .*oops"):
        counted(long_csv("oops,3"))


def test_a_row_has_more_columns():
    with pytest.raises(InputError, match=r"long\.csv.*same number of columns.*(#400002|after row)"):
        counted(long_csv("1,2,3"))


def test_json_lines_change():
    lines = [json.dumps({"a": k, "b": 1.5}) for k in range(120_000)]
    for last, words in (('{"a": "x", "b": 1}', "after line"), ('{"a": 1', "line 120001")):
        with open("a.jsonl", "w") as file:
            file.write("\n".join([*lines, last]))
        with pytest.raises(InputError, match=rf"a\.jsonl.*{words}"):
            counted("a.jsonl")


def test_truncated_files():
    for kind in ("csv.gz", "parquet", "feather"):
        path = written(kind, rows(50_000))
        with open(path, "rb") as file:
            data = file.read()
        with open(path, "wb") as file:
            file.write(data[: len(data) // 2])
        with pytest.raises(InputError, match=rf"rows\.{kind}' must be a complete"):
            counted(path)


def test_what_cannot_be_streamed():
    np.save("a.npy", rows())
    with open("list.json", "w") as file:
        file.write('[{"a": 1}]')
    with open("empty.csv", "w") as file:
        file.write("a,b\n")
    for path, words in (
        ("a.npy", "read piece by piece"),
        ("list.json", "one JSON object per line"),
        ("empty.csv", "at least one row"),
        ("nothing.csv", "exist"),
        ("-", "Standard input"),
    ):
        with pytest.raises(InputError, match=words):
            counted(path)


# --- sketches among files ------------------------------------------------------------------------


def test_files_and_sketches():
    counted(written("csv", rows())).save("a.cobpm")
    path = written("parquet", rows(200, 3), "b")
    both, _ = sketch_files({"x": "a.cobpm", "y": path}, Choice())
    assert both.names == ("x", "y")
    assert both.sizes == (5000, 200)
    counted(path).save("b.cobpm")
    with pytest.raises(InputError, match=r"b\.cobpm' must have the grid of 'a\.cobpm'"):
        sketch_files({"x": "a.cobpm", "y": "b.cobpm"}, Choice())
    with pytest.raises(InputError, match="cobpm merge"):
        counted("a.cobpm")


def test_large_is_what_does_not_fit(monkeypatch):
    path = written("parquet", rows())
    assert not are_large([path])
    assert are_large(["."])
    monkeypatch.setattr("cobpm.streams.LARGE_ROWS", 9000)
    assert not are_large([path])
    assert are_large([path, path])
