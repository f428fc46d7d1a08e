"""Bags of words and topics."""

import numpy as np
import pytest
from sklearn.decomposition import NMF

from cobpm import InputError
from cobpm.baselines import bag_of_words, plsa
from cobpm.baselines.bag_of_words import word_counts
from cobpm.samples import as_samples
from tests.oracles.topics import em_step, log_likelihood

COUNTS = np.random.default_rng(4).poisson(3.0, (7, 9)) + 1
# Two kinds of sets: around (0, 0) and (5, 5) in different shares.
RNG = np.random.default_rng(5)
SETS = [
    np.concatenate([RNG.normal(0, 1, (high, 2)), RNG.normal(5, 1, (60 - high, 2))])
    for high in (50, 48, 52, 12, 10, 8)
]


@pytest.mark.parametrize("steps", [1, 5])
def test_em_is_the_slow_one(steps):
    found = plsa(COUNTS, 3, rng=1, iterations=steps)
    generator = np.random.default_rng(1)  # the start that plsa makes
    mixtures = generator.dirichlet(np.ones(3), size=7).tolist()
    topics = generator.dirichlet(np.ones(9), size=3).tolist()
    for step in range(steps):
        mixtures, topics = em_step(COUNTS.tolist(), mixtures, topics)
        expected = log_likelihood(COUNTS.tolist(), mixtures, topics)
        assert found.log_likelihood[step] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(found.mixtures, mixtures, rtol=1e-10)
    np.testing.assert_allclose(found.topics, topics, rtol=1e-10)


def test_likelihood_never_falls_and_settles():
    found = plsa(COUNTS, 4, rng=2, tolerance=1e-9)
    assert found.converged
    assert (np.diff(found.log_likelihood) >= -1e-9).all()
    np.testing.assert_allclose(found.mixtures.sum(axis=1), 1)
    np.testing.assert_allclose(found.topics.sum(axis=1), 1)


def test_one_topic_is_the_mean_of_all_documents():
    found = plsa(COUNTS, 1, rng=0)
    np.testing.assert_allclose(found.topics[0], COUNTS.sum(axis=0) / COUNTS.sum())


def test_exact_factors_are_found_again():
    """Two topics without a word in common, so that the factors are unique."""
    topics = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.2, 0.8]])
    mixtures = np.array([[1, 0], [0.3, 0.7], [0.6, 0.4], [0, 1]])
    found = plsa(1000 * mixtures @ topics, 2, rng=3, tolerance=1e-12)
    order = np.argsort(found.topics[:, 2])
    np.testing.assert_allclose(found.topics[order], topics, atol=1e-4)
    np.testing.assert_allclose(found.mixtures[:, order], mixtures, atol=1e-4)


def test_likelihood_is_that_of_matrix_factorisation():
    """The best of several starts, against scikit-learn's."""
    ours = max(plsa(COUNTS, 3, rng=k, tolerance=1e-10).log_likelihood[-1] for k in range(8))
    theirs = -np.inf
    for seed in range(8):
        model = NMF(3, beta_loss="kullback-leibler", solver="mu", init="random", tol=1e-9)
        model.set_params(max_iter=5000, random_state=seed)
        product = model.fit_transform(COUNTS.astype(float)) @ model.components_
        product /= product.sum(axis=1, keepdims=True)
        theirs = max(theirs, (COUNTS * np.log(product)).sum())
    assert ours == pytest.approx(theirs, rel=2e-4)


def test_new_documents_get_the_mixtures_of_known_ones():
    found = plsa(COUNTS, 3, rng=1, tolerance=1e-12, iterations=20_000)
    again = found.transform(COUNTS, tolerance=1e-13, iterations=20_000)
    np.testing.assert_allclose(again @ found.topics, found.mixtures @ found.topics, atol=2e-4)


def test_words_are_the_closest_centres():
    words = RNG.normal(2, 2, (6, 2))
    counts = word_counts(as_samples(SETS, owner="test"), words)
    for values, row in zip(SETS, counts, strict=True):
        closest = [min(range(6), key=lambda w: np.sum((p - words[w]) ** 2)) for p in values]
        assert row.tolist() == [closest.count(word) for word in range(6)]


def test_sets_of_a_kind_are_closest():
    found = bag_of_words(SETS, words=8, topics=2, rng=0)
    mixtures = found.model.mixtures
    distances = np.linalg.norm(mixtures[:, None] - mixtures[None], axis=2)
    assert distances[:3, :3].max() < distances[:3, 3:].min()
    np.testing.assert_allclose(found.transform(SETS), mixtures, atol=0.01)


def test_same_seed_same_answer():
    first, second = (bag_of_words(SETS, words=5, topics=2, rng=7) for _ in range(2))
    np.testing.assert_array_equal(first.model.mixtures, second.model.mixtures)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bag_of_words(SETS, words=0), "'words' parameter of bag_of_words"),
        (lambda: bag_of_words(SETS, words=361), "different points, 360"),
        (lambda: bag_of_words(SETS, words=4, topics=5), "Take topics=4 or fewer"),
        (lambda: bag_of_words(SETS, words=4, topics=2, rng="x"), "'rng'"),
        (lambda: bag_of_words([[1.0, np.nan]]), "samples"),
        (lambda: plsa([[1, -1]]), "non-negative"),
        (lambda: plsa([1, 2]), "a row per document"),
        (lambda: plsa("words"), "a row per document"),
        (lambda: plsa([[1, 2], [0, 0]]), "only zeros in row 1"),
        (lambda: plsa(COUNTS, 0), "'topics' parameter of plsa"),
        (lambda: plsa(COUNTS, 2, tolerance=0), "'tolerance'"),
        (lambda: plsa(COUNTS, 2, rng=0).transform([[1, 2]]), "have 9 columns"),
        (
            lambda: bag_of_words(SETS, words=4, topics=2, rng=0).transform([[1.0, 2.0]]),
            "have 2 columns",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
