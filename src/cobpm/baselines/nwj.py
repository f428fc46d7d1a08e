"""Kullback–Leibler divergence as the value of a convex program.

Nguyen, Wainwright and Jordan (2010) estimate the density ratio g = p/q; its mean logarithm over x
is the divergence. The ratio minimises, over the functions f of a space with a Gaussian kernel K,

    M1, g = f:      1/n Σ_j f(y_j)      −  1/n Σ_i log f(x_i)  +  λ/2 ‖f‖²
    M2, g = exp f:  1/n Σ_j exp f(y_j)  −  1/n Σ_i f(x_i)      +  λ/2 ‖f‖²

With positive numbers α, one per point of x for M1 and one per point of y for M2, the duals are

    M1:   1/n Σ_i (1 + log nα_i)  −  λ/2 ‖f‖²,   λ f = Σ_i α_i K(x_i, ·) − 1/n Σ_j K(y_j, ·),
    M2:  −Σ_j α_j (log nα_j − 1)  −  λ/2 ‖f‖²,   λ f = 1/n Σ_i K(x_i, ·) − Σ_j α_j K(y_j, ·),

to be maximised. At the optimum both values agree, and nα is 1/f(x_i) or exp f(y_j). For any other α
their difference, the duality gap, bounds how far either is from the optimum.

**How it is solved.** The kernel matrix of the points that carry an α is factored, K = LLᵀ, with
pivoting, until no diagonal element above 1e-13 is left: with a wide kernel, after a few hundred
columns. The values of f at these points are Lw, and Newton's method finds w. The gap is computed
from the kernel itself, and so bounds what the factorisation leaves out as well.

**What is known and what is assumed.** Known are the two programs, that the kernel is Gaussian, and
that in the experiments of Nguyen et al. λ falls like 1/n, which they call simple and perhaps not
the best, with kernels that are narrow in one column and wider in more. Assumed is the rest:

- the factor in λ = 1/n, which is one here, with λ/2 before the squared norm as above;
- the width h of the kernel exp(−‖u − v‖²/2h²), here the root mean square distance between two of
  the pooled points, which follows the units of the data and grows with the number of columns;
- that the divergence is the mean of log g over the points of x, for M2 too. At the optimum of M2
  the dual has g at the points of y, and the mean of g log g over these estimates the same number.
  It is often far smaller and varies less; `NwjFit.ratios` has what it takes.

Results depend on all three, those of M2 very much: with a narrow kernel or a small penalty nothing
holds f back at points of x that have none of y near. `cobpm reproduce comparison` shows how much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from warnings import warn

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.spatial.distance import cdist
from scipy.special import xlogy

from cobpm.arrays import FloatArray, IntArray
from cobpm.diagnostics import ConvergenceWarning
from cobpm.samples import Seen, as_samples, bad, check_choice, check_positive

LEFT_OUT = 1e-13  # of the diagonal of the kernel matrix, which is one
MOST_STEPS = 200
CLOSE = 1e-10  # to the optimum, in the value of the program
LARGEST_GAP = 1e-6
BLOCK = 1000  # rows of a kernel matrix that are held at a time


@dataclass(frozen=True, eq=False)
class NwjFit:
    """The solution of the convex program.

    Attributes:
        divergence: The estimate of the Kullback–Leibler divergence, in nats.
        gap: The value of the program less that of its dual: how far it may be from the optimum.
        value: The value of the program.
        steps: How many Newton steps it took.
        rank: How many columns the factor of the kernel matrix has.
        bandwidth: The width h of the kernel.
        penalty: The weight λ of the squared norm.
        ratios: The density ratio g at the points that carry an α: those of x for M1, of y for M2.
    """

    divergence: float
    gap: float
    value: float
    steps: int
    rank: int
    bandwidth: float
    penalty: float
    ratios: FloatArray = field(repr=False)


def nwj_divergence(
    x: Any,
    y: Any,
    method: str = "M1",
    bandwidth: float | None = None,
    penalty: float | None = None,
) -> float:
    """Estimate the Kullback–Leibler divergence of x from y with a convex program.

    Args:
        x: The first sample: numbers, a matrix with one row per point, or a data frame.
        y: The second sample, with the same columns and the same size.
        method: "M1" penalises the norm of the density ratio, "M2" that of its logarithm.
        bandwidth: The width of the Gaussian kernel, in the units of the data; None for the root
            mean square distance between two of the pooled points. Scale columns of different
            units first.
        penalty: The weight of the squared norm; None for one over the size of a sample.

    Returns:
        The estimate in nats. It may be negative.

    Raises:
        InputError: The samples are unfit or differ in size.

    Warns:
        ConvergenceWarning: The duality gap is above a millionth. `nwj_fit` tells what it is.
    """
    return _fit(x, y, method, bandwidth, penalty, "nwj_divergence").divergence


def nwj_fit(
    x: Any,
    y: Any,
    method: str = "M1",
    bandwidth: float | None = None,
    penalty: float | None = None,
) -> NwjFit:
    """Solve the program of `nwj_divergence`, and tell how well.

    Args:
        x: The first sample.
        y: The second sample, with the same columns and the same size.
        method: "M1" or "M2".
        bandwidth: The width of the Gaussian kernel.
        penalty: The weight of the squared norm.

    Returns:
        The estimate with the duality gap and the settings that were used.
    """
    return _fit(x, y, method, bandwidth, penalty, "nwj_fit")


def _fit(x: Any, y: Any, method: str, bandwidth: Any, penalty: Any, owner: str) -> NwjFit:
    samples = as_samples([x, y], owner=owner, names=["x", "y"], parameters=["x", "y"])
    n, m = samples.sizes
    if n != m:
        way_out = "Draw as many points from the larger sample; knn_divergence takes any sizes."
        raise bad("y", owner, f"hold as many points as 'x': {n}", Seen(f"{m} points"), way_out)
    check_choice(method, ["M1", "M2"], parameter="method", owner=owner)
    if bandwidth is None:
        bandwidth = float(np.sqrt(2 * np.vstack(samples.values).var(axis=0).sum()))
        if bandwidth == 0:
            rule = "hold, together with 'y', at least two different points"
            raise bad("x", owner, rule, Seen("copies of a single point"))
    h = check_positive(bandwidth, parameter="bandwidth", owner=owner)
    weight = check_positive(1 / n if penalty is None else penalty, parameter="penalty", owner=owner)
    a, b = samples.values
    fit = _M1.solve(a, b, h, weight) if method == "M1" else _M2.solve(b, a, h, weight)
    if not fit.gap <= LARGEST_GAP:
        warn(
            f"{owner}: the duality gap is {fit.gap:.2g} after {fit.steps} steps, so the solution "
            "is not exact. A larger penalty or a smaller bandwidth makes the program easier.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return fit


@dataclass(frozen=True)
class _Program:
    """One of the two programs, in a form that they share.

    With u the values of f at the points that carry an α, and μ the mean of K(z, ·) over the other
    points z, the program is mean(loss(u)) + sign ⟨f, μ⟩ + λ/2 ‖f‖², and nα = −sign loss′(u).
    """

    sign: int
    one: float  # the f that makes the density ratio one
    loss: Callable[[FloatArray], float]  # its mean; infinite where u is out of range
    slope: Callable[[FloatArray], FloatArray]
    bend: Callable[[FloatArray], FloatArray]
    dual: Callable[[FloatArray], float]  # of nα, but for the norm

    def solve(self, points: FloatArray, others: FloatArray, h: float, weight: float) -> NwjFit:
        """The optimum, when `points` carry an α."""
        n = len(points)
        factor, order = _factor(points, h)
        rank = factor.shape[1]
        mean = _sums(points, others, np.full(n, 1 / n), h)  # μ at the points
        linear = self.sign * solve_triangular(factor[:rank], mean[order[:rank]], lower=True)
        u, steps = self._newton(factor, linear, weight)
        alpha = np.empty(n)
        alpha[order] = -self.sign * self.slope(u) / n

        # From here on with the kernel itself: f is what α makes it, not what was factored.
        spread = _sums(points, points, alpha, h)
        own = _sums(others, others, np.full(n, 1 / n), h).mean()
        values = self.sign * (spread - mean) / weight
        squared = (alpha @ (spread - 2 * mean) + own) / weight**2
        at_mean = self.sign * (alpha @ mean - own) / weight  # ⟨f, μ⟩
        value = self.loss(values) + self.sign * at_mean + weight / 2 * squared
        gap = value - (self.dual(n * alpha) - weight / 2 * squared)
        divergence = at_mean if self.sign < 0 else -np.log(n * alpha).mean()
        ratios = n * alpha if self.sign < 0 else 1 / (n * alpha)
        return NwjFit(float(divergence), float(gap), float(value), steps, rank, h, weight, ratios)

    def _newton(
        self, factor: FloatArray, linear: FloatArray, weight: float
    ) -> tuple[FloatArray, int]:
        """The values u = Lw that minimise mean(loss(Lw)) + linear · w + λ/2 ‖w‖², and the steps."""
        n, rank = factor.shape
        w = factor.sum(axis=0)
        w *= self.one / (factor @ w).mean()
        u = factor @ w

        def objective(w: FloatArray, u: FloatArray) -> float:
            return self.loss(u) + float(linear @ w + weight / 2 * w @ w)

        now, last = objective(w, u), np.inf
        for step in range(1, MOST_STEPS + 1):
            gradient = factor.T @ self.slope(u) / n + linear + weight * w
            curvature = (factor.T * (self.bend(u) / n)) @ factor
            curvature[np.diag_indices(rank)] += weight
            move = -cho_solve(cho_factor(curvature, lower=True, overwrite_a=True), gradient)
            promise = float(-gradient @ move)  # twice what the step should gain
            length, along = 1.0, factor @ move
            # Close to the optimum gains drown in rounding, and full steps are safe.
            while promise > CLOSE and length > 1e-12:
                if objective(w + length * move, u + length * along) <= now - length * promise / 10:
                    break
                length /= 2
            w = w + length * move
            u = factor @ w
            now = objective(w, u)
            if promise < CLOSE and promise >= last / 4:  # it has stopped falling
                return u, step
            last = promise
        return u, MOST_STEPS


def _minus_log(u: FloatArray) -> float:
    return float(-np.log(u).mean()) if u.min() > 0 else np.inf


def _exp(u: FloatArray) -> float:
    return float(np.exp(u).mean()) if u.max() < 700 else np.inf


_M1 = _Program(
    sign=1,
    one=1.0,
    loss=_minus_log,
    slope=lambda u: -1 / u,
    bend=lambda u: u**-2,
    dual=lambda v: float(np.mean(1 + np.log(v))),
)
_M2 = _Program(
    sign=-1,
    one=0.0,
    loss=_exp,
    slope=np.exp,
    bend=np.exp,
    dual=lambda v: float(np.mean(v - xlogy(v, v))),
)


def _kernel(a: FloatArray, b: FloatArray, h: float) -> FloatArray:
    distances = cdist(a / h, b / h, "sqeuclidean")
    return np.asarray(np.exp(np.multiply(distances, -0.5, out=distances), out=distances))


def _factor(points: FloatArray, h: float) -> tuple[FloatArray, IntArray]:
    """The factor of the kernel matrix and the order of its rows: K[order][:, order] ≈ LLᵀ."""
    # The transpose is the same matrix, in the order of Fortran, which LAPACK can overwrite.
    factor, pivots, rank, _ = dpstrf(
        _kernel(points, points, h).T, tol=LEFT_OUT, lower=1, overwrite_a=1
    )
    factor = np.ascontiguousarray(factor[:, :rank])
    factor[:rank] = np.tril(factor[:rank])
    return factor, pivots - 1


def _sums(at: FloatArray, points: FloatArray, weights: FloatArray, h: float) -> FloatArray:
    """Σ_j weight_j K(point_j, z) for each z, some rows of the kernel matrix at a time."""
    blocks = (at[start : start + BLOCK] for start in range(0, len(at), BLOCK))
    return np.concatenate([_kernel(block, points, h) @ weights for block in blocks])
