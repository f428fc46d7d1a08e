"""Files that people should not have, and folders that cannot be written to."""

import gzip
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.commands import (
    cobpm,
    compare,
    csv,
    found,
    numbers,
    refused,
    well,
)

pytestmark = pytest.mark.usefixtures("folder")


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
