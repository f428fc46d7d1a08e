"""Sample sets of known families are told apart by their divergences, and not by their means."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

import cobpm

FAMILIES = 3


def sets_of_families(rng, sets=18, n=150):
    """Round, correlated and two-humped clouds around centres that say nothing of the family."""
    found, families = [], np.arange(sets) % FAMILIES
    for family in families:
        z = rng.normal(size=(n, 2))
        if family == 1:
            z = z @ np.array([[1.0, 0.9], [0.0, 0.4359]])
        elif family == 2:
            z = 0.5 * z + np.where(rng.random((n, 1)) < 0.5, 0.87, -0.87) * [1, -1]
        found.append(z + 0.1 * rng.normal(size=2))
    return found, families


def purity(distances, families):
    """Share of sets that are in the majority of their cluster, as the paper counts."""
    clusters = fcluster(linkage(squareform(distances, checks=False), "average"), 3, "maxclust")
    counts = [np.bincount(families[clusters == c]).max() for c in np.unique(clusters)]
    return sum(counts) / len(families)


@pytest.mark.parametrize(
    "settings",
    [
        {"partition": "joint"},
        {"partition": "pair"},
        {"partition": "joint", "model": "ratio"},
    ],
    ids=["joint", "pair", "ratio"],
)
def test_divergences_find_the_families_and_means_do_not(settings):
    ours, means = [], []
    for replicate in range(3):
        sets, families = sets_of_families(np.random.default_rng([7, replicate]))
        found = cobpm.pairwise(sets, draws=100, rng=replicate, **settings)
        ours.append(purity(found.matrix, families))
        centres = squareform(pdist([points.mean(axis=0) for points in sets]))
        means.append(purity(centres, families))
    assert np.mean(ours) > 0.95
    assert np.mean(means) < 0.65  # of three families alike in size, a third is right by chance
