"""An interrupt (Ctrl-C) stops long work at once."""

import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from cobpm.cli import main

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")

BEFORE = """
import numpy as np, cobpm, cobpm.api
rng = np.random.default_rng(1)
def pair(n, d): return rng.normal(size=(n, d)), rng.normal(size=(n, d)) + 0.3
"""
JOBS = {
    "cherry chains": "cobpm.compare(*data, model='paper', engine='mcmc', draws=200_000_000)",
    "guided chain": (
        "cobpm.compare(*data, model='paper', engine='mcmc', kernel='guided', draws=9,"
        " burn_in=2**31 - 1, chains=1)"
    ),
    "counting": "cobpm.compare(*data, model='paper', engine='exact', max_regions=20_000_000)",
    "drawing": "cobpm.compare(*data, model='paper', engine='exact', draws=50_000_000)",
    "pruned": "[cobpm.compare(*data, model='paper', engine='pruned', chains=20) for _ in range(9)]",
    "ratio, looking": "cobpm.compare(*data)",
    "ratio, drawing": "cobpm.compare(*data, draws=50_000_000)",
    "permuting": "cobpm.test(*data, permutations=5_000_000)",
    "asking": "post = cobpm.compare(*data)\nwhile True: post.log_ratio(data[0], level=0.9)",
}
DATA = {
    "counting": "pair(2_000_000, 3)",
    "ratio, looking": "pair(1_000_000, 3)",
    "pruned": "pair(3000, 20)",
}


def stop(command, wait_for):
    """Start, wait for a line, give it a moment, interrupt it; say how long it took to end."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout.readline().strip() == wait_for
        time.sleep(0.7)
        assert process.poll() is None, process.stderr.read()
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=20)
        return time.monotonic() - began, process.returncode, output, errors
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("job", JOBS)
def test_interrupt(job):
    data = DATA.get(job, "pair(2000, 3)")
    script = f"{BEFORE}\ndata = {data}\nprint('ready', flush=True)\n{JOBS[job]}"
    seconds, code, _, errors = stop([sys.executable, "-c", script], "ready")
    assert code == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert seconds < 10  # a fraction of one on a machine that has nothing else to do


def test_interrupt_of_a_command():
    # The demo itself is too quick to be interrupted: a long job takes its place.
    script = f"""{BEFORE}
from cobpm.cli import demo, main
def show(seed):
    data = pair(2000, 3)
    print('ready', flush=True)
    {JOBS["cherry chains"]}
demo.callback = lambda seed: show(seed)
main(["demo"])
"""
    seconds, code, _, errors = stop([sys.executable, "-c", script], "ready")
    assert code in (1, 130)
    assert "Traceback" not in errors
    assert seconds < 10


def test_an_interrupt_before_the_command_runs(monkeypatch):
    def parse(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("click.Group.parse_args", parse)
    done = CliRunner().invoke(main, ["merge", "a", "b", "-o", "c"])
    assert done.exit_code == 130
    assert "Interrupted." in done.stderr
