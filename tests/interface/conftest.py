"""A folder of its own with two small files, for tests of commands."""

import pytest

from tests.commands import csv, numbers


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")


@pytest.fixture
def two(folder):
    return csv("last.csv", numbers()), csv("this.csv", numbers(shift=3.0, seed=1))
