"""Table 2 of the paper: what the pseudo-count does to spread and bias of the Rényi divergence.

The paper shows one data set, and the numbers vary much from one to the next. So its numbers are
asked to look like those of one data set more: to lie in the prediction interval of several.
"""

import numpy as np
import pytest
from scipy import stats

import cobpm
from cobpm.experiments.table2 import DELTAS, PAPER_MEDIANS, PAPER_STDS, truncated_normals

DATA_SETS = 8


@pytest.fixture(scope="module")
def table():
    """Medians and standard deviations of the draws, each (data sets, deltas)."""
    medians, spreads = np.empty((2, DATA_SETS, len(DELTAS)))
    for seed in range(DATA_SETS):
        x, y = truncated_normals(np.random.default_rng(seed))
        for j, delta in enumerate(DELTAS):
            draws = cobpm.compare(x, y, bounds=(0, 1), delta=delta, rng=seed, model="paper").draws(
                "renyi:2"
            )
            medians[seed, j], spreads[seed, j] = np.median(draws), draws.std()
    return medians, spreads


def test_medians_and_spread_fall_with_delta_in_every_data_set(table):
    medians, spreads = table
    assert (np.diff(medians, axis=1) < 0).all()
    assert (np.diff(spreads, axis=1) < 0).all()


def test_spread_falls_from_about_one_and_a_quarter_to_about_a_third(table):
    _, spreads = table
    logs = np.log(spreads)
    error = 4.5 * logs.std(axis=0, ddof=1) / np.sqrt(DATA_SETS)
    low, high = np.exp(logs.mean(axis=0) - error), np.exp(logs.mean(axis=0) + error)
    assert low[0] < 1.2 < high[0]
    assert low[-1] < 0.45
    assert high[-1] > 0.3
    # A prior with its Dirichlet normaliser would have about 0.4 at both ends.
    assert low[0] > 0.6
    assert (spreads[:, 0] / spreads[:, -1] > 2).all()


@pytest.mark.parametrize("what", ["medians", "standard deviations"])
def test_the_paper_is_like_one_data_set_more(table, what):
    found, paper = (table[0], PAPER_MEDIANS) if what == "medians" else (table[1], PAPER_STDS)
    logs = np.log(found)
    t = (np.log(paper) - logs.mean(axis=0)) / (
        logs.std(axis=0, ddof=1) * np.sqrt(1 + 1 / DATA_SETS)
    )
    # Four comparisons, not independent: 1% for each.
    assert np.abs(t).max() < stats.t.ppf(0.995, DATA_SETS - 1), t
