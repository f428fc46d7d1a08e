"""Files that people have, and what becomes of their columns."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from tests.commands import (
    as_table,
    compare,
    csv,
    found,
    numbers,
    refused,
    well,
)

pytestmark = pytest.mark.usefixtures("folder")


# --- formats -------------------------------------------------------------------------------------


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
