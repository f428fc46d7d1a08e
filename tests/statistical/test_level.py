"""The two-sample test rejects as often as it says, and sees what is easy to see."""

import numpy as np
import pytest
from scipy import stats

import cobpm
from cobpm.frames import fit_frames
from cobpm.samples import as_samples
from cobpm.two_sample import log_ratios, pool

RUNS, PERMUTATIONS = 400, 99
REGIONS = 5000  # few, to be quick in many columns
LAWS = {
    "normal": lambda rng, n: rng.normal(size=(n, 2)),
    "few values": lambda rng, n: rng.poisson(1.0, size=(n, 2)),
    "zeros": lambda rng, n: np.maximum(rng.normal(size=(n, 2)), 0.0),
}


def pvalues(law, pvalue, runs=RUNS, sizes=(30, 40)):
    found = []
    for i in range(runs):
        rng = np.random.default_rng([1, i])
        found.append(pvalue(*(law(rng, n) for n in sizes), i))
    return np.array(found)


def exact(x, y, seed):
    return cobpm.test(x, y, permutations=PERMUTATIONS, rng=seed).pvalue


def sketched(x, y, seed):
    """Of sketches on so coarse a grid that most cells hold several points."""
    grid = cobpm.Sketch.of([x, y]).grid
    a, b = (cobpm.Sketch.of(rows, grid=grid, max_cells=20) for rows in (x, y))
    return cobpm.test(a, b, permutations=PERMUTATIONS, rng=seed, max_regions=REGIONS).pvalue


def peeking(x, y, seed):
    """A wrong test: its frames look at the labels, and are not fitted again to permuted ones."""
    samples = as_samples([x, y], owner="test")
    pooled, labels = pool(samples, np.random.default_rng(seed))
    frames = fit_frames(samples, ["means ranks"], None)
    ratios = log_ratios(pooled, labels, samples.sizes, frames, PERMUTATIONS, seed, REGIONS, None)
    statistics = ratios.mean(axis=0)
    return np.mean(statistics >= statistics[0])


def too_often(found, level):
    """P-value of the claim that at most a share `level` of p-values does not exceed it."""
    return stats.binomtest(int((found <= level).sum()), len(found), level, "greater").pvalue


@pytest.mark.parametrize("of", [exact, sketched], ids=["rows", "sketches"])
@pytest.mark.parametrize("law", LAWS)
def test_level(law, of):
    found = pvalues(LAWS[law], of)
    assert found.min() >= 1 / (PERMUTATIONS + 1)
    for level in (0.05, 0.1, 0.5):
        assert too_often(found, level) > 1e-3
    # Nor too seldom: ties between labellings are few even where values repeat.
    assert stats.binomtest(int((found <= 0.2).sum()), RUNS, 0.2, "less").pvalue > 1e-3


def test_frames_that_look_at_labels_are_caught():
    # In many columns, where some direction always parts two small samples. In two columns the
    # wrong test does no harm that could be seen in so few runs.
    def law(rng, n):
        return rng.normal(size=(n, 20))

    def blind(x, y, seed):
        return cobpm.test(
            x, y, permutations=PERMUTATIONS, frames=["turned ranks"], rng=seed, max_regions=REGIONS
        ).pvalue

    assert too_often(pvalues(law, peeking, 100), 0.05) < 1e-6
    assert too_often(pvalues(law, blind, 100), 0.05) > 1e-3


@pytest.mark.parametrize("of", [exact, sketched], ids=["rows", "sketches"])
def test_power(of):
    # A shift by one standard deviation: a t test of that column would hardly ever miss it.
    found = pvalues(LAWS["normal"], lambda x, y, i: of(x, y + np.array([1.0, 0.0]), i), 50)
    assert (found <= 0.05).mean() > 0.7
