"""From images as sample sets to dissimilarities, and from these to clusters and classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree
from scipy.special import gammaln

import cobpm
from cobpm.arrays import FloatArray, IntArray
from cobpm.baselines import bag_of_words, knn_divergence
from cobpm.diagnostics import ConvergenceWarning
from cobpm.pairs import affinity
from cobpm.progress import Progress
from cobpm.threads import thread_count

if TYPE_CHECKING:
    from cobpm.experiments.image_features import Bytes

DIVERGENCE, ORDER = "renyi:0.5", 0.5
GRAPHS = {
    "neighbours": "10 nearest neighbours",
    "local": "Gaussian, own scale",
    "median": "Gaussian, median scale",
}
GRAPH_NEIGHBOURS = 10
VOTERS = 9


# --- dissimilarities ---------------------------------------------------------------------------


def by_cobpm(
    points: Sequence[FloatArray], model: str, partition: str, draws: int, seed: int
) -> tuple[FloatArray, bool]:
    """Rényi divergences of order ½ between all pairs of sets, and whether they came unwarned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the page counts them
        found = cobpm.pairwise(
            list(points), DIVERGENCE, partition=partition, model=model, draws=draws, rng=seed
        )
    return found.matrix, not found.warnings


def by_neighbours(
    points: Sequence[FloatArray], train: int, ks: Sequence[int]
) -> dict[int, FloatArray]:
    """The same by nearest neighbours, for several k, between all sets and the first `train`.

    What `knn_divergence` gives, with one tree per set. Between the first sets it is the mean of
    both directions: the divergence of order ½ is symmetric, but its estimate is not. For the others
    it is the divergence from them. Negative estimates become zero. Entries between two of the
    others are NaN.
    """
    with neighbours_beside(points, train, ks) as tables:
        return tables(lambda *_: None)


@contextmanager
def neighbours_beside(
    points: Sequence[FloatArray], train: int, ks: Sequence[int]
) -> Iterator[Callable[[Progress], dict[int, FloatArray]]]:
    """`by_neighbours` in threads of its own, while the block does something else.

    Gives a function that waits for the tables. What is not done by the end of the block is dropped.
    """
    trees = [cKDTree(values) for values in points]
    over = Event()

    def row(first: int) -> FloatArray:
        # The nearest point of its own set is the point itself.
        own = np.asarray(trees[first].query(points[first], k=[k + 1 for k in ks])[0])
        found = np.zeros((len(ks), train))
        for second in range(train):
            if over.is_set():
                break
            if second == first:
                continue
            other = np.asarray(trees[second].query(points[first], k=list(ks))[0])
            found[:, second] = [
                _renyi(points[first], points[second], own[:, i], other[:, i], k)
                for i, k in enumerate(ks)
            ]
        return found

    pool = ThreadPoolExecutor(thread_count())
    waiting = [pool.submit(row, first) for first in range(len(points))] if ks else []

    def tables(progress: Progress) -> dict[int, FloatArray]:
        rows = []
        for done, one in enumerate(waiting, 1):
            rows.append(one.result())
            progress("nearest neighbours", done / len(waiting))
        found = {}
        for i, k in enumerate(ks):
            directed = np.stack([values[i] for values in rows])
            table = np.full((len(points), len(points)), np.nan)
            table[:, :train], table[:train] = directed, directed.T
            table[:train, :train] = (directed[:train] + directed[:train].T) / 2
            found[k] = np.maximum(table, 0.0)
        return found

    try:
        yield tables
    finally:
        over.set()
        pool.shutdown(cancel_futures=True)


def _renyi(x: FloatArray, y: FloatArray, rho: FloatArray, nu: FloatArray, k: int) -> float:
    if not (rho.all() and nu.all()):
        return knn_divergence(x, y, DIVERGENCE, k)  # which knows what to do about equal points
    d = x.shape[1]
    powers = ((len(x) - 1) / len(y) * (rho / nu) ** d) ** (1 - ORDER)
    bias = 2 * gammaln(k) - gammaln(k - ORDER + 1) - gammaln(k + ORDER - 1)
    return float((np.log(powers.mean()) + bias) / (ORDER - 1))


def by_words(
    sets: Sequence[Bytes], train: int, words: int, topics: int, rng: np.random.Generator
) -> FloatArray:
    """Euclidean distances between mixtures of topics. Words and topics are of the first sets."""

    def floats(some: Sequence[Bytes]) -> list[FloatArray]:  # eight times as large: not for long
        return [np.asarray(values, dtype=float) for values in some]

    bag = bag_of_words(floats(sets[:train]), words=words, topics=topics, rng=rng)
    mixtures = bag.model.mixtures
    if len(sets) > train:
        mixtures = np.concatenate([mixtures, bag.transform(floats(sets[train:]))])
    return np.asarray(np.linalg.norm(mixtures[:, None] - mixtures[None], axis=2))


# --- clusters ----------------------------------------------------------------------------------


def graph(matrix: FloatArray, kind: str, squared: bool) -> FloatArray:
    """Similarities for spectral clustering.

    Args:
        matrix: Dissimilarities, symmetric.
        kind: "neighbours": 1 if one of the two is among the 10 nearest neighbours of the other;
            "local" and "median": see `Pairwise.affinity`.
        squared: Whether dissimilarities are like squared distances, as divergences are.
    """
    if kind != "neighbours":
        return affinity(matrix if squared else matrix**2, kind)
    apart = np.where(np.eye(len(matrix), dtype=bool), np.inf, matrix)
    nearest = np.argsort(apart, axis=1, kind="stable")[:, : min(GRAPH_NEIGHBOURS, len(matrix) - 1)]
    found = np.eye(len(matrix))
    np.put_along_axis(found, nearest, 1.0, axis=1)
    return np.maximum(found, found.T)


def clusters(similarities: FloatArray, count: int, seed: int) -> IntArray:
    """Spectral clustering with the normalised Laplacian of Shi and Malik."""
    from sklearn.cluster import SpectralClustering

    model = SpectralClustering(count, affinity="precomputed", n_init=10, random_state=seed)
    with warnings.catch_warnings():
        # Parts without a link are clusters of their own, which is fine.
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        return np.asarray(model.fit_predict(similarities))


def cluster_accuracy(found: IntArray, labels: IntArray) -> float:
    """The paper's: the share of the commonest class in a cluster, averaged over the clusters."""
    return float(np.mean([_commonest(labels[found == one]) for one in np.unique(found)]))


def _commonest(labels: IntArray) -> float:
    return float(np.bincount(labels).max() / len(labels))


def matched_accuracy(found: IntArray, labels: IntArray) -> float:
    """The share of images in the right cluster when each cluster stands for one class."""
    table = np.zeros((found.max() + 1, labels.max() + 1))
    np.add.at(table, (found, labels), 1)
    return float(table[linear_sum_assignment(-table)].sum() / len(labels))


# --- classes -----------------------------------------------------------------------------------


def classify(matrix: FloatArray, labels: IntArray, voters: int = VOTERS) -> IntArray:
    """The class of each row by a vote of the nearest columns, whose classes are `labels`.

    Of classes with equally many votes, the one with the nearest voter wins.
    """
    order = np.argsort(matrix, axis=1, kind="stable")[:, :voters]
    found = np.empty(len(matrix), dtype=int)
    for row, votes in enumerate(labels[order]):
        counts = np.bincount(votes)
        best = np.flatnonzero(counts == counts.max())
        found[row] = next(vote for vote in votes if vote in best)
    return found


def left_out_accuracy(matrix: FloatArray, labels: IntArray) -> float:
    """The share of images that the nearest others classify rightly."""
    apart = np.where(np.eye(len(matrix), dtype=bool), np.inf, matrix)
    return float(np.mean(classify(apart, labels) == labels))
