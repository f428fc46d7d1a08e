"""The comparison with other methods, in small."""

import json

import numpy as np
import pytest

import cobpm
from cobpm.baselines import knn_divergence, nwj_divergence, nwj_fit
from cobpm.experiments import comparison, framework
from cobpm.experiments import comparison_page as page
from cobpm.experiments.fits import chain
from cobpm.experiments.framework import Settings
from cobpm.experiments.laws import COMPARISON, UNIFORM_NORMAL

SETTINGS = Settings(quick=True)


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "QUICK_SIZES", (30, 60))
        yield comparison.run(SETTINGS, lambda stage, done: None)


def test_estimates_are_those_of_the_methods(small):
    found = small.numbers["problems"]["uniform-normal"]
    x, y = UNIFORM_NORMAL.sample(60, SETTINGS.rng(comparison.LABEL, 0, 60, 1))
    expected = {
        "co-BPM": cobpm.compare(x, y, model="paper", bounds=(0, 1)).estimate("kl"),
        "co-BPM, chain": chain(x, y, SETTINGS.seed + 1, draws=3000).estimate("kl"),
        "NWJ-M1": nwj_divergence(x, y, "M1"),
        "NWJ-M2": nwj_divergence(x, y, "M2"),
        "PC-1": knn_divergence(x, y),
        "PC-10": knn_divergence(x, y, k=10),
        "ratio model": cobpm.compare(x, y, rng=SETTINGS.seed + 1).estimate("kl"),
    }
    for method, value in expected.items():
        assert found["methods"][method]["estimates"][1, 1] == pytest.approx(value), method
    assert found["truth"] == pytest.approx(1.87343, abs=5e-6)
    assert small.numbers["nwj_duality_gap_below"] <= 1e-9


def test_averages_are_taken_over_data_sets(small):
    for found in small.numbers["problems"].values():
        for by in found["methods"].values():
            for i, row in enumerate(by["estimates"].tolist()):
                mean = sum(row) / 3
                squares = sum((value - mean) ** 2 for value in row)
                assert by["mean"][i] == pytest.approx(mean)
                assert by["std"][i] == pytest.approx((squares / 2) ** 0.5)
                error = sum(abs(value - found["truth"]) for value in row) / 3
                assert by["mean_absolute_error"][i] == pytest.approx(error)
                assert by["negative"][i] == sum(value < 0 for value in row)


def test_other_settings_of_nwj(small):
    """Each row is what its settings give, on the data of the picture."""
    pairs = [UNIFORM_NORMAL.sample(30, SETTINGS.rng(comparison.LABEL, 0, 30, j)) for j in range(3)]
    rows = small.numbers["nwj_settings"]
    assert len(rows) == 3 * 4 * 2
    for row in rows:
        assert row["n"] == 30
        found, h, penalty = row["uniform-normal"], row["width"], row["penalty_times_n"] / 30
        if row["method"] == comparison.OVER_Y:
            fits = [nwj_fit(x, y, "M2", h, penalty) for x, y in pairs]
            estimates = [sum(g * np.log(g) for g in fit.ratios) / 30 for fit in fits]
        else:
            estimates = [nwj_divergence(x, y, row["method"], h, penalty) for x, y in pairs]
        assert found["mean"] == pytest.approx(np.mean(estimates))
        assert found["std"] == pytest.approx(np.std(estimates, ddof=1))
    text = "".join(page.sections(small.numbers))
    assert "| NWJ-M2 over y | as above | 1/n |" in text
    assert "| NWJ-M1 | 0.25 | 0.1/n |" in text


def made_up(errors):
    """Numbers with one problem, and mean absolute errors by method."""
    methods = {method: {"mean_absolute_error": np.array(values)} for method, values in errors}
    return {"problems": {"left": {"truth": 2.0, "methods": methods}}, "sizes": (1, 2)}


def test_wins_count_strictly_smaller_errors():
    numbers = made_up(
        [
            ("co-BPM", [0.1, 0.3]),
            ("NWJ-M1", [0.2, 0.3]),
            ("NWJ-M2", [0.2, 0.4]),
            ("PC-1", [0.2, 0.4]),
            ("PC-10", [0.2, 0.4]),
            ("ratio model", [0.15, 0.2]),
        ]
    )
    assert page._wins(numbers, "co-BPM") == {"left": 1}
    assert page._wins(numbers, "PC-1") == {"left": 0}
    assert page._wins(numbers, "ratio model") == {"left": 1}  # co-BPM is among the beaten
    assert page._relative(numbers, "co-BPM") == pytest.approx(0.1)


def test_data_sets_differ_and_come_again():
    first, second = comparison.data_sets(COMPARISON[2], 20, 2, SETTINGS)
    again, _ = comparison.data_sets(COMPARISON[2], 20, 2, SETTINGS)
    assert (first.x == again.x).all()
    assert (first.x != second.x).all()
    assert (first.y != first.x).all()


def test_files(small, tmp_path):
    framework.write(comparison, small, tmp_path, SETTINGS, 1.5)
    content = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    rows = content["numbers"]["problems"]["beta-mixtures"]["methods"]["PC-10"]["estimates"]
    assert np.shape(rows) == (2, 3)
    text = (tmp_path / "comparison.md").read_text(encoding="utf-8")
    assert "of 6 settings" in text
    assert "nan" not in text
    axes = small.figure.axes
    assert len(axes) == 3
    assert all(len(ax.containers) == len(comparison.METHODS) for ax in axes)
    assert list(comparison.STYLES) == list(comparison.METHODS)
