import numpy as np
import pytest

from benchmarks import peers
from benchmarks.problems import TUNING
from benchmarks.seen_problems import SEEN
from benchmarks.untouched_problems import UNTOUCHED
from cobpm.experiments.laws import DIVERGENCES

PROBLEMS = {problem.name: problem for problem in TUNING + SEEN + UNTOUCHED}
PEERS = {name: (modules, peer) for name, modules, peer in peers.PEERS}


def peer(name):
    modules, found = PEERS[name]
    for module in modules:
        pytest.importorskip(module)
    return found


@pytest.mark.filterwarnings("default")  # what other packages warn about is theirs
@pytest.mark.parametrize("problem", ["same-normal", "beta", "counts", "codes"])
@pytest.mark.parametrize("name", PEERS)
def test_every_peer_answers_also_with_ties(name, problem):
    x, y = PROBLEMS[problem].sample(40, np.random.default_rng(1))
    estimates = peer(name)(x, y)
    assert "kl" in estimates
    assert set(estimates) <= set(DIVERGENCES)
    assert np.isfinite(list(estimates.values())).all()
    assert estimates == peer(name)(x, y)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", PEERS)
def test_the_first_set_is_the_one_from_which_kl_is_taken(name):
    rng = np.random.default_rng(2)
    narrow, wide = rng.normal(size=(400, 1)), 3 * rng.normal(size=(400, 1))
    estimates = peer(name)(narrow, wide)
    truth = np.log(3) + 1 / 18 - 1 / 2  # 0.65, and 2.9 the other way round
    assert estimates["kl"] == pytest.approx(truth, abs=0.3)


def test_plugging_in_the_true_ratio_gives_the_truth():
    problem = PROBLEMS["shift-5"]
    x, y = problem.sample(100_000, np.random.default_rng(3))
    at_x, at_y = (-0.4 * (points - 0.2).sum(axis=1) for points in (x, y))
    estimates = peers.plug_in(at_x, at_y)
    assert set(estimates) == set(DIVERGENCES)
    for name, value in estimates.items():
        assert value == pytest.approx(problem.truth[name], abs=0.03), name


def test_corrected_powers_have_no_bias_far_from_edges():
    x, y = np.random.default_rng(5).normal(size=(2, 20_000, 1))
    for k in (2, 5):
        estimates = peers.neighbours(x, y, k)
        assert estimates["hellinger"] < 0.1
    assert peers.neighbours(x, y, 5)["renyi:2"] == pytest.approx(0, abs=0.05)


def test_what_is_not_installed_is_left_out(monkeypatch, capsys):
    missing = ("missing", ("no_such_package",), peers.adaptive_neighbours)
    monkeypatch.setattr(peers, "PEERS", (*peers.PEERS[:1], missing))
    assert list(peers.available()) == ["k-NN, k=1"]
    assert "without missing: no_such_package is not installed" in capsys.readouterr().err


def test_the_table_still_prints(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(peers, "PEERS", peers.PEERS[:2])
    peers.main(["--sizes", "20", "--replicates", "1", "--records", str(tmp_path / "peers.jsonl")])
    text = capsys.readouterr().out
    assert "## TUNING" in text
    assert "## UNTOUCHED" in text
    assert "| k-NN, k=5 |" in text
