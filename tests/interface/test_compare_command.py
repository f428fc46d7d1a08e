"""`cobpm compare` and `cobpm pairwise`: what they say and write, seen from inside and outside."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from tests.commands import (
    QUICK,
    SAME,
    as_table,
    clinic,
    cobpm,
    compare,
    csv,
    found,
    numbers,
    refused,
    well,
)

pytestmark = pytest.mark.usefixtures("folder")


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


# --- splits --------------------------------------------------------------------------------------


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
    assert "Left out because 'g' is missing: 1 row." in told["notices"]
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
    before = """
import cobpm
fit = cobpm.fit
def told(*samples, **settings):
    print("ready", flush=True)
    return fit(*samples, **settings)
cobpm.fit = told
"""
    command = [sys.executable, "-c", before + SCRIPT, "compare", *two, "--draws", "200000000"]
    command += ["--model", "paper", "--engine", "mcmc", "--json", "out.json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.7)
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
        if "--report" in arguments and find_spec("cobpm.report") is None:
            continue
        given = Path("this.csv").read_bytes() if "|" in line else None
        well(cobpm(*arguments, *QUICK, input=given))


def test_the_page_of_the_command_line(monkeypatch):
    monkeypatch.delenv("COLUMNS")
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(code, "command-line.md", "exec"), {})
    blocks = re.findall(r"```console\n\$ cobpm (.*)\n((?:.*\n)*?)```", page)
    assert len(blocks) >= 4
    for command, shown in blocks:
        command, _, given = command.partition(" < ")
        text = well(cobpm(*command.split(), input=Path(given).read_bytes() if given else None))
        # Words; the numbers are those of the page unless the model has changed since.
        assert text.split("\n")[0] == shown.split("\n")[0]
        assert len(text.split("\n\n")) == len(shown.split("\n\n"))
