"""`cobpm reproduce`, seen from outside: what it writes, and what it does when it cannot."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cobpm.experiments import MODULES

COMMAND = "import sys; from cobpm.cli import main; sys.argv[0] = 'cobpm'; main()"


def run(*arguments, before="", cwd=None, start=subprocess.run, **options):
    """Run the command in a fresh process, after some lines that change it."""
    return start(
        [sys.executable, "-W", "error", "-c", f"{before}\n{COMMAND}", *map(str, arguments)],
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200", "PYTHONIOENCODING": "utf-8", "MPLBACKEND": "Agg"},
        **options,
    )


def done(*arguments, **options):
    return run(*arguments, capture_output=True, timeout=120, check=False, **options)


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


FILES = ["table1.json", "table1.md", "table1.png"]

# Two experiments: one that works, and one that the test says more about.
OTHER = """
import sys, types
import cobpm.experiments as experiments
experiments.MODULES.clear()
experiments.MODULES.update(other="other", table1="cobpm.experiments.table1")
other = types.ModuleType("other")
other.NAME, other.TITLE = "other", "Another one"
sys.modules["other"] = other
"""
MISSING = f"""{OTHER}
from cobpm.experiments.framework import Unavailable
def run(settings, progress):
    raise Unavailable("The photographs are missing: name their folder with --data.")
other.run = run
"""
LONG = f"""{OTHER}
import time
def run(settings, progress):
    print("ready", flush=True)
    time.sleep(60)
other.run = run
"""
SLOW_WRITING = """
import time
from matplotlib.figure import Figure
whole = Figure.savefig
def slowly(self, path, **options):
    whole(self, path, **options)
    print("ready", flush=True)
    time.sleep(60)
Figure.savefig = slowly
"""
NO_MATPLOTLIB = "import sys; sys.modules['matplotlib.figure'] = None"


def test_one(tmp_path):
    found = done("reproduce", "table1", "--out", tmp_path)
    assert (found.returncode, found.stderr) == (0, "")  # no bar where nobody looks
    assert found.stdout.startswith(f"{tmp_path / 'table1.md'}: ")
    assert names(tmp_path) == FILES
    again = done("reproduce", "table1", "--out", tmp_path)  # over what is there
    assert again.returncode == 0
    assert names(tmp_path) == FILES


def test_default_folder(tmp_path):
    assert done("reproduce", "table1", "--quick", cwd=tmp_path).returncode == 0
    assert names(tmp_path) == ["reproduction"]
    assert names(tmp_path / "reproduction") == FILES
    content = json.loads((tmp_path / "reproduction/table1.json").read_text(encoding="utf-8"))
    assert content["provenance"]["command"] == "cobpm reproduce table1 --quick"
    assert str(tmp_path) not in json.dumps(content)


def test_all_goes_on_without_what_is_missing(tmp_path):
    found = done("reproduce", "all", "--out", tmp_path, before=MISSING)
    assert found.returncode == 0
    assert found.stderr == (
        "other was not run: The photographs are missing: name their folder with --data.\n"
    )
    assert names(tmp_path) == ["index.md", *FILES]
    index = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert "Not run: The photographs are missing" in index
    assert "](table1.md)" in index


def refused(found, *words):
    assert found.returncode == 2
    assert "Traceback" not in found.stderr
    for word in words:
        assert word in found.stderr


def test_what_is_missing_alone(tmp_path):
    refused(done("reproduce", "other", "--out", tmp_path, before=MISSING), "name their folder")
    assert names(tmp_path) == []


def test_no_matplotlib(tmp_path):
    found = done("reproduce", "table1", "--out", tmp_path, before=NO_MATPLOTLIB)
    refused(found, "pip install 'cobpm[reproduce]'")
    assert names(tmp_path) == []


def test_unknown_experiment():
    refused(done("reproduce", "table3"), "'table3' is not one of", *MODULES, "'all'")


def test_folder_that_is_not_there(tmp_path):
    refused(done("reproduce", "table1", "--out", tmp_path / "a"), f"'{tmp_path / 'a'}'", "exist")
    assert names(tmp_path) == []
    refused(done("reproduce", "table1", "--data", tmp_path / "a"), "--data", "exist")


def test_file_in_the_place_of_the_folder(tmp_path):
    (tmp_path / "reproduction").write_text("mine")
    refused(done("reproduce", "table1", "--out", tmp_path / "reproduction"), "is a file")
    refused(done("reproduce", "table1", cwd=tmp_path), "'reproduction'", "--out")
    assert (tmp_path / "reproduction").read_text() == "mine"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder nobody can write to")
def test_folder_that_cannot_be_written_to():
    refused(done("reproduce", "table1", "--out", "/proc"), "Cannot write to the folder '/proc'")


def test_folder_in_the_place_of_a_file(tmp_path):
    (tmp_path / "table1.md").mkdir()
    refused(done("reproduce", "table1", "--out", tmp_path), "table1.md' is a folder")
    assert names(tmp_path) == ["table1.md"]


def test_all_looks_at_the_folder_first(tmp_path):
    (tmp_path / "table1.png").mkdir()
    found = done("reproduce", "all", "--out", tmp_path, before=LONG)  # would print "ready"
    refused(found, "table1.png' is a folder")
    (tmp_path / "table1.png").rename(tmp_path / "index.md")
    found = done("reproduce", "all", "--out", tmp_path, before=LONG)
    refused(found, "index.md' is a folder")
    assert found.stdout == ""
    assert names(tmp_path) == ["index.md"]


@pytest.mark.parametrize("option", ["--out", "--data"])
@pytest.mark.parametrize("empty", ["", " "])
def test_empty_names_of_folders(tmp_path, option, empty):
    refused(done("reproduce", "table1", option, empty, cwd=tmp_path), option, "is empty; leave")
    assert names(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
@pytest.mark.parametrize(
    ("name", "before"), [("other", LONG), ("all", LONG), ("table1", SLOW_WRITING)]
)
def test_interrupt(tmp_path, name, before):
    process = run(
        *("reproduce", name, "--out", tmp_path),
        before=before,
        start=subprocess.Popen,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert errors == "Interrupted: nothing half-written is left.\n"
    assert names(tmp_path) == []


def test_old_files_stay_when_the_new_ones_fail(tmp_path):
    (tmp_path / "table1.md").write_text("old")
    full = """
from pathlib import Path
whole = Path.write_text
def write_text(self, *arguments, **options):
    if self.suffix == ".md":
        raise OSError(28, "No space left on device")
    return whole(self, *arguments, **options)
Path.write_text = write_text
"""
    found = done("reproduce", "table1", "--out", tmp_path, before=full)
    refused(found, "No space left on device")
    assert names(tmp_path) == ["table1.md"]
    assert (tmp_path / "table1.md").read_text() == "old"


def test_the_command_costs_nothing_until_it_is_used():
    script = "import cobpm.cli, sys; print(*{name.split('.')[0] for name in sys.modules})"
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert not set(found.stdout.split()) & {"numpy", "scipy", "matplotlib", "sklearn", "cv2"}


def test_an_interrupt_waits_for_files_that_move(tmp_path):
    """Once the first file is in its place, the others follow."""
    moving = """
import os, signal
whole = os.replace
def replace(*arguments, **options):
    os.kill(os.getpid(), signal.SIGINT)
    return whole(*arguments, **options)
os.replace = replace
"""
    found = done("reproduce", "table1", "--out", tmp_path, before=moving)
    assert found.returncode == 130
    assert names(tmp_path) == FILES
