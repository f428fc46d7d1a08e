"""Problems of the kinds that data have: waiting times, rings, clusters, counts, zeros, copulas.

They were untouched once: written before a version of the package was run on them, and run when all
was settled. Their results were looked at since, so they count among what settings are chosen on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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
    normals,
    outer,
    plane,
    radii,
    space,
    t_copula,
    t_from_normal,
    t_to_normal,
)

Pair = tuple[FloatArray, FloatArray]


def waiting_times(n: int, rng: np.random.Generator) -> Pair:
    """All waits a quarter longer than they were: none is short any more."""
    x, y = rng.gamma(2, size=(2, n, 1))
    return x + 0.25, y


def rotated_ring(n: int, rng: np.random.Generator) -> Pair:
    """A ring that is denser on one side, and the same a quarter turn further."""

    def draw(turn: float) -> FloatArray:
        angle, radius = rng.vonmises(turn, 1, n), rng.normal(1, 0.1, n)
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    return draw(0), draw(np.pi / 2)


def cluster_weights(n: int, rng: np.random.Generator) -> Pair:
    """Two clusters in four columns, of equal weight and then of three to seven."""

    def draw(weight: float) -> FloatArray:
        side = np.where(rng.random((n, 1)) < weight, -0.8, 0.8)
        return side + rng.normal(size=(n, 4))

    return draw(0.5), draw(0.3)


def cluster_masses(nodes: int) -> Masses:
    """Along the line through the centres, 1.6 on either side of the middle."""
    at, weights = line(-14, 14, nodes)
    left, right = stats.norm.pdf(at, -1.6) * weights, stats.norm.pdf(at, 1.6) * weights
    return 0.5 * left + 0.5 * right, 0.3 * left + 0.7 * right


def counts(n: int, rng: np.random.Generator) -> Pair:
    """Poisson counts, and counts of the same means that vary more."""
    x = rng.poisson((4, 1), (n, 2))
    y = rng.negative_binomial((4, 1), 0.5, (n, 2))
    return x.astype(float), y.astype(float)


def count_masses(_: int) -> Masses:
    values = np.arange(100)  # the masses beyond are below 1e-20
    return (
        outer(*(stats.poisson.pmf(values, mean) for mean in (4, 1))),
        outer(*(stats.nbinom.pmf(values, mean, 0.5) for mean in (4, 1))),
    )


def many_zeros(n: int, rng: np.random.Generator) -> Pair:
    """Two log-normal amounts; two fifths of each are zero, then a half, and the rest larger."""

    def draw(zeros: float, shift: float) -> FloatArray:
        amounts = np.exp(rng.normal(shift, 1, (n, 2)))
        return np.where(rng.random((n, 2)) < zeros, 0, amounts)

    return draw(0.4, 0), draw(0.5, 0.4)


def zeros_masses(nodes: int) -> Masses:
    p, q = normals(0.4)(nodes)
    return np.append(0.4, 0.6 * p), np.append(0.5, 0.5 * q)


def one_spread_of_eight(n: int, rng: np.random.Generator) -> Pair:
    x, y = rng.normal(size=(2, n, 8))
    y[:, 5] *= 2
    return x, y


def copulas(n: int, rng: np.random.Generator) -> Pair:
    """Log-normal columns of the same margins, joined by a normal and by a Student t copula."""
    x, y = rng.multivariate_normal((0, 0), [[1, 0.5], [0.5, 1]], (2, n))
    y /= np.sqrt(rng.chisquare(3, (n, 1)) / 3)
    return np.exp(x), np.exp(t_to_normal(y, 3))


CODES = ((0.4, 0.3, 0.2, 0.1), (0.3, 0.3, 0.2, 0.2))


def codes(n: int, rng: np.random.Generator) -> Pair:
    """A code of four values, a measurement that depends on it, and one that does not.

    The code's frequencies change, and so does the measurement of code 1.
    """

    def draw(frequencies: Sequence[float], shift: float) -> FloatArray:
        code = rng.choice(4, n, p=frequencies)
        measured = rng.normal(code + shift * (code == 1), 1)
        return np.column_stack([code, measured, rng.random(n)])

    return draw(CODES[0], 0), draw(CODES[1], 1)


def code_masses(nodes: int) -> Masses:
    shifts = (0, 1, 0, 0)
    cells = zip(*CODES, (normals(shift)(nodes) for shift in shifts), strict=True)
    p, q = zip(*((a * x, b * y) for a, b, (x, y) in cells), strict=True)
    return np.concatenate(p), np.concatenate(q)


def t_of_three(n: int, rng: np.random.Generator) -> Pair:
    """A normal cloud in three columns, and a Student t cloud with five degrees of freedom."""
    x, y = rng.normal(size=(2, n, 3))
    return x, y / np.sqrt(rng.chisquare(5, (n, 1)) / 5)


def clayton(n: int, rng: np.random.Generator) -> Pair:
    """Exponential columns of one rank correlation, joined by a normal and by a Clayton copula."""
    x = stats.norm.cdf(rng.multivariate_normal((0, 0), [[1, 0.5], [0.5, 1]], n))
    y = (1 + rng.exponential(size=(n, 2)) / rng.exponential(size=(n, 1))) ** -1
    return -np.log1p(-x), -np.log1p(-y)


def clayton_density(points: FloatArray) -> FloatArray:
    """With parameter one and standard normal margins."""
    u = stats.norm.cdf(points)
    joint = 2 * u.prod(axis=-1) / (u.sum(axis=-1) - u.prod(axis=-1)) ** 3
    return np.asarray(joint * stats.norm.pdf(points).prod(axis=-1))


TRIANGLE = 1.2 * np.array([[0, 1], [-np.sqrt(0.75), -0.5], [np.sqrt(0.75), -0.5]])
TRIANGLE_SPREAD = np.sqrt(1 - 1.2**2 / 2)


def three_clusters(n: int, rng: np.random.Generator) -> Pair:
    """Three clusters around a triangle, and one normal cloud of the same means and covariances."""
    x, y = rng.normal(size=(2, n, 2))
    return TRIANGLE[rng.integers(3, size=n)] + TRIANGLE_SPREAD * x, y


def clusters(centres: FloatArray, spread: float, weights: Sequence[float]) -> Density:
    """The density of round normal clusters of one spread."""

    def density(points: FloatArray) -> FloatArray:
        each = [stats.norm.pdf(points, centre, spread).prod(axis=-1) for centre in centres]
        return np.asarray(np.tensordot(weights, each, axes=1))

    return density


def ring_width(n: int, rng: np.random.Generator) -> Pair:
    """A narrow ring and a wide one around the same circle."""

    def draw(shape: float) -> FloatArray:
        angle, radius = rng.uniform(-np.pi, np.pi, n), rng.gamma(shape, 1 / shape, n)
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    return draw(25), draw(9)


def one_shape_of_six(n: int, rng: np.random.Generator) -> Pair:
    """Exponential columns, one of which has few small values in the first set."""
    x, y = rng.exponential(size=(2, n, 6))
    x[:, 3] = rng.gamma(2, 1 / 2, n)
    return x, y


CHECKER_EDGE, CHECKER_HEIGHT = 0.3, 0.5


def same_colour(points: FloatArray) -> FloatArray:
    """One where the first two columns are on the same side of the edge, else minus one."""
    return np.asarray(np.sign(points[:, :2] - CHECKER_EDGE).prod(axis=-1))


def checkers(n: int, rng: np.random.Generator) -> Pair:
    """Three normal columns; in the second set two of them prefer to be on the same side."""
    x, tried = rng.normal(size=(n, 3)), rng.normal(size=(8 * n + 64, 3))
    taken = rng.random(len(tried)) * (1 + CHECKER_HEIGHT) < 1 + CHECKER_HEIGHT * same_colour(tried)
    return x, tried[taken][:n]


def checker_masses(_: int) -> Masses:
    above = stats.norm.sf(CHECKER_EDGE)
    p = np.array([above**2 + (1 - above) ** 2, 2 * above * (1 - above)])
    q = p * (1 + CHECKER_HEIGHT * np.array([1, -1]))
    return p, q / q.sum()


FLAGGED, FLAGGED_MEANS = (0.3, 0.4), (5, 4)


def flags(n: int, rng: np.random.Generator) -> Pair:
    """A flag, a count that depends on it, and an amount that depends on the count."""

    def draw(share: float, mean: float) -> FloatArray:
        flag = rng.random(n) < share
        count = rng.poisson(np.where(flag, mean, 2))
        return np.column_stack([flag, count, rng.gamma(1 + count)])

    first, second = (draw(*law) for law in zip(FLAGGED, FLAGGED_MEANS, strict=True))
    return first, second


def flag_masses(_: int) -> Masses:
    values = np.arange(80)
    first, second = (
        np.concatenate(
            [(1 - share) * stats.poisson.pmf(values, 2), share * stats.poisson.pmf(values, mean)]
        )
        for share, mean in zip(FLAGGED, FLAGGED_MEANS, strict=True)
    )
    return first, second


def rounded(n: int, rng: np.random.Generator) -> Pair:
    """Measurements to the next half: one column moves, one spreads."""
    x, y = rng.normal(size=(2, n, 2))
    return np.round(2 * x) / 2, np.round(2 * (y * (1, 1.3) + (0.4, 0))) / 2


def rounded_masses(shift: float, scale: float) -> Callable[[int], Masses]:
    lower = np.arange(-14.25, 14, 0.5)

    def cells(law: Any) -> FloatArray:
        below = law.cdf(lower + 0.5) - law.cdf(lower)
        above = law.sf(lower) - law.sf(lower + 0.5)
        return np.where(lower < law.mean(), below, above)  # each from the end that keeps its digits

    return lambda _: (cells(stats.norm()), cells(stats.norm(shift, scale)))


def cauchy(n: int, rng: np.random.Generator) -> Pair:
    """Two Cauchy columns, twice as wide in the second set."""
    x, y = rng.standard_cauchy((2, n, 2))
    return x, 2 * y


def cauchy_masses(nodes: int) -> Masses:
    """One column in the coordinate u = F(x), in which p is uniform."""
    u, weights = line(0, 1, nodes)
    square = np.tan(np.pi * (u - 0.5)) ** 2
    return weights, weights * (1 + square) / 2 / (1 + square / 4)


PLANE_OF_FIVE = np.array([[0.5, 0.5, 0.5, 0.5, 0], [0.5, -0.5, 0.5, -0.5, 0]])
FIVE_CENTRES = np.array([[2.0, 0.0], [-1.0, 1.5], [-1.0, -1.5]])
FIVE_WEIGHTS = ((1 / 3, 1 / 3, 1 / 3), (0.5, 0.3, 0.2))


def clusters_of_five(n: int, rng: np.random.Generator) -> Pair:
    """Three clusters in five columns whose weights change."""

    def draw(weights: Sequence[float]) -> FloatArray:
        centres = FIVE_CENTRES[rng.choice(3, n, p=weights)]
        return centres @ PLANE_OF_FIVE + rng.normal(size=(n, 5))

    return draw(FIVE_WEIGHTS[0]), draw(FIVE_WEIGHTS[1])


def laplace(n: int, rng: np.random.Generator) -> Pair:
    """One column, normal and Laplace of the same variance."""
    return rng.normal(size=(n, 1)), rng.laplace(0, np.sqrt(0.5), (n, 1))


def three_tails(n: int, rng: np.random.Generator) -> Pair:
    """Uniform columns, joined by a normal and by a t copula of the same correlations."""
    x, y = rng.multivariate_normal(np.zeros(3), 0.3 + 0.7 * np.eye(3), (2, n))
    y /= np.sqrt(rng.chisquare(4, (n, 1)) / 4)
    return stats.norm.cdf(x), stats.norm.cdf(t_to_normal(y, 4))


def phase(n: int, rng: np.random.Generator) -> Pair:
    """An hour of the day, and a value that follows it; two hours later in the second set."""

    def draw(delay: float) -> FloatArray:
        hour = rng.uniform(0, 24, n)
        return np.column_stack([hour, rng.normal(np.sin(np.pi / 12 * (hour - delay)), 0.5)])

    return draw(0), draw(2)


def phase_masses(nodes: int) -> Masses:
    hour, share = line(0, 24, nodes)
    value, length = line(-7, 7, nodes)
    area = np.multiply.outer(share / 24, length)
    p, q = (
        stats.norm.pdf(value, np.sin(np.pi / 12 * (hour - delay))[:, None], 0.5) for delay in (0, 2)
    )
    return (p * area).ravel(), (q * area).ravel()


BULK, WIDE, BULK_SHIFT = 0.97, 50.0, 0.5


def contaminated(n: int, rng: np.random.Generator) -> Pair:
    """Two normal columns that move, and three in a hundred points that are anywhere."""

    def draw(shift: float) -> FloatArray:
        points = rng.normal(size=(n, 2))
        return np.where(rng.random((n, 1)) < BULK, shift + points, WIDE * points)

    return draw(0), draw(BULK_SHIFT)


def contaminated_density(shift: float) -> Density:
    def density(points: FloatArray) -> FloatArray:
        bulk, wide = (stats.norm.pdf(points, *law).prod(axis=-1) for law in ((shift, 1), (0, WIDE)))
        return np.asarray(BULK * bulk + (1 - BULK) * wide)

    return density


def contaminated_masses(nodes: int) -> Masses:
    """A square, and all that is outside, where both have the same density."""
    reach = 10.0
    p, q = plane(contaminated_density(0), contaminated_density(BULK_SHIFT), reach)(nodes)
    inside = 1 - 2 * stats.norm.sf(reach, 0, WIDE)
    outside = (1 - BULK) * (1 - inside**2)
    return np.append(p, outside), np.append(q, outside)


SEEN: tuple[Problem, ...] = (
    Problem(
        "waiting-times",
        1,
        waiting_times,
        continuous(stats.gamma(2, 0.25).pdf, stats.gamma(2).pdf, 0, 0.25, 60),
    ),
    Problem(
        "rotated-ring",
        2,
        rotated_ring,
        continuous(stats.vonmises(1).pdf, stats.vonmises(1, np.pi / 2).pdf, -np.pi, np.pi),
    ),
    Problem("cluster-weights", 4, cluster_weights, cluster_masses),
    Problem("counts", 2, counts, count_masses),
    Problem("many-zeros", 2, many_zeros, independent(*[zeros_masses] * 2), 960),
    Problem("one-spread-of-eight", 8, one_spread_of_eight, normals(scale=2.0, reach=20.0)),
    Problem("copulas", 2, copulas, plane(normal_plane(0.5), t_copula(0.5, 3), 9), 960),
    Problem("codes", 3, codes, code_masses),
    Problem("t-of-three", 3, t_of_three, radii(3, 5), exact={"reverse_kl": t_from_normal(3, 5)}),
    Problem("clayton", 2, clayton, plane(normal_plane(0.5), clayton_density, 9), 960),
    Problem(
        "three-clusters",
        2,
        three_clusters,
        plane(clusters(TRIANGLE, TRIANGLE_SPREAD, [1 / 3] * 3), normal_plane(0), 10),
        960,
    ),
    Problem(
        "ring-width",
        2,
        ring_width,
        continuous(stats.gamma(25, scale=1 / 25).pdf, stats.gamma(9, scale=1 / 9).pdf, 0, 8),
    ),
    Problem(
        "one-shape-of-six",
        6,
        one_shape_of_six,
        continuous(stats.gamma(2, scale=1 / 2).pdf, stats.expon.pdf, 0, 0.01, 1, 60),
    ),
    Problem("checkers", 3, checkers, checker_masses),
    Problem("flags", 3, flags, flag_masses),
    Problem("rounded", 2, rounded, independent(rounded_masses(0.4, 1), rounded_masses(0, 1.3))),
    Problem("cauchy", 2, cauchy, independent(*[cauchy_masses] * 2), 960),
    Problem(
        "clusters-of-five",
        5,
        clusters_of_five,
        plane(*(clusters(FIVE_CENTRES, 1, weights) for weights in FIVE_WEIGHTS), 12),
        960,
    ),
    Problem(
        "laplace",
        1,
        laplace,
        continuous(stats.norm.pdf, stats.laplace(0, np.sqrt(0.5)).pdf, -30, 0, 30),
    ),
    Problem(
        "three-tails",
        3,
        three_tails,
        space(stats.multivariate_normal(cov=0.3 + 0.7 * np.eye(3)).pdf, t_copula(0.3, 4, 3), 8, 3),
        144,
    ),
    Problem("phase", 2, phase, phase_masses, 960),
    Problem("contaminated", 2, contaminated, contaminated_masses, 960),
)
