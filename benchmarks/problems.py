"""Pairs of distributions whose divergences are known: where estimates can be compared with truth.

`TUNING` are the problems that settings were chosen on: the paper's own, and what a method should
get right (the same law twice, correlations, shifts, scale, tails, a curved cloud, a small bump).
`SEEN` are problems of the kinds that data have: waiting times, rings, clusters, counts, zeros,
copulas, codes beside measurements. No setting was fitted to them, but their results were looked at
before some frames were thought of. `benchmarks.untouched_problems` has those that were written
first and run last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats
from scipy.special import digamma, gammaln

from cobpm.arrays import FloatArray
from cobpm.experiments.laws import (
    BETA_MIXTURES,
    CORNER_NORMALS,
    ONE_DIM,
    TABLE2,
    UNIFORM_NORMAL,
    Density,
    Masses,
    Problem,
    Sample,
    continuous,
    independent,
    line,
    outer,
)

# Masses on cells.


def plane(p: Density, q: Density, reach: float) -> Callable[[int], Masses]:
    """Two columns with joint densities that are negligible outside of [−reach, reach]²."""
    return space(p, q, reach, 2)


def space(p: Density, q: Density, reach: float, d: int) -> Callable[[int], Masses]:
    """The same with d columns."""

    def masses(nodes: int) -> Masses:
        at, weights = line(-reach, reach, nodes)
        points = np.stack(np.meshgrid(*[at] * d), axis=-1).reshape(-1, d)
        volume = outer(*[weights] * d)
        return p(points) * volume, q(points) * volume

    return masses


def normals(shift: float = 0.0, scale: float = 1.0, reach: float = 12.0) -> Callable[[int], Masses]:
    """One column, standard normal against one of another mean and standard deviation."""
    return continuous(stats.norm.pdf, stats.norm(shift, scale).pdf, -reach, reach)


def same(_: int) -> Masses:
    """One law twice."""
    return np.ones(1), np.ones(1)


def like(sample: Callable[[int, np.random.Generator], FloatArray]) -> Sample:
    """Both sets from one law."""
    return lambda n, rng: (sample(n, rng), sample(n, rng))


# The problems that settings were chosen on.


def correlated(n: int, rng: np.random.Generator) -> FloatArray:
    spread = np.linalg.cholesky(0.8 + 0.2 * np.eye(3))
    return rng.normal(size=(n, 3)) @ spread.T


def opposite_correlations(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    x, y = rng.normal(size=(2, n, 2))
    x[:, 1] = 0.6 * x[:, 0] + 0.8 * x[:, 1]
    y[:, 1] = -0.6 * y[:, 0] + 0.8 * y[:, 1]
    return x, y


def normal_plane(correlation: float) -> Density:
    return stats.multivariate_normal(cov=[[1, correlation], [correlation, 1]]).pdf


def t_to_normal(t: FloatArray, df: float) -> FloatArray:
    """The normal values of the same ranks as Student t values, without loss in the tails."""
    return np.asarray(-np.sign(t) * stats.norm.ppf(stats.t.cdf(-np.abs(t), df)))


def t_copula(correlation: float, df: float, d: int = 2) -> Density:
    """Joint density of a t copula with equal correlations and standard normal margins."""
    shape = correlation + (1 - correlation) * np.eye(d)
    law = stats.multivariate_t(shape=shape, df=df)

    def density(points: FloatArray) -> FloatArray:
        t = -np.sign(points) * stats.t.ppf(stats.norm.cdf(-np.abs(points)), df)
        return law.pdf(t) * (stats.norm.pdf(points) / stats.t.pdf(t, df)).prod(axis=-1)

    return density


def mean_shift(shifts: Sequence[float]) -> Problem:
    """Standard normal columns, and the same with other means.

    The ratio depends on the projection onto the line between the means alone.
    """
    d = len(shifts)

    def sample(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        x, y = rng.normal(size=(2, n, d))
        return x, y + shifts

    return Problem(f"shift-{d}", d, sample, normals(float(np.linalg.norm(shifts))))


def scale(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    x, y = rng.normal(size=(2, n, 2))
    return x, 1.5 * y


def heavy_tails(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    x, y = rng.standard_t(2, (2, n, 2))
    return x, y + 1


def heavy_tail_masses(nodes: int) -> Masses:
    """One column in the coordinate u = F(x), in which p is uniform and the tails are near."""
    u, weights = line(0, 1, nodes)
    x = stats.t.ppf(u, 2)
    return weights, weights * stats.t.pdf(x - 1, 2) / stats.t.pdf(x, 2)


def banana(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Normal clouds, one shifted by (0.6, 0.8), bent by (a, b) → (a, b + a²)."""
    x, y = rng.normal(size=(2, n, 2))
    y += (0.6, 0.8)
    for points in (x, y):
        points[:, 1] += points[:, 0] ** 2
    return x, y


def bump(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    x, y = rng.normal(size=(2, n, 2))
    in_bump = rng.random((n, 1)) < 0.05
    return np.where(in_bump, 1.5 + 0.2 * x, x), y


def bump_density(points: FloatArray) -> FloatArray:
    there = stats.norm.pdf(points, 1.5, 0.2).prod(axis=-1)
    return 0.95 * normal_plane(0)(points) + 0.05 * there


def one_of_five(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    x, y = rng.normal(size=(2, n, 5))
    y[:, 2] += 1
    return x, y


def joint_tails(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Normal columns that know nothing of each other, and some that are large together."""
    x, y = rng.normal(size=(2, n, 2))
    y /= np.sqrt(rng.chisquare(2, (n, 1)) / 2)
    return x, t_to_normal(y, 2)


def t_of_four(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """A normal cloud in four columns, and a Student t cloud with four degrees of freedom."""
    x, y = rng.normal(size=(2, n, 4))
    return x, y / np.sqrt(rng.chisquare(4, (n, 1)) / 4)


def radii(d: int, df: float) -> Callable[[int], Masses]:
    """The squared radius of a normal cloud and of a t cloud, on a logarithmic axis."""

    def masses(nodes: int) -> Masses:
        at, weights = line(-20, 20, nodes)
        square = np.exp(at)
        p, q = stats.chi2(d).pdf(square), stats.f(d, df).pdf(square / d) / d
        return p * square * weights, q * square * weights

    return masses


def t_from_normal(d: int, df: float) -> float:
    """The Kullback–Leibler divergence of a t cloud from a normal one."""
    logs = gammaln((df + d) / 2) - gammaln(df / 2) - d / 2 * np.log(df / 2)
    far = digamma((df + d) / 2) - digamma(df / 2)  # the mean of log(1 + r²/df)
    return float(logs - (df + d) / 2 * far + d / 2 * df / (df - 2))


TUNING: tuple[Problem, ...] = (
    ONE_DIM,
    UNIFORM_NORMAL,
    CORNER_NORMALS,
    BETA_MIXTURES,
    TABLE2,
    Problem("same-normal", 3, like(lambda n, rng: rng.normal(size=(n, 3))), same),
    Problem("same-uniform", 2, like(lambda n, rng: rng.random((n, 2))), same),
    Problem("same-correlated", 3, like(correlated), same),
    Problem(
        "correlations",
        2,
        opposite_correlations,
        plane(normal_plane(0.6), normal_plane(-0.6), 12),
        nodes=960,
        infinite=("renyi:2",),  # twice the precision of x less that of y is not positive definite
    ),
    mean_shift([0.4] * 5),
    mean_shift([0.3] * 10),
    Problem("scale", 2, scale, independent(*[normals(scale=1.5, reach=16.0)] * 2), 960),
    Problem("heavy-tails", 2, heavy_tails, independent(*[heavy_tail_masses] * 2), 960),
    Problem("banana", 2, banana, normals(1.0)),
    Problem("bump", 2, bump, plane(bump_density, normal_plane(0), 10), 960),
    Problem("one-of-five", 5, one_of_five, normals(1.0)),
    Problem("joint-tails", 2, joint_tails, plane(normal_plane(0), t_copula(0, 2), 9), 960),
    Problem("t-of-four", 4, t_of_four, radii(4, 4), exact={"reverse_kl": t_from_normal(4, 4)}),
)


# The problems that were looked at.


def waiting_times(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """All waits a quarter longer than they were: none is short any more."""
    x, y = rng.gamma(2, size=(2, n, 1))
    return x + 0.25, y


def rotated_ring(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """A ring that is denser on one side, and the same a quarter turn further."""

    def draw(turn: float) -> FloatArray:
        angle, radius = rng.vonmises(turn, 1, n), rng.normal(1, 0.1, n)
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    return draw(0), draw(np.pi / 2)


def cluster_weights(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
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


def counts(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
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


def many_zeros(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Two log-normal amounts; two fifths of each are zero, then a half, and the rest larger."""

    def draw(zeros: float, shift: float) -> FloatArray:
        amounts = np.exp(rng.normal(shift, 1, (n, 2)))
        return np.where(rng.random((n, 2)) < zeros, 0, amounts)

    return draw(0.4, 0), draw(0.5, 0.4)


def zeros_masses(nodes: int) -> Masses:
    p, q = normals(0.4)(nodes)
    return np.append(0.4, 0.6 * p), np.append(0.5, 0.5 * q)


def one_spread_of_eight(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    x, y = rng.normal(size=(2, n, 8))
    y[:, 5] *= 2
    return x, y


def copulas(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Log-normal columns of the same margins, joined by a normal and by a Student t copula."""
    x, y = rng.multivariate_normal((0, 0), [[1, 0.5], [0.5, 1]], (2, n))
    y /= np.sqrt(rng.chisquare(3, (n, 1)) / 3)
    return np.exp(x), np.exp(t_to_normal(y, 3))


CODES = ((0.4, 0.3, 0.2, 0.1), (0.3, 0.3, 0.2, 0.2))


def codes(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
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
)
