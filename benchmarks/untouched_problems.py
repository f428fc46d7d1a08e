"""Problems that had no part in any choice: written before any method was run on them.

Their truths are found as in `benchmarks.problems`. None has the same law twice: an estimate of
exactly zero would win those by far.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from benchmarks.problems import (
    Density,
    FloatArray,
    Masses,
    Problem,
    continuous,
    independent,
    line,
    normal_plane,
    outer,
    plane,
)

Pair = tuple[FloatArray, FloatArray]


LIFE_SHAPES = (2.0, 1.5)


def lifetimes(n: int, rng: np.random.Generator) -> Pair:
    """Lifetimes of parts that wear out, and of parts that fail more by chance."""
    first, second = (rng.weibull(shape, (n, 1)) for shape in LIFE_SHAPES)
    return first, second


PEAKS = (((-1.0, 0.5), (1.0, 0.5)), ((-1.0, 0.5), (1.2, 0.6)))  # means, standard deviations
PEAK_SHARES = (0.5, 0.4)  # of the left one


def two_peaks(n: int, rng: np.random.Generator) -> Pair:
    """Two peaks, one of which moves, spreads and grows."""

    def draw(peaks: Sequence[tuple[float, float]], share: float) -> FloatArray:
        mean, spread = np.where(rng.random((n, 1, 1)) < share, *np.array(peaks)[:, None]).T
        return np.asarray(rng.normal(mean, spread)).reshape(n, 1)

    first, second = (draw(*law) for law in zip(PEAKS, PEAK_SHARES, strict=True))
    return first, second


def peaks_density(which: int) -> Density:
    left, right = PEAKS[which]
    share = PEAK_SHARES[which]
    return lambda x: share * stats.norm.pdf(x, *left) + (1 - share) * stats.norm.pdf(x, *right)


FRANK = 3.0


def frank(n: int, rng: np.random.Generator) -> Pair:
    """Uniform columns that know nothing of each other, and ones that are joined smoothly."""
    x, y = rng.random((2, n, 2))
    lifted = np.exp(-FRANK * y[:, 0])
    part = y[:, 1] * np.expm1(-FRANK) / (lifted - y[:, 1] * (lifted - 1))
    y[:, 1] = -np.log1p(part) / FRANK
    return x, y


def frank_masses(nodes: int) -> Masses:
    at, weights = line(0, 1, nodes)
    u, v = np.meshgrid(at, at)
    area, gap = outer(weights, weights), -np.expm1(-FRANK)
    below = gap - np.expm1(-FRANK * u) * np.expm1(-FRANK * v)
    return area, (FRANK * gap * np.exp(-FRANK * (u + v)) / below**2).ravel() * area


SLOPES = np.array([[1.0, 0.5, 0.0], [0.7, 0.8, 0.0]])


def slopes(n: int, rng: np.random.Generator) -> Pair:
    """A value that follows three others; then it follows them in other proportions."""

    def draw(slope: FloatArray) -> FloatArray:
        causes = rng.normal(size=(n, 3))
        return np.column_stack([causes, causes @ slope + rng.normal(size=n)])

    return draw(SLOPES[0]), draw(SLOPES[1])


def slopes_density(which: int) -> Density:
    """Along the causes' direction in which both slopes differ, and of the value less the first."""
    change = which * float(np.linalg.norm(SLOPES[1] - SLOPES[0]))

    def density(points: FloatArray) -> FloatArray:
        cause, value = points[..., 0], points[..., 1]
        return np.asarray(stats.norm.pdf(cause) * stats.norm.pdf(value, change * cause))

    return density


def noise_spread(which: int, at: FloatArray) -> FloatArray:
    return np.full_like(at, 0.7) if which else 0.4 + 0.4 * at


def unequal_noise(n: int, rng: np.random.Generator) -> Pair:
    """A value whose spread grows along a column, or does not, and a column of no matter."""

    def draw(which: int) -> FloatArray:
        at, other = rng.random((2, n))
        return np.column_stack([at, rng.normal(at, noise_spread(which, at)), other])

    return draw(0), draw(1)


def noise_masses(nodes: int) -> Masses:
    at, share = line(0, 1, nodes)
    value, length = line(-8, 8, nodes)
    p, q = (
        stats.norm.pdf(value, 0, noise_spread(which, at)[:, None])
        * np.multiply.outer(share, length)
        for which in (0, 1)
    )
    return p.ravel(), q.ravel()


THRESHOLDS, LOADING, MOOD = (-1.2, -0.4, 0.4, 1.2), 0.8, 0.35


def survey(n: int, rng: np.random.Generator) -> Pair:
    """Four questions answered from one to five, all after one's mood, which gets better."""

    def draw(mood: float) -> FloatArray:
        felt = LOADING * rng.normal(mood, 1, (n, 1)) + 0.6 * rng.normal(size=(n, 4))
        return 1.0 + np.searchsorted(THRESHOLDS, felt)

    return draw(0), draw(MOOD)


def survey_masses(_: int) -> Masses:
    at, weights = np.polynomial.hermite_e.hermegauss(120)

    def masses(mood: float) -> FloatArray:
        below = stats.norm.cdf(np.subtract.outer(THRESHOLDS, LOADING * (at + mood)) / 0.6)
        answers = np.diff(below, axis=0, prepend=0.0, append=1.0)
        joint = np.einsum("am,bm,cm,dm,m->abcd", *[answers] * 4, weights, optimize=True)
        return joint.ravel() / weights.sum()

    return masses(0), masses(MOOD)


RATES = ((3.0, 1.0, 5.0, 2.0, 0.5), (3.6, 1.0, 5.0, 1.6, 0.5))


def rates(n: int, rng: np.random.Generator) -> Pair:
    """Counts of five kinds of events, two of which get more or less frequent."""
    first, second = (rng.poisson(means, (n, 5)).astype(float) for means in RATES)
    return first, second


def rates_masses(_: int) -> Masses:
    values = np.arange(80)
    first, second = (
        outer(*(stats.poisson.pmf(values, means[k]) for k in (0, 3))) for means in RATES
    )
    return first, second


def composition(n: int, rng: np.random.Generator) -> Pair:
    """Three parts of a whole."""
    return rng.dirichlet((3, 4, 5), n), rng.dirichlet((4, 4, 4), n)


BAR_VARIANCES = (1.6, 0.4)


def crossing_bars(n: int, rng: np.random.Generator) -> Pair:
    """Two bars that cross obliquely in two of six columns, and a cloud of the same covariance."""
    x, y = rng.normal(size=(2, n, 6))
    spread = np.sqrt(BAR_VARIANCES)
    bars = np.where(rng.random((n, 1)) < 0.5, spread, spread[::-1]) * x[:, :2]
    x[:, :2] = bars @ np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    return x, y


def bars_density(points: FloatArray) -> FloatArray:
    wide, narrow = (stats.norm.pdf(points, 0, np.sqrt(variance)) for variance in BAR_VARIANCES)
    return np.asarray(
        (wide[..., 0] * narrow[..., 1] + narrow[..., 0] * wide[..., 1]) / 2,
    )


def soft_corner(n: int, rng: np.random.Generator) -> Pair:
    """Columns that end sharply; the second set leans to one corner."""
    x = np.column_stack([rng.beta(2, 2, n), rng.random(n)])
    rising = np.where(rng.random(n) < 0.5, rng.beta(3, 1, n), rng.random(n))
    return x, np.column_stack([rng.beta(2, 3, n), rising])


BLOCK, BLOCK_SHARE = np.array([[0.0, 0.2, 0.0], [0.37, 0.8, 1.0]]), 0.3


def block(n: int, rng: np.random.Generator) -> Pair:
    """A cube of uniform points, and one with a denser block along an edge."""
    x, y, there = rng.random((3, n, 3))
    inside = rng.random((n, 1)) < BLOCK_SHARE
    return x, np.where(inside, BLOCK[0] + (BLOCK[1] - BLOCK[0]) * there, y)


def block_masses(_: int) -> Masses:
    volume = float((BLOCK[1] - BLOCK[0]).prod())
    p = np.array([volume, 1 - volume])
    return p, (1 - BLOCK_SHARE) * p + BLOCK_SHARE * np.array([1.0, 0.0])


SKEW, TURN = 1.5, np.array([[0.8, 0.6], [-0.6, 0.8]])


def skew_law() -> tuple[float, float]:
    """Location and scale that give a skew normal law mean zero and variance one."""
    law = stats.skewnorm(SKEW)
    return float(-law.mean() / law.std()), float(1 / law.std())


def skewed(n: int, rng: np.random.Generator) -> Pair:
    """A cloud that is skewed along an oblique line, and a normal one of the same covariance."""
    x, y = rng.normal(size=(2, n, 2))
    x[:, 0] = stats.skewnorm(SKEW, *skew_law()).rvs(n, random_state=rng)
    return x @ TURN, y


def logistic_eight(n: int, rng: np.random.Generator) -> Pair:
    """Eight logistic columns; one moves and one spreads."""
    x, y = rng.logistic(size=(2, n, 8))
    y[:, 2] += 0.7
    y[:, 6] *= 1.25
    return x, y


PARETO = (3.0, 2.4)


def pareto(n: int, rng: np.random.Generator) -> Pair:
    """Two columns of incomes with tails of a power, heavier in the second set."""
    first, second = (1 + rng.pareto(power, (n, 2)) for power in PARETO)
    return first, second


UNTOUCHED: tuple[Problem, ...] = (
    Problem(
        "lifetimes",
        1,
        lifetimes,
        continuous(*(stats.weibull_min(shape).pdf for shape in LIFE_SHAPES), 0, 0.01, 1, 12),
    ),
    Problem("two-peaks", 1, two_peaks, continuous(peaks_density(0), peaks_density(1), -12, 12)),
    Problem("frank", 2, frank, frank_masses, 960),
    Problem("slopes", 4, slopes, plane(slopes_density(0), slopes_density(1), 12), 960),
    Problem("unequal-noise", 3, unequal_noise, noise_masses, 960),
    Problem("survey", 4, survey, survey_masses),
    Problem("rates", 5, rates, rates_masses),
    Problem(
        "composition",
        3,
        composition,
        independent(  # the first part, and the second's part of the rest
            continuous(stats.beta(3, 9).pdf, stats.beta(4, 8).pdf, 0, 1),
            continuous(stats.beta(4, 5).pdf, stats.beta(4, 4).pdf, 0, 1),
        ),
        960,
    ),
    Problem(
        "crossing-bars",
        6,
        crossing_bars,
        plane(bars_density, normal_plane(0), 16),
        960,
    ),
    Problem(
        "soft-corner",
        2,
        soft_corner,
        independent(
            continuous(stats.beta(2, 2).pdf, stats.beta(2, 3).pdf, 0, 1),
            continuous(np.ones_like, lambda x: 0.5 + 1.5 * x**2, 0, 1),
        ),
        960,
    ),
    Problem("block", 3, block, block_masses),
    Problem(
        "skewed",
        2,
        skewed,
        continuous(stats.skewnorm(SKEW, *skew_law()).pdf, stats.norm.pdf, -24, 30),
    ),
    Problem(
        "logistic-eight",
        8,
        logistic_eight,
        independent(
            continuous(stats.logistic.pdf, stats.logistic(0.7).pdf, -40, 40),
            continuous(stats.logistic.pdf, stats.logistic(scale=1.25).pdf, -40, 40),
        ),
        960,
    ),
    Problem(
        "pareto",
        2,
        pareto,
        independent(  # of the logarithms
            *[continuous(stats.expon(scale=1 / 3).pdf, stats.expon(scale=1 / 2.4).pdf, 0, 16)] * 2
        ),
        960,
    ),
)
