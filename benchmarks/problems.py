"""Pairs of distributions whose divergences are known: where estimates can be compared with truth.

`TUNING` are the problems that settings were chosen on: the paper's own, and what a method should
get right (the same law twice, correlations, shifts, scale, tails, a curved cloud, a small bump).
`benchmarks.seen_problems` has further ones that choices were made on since, and
`benchmarks.untouched_problems` those that were written first and run last.
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
