"""EM for probabilistic latent semantic analysis as its definition reads: slow and plain."""

from math import log


def em_step(counts, mixtures, topics):
    """One step: the posterior of the topic of every word, then shares of expected counts."""
    documents, words, size = len(counts), len(counts[0]), len(topics)
    by_document = [[0.0] * size for _ in range(documents)]
    by_topic = [[0.0] * words for _ in range(size)]
    for s in range(documents):
        for w in range(words):
            joint = [mixtures[s][z] * topics[z][w] for z in range(size)]
            for z in range(size):
                expected = counts[s][w] * joint[z] / sum(joint)
                by_document[s][z] += expected
                by_topic[z][w] += expected
    shares = [[value / sum(row) for value in row] for row in by_document]
    return shares, [[value / sum(row) for value in row] for row in by_topic]


def log_likelihood(counts, mixtures, topics):
    found = 0.0
    for row, mixture in zip(counts, mixtures, strict=True):
        for w, count in enumerate(row):
            found += count * log(
                sum(m * topic[w] for m, topic in zip(mixture, topics, strict=True))
            )
    return found
