"""The command line, progress, and what an import costs: seen from outside, in a fresh process."""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points

import numpy as np
import pytest

import cobpm
from cobpm.divergences import SUMMARY, parse

RNG = np.random.default_rng(4)
X, Y = RNG.normal(size=(300, 2)), RNG.normal(size=(300, 2)) + 1


def run(*arguments):
    """Run the command as its entry point does."""
    script = "import sys; from cobpm.cli import main; sys.argv[0] = 'cobpm'; main()"
    return python(script, *arguments)


def python(script, *arguments):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"},
    )


def test_entry_point():
    (command,) = entry_points(group="console_scripts", name="cobpm")
    assert command.value == "cobpm.cli:main"


def test_version():
    done = run("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == f"cobpm, version {cobpm.__version__}"


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help(flag):
    done = run(flag)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: cobpm [OPTIONS] COMMAND")
    assert "demo" in done.stdout
    assert "..." not in done.stdout.split("Commands:")[1]  # no sentence is cut short
    assert "--seed" in run("demo", flag).stdout


def test_demo():
    done = run("demo")
    assert (done.returncode, done.stderr) == (0, "")
    for name in SUMMARY:
        assert parse(name, "demo").label in done.stdout
    assert "90% interval" in done.stdout
    assert "They differ most where" in done.stdout
    # The truth lies in the intervals for the two that have a name in the paper.
    for label, truth in (("total variation", 0.2461), ("Hellinger", 0.2207)):
        line = next(line for line in done.stdout.splitlines() if label in line)
        _, interval, shown = (part.strip() for part in line.strip("│ ").split("│")[1:])
        low, high = map(float, interval.split(" – "))
        assert float(shown) == truth
        assert low < truth < high
    assert run("demo").stdout.split("Engine")[0] == done.stdout.split("Engine")[0]
    assert run("demo", "--seed", "2").stdout.split("Engine")[0] != done.stdout.split("Engine")[0]


@pytest.mark.parametrize("arguments", [["demos"], ["demo", "--seed", "x"], ["--nothing"]])
def test_wrong_commands(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: cobpm")
    assert "Error:" in done.stderr


HEAVY = ("scipy", "pandas", "rich", "click", "narwhals", "xarray", "arviz_stats", "polars")
HEAVY += ("sklearn",)


def test_imports_are_lazy():
    script = "import cobpm, sys, json; print(json.dumps([m.split('.')[0] for m in sys.modules]))"
    loaded = set(json.loads(python(script).stdout))
    assert not loaded & set(HEAVY)
    assert "cobpm" in loaded


def test_arrays_need_no_data_frame_library():
    script = """
import sys, cobpm
post = cobpm.compare([[1.0, 2.0], [2.0, 3.0]], [[2.0, 1.0]], rng=1, draws=10)
post.interval("kl"), post.estimate("kl"), post.draws("tv"), post.density([[1.0, 2.0]], "x")
print(*{name.split(".")[0] for name in sys.modules})
"""
    loaded = set(python(script).stdout.split())
    assert not loaded & (set(HEAVY) - {"scipy"})


def test_public_names():
    assert dir(cobpm) == sorted(cobpm.__all__)
    for name in cobpm.__all__:
        getattr(cobpm, name)
    with pytest.raises(AttributeError, match="no attribute 'comapre'"):
        _ = cobpm.comapre


def test_progress_goes_to_standard_error():
    script = """
import numpy as np, cobpm
rng = np.random.default_rng(1)
x, y = rng.normal(size=(500, 3)), rng.normal(size=(500, 3))
cobpm.compare(x, y, rng=1, progress={}, draws=50_000, model="paper")
"""
    shown, silent = python(script.format(True)), python(script.format(False))
    assert (shown.returncode, shown.stdout) == (0, "")
    assert "drawing partitions" in shown.stderr
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, "", "")


@pytest.mark.filterwarnings("ignore::cobpm.diagnostics.ConvergenceWarning")
@pytest.mark.parametrize(
    "settings",
    [
        {"engine": "mcmc", "draws": 8000, "burn_in": 2000},
        {"engine": "exact", "draws": 60_000},
        {"engine": "pruned", "max_regions": 20_000, "chains": 2},
    ],
)
def test_progress_as_a_function(settings):
    seen = []
    one = cobpm.compare(
        X, Y, rng=1, progress=lambda *told: seen.append(told), **settings, model="paper"
    )
    assert seen
    for stage, fraction in seen:
        assert isinstance(stage, str)
        assert 0 <= fraction <= 1
    for stage in {stage for stage, _ in seen} if settings["engine"] != "pruned" else ():
        fractions = [fraction for name, fraction in seen if name == stage]
        if stage.startswith(("running", "drawing")):  # others may be repeated
            assert fractions == sorted(fractions)
    other = cobpm.compare(X, Y, rng=1, **settings, model="paper")
    np.testing.assert_array_equal(one.draws("kl"), other.draws("kl"))


def test_an_error_in_the_progress_function_reaches_the_caller():
    def fail(stage, fraction):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        cobpm.compare(X, Y, rng=1, engine="mcmc", draws=1_000_000, progress=fail, model="paper")
