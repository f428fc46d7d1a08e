"""Divergences from the distances to nearest neighbours.

The k-th neighbour of a point x_i is at the distance ρ_i in its own sample, of n points, and at ν_i
in the other, of m. Balls of these radii estimate both densities at x_i, and their ratio

    r_i  =  (m / (n − 1)) · (ν_i / ρ_i)^d          estimates p(x_i) / q(x_i):

    KL(p‖q)               is the mean of log r_i                   Pérez-Cruz 2008, "PC-k";
    I(α) = ∫ p^α q^(1−α)  is B(k, α) times the mean of r_i^(α−1)   Póczos and Schneider 2011, with
    B(k, α) = Γ(k)² / (Γ(k − α + 1) Γ(k + α − 1)),                 which exists for k > |α − 1|.

With k fixed, the volumes of the balls keep their spread however many points there are. In the mean
of the logarithms the two biases cancel; B removes the one of the powers. Nothing keeps the
estimates above zero.

**Ties.** Where values repeat, a neighbour may be at distance zero, volumes say nothing, and k need
not be the number of neighbours in a ball. If that happens anywhere, each point whose two balls do
not hold exactly k neighbours, or are empty, is looked at again with *one* ball for both samples
(Wang, Kulkarni and Verdú 2009), as large as the larger of the two. The volume cancels, whatever the
law is made of, and the numbers of neighbours in it, a_i and b_i, take the place of k:

    log r_i  =  log m / (n − 1) + ψ(a_i) − ψ(b_i),
    B        =  Γ(a_i) Γ(b_i) / (Γ(a_i − α + 1) Γ(b_i + α − 1)), with r_i = m / (n − 1).

At a value that both samples repeat more than k times the ball is that value alone, a_i and b_i
count its copies, and r_i is the ratio of its frequencies. Elsewhere the ball ends at the k-th
neighbour in one of the samples, y say, so that b_i = k. If several points of y are at that
distance, the k-th is any of them, in random order: with s of them, j of which it takes to make k,
one expects j / (s + 1) of the points of x at the same distance to come before it, and a_i has that
share of them. So a value of x that y lacks makes the estimate grow with m, as it should.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import digamma, gammaln, logsumexp

from cobpm.arrays import FloatArray, IntArray
from cobpm.divergences import parse
from cobpm.samples import Seen, as_samples, bad, check_count

# The order α of the integral I(α) in the divergences whose names do not say it.
_ORDERS = {"squared_hellinger": 0.5, "hellinger": 0.5, "chi2": 2.0}
ROUNDING = 1e-15  # of a coordinate, as a share of it


def knn_divergence(x: Any, y: Any, divergence: str = "kl", k: int = 1) -> float:
    """Estimate a divergence of x from y from the distances to nearest neighbours.

    Distances are Euclidean: scale columns of different units first.

    Args:
        x: The first sample: numbers, a matrix with one row per point, or a data frame.
        y: The second sample, with the same columns. It may have another size.
        divergence: "kl", "reverse_kl", "jeffreys", "squared_hellinger", "hellinger", "chi2", or
            one of a family with its order, "renyi:0.5", "tsallis:2", "alpha:0.5". The others have
            no estimate of this kind.
        k: Which neighbour. A larger k means less variance and more bias.

    Returns:
        The estimate. It may be negative; only "hellinger" is not, the root of at least zero.

    Raises:
        InputError: The samples are unfit or not larger than k, or k does not suffice for the
            order of the divergence.
    """
    owner = "knn_divergence"
    p, q = _points(x, y, k, owner)
    name = parse(divergence, owner).name
    if name == "kl":
        return _balls(p, q, k).kl()
    if name == "reverse_kl":
        return _balls(q, p, k).kl()
    if name == "jeffreys":
        return _balls(p, q, k).kl() + _balls(q, p, k).kl()
    family, _, text = name.partition(":")
    if family in ("renyi", "tsallis", "alpha") and text != "inf":
        order = float(text)
    elif name in _ORDERS:
        order = _ORDERS[name]
    else:
        rule = "be made of the Kullback-Leibler divergence or of ∫ p^α q^(1−α)"
        way_out = "Nearest neighbours have no correction for the bias of the others."
        raise bad("divergence", owner, rule, divergence, way_out)
    if k <= abs(order - 1):
        way_out = "The bias of a smaller k has no finite correction."
        raise bad("k", owner, f"be above {abs(order - 1):g} for '{name}'", k, way_out)
    return _of_integral(family, order, _balls(p, q, k).log_integral(order))


def knn_log_ratios(x: Any, y: Any, k: int = 1) -> FloatArray:
    """Estimate the log density ratio log(p/q) of x to y at each point of x.

    Args:
        x: The first sample.
        y: The second sample, with the same columns.
        k: Which neighbour.

    Returns:
        One number per point. Their mean is `knn_divergence(x, y, "kl", k)`; each alone is rough.
    """
    owner = "knn_log_ratios"
    p, q = _points(x, y, k, owner)
    return _balls(p, q, k).log_ratios()


@dataclass(frozen=True, eq=False)
class _Balls:
    """Around each point of the first sample, a ball with neighbours in each of the samples."""

    log_radii: FloatArray  # log r_i, the ratio before any correction
    own: FloatArray  # how many neighbours in the first sample: k, but where there are ties
    other: FloatArray  # the same for the second

    def log_ratios(self) -> FloatArray:
        return np.asarray(self.log_radii + digamma(self.own) - digamma(self.other))

    def kl(self) -> float:
        return float(self.log_ratios().mean())

    def log_integral(self, order: float) -> float:
        """The logarithm of the estimate of I(α)."""
        a, b, power = self.own, self.other, order - 1
        correction = gammaln(a) - gammaln(a - power) + gammaln(b) - gammaln(b + power)
        return float(logsumexp(power * self.log_radii + correction) - np.log(len(self.log_radii)))


def _points(x: Any, y: Any, k: Any, owner: str) -> tuple[FloatArray, FloatArray]:
    samples = as_samples([x, y], owner=owner, names=["x", "y"], parameters=["x", "y"])
    check_count(k, parameter="k", owner=owner)
    for name, size in zip(samples.names, samples.sizes, strict=True):
        if size <= k:
            rule, seen = f"hold more than k={k} points", Seen(f"{size} point{'s' * (size != 1)}")
            raise bad(name, owner, rule, seen, "Take a smaller k.")
    p, q = samples.values
    return p, q


def _balls(x: FloatArray, y: FloatArray, k: int) -> _Balls:
    own, other = cKDTree(x), cKDTree(y)
    at, back = _places(x)
    rho = _distance(own, at, k + 1)  # the nearest is the point itself
    nu = _distance(other, at, k)
    a, b = np.full((2, len(at)), float(k))
    scale = np.log(len(y) / (len(x) - 1))
    if not (rho.all() and nu.all()):
        tied = (rho == 0) | (nu == 0)
        tied |= _within(own, at, rho + _slack(at, rho)) - 1 > k
        tied |= _within(other, at, nu + _slack(at, nu)) > k
        a[tied], b[tied] = _in_one_ball(at[tied], own, other, rho[tied], nu[tied], k)
        rho[tied] = nu[tied] = 1.0
    log_radii = x.shape[1] * np.log(nu / rho) + scale
    return _Balls(log_radii[back], a[back], b[back])


def _places(points: FloatArray) -> tuple[FloatArray, IntArray | slice]:
    """The different points, and where each of all of them is among these."""
    if len(np.unique(points[:, 0])) == len(points):
        return points, slice(None)
    places, back = np.unique(points, axis=0, return_inverse=True)
    return places, back.ravel()


def _in_one_ball(
    at: FloatArray,
    own: cKDTree[None],
    other: cKDTree[None],
    rho: FloatArray,
    nu: FloatArray,
    k: int,
) -> tuple[FloatArray, FloatArray]:
    """How many neighbours of either sample are in the larger ball; see Ties, above."""
    radius = np.maximum(rho, nu)
    slack = _slack(at, radius)
    # The point itself is one of the first sample, inside of the ball or, if that is empty, on it.
    some = radius > 0
    inside_own, inside_other = (
        np.where(some, _within(tree, at, radius - slack), 0) for tree in (own, other)
    )
    on_own = _within(own, at, radius + slack) - inside_own - ~some
    on_other = _within(other, at, radius + slack) - inside_other
    inside_own = inside_own - some
    # Where one sample ends the ball, the share of the other's points on it that come first.
    ends_own, ends_other = rho > nu + slack, nu > rho + slack
    share_own = np.where(ends_other, (k - inside_other) / (on_other + 1), 1.0)
    share_other = np.where(ends_own, (k - inside_own) / (on_own + 1), 1.0)
    a = np.where(ends_own, k, inside_own + share_own * on_own)
    b = np.where(ends_other, k, inside_other + share_other * on_other)
    return a, b


def _distance(tree: cKDTree[None], at: FloatArray, k: int) -> FloatArray:
    """The distance from each point to the k-th nearest in the tree."""
    return np.asarray(tree.query(at, k=[k])[0])[:, 0]


def _slack(at: FloatArray, radii: FloatArray) -> FloatArray:
    """What rounding may add to or take from the distance to a neighbour."""
    return np.asarray(ROUNDING * (np.abs(at).max(axis=1) + radii))


def _within(tree: cKDTree[None], at: FloatArray, radii: FloatArray) -> IntArray:
    """How many points of the tree are that close to each point."""
    return np.asarray(tree.query_ball_point(at, np.maximum(radii, 0), return_length=True))


def _of_integral(family: str, order: float, log_integral: float) -> float:
    """A divergence, given the logarithm of its integral I(α)."""
    if family == "renyi":
        return log_integral / (order - 1)
    excess = float(np.expm1(log_integral))
    if family == "squared_hellinger":
        return -excess
    if family == "hellinger":
        return float(np.sqrt(max(0.0, -excess)))
    if family == "alpha":
        return excess / (order * (order - 1))
    return excess / (order - 1)  # tsallis, and chi2 with order 2
