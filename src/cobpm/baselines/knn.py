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

**Ties.** A k-th neighbour at distance zero means that there are equal points, and then k need not
be the number of neighbours in a ball. In that case every ball reaches as far as the k-th neighbour
and at least as far as the nearest at a positive distance, and the numbers of neighbours in the two
balls, a_i and b_i, are counted. They take the place of k: the logarithm of r_i gains
ψ(a_i) − ψ(b_i), and B is Γ(a_i) Γ(b_i) / (Γ(a_i − α + 1) Γ(b_i + α − 1)). Where a_i = b_i = k both
are what they were.
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
        return _balls(p, q, k, owner).kl()
    if name == "reverse_kl":
        return _balls(q, p, k, owner).kl()
    if name == "jeffreys":
        return _balls(p, q, k, owner).kl() + _balls(q, p, k, owner).kl()
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
    return _of_integral(family, order, _balls(p, q, k, owner).log_integral(order))


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
    return _balls(p, q, k, owner).log_ratios()


@dataclass(frozen=True, eq=False)
class _Balls:
    """Around each point of the first sample, a ball with neighbours in each of the samples."""

    log_radii: FloatArray  # log r_i, the ratio before any correction
    own: IntArray  # how many neighbours in the first sample, or k for all points
    other: IntArray  # the same for the second

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


def _balls(x: FloatArray, y: FloatArray, k: int, owner: str) -> _Balls:
    own, other = cKDTree(x), cKDTree(y)
    rho = _distance(own, x, k + 1)  # the nearest is the point itself
    nu = _distance(other, x, k)
    a = b = np.array(k)
    if not (rho.all() and nu.all()):
        rho, a = _counted(x, x, own, rho, owner)
        a = a - 1  # the point itself is no neighbour
        nu, b = _counted(x, y, other, nu, owner)
    scale = np.log(len(y) / (len(x) - 1))
    return _Balls(x.shape[1] * np.log(nu / rho) + scale, a, b)


def _distance(tree: cKDTree[None], at: FloatArray, k: int) -> FloatArray:
    """The distance from each point to the k-th nearest in the tree."""
    return np.asarray(tree.query(at, k=[k])[0])[:, 0]


def _counted(
    at: FloatArray, points: FloatArray, tree: cKDTree[None], radii: FloatArray, owner: str
) -> tuple[FloatArray, IntArray]:
    """Balls with positive radii, and how many points they hold."""
    if not radii.all():
        places = np.unique(points, axis=0)
        if len(places) == 1:
            rule = "have, and 'y' too, points in more than one place"
            raise bad("x", owner, rule, Seen("a sample of copies of a single point"))
        beyond = _distance(cKDTree(places), at, 2)
        radii = np.where(radii == 0, beyond, radii)
    edge = radii * (1 + 1e-12)  # rounding must not lose the neighbour on it
    return radii, np.asarray(tree.query_ball_point(at, edge, return_length=True))


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
