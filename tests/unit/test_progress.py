"""Bars for those who wait, and only for them."""

import time

import pytest

from cobpm import progress


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")


def test_quick_work_shows_no_bar(terminal, capsys):
    with progress.shown(True) as report:
        report("looking", 0.5)
    assert "looking" not in capsys.readouterr().err


def test_long_work_shows_a_bar(terminal, capsys, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.05)
    with progress.shown(True) as report:
        report("looking [red]", 0.5)  # and then nothing for a while
        time.sleep(0.5)
    captured = capsys.readouterr()
    assert "looking [red]" in captured.err
    assert captured.out == ""


def test_an_error_ends_the_bar(terminal, capsys, monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.05)

    def fail():
        with progress.shown(True):
            time.sleep(0.3)
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        fail()
    assert capsys.readouterr().err.rstrip().endswith("\x1b[2K")  # the line is wiped


def test_a_log_file_gets_one_line(capsys):
    with progress.shown(True) as report:
        report("looking", 0.5)
    assert capsys.readouterr().err.count("looking") == 1
