"""The paper's distributions: how to draw from them, and the true divergences between them.

A divergence of p and q is a sum over the masses that p and q put on the same cells. With discrete
columns the cells are the values; with continuous ones they are the nodes of a quadrature, fine
enough that a coarser one gives the same number up to `Problem.truth_error`. Where the ratio p/q
depends on one statistic only, that statistic's law is enough: a sufficient statistic and a
bijection both leave every divergence of this kind as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import rel_entr

from cobpm.arrays import FloatArray

Masses = tuple[FloatArray, FloatArray]
Sample = Callable[[int, np.random.Generator], tuple[FloatArray, FloatArray]]
Density = Callable[[FloatArray], FloatArray]

DIVERGENCES = ("tv", "hellinger", "kl", "reverse_kl", "js", "renyi:2")
FOUR = ("tv", "hellinger", "kl", "renyi:2")  # those of the paper's experiments, in its order
LABELS = {
    "tv": "Total variation",
    "hellinger": "Hellinger",
    "kl": "Kullback–Leibler",
    "renyi:2": "Rényi of order 2",
}


def divergences(p: FloatArray, q: FloatArray) -> dict[str, float]:
    """The divergences of two sets of masses on the same cells, named as in `cobpm`."""
    middle = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = np.where(p > 0, p * (p / q), 0.0)
        values = (
            np.abs(p - q).sum() / 2,
            np.sqrt(np.square(np.sqrt(p) - np.sqrt(q)).sum() / 2),
            rel_entr(p, q).sum(),
            rel_entr(q, p).sum(),
            (rel_entr(p, middle).sum() + rel_entr(q, middle).sum()) / 2,
            np.log(squares.sum()),
        )
    return {name: float(value) for name, value in zip(DIVERGENCES, values, strict=True)}


def four(p: FloatArray, q: FloatArray) -> dict[str, float]:
    """The four divergences that the paper looks at."""
    values = divergences(p, q)
    return {name: values[name] for name in FOUR}


@dataclass(frozen=True)
class Problem:
    """Two distributions and the divergences between them.

    Attributes:
        name: A short name without spaces.
        d: The number of columns.
        sample: From (n, rng) to two sets of n points each, of shape (n, d).
        masses: From the number of nodes per axis to the masses of both distributions on the same
            cells. Discrete distributions ignore the number.
        nodes: How many nodes per axis the truth is computed with, a multiple of 24.
        infinite: Divergences that are infinite although no cell has mass in one set only.
        exact: Divergences in closed form, where masses are too small for a float.
    """

    name: str
    d: int
    sample: Sample
    masses: Callable[[int], Masses]
    nodes: int = 19_200
    infinite: tuple[str, ...] = ()
    exact: Mapping[str, float] = field(default_factory=dict, hash=False)

    @cached_property
    def truth(self) -> Mapping[str, float]:
        """The true divergence of x from y by name; it may be infinite."""
        return self._values(self.nodes)

    @cached_property
    def truth_error(self) -> Mapping[str, float]:
        """How far the truth is from what two thirds of the nodes give: about its error."""
        coarse = self._values(2 * self.nodes // 3)
        return {
            name: 0.0 if value == coarse[name] else abs(value - coarse[name])
            for name, value in self.truth.items()
        }

    def _values(self, nodes: int) -> dict[str, float]:
        known = dict.fromkeys(self.infinite, np.inf) | dict(self.exact)
        return divergences(*self.masses(nodes)) | known


# --- masses on cells ---------------------------------------------------------------------------


def line(low: float, high: float, nodes: int) -> Masses:
    """Nodes and weights for an interval: panels of equal width, Gauss–Legendre with 8 in each.

    Panels keep a kink, which total variation has where p = q, from spoiling more than one of them.
    """
    at, weights = np.polynomial.legendre.leggauss(8)
    edges = np.linspace(low, high, nodes // 8 + 1)
    half = (high - low) / (len(edges) - 1) / 2
    return np.add.outer(edges[:-1], half * (at + 1)).ravel(), np.tile(half * weights, nodes // 8)


def continuous(p: Density, q: Density, *breaks: float) -> Callable[[int], Masses]:
    """One column, with densities that are smooth between the breaks."""

    def masses(nodes: int) -> Masses:
        pieces = [line(*ends, nodes) for ends in pairwise(breaks)]
        at, weights = (np.concatenate(part) for part in zip(*pieces, strict=True))
        return p(at) * weights, q(at) * weights

    return masses


def outer(*columns: FloatArray) -> FloatArray:
    """The masses of independent columns, jointly."""
    return reduce(np.multiply.outer, columns).ravel()


def independent(*columns: Callable[[int], Masses]) -> Callable[[int], Masses]:
    """Independent columns, in both distributions."""

    def masses(nodes: int) -> Masses:
        p, q = zip(*(column(nodes) for column in columns), strict=True)
        return outer(*p), outer(*q)

    return masses


def unit_columns(d: int, *laws: Any) -> Sample:
    """Each set has d independent columns of one law."""

    def sample(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        x, y = (law.rvs((n, d), random_state=rng) for law in laws)
        return x, y

    return sample


def cube(name: str, d: int, p: Any, q: Any, nodes: int) -> Problem:
    """Two laws on the unit interval, the same in each of d independent columns."""
    column = continuous(p.pdf, q.pdf, 0, 1)
    return Problem(name, d, unit_columns(d, p, q), independent(*[column] * d), nodes)


def unit_normal(mean: float, std: float) -> Any:
    """A normal distribution cut off at the unit interval."""
    return stats.truncnorm(-mean / std, (1 - mean) / std, mean, std)


# --- the paper's problems ----------------------------------------------------------------------

Shapes = Sequence[tuple[int, int]]  # of the beta densities of each column
MIXTURES: tuple[tuple[Shapes, Shapes], ...] = (
    ([(1, 2), (2, 3), (3, 4)], [(4, 3), (3, 2), (2, 1)]),
    ([(1, 3), (3, 5), (5, 7)], [(7, 5), (5, 3), (3, 1)]),
)
FIRST_SHARE = 0.4  # of the first part of each mixture


def beta_mixtures(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Two sets of n points from the paper's three-dimensional mixtures of beta densities."""

    def draw(parts: tuple[Shapes, Shapes]) -> FloatArray:
        a, b = (np.column_stack([rng.beta(*shape, n) for shape in part]) for part in parts)
        return np.where(rng.random((n, 1)) < FIRST_SHARE, a, b)

    return draw(MIXTURES[0]), draw(MIXTURES[1])


def beta_mixture_masses(nodes: int) -> Masses:
    """Two fifths of one product of betas, the rest of another."""
    # Closer nodes near the ends, by t → 3t² − 2t³: both densities vanish in corners, their ratio
    # does not settle there, and even nodes would leave an error of 3e-5 in the order 2.
    t, weights = line(0, 1, nodes)
    at, weights = t * t * (3 - 2 * t), weights * 6 * t * (1 - t)

    def mixture(parts: tuple[Shapes, Shapes]) -> FloatArray:
        a, b = (outer(*(stats.beta.pdf(at, *shape) * weights for shape in part)) for part in parts)
        return FIRST_SHARE * a + (1 - FIRST_SHARE) * b

    return mixture(MIXTURES[0]), mixture(MIXTURES[1])


def beta(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Two sets of n points from Beta(6, 5) and Beta(5, 6)."""
    return rng.beta(6, 5, (n, 1)), rng.beta(5, 6, (n, 1))


# Table 1, part II.
BETA_SQUARE = cube("beta-square", 2, stats.beta(3, 5), stats.uniform(), 1920)
# The simulations in one and in three dimensions.
ONE_DIM = Problem("beta", 1, beta, continuous(stats.beta(6, 5).pdf, stats.beta(5, 6).pdf, 0, 1))
BETA_MIXTURES = Problem("beta-mixtures", 3, beta_mixtures, beta_mixture_masses, 144)
# Table 2.
TABLE2 = cube("table-2", 4, unit_normal(1 / 3, 1 / 5), unit_normal(1 / 2, 1 / 5), 48)
# The comparison with other methods: left, middle, and BETA_MIXTURES on the right.
UNIFORM_NORMAL = cube("uniform-normal", 3, stats.uniform(), unit_normal(0, 1 / 3), 144)
CORNER_NORMALS = cube("corner-normals", 3, unit_normal(0, 1 / 2), unit_normal(1, 1 / 2), 144)
COMPARISON = (UNIFORM_NORMAL, CORNER_NORMALS, BETA_MIXTURES)


# --- the sanity tests --------------------------------------------------------------------------

BUMP = stats.beta(2, 2)
BUMP_SHARE = 4 / 5
# Of p21 and p22, as (low, high) in each column, with the heights of both densities. The paper does
# not say which cells it took. Both densities must integrate to one, which leaves three choices of
# six dyadic volumes; this is the one without very large or very small cells.
NESTED_CELLS = {
    "r1": (((0.0, 0.5), (0.0, 0.5)), 2 / 3, 2 / 3),
    "r2": (((0.0, 0.5), (0.5, 1.0)), 4 / 3, 4 / 3),
    "r3": (((0.5, 1.0), (0.0, 0.5)), 1.0, 1 / 2),
    "r4": (((0.5, 0.75), (0.5, 1.0)), 1.0, 1.0),
    "r5": (((0.75, 1.0), (0.5, 0.75)), 1.0, 4 / 3),
    "r6": (((0.75, 1.0), (0.75, 1.0)), 1.0, 8 / 3),
}


def uniform_halves(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Points of p11 = 9/5 − 4/5 β(x1) β(x2) and p12 = 1/5 + 4/5 β(x1) β(x2), β of Beta(2, 2)."""
    x = np.empty((0, 2))
    while len(x) < n:  # accept uniform points with probability p11 over its maximum
        tried = rng.random((4 * n, 2))
        height = 1 - BUMP_SHARE / (1 + BUMP_SHARE) * BUMP.pdf(tried).prod(axis=1)
        x = np.vstack([x, tried[rng.random(4 * n) < height]])
    in_bump = rng.random((n, 1)) < BUMP_SHARE
    return x[:n], np.where(in_bump, rng.beta(2, 2, (n, 2)), rng.random((n, 2)))


def uniform_halves_masses(nodes: int) -> Masses:
    """Of p11 and p12."""
    at, weights = line(0, 1, nodes)
    area, bump = outer(weights, weights), outer(*[BUMP.pdf(at) * weights] * 2)
    return (1 + BUMP_SHARE) * area - BUMP_SHARE * bump, (1 - BUMP_SHARE) * area + BUMP_SHARE * bump


def uniform_halves_on(low: FloatArray, high: FloatArray) -> Masses:
    """Masses of p11 and p12 on boxes with these corners."""
    area, bump = (high - low).prod(axis=1), (BUMP.cdf(high) - BUMP.cdf(low)).prod(axis=1)
    return (1 + BUMP_SHARE) * area - BUMP_SHARE * bump, (1 - BUMP_SHARE) * area + BUMP_SHARE * bump


def nested_masses(_: int = 0) -> Masses:
    """Of p21 and p22 on their six cells."""
    volumes = [(b - a) * (d - c) for ((a, b), (c, d)), *_ in NESTED_CELLS.values()]
    heights = np.array([heights for _, *heights in NESTED_CELLS.values()]).T
    p, q = heights * volumes
    return p, q


def nested(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Points of p21 and p22."""
    sides = np.array([sides for sides, *_ in NESTED_CELLS.values()])

    def draw(masses: FloatArray) -> FloatArray:
        chosen: FloatArray = sides[rng.choice(len(sides), n, p=masses)]
        low, high = chosen[:, :, 0], chosen[:, :, 1]
        return low + (high - low) * rng.random((n, 2))

    p, q = nested_masses()
    return draw(p), draw(q)


UNIFORM_HALVES = Problem("uniform-halves", 2, uniform_halves, uniform_halves_masses, 960)
NESTED = Problem("nested", 2, nested, nested_masses)
