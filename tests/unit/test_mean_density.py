"""Mean densities from the merged regions, against a walk through every partition."""

import numpy as np
import pytest

import cobpm
from cobpm import mean_density
from cobpm.mean_density import MeanDensity
from tests.cases import beta_mixtures

RNG = np.random.default_rng(8)


def by_partition(post, codes):
    """The definition: the mean density in the leaf that holds a point, averaged over the draws."""
    parts, model = post.partitions, post.model
    leaf = parts.locate(codes)
    volume = np.ldexp(1.0, -parts.depths.astype(int))
    totals = [np.repeat(size + model.delta * parts.leaves, parts.leaves) for size in model.sizes]
    means = (model.delta + parts.counts) / np.transpose(totals) / volume[:, np.newaxis]
    return means[leaf].mean(axis=0)


def fitted(sets, **settings):
    post = cobpm.fit(sets, rng=1, **{"draws": 200, **settings}, model="paper")
    return post, MeanDensity.of(post.partitions, post.model)


CASES = {
    "one column": [RNG.beta(6, 5, 300), RNG.beta(5, 6, 200)],
    "three columns": [*beta_mixtures(400, RNG), RNG.random((50, 3))],
    "six columns": [RNG.normal(k, 1, (60, 6)) for k in range(3)],
    "one set": [RNG.normal(size=(200, 2))],
    "atoms": [RNG.poisson(2, (150, 2)) * 1.0, RNG.poisson(3, (150, 2)) * 1.0],
    "nothing to cut": [[1.0, 1.0], [1.0]],
}


@pytest.mark.parametrize("case", CASES)
def test_as_by_partition(case):
    post, density = fitted(CASES[case])
    points = np.vstack([np.reshape(rows, (len(rows), -1)) for rows in CASES[case]])
    points = np.vstack([points, RNG.uniform(points.min(), points.max(), (100, points.shape[1]))])
    codes = post.frames[0].codes(points)
    np.testing.assert_allclose(density.at(codes), by_partition(post, codes), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::cobpm.diagnostics.ConvergenceWarning")
def test_chains_and_pieces(monkeypatch):
    post, density = fitted(CASES["three columns"], engine="mcmc", draws=400, burn_in=2000)
    codes = post.frames[0].codes(RNG.random((500, 3)))
    whole = density.at(codes)
    np.testing.assert_allclose(whole, by_partition(post, codes), rtol=1e-12)
    monkeypatch.setattr(mean_density, "MOST_VISITS", 1)
    np.testing.assert_array_equal(density.at(codes), whole)


def test_each_region_is_held_once():
    post, density = fitted(CASES["three columns"])
    boxes = np.hstack(post.partitions.boxes())
    assert len(density.values) == len(np.unique(boxes, axis=0))
    assert len(density.values) < len(boxes) / 4  # the point of merging them


def test_integrates_to_one():
    _, density = fitted(CASES["three columns"])
    grid = np.stack(np.meshgrid(*[np.arange(64)] * 3)).reshape(3, -1).astype(np.uint64)
    _, depth = np.frexp(density.values.max())
    assert depth < 18  # the grid is as fine as needed
    codes = (2 * grid + 1) << np.uint64(52 - 7)
    np.testing.assert_allclose(density.at(codes).mean(axis=0), 1.0, atol=1e-3)
