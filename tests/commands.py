"""Commands run inside this process, and small files to run them on."""

import json
import re

import numpy as np
import pyarrow as pa
from click.testing import CliRunner

from cobpm.cli import main

QUICK = ("--draws", "60")
SAME = re.compile(r"\d+\.\d+ s\.")


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


def found(*arguments, **settings):
    """The result in JSON."""
    return json.loads(well(compare(*arguments, "--json", "-", **settings)))


def as_table():
    values = numbers()
    return pa.table({"size": values[:, 0], "count": values[:, 1]})


def clinic(rows=120):
    values = numbers(rows)
    ward = ["north", "south", "east"]
    lines = ["ward,sex,size,count"]
    for k, (size, count) in enumerate(values):
        lines.append(f"{ward[k % 3]},{k % 2},{size + 3 * (k % 2):.4f},{count:.0f}")
    with open("clinic.csv", "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return "clinic.csv"
