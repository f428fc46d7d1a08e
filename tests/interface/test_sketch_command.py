"""`cobpm sketch`, `cobpm merge`, and sketches where files are expected."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from cobpm.sketch import Sketch
from tests.commands import QUICK, cobpm, compare, csv, found, numbers, refused, well

pytestmark = pytest.mark.usefixtures("folder")


def sketched(path, out, *options):
    well(cobpm("sketch", path, "-o", out, *options))
    return out


def test_a_sketch_of_a_file(two):
    text = well(cobpm("sketch", two[0], "-o", "last.cobpm"))
    assert "Sketch of rows (60 rows)" in text
    assert "last.cobpm: 0.0" in text
    assert Sketch.load("last.cobpm").sizes == (60,)
    assert well(cobpm("sketch", two[0], "-o", "last.cobpm", "-q")) == ""


def test_merging_is_counting_all(two):
    bounds = "--bounds", "size=-9:9", "--bounds", "count=0:10"
    a, b = (sketched(path, f"{k}.cobpm", *bounds) for k, path in enumerate(two))
    both = sketched("last.csv", "both.cobpm", *bounds)
    well(cobpm("merge", a, b, "-o", "all.cobpm"))
    well(cobpm("sketch", *two, "-o", "both.cobpm", *bounds))
    assert Sketch.load("all.cobpm") == Sketch.load(both)
    well(cobpm("merge", a, b, "-o", a))  # one of those that are read
    assert Sketch.load(a).sizes == (120,)


def test_grids_must_agree(two):
    a, b = (sketched(path, f"{k}.cobpm") for k, path in enumerate(two))
    refused(cobpm("merge", a, b, "-o", "all.cobpm"), "1.cobpm", "the grid of '0.cobpm'", "--grid")
    assert not Path("all.cobpm").exists()
    b = sketched(two[1], "1.cobpm", "--grid", a)
    well(cobpm("merge", a, b, "-o", "all.cobpm"))
    refused(cobpm("sketch", two[0], "-o", "x", "--grid", a, "--bounds", "0:1"), "--bounds")


def test_sketches_are_compared_like_rows(two):
    a = sketched(two[0], "last.cobpm")
    b = sketched(two[1], "this.cobpm", "--grid", a)
    told = found(a, b)
    assert [one["name"] for one in told["sets"]] == ["last", "this"]
    assert told["verdict"]["kind"] == "different"
    assert told["columns"][1] == {"name": "count", "kind": "integer", "used": True}
    assert any("cells of a grid" in notice for notice in told["notices"])
    mixed, streamed, held = found(a, two[1]), found(*two, "--stream"), found(*two)
    assert mixed["divergences"] == told["divergences"]
    for one in (told, streamed):
        assert one["divergences"][0]["estimate"] == pytest.approx(
            held["divergences"][0]["estimate"], abs=0.1
        )
    assert not any("cells of a grid" in notice for notice in held["notices"])
    text = well(cobpm("pairwise", a, b, *QUICK))
    assert "2 sets, 120 rows, 2 columns" in text
    refused(compare(a, b, "--columns", "size"), "--columns")
    refused(compare(a, "--split-half", "--stream"), "--stream takes two files")


def test_large_files_are_streamed(two, monkeypatch):
    monkeypatch.setattr("cobpm.streams.LARGE_BYTES", 500)
    assert any("cells of a grid" in notice for notice in found(*two)["notices"])


def test_what_cannot_be_sketched(two):
    refused(cobpm("sketch", "none.csv", "-o", "a.cobpm"), "none.csv", "exist")
    refused(cobpm("sketch", two[0], "-o", "nowhere/a.cobpm"), "--output", "folder")
    refused(cobpm("sketch", two[0], "-o", two[0]), "overwrite")
    refused(cobpm("sketch", two[0], "-o", "a", "--columns", "sise"), "Did you mean 'size'")
    refused(cobpm("sketch", two[0], "-o", "a", "--bounds", "size=0:1"), "--bounds", "'count'")
    refused(cobpm("merge", two[0], "-o", "a"), "last.csv")
    assert sorted(os.listdir()) == ["last.csv", "this.csv"]


def test_a_full_disk_leaves_what_was_there(two, monkeypatch):
    before = Path(sketched(two[0], "a.cobpm")).read_bytes()

    def full(*arguments, **settings):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pa.parquet.ParquetWriter, "write_table", full)
    refused(cobpm("sketch", two[1], "-o", "a.cobpm"), "The disk is full")
    assert Path("a.cobpm").read_bytes() == before
    assert sorted(os.listdir()) == ["a.cobpm", "last.csv", "this.csv"]


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_an_interrupt_leaves_what_was_there(two):
    before = Path(sketched(two[0], "a.cobpm")).read_bytes()
    table = pa.table({"size": numbers(2_000_000)[:, 0]})
    pa.parquet.write_table(table, "long.parquet")
    script = (
        "import cobpm.streams as s, sys, time\n"
        "pieces = s.Stream.pieces\n"
        "def slow(self, *a):\n"
        "    for piece in pieces(self, *a):\n"
        "        print('reading', flush=True); time.sleep(1); yield piece\n"
        "s.Stream.pieces = slow\n"
        "from cobpm.cli import main\n"
        "main(['sketch', 'long.parquet', '-o', 'a.cobpm'])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline().strip() == "reading"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Interrupted." in errors
    assert "Traceback" not in errors
    assert Path("a.cobpm").read_bytes() == before
    assert sorted(os.listdir()) == ["a.cobpm", "last.csv", "long.parquet", "this.csv"]


def test_a_file_that_changes_half_way():
    lines = ["size,count", *(f"{k / 8},{k % 5}" for k in range(300_000)), "oops,1"]
    Path("long.csv").write_text("\n".join(lines))
    told = refused(cobpm("sketch", "long.csv", "-o", "a.cobpm"), "long.csv", "'size' after row")
    assert "--exclude 'size'" in told
    assert not Path("a.cobpm").exists()


def test_json_lines_too():
    rows = [json.dumps({"size": a, "count": b}) for a, b in numbers().tolist()]
    Path("a.jsonl").write_text("\n".join(rows))
    sketched("a.jsonl", "a.cobpm")
    sketched(csv("a.csv", numbers()), "b.cobpm", "--grid", "a.cobpm")
    assert Sketch.load("a.cobpm").sizes == Sketch.load("b.cobpm").sizes


def test_pictures_and_reports_of_sketches(two):
    a = sketched(two[0], "last.cobpm")
    b = sketched(two[1], "this.cobpm", "--grid", a)
    for model in ("ratio", "paper"):
        outputs = "--plot", f"{model}.png", "--report", f"{model}.html"
        well(compare(a, b, *outputs, "--model", model, *QUICK))
        assert Path(f"{model}.png").read_bytes().startswith(b"\x89PNG")
        page = Path(f"{model}.html").read_text(encoding="utf-8")
        assert "last" in page
        assert "size" in page


def test_sketches_are_written_and_read_without_pandas(two):
    a = sketched(two[0], "last.cobpm")
    script = (
        "import sys; from cobpm.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert 'pandas' not in sys.modules"
    )
    for command in (["sketch", two[1], "-o", "b", "--grid", a], ["merge", a, "b", "-o", "c"]):
        subprocess.run([sys.executable, "-c", script, *command, "-q"], check=True)
