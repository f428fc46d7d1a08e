"""The ratio model on one page: which set a point belongs to, given where it lies.

The paper's likelihood rewards cuts that follow the *shape* which the samples share, although a
divergence only changes where their *ratio* does. This model looks at the labels alone. Pool the
N = Σ_s N_s points, with shares π_s = N_s / N. A partition into boxes has a prior that stops or
cuts: a box is left whole with probability ⅓, else it is halved along one of its columns, each as
likely as the others. In a leaf with n points, n_s of them of set s, labels are drawn with
probabilities θ, which lie around the shares more or less closely:

    θ ~ mean_k Dirichlet(A_k π),  A_k = δ_k / min π,  δ ∈ {½, 2, 8} (many sets: A_k = S δ_k, more δ)
    L(leaf) = mean_k Γ(A_k)/Γ(A_k+n) ∏_s Γ(A_k π_s + n_s)/Γ(A_k π_s)

The sum over all partitions of a region needs one number per region,

    Φ(r) = ⅓ L(r) + (⅔/d) Σ_j Φ(lower half) Φ(upper half),     Φ(r) = L(r) at the greatest depth.

Whether the sets differ at all is a question of its own, which `cobpm.engines.ratio` asks all
coordinate frames together. Given the partition, a leaf's share of the pooled mass is
g ~ Dirichlet(n), and the mass that set s has there is g θ_s / π_s, divided by its sum over the
leaves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from cobpm.arrays import FloatArray, IntArray
from cobpm.model import normalised

if TYPE_CHECKING:
    from cobpm.partitions import Partitions

DELTAS = (0.5, 2.0, 8.0)
# Among many sets some regions belong to a few of them alone, which a small δ allows for. The
# largest says that in a leaf all sets are alike. Without it, hundreds of sets of one law would seem
# to differ: that their sizes are as they are is less likely under a single leaf than under many.
MANY_DELTAS = (0.02, 0.1, *DELTAS, 1e6)
# Masses of many sets are read with less extreme ones: in a cell without points of a set, a tiny δ
# would say that it never goes there, and KL would be all but infinite.
MANY_READING_DELTAS = (0.25, *DELTAS)
STOP = 1 / 3
# Prior odds that all sets share one distribution, for estimates: they are zero in the median where
# the posterior odds are above one. Of more points, "no difference" means a smaller one. Without
# that, the median would be zero for more and more differences that the data show well enough.
SAME_ODDS, SAME_SIZE = 0.5, 400
LARGE = 1e5  # argument of a Gamma function, from which on differences of its logarithm lose digits
# Calibration of intervals, chosen on the tuning problems of the benchmarks: with fewer points
# than this intervals hold the truth too often, with more not often enough.
CALIBRATED_SIZE, CALIBRATED_POWER = 1500, 0.35
# Of fewer points than these, estimates of large differences are much too small.
FEW_POINTS, FEW_POWER = 200, 0.5


@dataclass(frozen=True)
class RatioModel:
    """The posterior over partitions for `sizes` points per set in `d` columns."""

    d: int
    sizes: tuple[int, ...]
    stop: float = STOP

    @cached_property
    def shares(self) -> FloatArray:
        """π_s, the part of the pooled points that belongs to each set."""
        return np.asarray(self.sizes) / sum(self.sizes)

    @cached_property
    def concentrations(self) -> FloatArray:
        """A_k of the law that partitions are weighed by.

        Of two sets the smaller one has the pseudo-count δ_k in a leaf, as both have if they are of
        one size. With less, the ratio in a leaf without points of it could be anything, and a
        single point would speak for a difference wherever it lies. Of more sets, A_k = S δ_k.
        """
        if len(self.sizes) == 2:
            return np.asarray(DELTAS / self.shares.min())
        return len(self.sizes) * np.asarray(MANY_DELTAS)

    @cached_property
    def reading(self) -> FloatArray:
        """A_k of the law that masses are read with, once the partition is known."""
        if len(self.sizes) == 2:
            return self.concentrations
        return len(self.sizes) * np.asarray(MANY_READING_DELTAS)

    @property
    def least_pseudo_count(self) -> float:
        """The smallest A_k π_s: what an empty cell's Beta law has for its smaller parameter."""
        return float(self.reading.min() * self.shares.min())

    def tails(self, level: float, points: int) -> tuple[float, float]:
        """Probabilities at the ends of an interval that is to hold the truth so often.

        What a posterior interval leaves out, 1 − level, is multiplied by (1500 / points)^0.35 down
        to 200 points. Of fewer, intervals grow again: by the factor for 200 and (points / 200)^0.5.

        Args:
            level: How often.
            points: Of the two sets that are compared.
        """
        factor = (CALIBRATED_SIZE / max(points, FEW_POINTS)) ** CALIBRATED_POWER
        outside = (1 - level) * factor * min(1.0, points / FEW_POINTS) ** FEW_POWER
        outside = min(outside, 1 - level / 2)  # of a low level, not less than half
        return outside / 2, 1 - outside / 2

    @property
    def log_same_odds(self) -> float:
        """Log of the prior odds that all sets share one distribution, for estimates.

        One half, and 200 / points from 400 points of two sets on, which count as if both were as
        small as the smallest set.
        """
        points = 2 * min(self.sizes)
        return math.log(SAME_ODDS * min(1.0, SAME_SIZE / points))

    def log_components(self, counts: IntArray, concentrations: FloatArray) -> FloatArray:
        """Log of the summands of L, without the 1/K, for rows of counts (…, S): (…, K)."""
        counts = np.asarray(counts, dtype=float)
        total, parts = counts.sum(axis=-1), []
        for a in concentrations:
            alpha = a * self.shares
            labels = log_rising(alpha, counts).sum(axis=-1)
            plain = labels + gammaln(a) - gammaln(a + total)
            parts.append(plain if a < LARGE else labels - log_rising(a, total))
        return np.stack(parts, axis=-1)

    def log_leaf(self, counts: IntArray) -> FloatArray:
        """Log L for rows of counts (…, S)."""
        return _log_mean_exp(self.log_components(counts, self.concentrations))

    def log_same(self) -> float:
        """Log probability of all labels if the sets share one distribution: a single leaf."""
        return float(self.log_leaf(np.asarray(self.sizes)))

    def cut_probability(self, log_ratio: float) -> float:
        """Posterior probability that the space is cut at all, 1 − stop·L/Φ, given log Φ/L."""
        return -math.expm1(min(math.log(self.stop) - log_ratio, 0.0)) if self.d else 0.0

    def log_differs(self, log_ratio: float) -> float:
        """Log D/L given log Φ/L, where Φ = stop·L + (1 − stop)·D: the evidence for a difference.

        A single leaf says that the sets share one distribution. It has the prior probability
        `stop`; what is left of the evidence without it speaks for a difference.
        """
        if not self.d:  # nothing to cut: no evidence
            return 0.0
        cut = max(self.cut_probability(log_ratio), 1e-300)
        return log_ratio + math.log(cut) - math.log1p(-self.stop)

    def log_weights(self, partitions: Partitions) -> FloatArray:
        """Log of prior times likelihood of each partition, but for the choice of columns.

        A leaf at the greatest depth pays for stopping like all others, so the order of two
        partitions that differ there is not exact.
        """
        leaves = np.add.reduceat(self.log_leaf(partitions.counts), partitions.starts)
        splits = partitions.leaves - 1
        return np.asarray(
            leaves
            + partitions.leaves * np.log(self.stop)
            + splits * (np.log1p(-self.stop) - np.log(max(self.d, 1)))
        )

    def draw_masses(
        self, counts: IntArray, starts: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """Masses of every set in the leaves of some partitions, (leaves, S)."""
        cumulative = np.cumsum(self.weights(counts), axis=1)
        which = (rng.random(len(counts))[:, None] >= cumulative).sum(axis=1)
        which = np.minimum(which, len(self.reading) - 1)  # rounding at the end of the range
        theta = rng.standard_gamma(self.reading[which, None] * self.shares + counts)
        pooled = rng.standard_gamma(counts.sum(axis=1))
        tiny = np.finfo(float).tiny
        theta *= (pooled / np.maximum(theta.sum(axis=1), tiny))[:, None]
        return normalised(theta, starts)

    def mean_masses(self, counts: IntArray, starts: IntArray) -> FloatArray:
        """What the masses are with θ and g at their posterior means."""
        total, weights = counts.sum(axis=1), self.weights(counts)
        theta = np.zeros(counts.shape)
        for k, a in enumerate(self.reading):
            theta += (weights[:, k] / (a + total))[:, None] * (a * self.shares + counts)
        return normalised(theta * total[:, None], starts)

    def weights(self, counts: IntArray) -> FloatArray:
        """Posterior probability of each component of the law that masses are read with."""
        logs = self.log_components(counts, self.reading)
        weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def log_rising(start: FloatArray | float, steps: FloatArray) -> FloatArray:
    """lnΓ(start + steps) − lnΓ(start), also where the two are large and nearly the same."""
    if np.max(start) < LARGE:
        return np.asarray(gammaln(start + steps) - gammaln(start))
    large = np.maximum(start, LARGE)
    smooth = (large - 0.5) * np.log1p(steps / large) + steps * (np.log(large + steps) - 1)
    smooth += (1 / (large + steps) - 1 / large) / 12  # Stirling's series
    return np.where(np.asarray(start) < LARGE, gammaln(start + steps) - gammaln(start), smooth)


def _log_mean_exp(values: FloatArray) -> FloatArray:
    largest = values.max(axis=-1)
    return np.asarray(largest + np.log(np.exp(values - largest[..., None]).mean(axis=-1)))
