"""Posterior means of the ratio model over all partitions and frames, without a draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, digamma, poch

from cobpm.arrays import FloatArray, IntArray
from cobpm.divergences import Divergence
from cobpm.ratio_model import RatioModel


@dataclass(frozen=True)
class RatioMoments:
    """Which counts leaves have, and how often: all that a sum over leaves needs.

    With g = n/N the pooled mass of a leaf, a divergence is Σ g f(θ_i/π_i, θ_j/π_j), and its mean
    over θ given the leaf's counts is closed form for the divergences that this class knows. The
    masses are taken as they are, g θ_s/π_s, not divided by their sum, which is close to one. Where
    the whole space is a single leaf, the sets are the same and the divergence is zero.

    Attributes:
        model: The model.
        counts: Distinct counts that a leaf can have but for the whole space, (rows, S).
        expected: How many leaves with these counts there are, on average over partitions and
            frames.
        whole: The probability that the whole space is a leaf.
    """

    model: RatioModel
    counts: IntArray
    expected: FloatArray
    whole: float

    def knows(self, divergence: Divergence) -> bool:
        """Whether the mean of a divergence is a sum of means over leaves."""
        return divergence.name in _FIXED or _order(divergence) is not None

    def mean(self, divergence: Divergence, first: int, second: int) -> float:
        """E[D | data], for a divergence that it knows."""
        shares, n = self.model.shares, self.counts.sum(axis=1)
        weights, concentrations = self.model.weights(self.counts), self.model.reading
        a, b = (concentrations * shares[k] + self.counts[:, k, np.newaxis] for k in (first, second))
        total = concentrations + n[:, np.newaxis]
        given = _leaf(divergence, a, b, total, shares[first], shares[second])
        pooled = self.expected * n / sum(self.model.sizes)
        constant = (1 - self.whole) * _constant(divergence)
        return max(0.0, float(pooled @ (weights * given).sum(axis=1) + constant))


def _order(divergence: Divergence) -> tuple[float, float] | None:
    """Order α and factor of a divergence that is factor · (I(α) − 1), else None."""
    if divergence.name == "squared_hellinger":
        return 0.5, -1.0
    if divergence.name == "chi2":
        return 2.0, 1.0
    family, _, order = divergence.name.partition(":")
    if family not in ("tsallis", "alpha") or divergence.additive is None:
        return None
    alpha = float(order)
    return alpha, 1 / (alpha - 1) if family == "tsallis" else 1 / (alpha * (alpha - 1))


def _constant(divergence: Divergence) -> float:
    found = _order(divergence)
    return 0.0 if found is None else -found[1]


def _leaf(
    divergence: Divergence,
    a: FloatArray,
    b: FloatArray,
    total: FloatArray,
    pi: float,
    rho: float,
) -> FloatArray:
    """E[f(θ_i/π, θ_j/ρ)] for θ ~ Dirichlet with parameters a and b for the two, `total` in all."""
    if divergence.name in _FIXED:
        return _FIXED[divergence.name](a, b, pi, rho) / total
    found = _order(divergence)
    assert found is not None
    alpha, factor = found
    # E[θ_i^α θ_j^(1−α)] = Γ(a+α)/Γ(a) · Γ(b+1−α)/Γ(b) / total
    return np.asarray(
        factor * poch(a, alpha) * poch(b, 1 - alpha) / total / (pi**alpha * rho ** (1 - alpha))
    )


def _kl(a: FloatArray, b: FloatArray, pi: float, rho: float) -> FloatArray:
    # E[θ_i log θ_i] = a/total (ψ(a+1) − ψ(total+1)), E[θ_i log θ_j] = a/total (ψ(b) − ψ(total+1))
    return np.asarray(a / pi * (digamma(a + 1) - digamma(b) - np.log(pi / rho)))


def _reverse_kl(a: FloatArray, b: FloatArray, pi: float, rho: float) -> FloatArray:
    return _kl(b, a, rho, pi)


def _jeffreys(a: FloatArray, b: FloatArray, pi: float, rho: float) -> FloatArray:
    return _kl(a, b, pi, rho) + _kl(b, a, rho, pi)


def _tv(a: FloatArray, b: FloatArray, pi: float, rho: float) -> FloatArray:
    # θ_i = t β and θ_j = t (1−β) with β ~ Beta(a, b) independent of t, and E[t] = (a+b)/total. The
    # difference t |β/π − (1−β)/ρ| changes sign at β = π/(π+ρ).
    middle = pi / (pi + rho)
    mean = a / (a + b)
    above = mean * (1 - betainc(a + 1, b, middle)) - middle * (1 - betainc(a, b, middle))
    absolute = 2 * above - (mean - middle)  # E|β − middle|
    return np.asarray((a + b) * absolute * (1 / pi + 1 / rho) / 2)


_FIXED: dict[str, Callable[[FloatArray, FloatArray, float, float], FloatArray]] = {
    "kl": _kl,
    "reverse_kl": _reverse_kl,
    "jeffreys": _jeffreys,
    "tv": _tv,
}
