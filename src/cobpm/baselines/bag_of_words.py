"""Sample sets as bags of words, and bags of words as mixtures of topics.

Points are put into cells, the *words*, around centres found by k-means, and a set becomes the
counts of its words (Bosch, Zisserman and Muñoz 2006 do this to patches of images). Probabilistic
latent semantic analysis (Hofmann 1999) then explains all counts n(s, w) by a few topics:

    P(w | s)  =  Σ_z P(w | z) P(z | s),      maximising  Σ_s Σ_w n(s, w) log P(w | s).

The mixture P(z | s) of a set stands for it, and sets are compared by the Euclidean distance
between their mixtures. The maximum is sought by EM. Its steps are the multiplicative updates of
non-negative matrix factorisation with the Kullback-Leibler loss, scaled to probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cobpm.arrays import FloatArray, IntArray
from cobpm.samples import Samples, Seen, as_samples, bad, check_count, check_positive, check_rng

MOST_POINTS = 32_000  # that k-means looks at; more hardly move 100 centres
TINY = float(np.finfo(float).tiny)  # stands in for a probability that has shrunk to zero


@dataclass(frozen=True, eq=False)
class TopicModel:
    """Topics, and the share that each of them has in every document.

    Attributes:
        mixtures: P(topic | document), one row per document that was fitted.
        topics: P(word | topic), one row per topic.
        log_likelihood: Σ n(s, w) log P(w | s) after every step, which never falls.
        converged: Whether the last step gained less than the tolerance.
    """

    mixtures: FloatArray
    topics: FloatArray
    log_likelihood: FloatArray
    converged: bool

    def transform(
        self, counts: Any, *, tolerance: float = 1e-7, iterations: int = 2000
    ) -> FloatArray:
        """The mixtures of further documents, with the topics as they are.

        Args:
            counts: One row of word counts per document.
            tolerance: See `plsa`.
            iterations: See `plsa`.
        """
        owner = "transform"
        table = _counts(counts, owner)
        if table.shape[1] != self.topics.shape[1]:
            rule = f"have {self.topics.shape[1]} columns, one per word"
            raise bad("counts", owner, rule, Seen(f"{table.shape[1]} columns"))
        steps = _steps(tolerance, iterations, owner)
        start = np.full((len(table), len(self.topics)), 1 / len(self.topics))
        return _climb(table, start, self.topics, *steps, fixed_topics=True).mixtures


@dataclass(frozen=True, eq=False)
class BagOfWords:
    """A vocabulary and a topic model over it.

    Attributes:
        names: Names of the sets that it was made from.
        columns: Names of the columns of the points.
        words: Centres of the words, one row each.
        counts: How often each word occurs in each of the sets, (sets, words).
        model: The topics; `model.mixtures` has a row per set.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    words: FloatArray
    counts: IntArray
    model: TopicModel

    def transform(self, samples: Any) -> FloatArray:
        """The mixtures of topics of further sets, one row each.

        Args:
            samples: A list of samples, or a mapping from names to samples.
        """
        found = as_samples(samples, owner="transform")
        if found.d != len(self.columns):
            rule = f"have {len(self.columns)} columns, like the sets that the words are from"
            raise bad("samples", "transform", rule, Seen(f"{found.d} columns"))
        return self.model.transform(word_counts(found, self.words))


def bag_of_words(
    samples: Any, *, words: int = 100, topics: int = 20, rng: Any = None
) -> BagOfWords:
    """Describe sample sets by words and topics.

    Args:
        samples: A list of samples, or a mapping from names to samples.
        words: Number of words: cells that the points are put into.
        topics: Number of topics, at most the number of words.
        rng: Seed or NumPy generator.

    Returns:
        The vocabulary, the counts, and the topic model.

    Raises:
        InputError: The samples or the numbers cannot be used; the message says what would do.
        ImportError: There is no scikit-learn, whose k-means finds the words.
    """
    owner = "bag_of_words"
    found = as_samples(samples, owner=owner)
    check_count(words, parameter="words", owner=owner)
    check_count(topics, parameter="topics", owner=owner)
    generator = check_rng(rng, owner=owner)
    centres = _vocabulary(found, words, generator, owner)
    counts = word_counts(found, centres)
    if topics > words:
        way_out = f"Take topics={words} or fewer."
        raise bad("topics", owner, f"be at most the number of words, {words}", topics, way_out)
    model = plsa(counts, topics, rng=generator)
    return BagOfWords(found.names, found.columns, centres, counts, model)


def plsa(
    counts: Any,
    topics: int = 20,
    *,
    rng: Any = None,
    tolerance: float = 1e-7,
    iterations: int = 2000,
) -> TopicModel:
    """Fit topics to counts of words: probabilistic latent semantic analysis.

    EM climbs to a local maximum of the likelihood, which depends on where it starts.

    Args:
        counts: One row of word counts per document; any non-negative numbers.
        topics: Number of topics.
        rng: Seed or NumPy generator of the start.
        tolerance: EM ends when a step gains less than this, per word of the text, in the log.
        iterations: It ends after so many steps in any case.

    Returns:
        The topics, and the mixture of every document.
    """
    owner = "plsa"
    table = _counts(counts, owner)
    check_count(topics, parameter="topics", owner=owner)
    generator = check_rng(rng, owner=owner)
    steps = _steps(tolerance, iterations, owner)
    mixtures = generator.dirichlet(np.ones(topics), size=len(table))
    by_topic = generator.dirichlet(np.ones(table.shape[1]), size=topics)
    return _climb(table, mixtures, by_topic, *steps)


def word_counts(samples: Samples, words: FloatArray) -> IntArray:
    """How many points of each set are closest to each word, (sets, words)."""
    length = (words**2).sum(axis=1)
    found = np.empty((len(samples.values), len(words)), dtype=np.int64)
    for row, values in enumerate(samples.values):
        closest = np.argmin(length - 2 * values @ words.T, axis=1)
        found[row] = np.bincount(closest, minlength=len(words))
    return found


def _vocabulary(samples: Samples, words: int, rng: np.random.Generator, owner: str) -> FloatArray:
    """Centres of k-means among the points of all sets."""
    try:
        from sklearn.cluster import KMeans
    except ImportError as error:
        raise ImportError(
            "bag_of_words needs scikit-learn: pip install 'cobpm[sklearn]'"
        ) from error
    share = MOST_POINTS / max(MOST_POINTS, sum(samples.sizes))
    taken = np.concatenate(
        [
            values[np.sort(rng.choice(len(values), max(1, round(share * len(values))), False))]
            for values in samples.values
        ]
    )
    places = len(np.unique(taken, axis=0))
    if places < words:
        rule = f"be at most the number of different points, {places}"
        raise bad("words", owner, rule, words, f"Take words={places} or fewer.")
    seed = int(rng.integers(2**31))
    # Starts differ little in what matters here, and one takes a tenth of the time of ten.
    return np.asarray(KMeans(words, n_init=1, random_state=seed).fit(taken).cluster_centers_)


def _counts(counts: Any, owner: str) -> FloatArray:
    rule = "be a table of non-negative numbers, a row per document and a column per word"
    try:
        table = np.array(counts, dtype=float)
    except (TypeError, ValueError):
        raise bad("counts", owner, rule, counts) from None
    if table.ndim != 2 or not table.size or not np.isfinite(table).all() or (table < 0).any():
        raise bad("counts", owner, rule, counts)
    if not (filled := table.sum(axis=1) > 0).all():
        seen = Seen(f"only zeros in row {int(np.argmin(filled))}")
        raise bad("counts", owner, "have a word in every document", seen, "Leave the row out.")
    return table


def _steps(tolerance: Any, iterations: Any, owner: str) -> tuple[float, int]:
    return (
        check_positive(tolerance, parameter="tolerance", owner=owner),
        check_count(iterations, parameter="iterations", owner=owner),
    )


def _climb(
    counts: FloatArray,
    mixtures: FloatArray,
    topics: FloatArray,
    tolerance: float,
    iterations: int,
    fixed_topics: bool = False,
) -> TopicModel:
    """EM from a start, until it hardly gains any more."""
    total = counts.sum()
    gained: list[float] = []
    explained = np.maximum(mixtures @ topics, TINY)
    before, converged = float((counts * np.log(explained)).sum()), False
    for _ in range(iterations):
        ratio = counts / explained
        expected = mixtures * (ratio @ topics.T)  # how many words of each document are of a topic
        if not fixed_topics:
            topics = topics * (mixtures.T @ ratio)
            # A topic that explains nothing stays as it is: nowhere.
            topics = topics / np.maximum(topics.sum(axis=1, keepdims=True), TINY)
        mixtures = expected / expected.sum(axis=1, keepdims=True)
        explained = np.maximum(mixtures @ topics, TINY)
        gained.append(float((counts * np.log(explained)).sum()))
        converged = gained[-1] - before < tolerance * total
        before = gained[-1]
        if converged:
            break
    return TopicModel(mixtures, topics, np.array(gained), converged)
