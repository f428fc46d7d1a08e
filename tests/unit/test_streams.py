"""Files read piece by piece: the same rows and rules as whole files, and messages with a place."""

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import cobpm
from cobpm import Grid, GridBuilder, SketchBuilder, counting
from cobpm.counting import sketch_files, sketch_streams
from cobpm.samples import InputError
from cobpm.sets import Choice, from_files
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


def test_sketches_of_files_in_python(tmp_path):
    table = pd.DataFrame({"a": np.arange(400) % 37 / 4, "b": np.arange(400) % 11})
    (tmp_path / "parts").mkdir()
    for k in range(4):
        table[k * 100 : k * 100 + 100].to_parquet(tmp_path / "parts" / f"{k}.parquet")
    table.to_csv(tmp_path / "all.csv")
    whole = Sketch.of_files(tmp_path / "parts")
    assert whole == Sketch.of(table)
    assert whole == Sketch.of_files(str(tmp_path / "all.csv"))
    assert whole.grid.domain.kinds == Sketch.of(table).grid.domain.kinds == ("number", "integer")
    files = sorted((tmp_path / "parts").iterdir())
    both = Sketch.of_files({"x": files[:2], "y": files[2:]}, grid=whole.grid)
    assert both.select("x").rename("rows") + both.select("y").rename("rows") == whole
    assert Sketch.of_files(files, columns="b", bounds=(0, 20)).columns == ("b",)
    assert Sketch.of_files(files, exclude=["b"]).columns == ("a",)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda path: Sketch.of_files([]), "one file or more"),
        (lambda path: Sketch.of_files({}), "one set or more"),
        (lambda path: Sketch.of_files(3), "paths of files"),
        (lambda path: Sketch.of_files([path, None]), "paths of files"),
        (lambda path: Sketch.of_files(path.with_name("none.csv")), "nothing there"),
        (lambda path: Sketch.of_files(path, grid="a"), "be a Grid"),
        (lambda path: Sketch.of_files(path, max_cells=0), "'max_cells'"),
        (lambda path: Sketch.of_files(path, missing="keep"), "'missing'"),
        (lambda path: Sketch.of_files(path, columns=["c"]), "'c'"),
        (lambda path: Sketch.of_files(path, bounds=(2, 1)), "'bounds'"),
        (
            lambda path: Sketch.of_files(path, grid=Sketch.of_files(path).grid, columns=["a"]),
            "left out where a grid is given",
        ),
    ],
)
def test_what_files_are_refused_in_python(tmp_path, call, message):
    pd.DataFrame({"a": range(9), "b": range(9)}).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(InputError, match=message):
        call(tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "Unnamed: 0.1"])
def test_row_numbers_are_no_column(tmp_path, name):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: np.arange(300), "a": rng.random(300), "b": rng.random(300)})
    plain = table[["a", "b"]]
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    found = from_files([str(tmp_path / "a.csv"), str(tmp_path / "a.parquet")], Choice())
    assert found.columns == ("a", "b")
    assert any(note.startswith("Row numbers, left out") for note in found.notices)
    whole = Sketch.of(plain)
    assert Sketch.of(table) == whole
    assert GridBuilder().add(table).grid() == whole.grid
    assert SketchBuilder(whole.grid).add(table).sketch() == whole
    assert Sketch.of_files(tmp_path / "a.csv") == Sketch.of_files(tmp_path / "a.parquet") == whole
    post = cobpm.compare(table, plain, draws=20)
    assert post.columns == ("a", "b")
    assert "row numbers" in " ".join(post.notices)
    # Those who ask get them, and whatever is no whole number is no row number.
    assert Sketch.of_files(tmp_path / "a.csv", columns=[name, "a"]).columns == (name, "a")
    assert SketchBuilder(Grid.from_bounds([name, "a", "b"], (0, 300))).add(table).sketch().cells
    assert Sketch.of(table / 2).columns == (name, "a", "b")
    assert Sketch.of(table[[name]]).columns == (name,)


def test_kinds_of_columns_stay_with_a_sketch(tmp_path):
    rng = np.random.default_rng(0)

    def table(late):
        days = pd.to_timedelta(rng.integers(0, 60 + 60 * late, 2000), unit="D")
        day = pd.Timestamp("2026-01-01") + days
        return pd.DataFrame({"day": day, "size": rng.poisson(4 + 3 * late, 2000)})

    sets = {"a": table(0), "b": table(1)}
    kinds = "moment", "integer"
    bounds = {"day": (1.76e9, 1.79e9), "size": (0, 30)}
    for sketch in (Sketch.of(sets), Sketch.of(sets, bounds=bounds)):
        sketch.save(tmp_path / "a.cobpm")
        kept = Sketch.load(tmp_path / "a.cobpm")
        assert kept.grid.domain.kinds == sketch.grid.domain.kinds == kinds
        post = cobpm.compare(kept.select("a"), kept.select("b"), draws=50, rng=1)
        where = " ".join(post.regions()["where"])
        assert "2026-0" in where
        assert "." not in where
    mixed = GridBuilder().add(sets["a"]) + GridBuilder().add(sets["b"].astype({"day": "int64"}) / 2)
    assert mixed.grid().domain.kinds == ()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "utf16.csv", "latin.csv"])
def test_arrow_gets_files_and_buffers_of_its_own(name, monkeypatch):
    """Its threads may hold Python's at exit, when nobody can let them go."""
    text = "é,b\n" + "".join(f"{k}.5,{k % 7}\n" for k in range(3000))
    if name == "a.jsonl":
        text = "".join(f'{{"é": {k}.5, "b": {k % 7}}}\n' for k in range(3000))
    encoding = {"utf16.csv": "utf-16", "latin.csv": "latin-1"}.get(name, "utf-8")
    content = text.encode(encoding)
    with open(name, "wb") as file:
        file.write(gzip.compress(content) if name.endswith(".gz") else content)
    seen = []

    def watched(real):
        def read(source, *arguments, **settings):
            seen.append(source)
            return real(source, *arguments, **settings)

        return read

    for module, function in (("csv", "read_csv"), ("csv", "open_csv"), ("json", "read_json")):
        real = getattr(__import__(f"pyarrow.{module}", fromlist=[""]), function)
        monkeypatch.setattr(f"pyarrow.{module}.{function}", watched(real))
    assert from_files([name], Choice()).sizes == (3000,)
    assert Sketch.of_files(name).sizes == (3000,)
    assert len(seen) > 3
    assert all(type(source).__module__ == "pyarrow.lib" for source in seen)


def test_text_that_is_cut_off_inside_a_letter():
    with open("a.csv", "wb") as file:
        file.write("a,b\n1,2\n3,4\n".encode("utf-16")[:-1])
    for read in (lambda: from_files(["a.csv"], Choice()), lambda: Sketch.of_files("a.csv")):
        with pytest.raises(InputError, match="must be text in UTF-16"):
            read()
