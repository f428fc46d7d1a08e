"""`cobpm monitor` and `cobpm.monitor`: numbers, exit codes, and a log to go on from."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

import cobpm as library
from cobpm import drift
from cobpm.sketch import Sketch
from tests.commands import QUICK, cobpm, csv, numbers, refused, well

pytestmark = pytest.mark.usefixtures("folder")
SHIFTS = (0.0, 0.0, 1.0, 2.0)


@pytest.fixture
def days(folder):
    return [csv(f"day{k}.csv", numbers(800, s, k)) for k, s in enumerate(SHIFTS)]


def monitor(*arguments, **settings):
    return cobpm("monitor", *arguments, *QUICK, **settings)


def lines(path="drift.jsonl"):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


@pytest.fixture
def worked(monkeypatch):
    """Names of the steps that are worked out."""
    names, real = [], drift._step
    monkeypatch.setattr(drift, "_step", lambda name, *a: names.append(name) or real(name, *a))
    return names


def test_steps_and_exit_codes(days):
    done = monitor(*days, "--threshold", 0.2)
    assert done.exit_code == 1
    assert "Threshold 0.2: 2 of 3 intervals lie above it." in done.stdout
    assert "Total variation distance from the reference" in done.stdout
    assert "size" in done.stdout
    assert "no interval lies above it" in well(monitor(*days[:2], "--threshold", 0.2))
    well(monitor(*days, "--threshold", 0.9))
    well(monitor(*days))


def test_a_night_adds_a_line(days, worked):
    options = "--threshold", 0.2, "--log", "drift.jsonl"
    well(monitor(*days[:2], *options))
    assert worked == ["day1"]
    first = Path("drift.jsonl").read_bytes()
    assert monitor(*days[:3], *options).exit_code == 1
    assert worked == ["day1", "day2"]
    assert Path("drift.jsonl").read_bytes().startswith(first)
    assert monitor(days[0], days[2], *options).exit_code == 1  # the log says the same
    assert worked == ["day1", "day2"]
    assert [one["step"] for one in lines()] == ["day1", "day2"]
    assert [one["above"] for one in lines()] == [False, True]


def test_what_is_worked_out_again(days, worked):
    log = "--log", "drift.jsonl"
    for options in ((), ("--seed", 2), ("-d", "kl"), ("--level", 0.5)):
        well(monitor(*days[:2], *log, *options))
    assert len(worked) == 4
    well(monitor(days[2], days[1], *log))  # another reference
    csv(days[1], numbers(800, 3.0, 9))  # another file of the same name
    well(monitor(*days[:2], *log))
    assert len(worked) == len(lines()) == 6
    well(monitor(*days[:2], *log))
    assert len(worked) == 6


def test_a_line_cut_off_by_a_crash(days, worked):
    log = "--log", "drift.jsonl"
    well(monitor(*days, *log))
    whole = Path("drift.jsonl").read_bytes()
    Path("drift.jsonl").write_bytes(whole[:-40])
    well(monitor(*days, *log))
    assert worked == ["day1", "day2", "day3", "day3"]
    assert [one["step"] for one in lines()] == ["day1", "day2", "day3"]
    Path("drift.jsonl").write_bytes(whole[:-1])  # only its end is missing
    well(monitor(*days, *log))
    assert len(worked) == 4
    Path("drift.jsonl").write_bytes(b"no log\n" + whole)
    refused(monitor(*days, *log), "drift.jsonl", "line 1")


def test_a_full_disk_leaves_whole_lines(days, monkeypatch):
    log = "--log", "drift.jsonl"
    well(monitor(*days[:2], *log))
    before = Path("drift.jsonl").read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("cobpm.drift_log.os.fsync", full)
    refused(monitor(*days, *log), "The disk is full")
    assert Path("drift.jsonl").read_bytes() == before


def test_an_interrupt_keeps_what_is_done(days, monkeypatch):
    real = drift._step

    def step(name, *arguments):
        if name == "day2":
            raise KeyboardInterrupt
        return real(name, *arguments)

    monkeypatch.setattr(drift, "_step", step)
    done = monitor(*days, "--log", "drift.jsonl")
    assert done.exit_code == 130
    assert "The steps that are done are in 'drift.jsonl'." in done.stderr
    assert [one["step"] for one in lines()] == ["day1"]


def test_sketches_and_files_agree(days):
    well(cobpm("sketch", days[0], "-o", "day0.cobpm"))
    well(cobpm("sketch", days[2], "-o", "day2.cobpm", "--grid", "day0.cobpm"))
    tables = [
        well(monitor(*pair, "--csv", "-"))
        for pair in ((days[0], days[2]), ("day0.cobpm", days[2]), ("day0.cobpm", "day2.cobpm"))
    ]
    assert tables[0] == tables[1] == tables[2]
    assert tables[0].startswith("step,rows,estimate,low,high,")


def test_what_is_left_out_is_said():
    for k in range(2):
        lines = [f"2024-01-0{k + 1},w,{v}" for v in numbers(300, seed=k)[:, 0]]
        Path(f"day{k}.csv").write_text("\n".join(["day,ward,size", *lines]))
    text = well(monitor("day0.csv", "day1.csv", "--threshold", 0.1))
    assert "Notice: Text, left out: 'ward'." in text
    assert "Notice: Dates, left out: 'day'." in text


def test_pictures(days):
    pytest.importorskip("matplotlib")
    well(monitor(*days, "--plot", "drift.png", "--threshold", 0.9))
    assert Path("drift.png").read_bytes()[1:4] == b"PNG"
    refused(monitor(*days, "--plot", "drift.doc"), "--plot")


def test_bad_input(days):
    refused(monitor(days[0], "none.csv"), "none.csv")
    refused(monitor(*days, "--threshold", -1), "--threshold")
    refused(monitor(*days, "--log", "nowhere/a.jsonl"), "--log")
    refused(monitor(*days, "--log", days[0]), "overwrite")
    refused(monitor(days[0], days[1], days[1]), "twice")
    assert sorted(os.listdir()) == sorted(days)


def test_from_python(days):
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(900, 2))
    steps = {"same": rng.normal(size=(900, 2)), "moved": rng.normal(1, 1, (900, 2))}
    found = library.monitor(reference, steps, threshold=0.2, draws=60, log="a.jsonl")
    assert found.above == ("moved",)
    table = found.to_frame()
    assert list(table.index) == ["same", "moved"]
    assert (table["low"] <= table["high"]).all()
    assert "c1" in table.loc["moved", "where"]
    assert table.loc["moved", "share_step"] != table.loc["moved", "share_reference"]
    base = Sketch.of(reference)
    alone = library.monitor(base, [steps["moved"]], draws=60)
    assert alone.steps[0].estimate == found.steps[1].estimate  # whatever the other steps
    again = library.monitor(reference, steps, draws=60, log="a.jsonl")
    assert again.steps == found.steps
    assert len(lines("a.jsonl")) == 2
    with pytest.raises(library.InputError, match="'steps' parameter"):
        library.monitor(reference, reference)


@pytest.mark.parametrize(
    "damage",
    [
        {"estimate": "high"},
        {"estimate": float("nan")},
        {"low": None},
        {"low": True},
        {"rows": -3},
        {"rows": 10**30},
        {"rows": 1.5},
        {"step": 7},
        {"settings": []},
        {"same_probability": "no"},
        {"reference": None},
    ],
)
def test_a_damaged_log_is_not_taken_for_drift(days, damage):
    log = "--log", "drift.jsonl", "--threshold", 0.001
    monitor(*days[:2], *log)
    line = json.dumps(lines()[0] | damage).encode() + b"\n"
    Path("drift.jsonl").write_bytes(line)
    name = next(iter(damage))
    refused(monitor(*days, *log), "drift.jsonl", "line 1", f"'{name}' cannot be")
    assert Path("drift.jsonl").read_bytes() == line


@pytest.mark.parametrize(
    "text",
    [
        b"\x00\xff\xfe\x80" * 99,
        b"no log, and no end of a line",
        b'{"step": "a"}\n',
        b'{"step": "a"}',
        b"[1, 2]\n",
        b"null\n",
        b"[" * 100_000 + b"\n",
        b"9" * 9_999 + b"\n",
        b'{"other": 1',
    ],
)
def test_what_is_no_log_stays_as_it_is(days, text, worked):
    Path("drift.jsonl").write_bytes(text)
    refused(monitor(*days, "--log", "drift.jsonl"), "drift.jsonl", "line 1")
    assert Path("drift.jsonl").read_bytes() == text
    assert not worked


def test_a_log_cut_off_anywhere_goes_on(days, worked):
    log = "--log", "drift.jsonl"
    well(monitor(*days[:3], *log))
    whole = Path("drift.jsonl").read_bytes()
    first = whole.index(b"\n") + 1
    for end in (first + 1, first + 9, first + 30, len(whole) - 2):
        Path("drift.jsonl").write_bytes(whole[:end])
        well(monitor(*days[:3], *log))
        assert [one["step"] for one in lines()] == ["day1", "day2"]


def test_two_monitors_with_one_log_write_a_step_once(days, monkeypatch):
    real, first = drift._step, []

    def step(name, *arguments):
        if not first:  # meanwhile, another monitor does the same work
            first.append(name)
            library.monitor(days[0], list(days[1:]), log="drift.jsonl")
        return real(name, *arguments)

    monkeypatch.setattr(drift, "_step", step)
    found = library.monitor(days[0], list(days[1:]), log="drift.jsonl")
    assert [one["step"] for one in lines()] == ["day1", "day2", "day3"]
    assert [one.at for one in found.steps] == [one["at"] for one in lines()]


def test_a_failure_is_no_alarm(days, monkeypatch):
    def step(*arguments):
        raise ValueError("a mistake of ours")

    monkeypatch.setattr(drift, "_step", step)
    done = monitor(*days, "--threshold", 0.2)
    assert done.exit_code == 3
    assert "a mistake of ours" in done.stderr
