"""pairwise() as people meet it: bad input, an interrupt, a picture."""

import _thread
import re
import sys
import threading

import numpy as np
import pandas as pd
import pytest

import cobpm

RNG = np.random.default_rng(3)
X, Y, Z = (RNG.normal(size=(30, 2)) for _ in range(3))
FRAME = pd.DataFrame({"u": [1.0, 2.0, 3.0, 4.0], "v": 0.5, "site": ["n", "n", "s", None]})


@pytest.mark.parametrize(
    ("samples", "settings", "message"),
    [
        ([X], {}, "The 'samples' parameter of pairwise() must make at least two sets."),
        ([], {}, "must hold 1 to 65536 samples. Got 0 samples"),
        ([X, Y[:, :1]], {}, "'samples[1]' parameter of pairwise() must have as many columns"),
        ([X, Y[:0]], {}, "must hold at least one point and one column. Got an empty sample"),
        ({"a": X, 1: Y, "1": Z}, {}, "must have names that differ as text. Got '1' more than once"),
        (X, {}, "say which rows belong together with groups="),
        ([X, Y * np.nan], {}, "must hold finite numbers only"),
        ([X, Y], {"partition": "both"}, "'partition' parameter of pairwise() must be one of"),
        ([X, Y], {"divergence": "kl2"}, "must be a known name"),
        ([X, Y], {"level": 90}, "Did you mean 0.9?"),
        ([X, Y], {"read_out": "mode"}, "'read_out' parameter of pairwise() must be one of"),
        (
            [X, Y],
            {"divergence": "chi2", "read_out": "mean"},
            "The mean of the chi-squared divergence does not exist",
        ),
        ([X, Y], {"draws": 0}, "'draws' parameter of pairwise() must be a whole number"),
        ([X, Y], {"rng": -1}, "'rng' parameter of pairwise()"),
        ([X, Y], {"partition": "pair", "rng": -1}, "'rng' parameter of pairwise()"),
        ([X, Y], {"bounds": (0, 1)}, "'bounds' parameter of pairwise() must contain every point"),
        ([X, Y], {"bounds": (0, 1), "partition": "pair"}, "must contain every point"),
        ([X, Y], {"delta": 1}, "must go with model='paper'. Got 1 instead. Add model='paper'."),
        ([X, Y], {"chains": 8}, "must go with model='paper'. Got 8 instead. Add model='paper'."),
        (
            [X, Y],
            {"delta": 0, "model": "paper"},
            "'delta' parameter of pairwise() must be a positive number",
        ),
        ([X, Y], {"model": "papr"}, "must be one of 'paper', 'ratio'. Got 'papr'"),
        (FRAME, {"groups": "sight"}, "must name a column of the data frame. Got 'sight'"),
        (FRAME, {"groups": "site"}, "must label every row. Got 1 of 4 rows without one"),
        (FRAME[:2], {"groups": "site"}, "'groups' parameter of pairwise() must make at least two"),
        (X, {"groups": "site"}, "must name a column of a data frame"),
        (X, {"groups": [1, 2]}, "must have one label per row. Got 2 labels for 30 rows"),
        (X, {"groups": 3}, "must be the name of a column, or one label per row. Got 3"),
        (FRAME[:3], {"groups": "v"}, "must have numeric columns only. Got 'site"),
    ],
)
def test_bad_input(samples, settings, message):
    with pytest.raises(cobpm.InputError, match=re.escape(message)):
        cobpm.pairwise(samples, **settings)


def test_an_unknown_setting_is_named():
    with pytest.raises(TypeError, match=r"keyword argument 'engin'\. Did you mean 'engine'"):
        cobpm.pairwise([X, Y], engin="exact", model="paper")


@pytest.mark.parametrize("kept", [False, True], ids=["in memory", "in a file"])
def test_an_interrupt_keeps_what_is_done(kept, tmp_path, monkeypatch):
    monkeypatch.setenv("COBPM_THREADS", "2")
    sets = [RNG.normal(size=(400, 3)) for _ in range(12)]
    file = tmp_path / "pairs.jsonl" if kept else None
    settings = {"partition": "pair", "draws": 200, "rng": 1, "checkpoint": file}
    seen = []

    def interrupt_after_five(stage, fraction):
        seen.append(stage)
        if fraction > 5 / 66 and len(seen) < 10_000:
            seen.extend([""] * 10_000)
            _thread.interrupt_main()

    with pytest.raises(cobpm.PairwiseInterrupted) as caught:
        cobpm.pairwise(sets, progress=interrupt_after_five, **settings, model="paper")
    assert isinstance(caught.value, KeyboardInterrupt)
    partial = caught.value.partial
    done = (partial.done.sum() - 12) // 2
    assert 5 < done < 60
    assert f"{done} of 66 pairs are done" in str(caught.value)
    assert f"{66 - done} of 66 pairs missing" in repr(partial)
    assert seen[0] == "0 of 66 pairs"
    np.testing.assert_array_equal(partial.done, partial.done.T)
    with pytest.raises(cobpm.InputError, match="must hold every pair"):
        partial.affinity()
    assert threading.active_count() < 10  # the workers are gone

    whole = cobpm.pairwise(sets, **settings, model="paper")
    assert whole.done.all()
    np.testing.assert_array_equal(whole.matrix[partial.done], partial.matrix[partial.done])
    if kept:
        assert len(file.read_text().splitlines()) == 67


def test_without_a_bar_nothing_is_written(capsys):
    cobpm.pairwise([X, Y, Z], partition="pair", draws=10, rng=0, model="paper")
    assert capsys.readouterr() == ("", "")
    cobpm.pairwise([X, Y, Z], partition="pair", draws=10, rng=0, progress=True, model="paper")
    out, err = capsys.readouterr()
    assert out == ""
    assert "3 of 3 pairs" in err


@pytest.mark.parametrize("sets", [2, 5, 70])
@pytest.mark.parametrize("name", ["kl", "tv"])
def test_a_picture(sets, name):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    samples = {f"set {k}": RNG.normal(k % 2, 1, (20, 1)) for k in range(sets)}
    pairs = cobpm.pairwise(samples, name, draws=20, rng=0, model="paper")
    ax = pairs.plot()
    shown = ax.images[0].get_array()
    # The same numbers, reordered alike in rows and columns.
    order = [int(label.get_text()[4:]) for label in ax.get_yticklabels()] if sets < 70 else None
    if order is not None:
        np.testing.assert_array_equal(shown, pairs.matrix[np.ix_(order, order)])
        assert ax.get_xticklabels()[0].get_text() == f"set {order[0]}"
    np.testing.assert_allclose(np.sort(shown.ravel()), np.sort(pairs.matrix.ravel()))
    assert len(ax.child_axes) == (sets > 2)
    _, given = pyplot.subplots()
    assert pairs.plot(ax=given, dendrogram=False) is given
    assert not given.child_axes
    ax.figure.canvas.draw()
    pyplot.close("all")


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'cobpm\[plot\]'"):
        cobpm.pairwise([X, Y], draws=10, rng=0, model="paper").plot()
