"""`cobpm compare` and `cobpm pairwise` on files that people have, and on those they should not."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from cobpm.cli import main

QUICK = ("--draws", "60")
SAME = re.compile(r"\d+\.\d+ s\.")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")


def cobpm(*arguments, **settings):
    return CliRunner().invoke(main, [str(a) for a in arguments], **settings)


def compare(*arguments, **settings):
    return cobpm("compare", *arguments, *QUICK, **settings)


def well(done):
    """What a command printed that ended well."""
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(done, *words):
    """What a command said that refused its input."""
    assert isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    return done.stderr


def numbers(rows=60, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(shift, 1, rows), rng.integers(0, 9, rows)])


def csv(path, table, header="size,count", mark=","):
    lines = [header, *(mark.join(f"{v:.6g}" for v in row) for row in table)]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


@pytest.fixture
def two():
    return csv("last.csv", numbers()), csv("this.csv", numbers(shift=3.0, seed=1))


def found(*arguments, **settings):
    """The result in JSON."""
    return json.loads(well(compare(*arguments, "--json", "-", **settings)))


# --- what it says --------------------------------------------------------------------------------


def test_a_first_look(two):
    text = well(compare(*two))
    assert "last (60 rows) and this (60 rows), 2 columns" in text
    assert "last and this differ strongly." in text
    assert "Given one row, you could tell whether it is from last or this 9" in text
    assert "total variation distance" in text
    assert "90% interval" in text
    assert "Where they differ most" in text
    assert re.search(r"size (<|≥) \d", text)
    assert "Engine 'ratio': 60 independent draws" in text


def test_no_difference_has_no_regions():
    a, b = csv("a.csv", numbers(900)), csv("b.csv", numbers(900, seed=5))
    text = well(compare(a, b))
    assert "No difference found between a and b." in text
    assert "no proof" in text
    assert "Where" not in text


def test_the_same_words_again(two):
    one, other = (SAME.sub("", well(compare(*two))) for _ in range(2))
    assert one == other
    assert one != SAME.sub("", well(compare(*two, "--seed", 2)))


def test_everything_for_machines(two):
    told = found(*two)
    assert told["verdict"]["kind"] == "different"
    assert told["verdict"]["same_probability"] < 0.01
    assert [one["name"] for one in told["sets"]] == ["last", "this"]
    assert told["columns"] == [
        {"name": "size", "kind": "number", "used": True},
        {"name": "count", "kind": "integer", "used": True},
    ]
    tv = told["divergences"][0]
    assert tv["name"] == "tv"
    assert 0 < tv["low"] <= tv["estimate"] <= tv["high"] <= 1
    assert sum(region["masses"]["last"] for region in told["regions"]) == pytest.approx(1)
    assert sum(region["rows"]["this"] for region in told["regions"]) == 60
    assert told["provenance"]["settings"]["seed"] == 1


def test_csv_and_json_files(two):
    said = well(compare(*two, "--json", "r.json", "--csv", "r.csv", "-d", "kl", "-d", "renyi:2"))
    assert "Rényi" in said
    told = json.loads(Path("r.json").read_text(encoding="utf-8"))
    lines = Path("r.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "divergence,estimate,low,high,level"
    assert [line.split(",")[0] for line in lines[1:]] == ["kl", "renyi:2"]
    assert float(lines[1].split(",")[1]) == told["divergences"][0]["estimate"]
    assert well(compare(*two, "--csv", "-")).splitlines()[0] == lines[0]


def test_quiet(two):
    assert well(compare(*two, "--quiet")) == ""
    assert well(compare(*two, "--quiet", "--csv", "-")).count("\n") == 5


def test_settings(two):
    told = found(*two, "--model", "paper", "--engine", "exact", "--bounds", "ranks", "--level", 0.5)
    assert (told["engine"], told["level"]) == ("exact", 0.5)
    assert told["verdict"]["chance"] < 0.1
    assert told["verdict"]["same_probability"] is None
    assert found(*two, "--model", "paper", "-d", "chi2")["divergences"][0]["read_out"] == "median"
    named = found(*two, "--bounds", "size=-10:20", "--bounds", "count=0:10")
    assert named["provenance"]["settings"]["bounds"] == "given"
    assert found(*two, "--columns", "size", "--bounds", "-10:20")["columns"][0]["name"] == "size"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--bounds", "wide"], ["--bounds", "NAME=LOW:HIGH"]),
        (["--bounds", "0:1", "--bounds", "size=0:1"], ["--bounds"]),
        (["--bounds", "0:1"], ["--bounds must contain every point"]),
        (["--bounds", "size=5:1"], ["--bounds must be finite pairs"]),
        (["--bounds", "sise=0:1"], ["--bounds must name columns out of"]),
        (["--level", "90"], ["--level must be a number between 0 and 1", "0.9?"]),
        (["--draws", "0"], ["--draws must be a whole number"]),
        (["--seed", "-1"], ["--seed must be"]),
        (["-d", "kll"], ["--divergence", "kl"]),
        (["--engine", "exact"], ["--engine must go with --model paper"]),
        (["--columns", "sice"], ["--columns must name columns of 'last.csv'", "'size'?"]),
        (["--exclude", "sice"], ["--exclude", "'size'?"]),
        (["--exclude", "size,count"], ["at least one column"]),
        (["--split-half"], ["--split-half takes one file"]),
        (["--between", "a", "b"], ["--split-by"]),
    ],
)
def test_bad_options(two, options, words):
    refused(cobpm("compare", *two, *options), *words)


# --- formats -------------------------------------------------------------------------------------


def as_table():
    values = numbers()
    return pa.table({"size": values[:, 0], "count": values[:, 1]})


def test_formats_agree():
    other = csv("other.csv", numbers(shift=3.0, seed=1))
    values, table = numbers(), as_table()
    csv("a.csv", values)
    csv("a.tsv", values, "size\tcount", "\t")
    csv("b.csv", values, "size;count", ";")
    with gzip.open("a.csv.gz", "wb") as file:
        file.write(Path("a.csv").read_bytes())
    pa.parquet.write_table(table, "a.parquet")
    pa.feather.write_feather(table, "a.feather")
    with pa.OSFile("a.arrow", "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    np.save("a.npy", values)
    np.savez("a.npz", values)
    np.savez("b.npz", size=values[:, 0], count=values[:, 1])
    with open("a.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in table.to_pylist())
    with open("a.json", "w", encoding="utf-8") as file:
        json.dump(table.to_pylist(), file)
    names = ["a.csv", "a.tsv", "b.csv", "a.csv.gz", "a.parquet", "a.feather", "a.arrow"]
    names += ["a.npy", "a.npz", "b.npz", "a.jsonl", "a.json"]
    estimates = {name: found(name, other)["divergences"] for name in names}
    expected = found("a.csv", other)
    for name, rows in estimates.items():
        for row, wanted in zip(rows, expected["divergences"], strict=True):
            assert row["estimate"] == pytest.approx(wanted["estimate"], rel=1e-3), name
    assert "divided by semicolons" in found("b.csv", other)["notices"][0]


def test_standard_input(two):
    text = Path(two[1]).read_bytes()
    told = found(two[0], "-", input=text)
    assert [one["name"] for one in told["sets"]] == ["last", "standard input"]
    assert told["divergences"] == found(*two)["divergences"]
    assert found(two[0], "-", input=gzip.compress(text))["divergences"] == told["divergences"]
    refused(compare("-", "-", input=text), "only once")
    refused(compare(two[0], "-", input=b""), "standard input", "an empty file")


def test_numbers_without_a_header(two):
    np.savetxt("plain.txt", numbers())
    told = found("plain.txt", two[1])
    assert [column["name"] for column in told["columns"]] == ["size", "count"]
    assert any("numbers in its first row" in notice for notice in told["notices"])
    csv("narrow.csv", numbers()[:, :1], "3.5")
    refused(compare("narrow.csv", two[1]), "as many columns")


def test_flat_arrays():
    np.save("x.npy", np.arange(30.0))
    np.save("y.npy", np.arange(30.0) + 25)
    text = well(compare("x.npy", "y.npy"))
    assert "Given one value" in text
    assert "c1" in text


def test_decimal_commas():
    rows = [
        f"{value:.3f}".replace(".", ",") + f";{k % 5}" for k, value in enumerate(numbers()[:, 0])
    ]
    for name in ("a.csv", "b.csv"):
        with open(name, "w", encoding="utf-8") as file:
            file.write("\n".join(["größe;n", *rows]))
    told = found("a.csv", "b.csv")
    assert [one["name"] for one in told["columns"]] == ["größe", "n"]
    assert any("decimal commas" in notice for notice in told["notices"])


# --- splits --------------------------------------------------------------------------------------


def clinic(rows=120):
    values = numbers(rows)
    ward = ["north", "south", "east"]
    lines = ["ward,sex,size,count"]
    for k, (size, count) in enumerate(values):
        lines.append(f"{ward[k % 3]},{k % 2},{size + 3 * (k % 2):.4f},{count:.0f}")
    with open("clinic.csv", "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return "clinic.csv"


def test_split_by():
    told = found(clinic(), "--split-by", "sex")
    assert told["sets"] == [{"name": "sex 0", "rows": 60}, {"name": "sex 1", "rows": 60}]
    assert [column["name"] for column in told["columns"]] == ["size", "count"]
    told = found("clinic.csv", "--split-by", "ward", "--between", "south", "north")
    assert [one["name"] for one in told["sets"]] == ["south", "north"]
    refused(
        compare("clinic.csv", "--split-by", "ward"),
        *("exactly two values", "'east' (40 rows)", "--between", "pairwise --group-by"),
    )
    refused(compare("clinic.csv", "--split-by", "wart"), "'ward'?")
    refused(compare("clinic.csv", "--split-by", "ward", "--between", "north", "nord"), "'nord'")
    refused(compare("clinic.csv", "--split-by", "sex", "--columns", "sex"), "at least one column")
    refused(compare("clinic.csv"), "--split-by")
    refused(compare("clinic.csv", "--split-by", "sex", "--split-half"), "do not go together")


def test_rows_without_a_label():
    with open("g.csv", "w", encoding="utf-8") as file:
        file.write("g,v\n" + "a,1\nb,2\n,3\na,4\nb,5\n")
    told = found("g.csv", "--split-by", "g")
    assert "1 rows without a value in 'g' were left out." in told["notices"]
    assert [one["rows"] for one in told["sets"]] == [2, 2]


def test_halves():
    values = np.column_stack([np.arange(100), numbers(100)])
    csv("log.csv", values, "row,size,count")
    told = found("log.csv", "--split-half")
    assert [one["name"] for one in told["sets"]] == ["first half", "second half"]
    assert [column["name"] for column in told["columns"]] == ["size", "count"]
    assert any("'row' is in order" in notice for notice in told["notices"])
    told = found("log.csv", "--split-at", 30, "--columns", "row,size")
    assert told["sets"] == [
        {"name": "rows 1 to 30", "rows": 30},
        {"name": "rows 31 to 100", "rows": 70},
    ]
    assert any("'row' alone tells the two apart" in notice for notice in told["notices"])
    assert found("log.csv", "--split-at", 0.3)["sets"] == told["sets"]
    for wrong in (0, 100, -3, 2.5):
        refused(compare("log.csv", "--split-at", wrong), "--split-at must be a row from 1 to 99")
    # A file with nothing but a row number is compared by it.
    csv("rows.csv", np.arange(50)[:, None], "row")
    assert found("rows.csv", "--split-half")["columns"][0]["name"] == "row"


# --- what columns hold ---------------------------------------------------------------------------


def test_kinds_of_columns():
    rng = np.random.default_rng(3)
    for name, shift in (("a.csv", 0), ("b.csv", 12)):
        with open(name, "w", encoding="utf-8") as file:
            file.write("day,at,flag,label,odd,digits,mixed\n")
            for k in range(80):
                day = np.datetime64("2024-03-01") + int(rng.integers(0, 20)) + shift
                moment = np.datetime64("2024-03-01T00:00:00") + int(rng.integers(0, 9999))
                odd = "n.d." if k % 40 == 0 else k % 7
                mixed = "low" if k % 2 else k
                file.write(f"{day},{moment},{bool(k % 2)},x{k},{odd},'{k}',{mixed}\n")
    told = found("a.csv", "b.csv")
    kinds = {column["name"]: column["kind"] for column in told["columns"]}
    assert kinds == {"day": "date", "at": "moment", "flag": "boolean", "odd": "integer"}
    notices = "\n".join(told["notices"])
    assert "Text, left out: 'label', 'digits'." in notices
    assert "'mixed' mixes numbers and text, such as 'low', and was left out." in notices
    assert "'odd' holds numbers, and 2 entries such as 'n.d.' taken as missing." in notices
    assert "'day' holds dates." in notices
    where = " ".join(region["where"] for region in told["regions"])
    assert re.search(r"day (≤|≥) 2024-03-\d\d", where), where
    refused(compare("a.csv", "b.csv", "--columns", "label,day"), "numbers", "'label'")


def test_dates_that_do_not_overlap_are_no_finding():
    for name, month in (("a.csv", 1), ("b.csv", 2)):
        rows = [f"2024-{month:02}-{k % 28 + 1:02},{k % 7}" for k in range(60)]
        with open(name, "w", encoding="utf-8") as file:
            file.write("day,v\n" + "\n".join(rows))
    told = found("a.csv", "b.csv")
    assert [column["name"] for column in told["columns"]] == ["v"]
    assert any("'day' is all earlier" in notice for notice in told["notices"])
    assert len(found("a.csv", "b.csv", "--columns", "day,v")["columns"]) == 2


def test_numbers_stored_as_text():
    table = pa.table({"size": [f" {v:.4f}" for v in numbers()[:, 0]], "on": ["TRUE", "false"] * 30})
    pa.parquet.write_table(table, "a.parquet")
    pa.parquet.write_table(table.slice(10), "b.parquet")
    told = found("a.parquet", "b.parquet")
    assert {c["name"]: c["kind"] for c in told["columns"]} == {"size": "number", "on": "boolean"}
    assert "Column 'size' holds numbers stored as text." in told["notices"]


def test_nested_values():
    for name in ("a.jsonl", "b.jsonl"):
        with open(name, "w", encoding="utf-8") as file:
            for k in range(30):
                file.write(json.dumps({"v": k, "tags": ["x"], "at": {"lat": 1.0}}) + "\n")
    told = found("a.jsonl", "b.jsonl")
    assert "Nested values, left out: 'tags', 'at'." in told["notices"]


def test_mixed_types_in_json_lines():
    for name in ("a.jsonl", "b.jsonl"):
        with open(name, "w", encoding="utf-8") as file:
            for k in range(40):
                file.write(json.dumps({"v": k, "w": "?" if k == 3 else k}) + "\n")
    told = found("a.jsonl", "b.jsonl")
    assert [column["name"] for column in told["columns"]] == ["v", "w"]
    assert [one["rows"] for one in told["sets"]] == [39, 39]
    with open("c.jsonl", "w", encoding="utf-8") as file:
        file.write('{"v": 1}\n{"v": oops}\n')
    refused(compare("a.jsonl", "c.jsonl"), "c.jsonl", "line 2")


def test_columns_of_one_file_only(two):
    csv("more.csv", np.column_stack([numbers(), numbers()[:, 0]]), "count,size,extra")
    told = found(two[0], "more.csv")
    assert "Left out because not every file has it: 'extra'." in told["notices"]
    csv("none.csv", numbers(), "a,b")
    refused(compare(two[0], "none.csv"), "columns in common", "'size', 'count' and 'a', 'b'")
    csv("text.csv", [], "size,count\nx,y\nz,w")
    refused(compare("text.csv", two[0]), "no column of numbers")


# --- missing values ------------------------------------------------------------------------------


def gaps(name, missing, rows=100, hole="NA"):
    values = numbers(rows)
    with open(name, "w", encoding="utf-8") as file:
        file.write("size,count\n")
        for k, (size, count) in enumerate(values):
            file.write(f"{hole if k < missing else f'{size:.4f}'},{count:.0f}\n")
    return name


@pytest.mark.parametrize("hole", ["", "NA", "nan", "inf", "-Infinity", "?"])
def test_rows_with_gaps_are_dropped(hole):
    a, b = gaps("a.csv", 7, hole=hole), gaps("b.csv", 0)
    told = found(a, b)
    assert [one["rows"] for one in told["sets"]] == [93, 100]
    what = "missing or infinite" if "inf" in hole.lower() else "missing"
    assert f"Dropped for {what} values: 7 of 100 rows of 'a'." in told["notices"]
    refused(compare(a, b, "--missing", "error"), "7 in 'size'", "--missing drop")


def test_columns_with_gaps_are_left_out():
    a, b = gaps("a.csv", 30), gaps("b.csv", 0)
    told = found(a, b)
    assert [column["name"] for column in told["columns"]] == ["count"]
    assert "Column 'size' was left out: missing in 30% of a and 0% of b." in told["notices"]
    assert found(a, b, "--columns", "size,count")["sets"][0]["rows"] == 70
    gaps("c.csv", 60)
    refused(compare("c.csv", b, "--columns", "size,count"), "60 of 100 rows of 'c'", "--exclude")
    refused(compare("c.csv", b, "--exclude", "count"), "missing", "--columns")
    refused(compare("c.csv", b, "--missing", "error"), "60 in 'size'")


# --- a hostile world -----------------------------------------------------------------------------


def wrong_files():
    truncated = gzip.compress(b"size,count\n" + b"1,2\n" * 9000)[:-30]
    yield "empty", b"", "an empty file"
    yield "header only", b"size,count\n", "at least one row"
    yield "header without end", b"size,count", "at least one row"
    yield "ragged", b"size,count\n1,2\n3\n4,5,6\n", "same number of columns"
    yield "truncated gzip", truncated, "complete gzip file"
    yield "broken gzip", b"\x1f\x8b\x08\x00garbage", "complete gzip file"
    yield "twice the same name", b"size,size\n1,2\n", "'size' more than once"
    yield "a picture", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "binary data"
    yield "a spreadsheet", b"PK\x03\x04rest", "spreadsheet"
    yield "broken parquet", b"PAR1" + b"\x00" * 40, "complete Parquet file"
    yield "broken feather", b"ARROW1\x00\x00" + b"\x01" * 40, "complete Arrow file"
    yield "broken numpy", b"\x93NUMPY\x01\x00", "complete NumPy file"
    yield "broken json", b'{"size": 1}\n{"size"\n', "line 2"
    yield "other json", b'{"size": 1}\n[3]\n', "one JSON object per line"
    yield "text", b"size,count\nno,number\n", "no column of numbers"
    yield "prose", b"Dear all,\nplease find it attached.\nBest\n", "columns"


WRONG = {name: (content, words) for name, content, words in wrong_files()}


@pytest.mark.parametrize("kind", WRONG)
def test_files_that_are_no_tables(two, kind):
    content, words = WRONG[kind]
    with open("wrong", "wb") as file:
        file.write(content)
    for pair in (("wrong", two[0]), (two[0], "wrong")):
        refused(compare(*pair), words)


def test_no_such_file(two):
    refused(compare(two[0], "lost.csv"), "'lost.csv' must exist", "Relative paths")
    os.mkdir("folder")
    refused(compare(two[0], "folder"), "folder")
    refused(compare(two[0], two[0]), "twice")
    refused(cobpm("compare", *two, two[0]), "pairwise")
    refused(cobpm("compare"), "Missing argument")


def test_one_row_and_a_constant_column(two):
    csv("one.csv", numbers(1))
    assert found("one.csv", two[0])["verdict"]["kind"] == "unclear"
    both = [csv(n, np.column_stack([numbers()[:, 0], np.full(60, 7)])) for n in ("c.csv", "d.csv")]
    told = found(*both)
    assert "Column 'count' is constant (always 7) and was left out." in told["notices"]
    assert told["columns"][1]["used"] is False
    still = [csv(name, np.full((9, 2), 4.0)) for name in ("e.csv", "f.csv")]
    assert "No" in well(compare(*still))


def test_encodings(two):
    text = Path(two[0]).read_text(encoding="utf-8").replace("size", "größe")
    for name, encoding in (("u", "utf-8"), ("s", "utf-8-sig"), ("l", "latin-1"), ("w", "utf-16")):
        with open(f"{name}.csv", "w", encoding=encoding, newline="\r\n") as file:
            file.write(text)
    for name in ("s", "l", "w"):
        told = found("u.csv", f"{name}.csv")
        assert [column["name"] for column in told["columns"]] == ["größe", "count"]
        assert any("Latin-1" in notice for notice in told["notices"]) == (name == "l")


NAMES = [
    "[red]",
    "a [bold]b[/bold]",
    'say "x"',
    "two\nlines",
    "\x1b[31mred",
    "名前",
    "[/]",
    ":smile:",
]


@pytest.mark.parametrize("name", NAMES)
def test_strange_names(name):
    quoted = '"' + name.replace('"', '""') + '"'
    a, b = csv("a.csv", numbers(), f"{quoted},n"), csv("b.csv", numbers(shift=4), f"{quoted},n")
    text = well(compare(a, b))
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
    assert shown in text
    assert "\x1b" not in text
    assert found(a, b)["columns"][0]["name"] == name
    again = found(a, b, "--columns", name)
    assert [column["name"] for column in again["columns"]] == [name]


def test_names_with_commas():
    a, b = (csv(n, numbers(), '"x, y",n') for n in ("a.csv", "b.csv"))
    assert len(found(a, b, "--columns", "x, y")["columns"]) == 1
    assert found(a, b, "--exclude", "x, y")["columns"][0]["name"] == "n"


def test_strange_names_of_files():
    names = csv("[red].csv", numbers()), csv("[bold]x[).csv", numbers(shift=4))
    assert "[red] and [bold]x[) differ" in well(compare(*names))
    os.mkdir("other")
    told = found(csv("same.csv", numbers()), csv("other/same.csv", numbers()))
    assert [one["name"] for one in told["sets"]] == ["same.csv", str(Path("other/same.csv"))]


def test_huge_values():
    with open("a.csv", "w", encoding="utf-8") as file:
        file.write("v\n" + "\n".join(["1e308", "-1e308", "1.7e308", *"123456789"]))
    with open("b.csv", "w", encoding="utf-8") as file:
        file.write("v\n" + "\n".join(["1e308", "1e400", *"1234567899999"]))
    told = found("a.csv", "b.csv")
    assert [one["rows"] for one in told["sets"]] == [12, 14]
    assert all(np.isfinite(row["estimate"]) for row in told["divergences"])


def test_numpy_files_that_are_refused(two):
    np.save("objects.npy", np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
    refused(compare("objects.npy", two[0]), "pickled", "run code")
    np.savez("shapes.npz", a=np.zeros(3), b=np.zeros(4))
    refused(compare("shapes.npz", two[0]), "as many rows", "a (3,), b (4,)")
    np.save("cube.npy", np.zeros((3, 3, 3)))
    refused(compare("cube.npy", two[0]), "(3, 3, 3)")
    np.save("complex.npy", np.zeros(3, dtype=complex))
    refused(compare("complex.npy", two[0]), "complex128")
    np.save("none.npy", np.zeros((0, 2)))
    refused(compare("none.npy", two[0]), "at least one row")


@pytest.mark.parametrize("option", ["--json", "--csv", "--plot", "--report"])
def test_outputs_are_checked_first(two, option, monkeypatch):
    def too_late(*arguments, **settings):
        raise AssertionError("the work began")

    monkeypatch.setattr("cobpm.files.read_table", too_late)
    monkeypatch.setattr("cobpm.sets.read_table", too_late)
    refused(compare(*two, option, "nowhere/out.png"), option, "folder that exists")
    refused(compare(*two, option, "."), option, "name a file")
    refused(compare(*two, option, two[0]), option, "would overwrite")
    if os.getuid():
        os.mkdir("locked", 0o555)
        refused(compare(*two, option, "locked/out.png"), option, "read-only")


def test_outputs_that_clash(two):
    refused(compare(*two, "--json", "-", "--csv", "-"), "Only one")
    refused(compare(*two, "--json", "x", "--csv", "./x"), "another output")
    refused(compare(*two, "--plot", "-"), "standard output")
    refused(compare(*two, "--plot", "out.docx"), "--plot must end in one of", "png")


def test_nothing_is_left_after_a_failure(two, monkeypatch):
    def fail(*arguments, **settings):
        raise OSError("disk full")

    monkeypatch.setattr("cobpm.outputs.os.fsync", fail)
    refused(compare(*two, "--json", "out.json"), "disk full")
    assert sorted(os.listdir()) == ["last.csv", "this.csv"]


def test_missing_libraries(two, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused(compare(*two, "--plot", "x.png"), "pip install 'cobpm[plot]'")


# --- pairwise ------------------------------------------------------------------------------------


def test_pairwise_groups():
    text = well(cobpm("pairwise", clinic(), "--group-by", "ward", "--exclude", "sex", *QUICK))
    assert "3 sets, 120 rows, 2 columns" in text
    assert "north – south" in text
    assert "All pairs, most different first" in text
    assert "From one posterior for all sets" in text
    said = cobpm("pairwise", "clinic.csv", "--group-by", "ward", "-d", "kl", "--json", "-", *QUICK)
    told = json.loads(well(said))
    estimates = [pair["estimate"] for pair in told["pairs"]]
    assert len(estimates) == 6
    assert estimates == sorted(estimates, reverse=True)


def test_pairwise_files(two):
    third = csv("next.csv", numbers(seed=9))
    text = well(cobpm("pairwise", *two, third, "--top", 1, "--csv", "pairs.csv", *QUICK))
    assert "1 of 3 pairs, the most different" in text
    assert "different" in text
    rows = Path("pairs.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == "first,second,estimate,low,high"
    assert len(rows) == 4
    refused(cobpm("pairwise", two[0]), "--group-by")
    refused(cobpm("pairwise", *two, "--group-by", "size"), "takes one file")
    refused(cobpm("pairwise", *two, "--checkpoint", "x"), "--checkpoint", "--partition pair")


def test_pairwise_goes_on(two):
    command = ["pairwise", *two, csv("next.csv", numbers(seed=9)), "--partition", "pair", *QUICK]
    first = well(cobpm(*command, "--checkpoint", "pairs.ckpt", "--csv", "-"))
    assert os.path.getsize("pairs.ckpt")
    assert well(cobpm(*command, "--checkpoint", "pairs.ckpt", "--csv", "-")) == first
    assert well(cobpm(*command, "--csv", "-")) == first


def test_pairwise_heat_map(two):
    well(cobpm("pairwise", *two, "--plot", "map.png", *QUICK))
    assert Path("map.png").read_bytes()[:4] == b"\x89PNG"


# --- from outside --------------------------------------------------------------------------------

SCRIPT = "import sys; from cobpm.cli import main; sys.argv[0] = 'cobpm'; main()"


def outside(*arguments, **settings):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, *arguments],
        capture_output=True,
        timeout=60,
        check=False,
        **settings,
    )


def test_a_closed_pipe(two):
    command = f'"{sys.executable}" -c "{SCRIPT}" compare {" ".join(two)} | head -1'
    done = subprocess.run(command, shell=True, capture_output=True, timeout=60, check=False)
    assert done.stderr == b""
    assert done.stdout.startswith(b"last (60 rows)")


def test_a_terminal_that_knows_little(two):
    done = outside("compare", *two, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"differ strongly" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_an_interrupt(two):
    command = [sys.executable, "-c", SCRIPT, "compare", *two, "--draws", "200000000"]
    command += ["--model", "paper", "--engine", "mcmc", "--json", "out.json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        time.sleep(2.5)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        output, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130
    assert (output, errors.strip()) == (b"", b"Interrupted.")
    assert time.monotonic() - began < 10
    assert sorted(os.listdir()) == ["last.csv", "this.csv"]


def test_pandas_is_not_needed(two):
    script = f"""
import sys
from cobpm.cli import main
main(["compare", *{two!r}, "--draws", "60"], standalone_mode=False)
assert not {{"pandas", "narwhals", "matplotlib", "polars"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    assert "_COBPM_COMPLETE" in well(cobpm("completion", shell))
    words = {**os.environ, "_COBPM_COMPLETE": "bash_complete", "COMP_WORDS": "cobpm co"}
    done = outside(env={**words, "COMP_CWORD": "1"})
    assert done.stdout.split() == [b"plain,compare", b"plain,completion"]


def examples(command):
    text = cobpm(command, "--help").stdout
    return re.findall(r"^\s+((?:zcat .* \| )?cobpm .*)$", text.split("Examples:")[1], re.MULTILINE)


@pytest.mark.parametrize("command", ["compare", "pairwise"])
def test_examples_in_the_help_run(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name, seed in (("last", 0), ("this", 1), ("monday", 2), ("tuesday", 3), ("wednesday", 4)):
        csv(f"{name}.csv", numbers(seed=seed), "age,visits")
    with open("this.csv", "rb") as file, gzip.open("this.csv.gz", "wb") as zipped:
        zipped.write(file.read())
    pa.parquet.write_table(as_table(), "sensor.parquet")
    values = numbers(90)
    with open("clinic.csv", "w", encoding="utf-8") as file:
        file.write("id,ward,sex,age\n")
        for k, (age, _) in enumerate(values):
            file.write(f"{k},{('north', 'south', 'east')[k % 3]},{'fm'[k % 2]},{age:.3f}\n")
    found = examples(command)
    assert len(found) >= 4
    for line in found:
        arguments = line.split(" | ")[-1].split()[1:]
        if "--report" in arguments:
            pytest.importorskip("cobpm.report")
        given = Path("this.csv").read_bytes() if "|" in line else None
        well(cobpm(*arguments, *QUICK, input=given))
