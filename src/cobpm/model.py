"""The paper's model on one page: prior, leaf weights, and the posterior they give.

S sample sets share one partition of the unit cube into l boxes. A decision sequence A_l of l−1
halvings makes the partition; given it, each set s has masses m_s ~ Dirichlet(δ, …, δ) and its
points are spread evenly inside each box:

    p(l, A_l, m_1 … m_S)  ∝  e^{−σ l} ∏_s ∏_i m_{si}^{δ−1}                  (prior)
    p(data | …)           =  ∏_s ∏_i (m_{si} / |r_i|)^{n_{si}}              (likelihood)

Integrating the masses out leaves the weight of a decision sequence, with N_s the size of set s,

    π(A_l, l | data)      ∝  e^{−σ l} · ∏_i w(r_i) / ∏_s Γ(N_s + δ l),
    w(r)                  =  |r|^{−Σ_s n_s(r)} ∏_s Γ(δ + n_s(r)),

which is the published formula taken literally. Given the partition,
m_s ~ Dirichlet(δ + n_{s1}, …, δ + n_{sl}).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import digamma, gammaln, logsumexp

from cobpm.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from cobpm.partitions import Partitions

LOG2 = float(np.log(2.0))
MOST_TABLED = 2**22  # counts whose lnΓ the core looks up rather than works out


@dataclass(frozen=True)
class PaperModel:
    """The posterior over partitions for `sizes` points per set in `d` columns."""

    delta: float
    sigma: float
    d: int
    sizes: tuple[int, ...]

    def log_leaf(self, counts: IntArray, depth: IntArray) -> FloatArray:
        """Log w(r) for rows of counts (…, S) at the given depths: |r| = 2^−depth."""
        total = counts.sum(axis=-1)
        return np.asarray(gammaln(self.delta + counts).sum(axis=-1) + depth * LOG2 * total)

    def log_size(self, leaves: FloatArray) -> FloatArray:
        """What a sequence of l leaves weighs beside its leaves: e^{−σ l} / ∏_s Γ(N_s + δ l)."""
        leaves = np.asarray(leaves, dtype=float)
        normaliser = gammaln(leaves[..., None] * self.delta + self._sizes).sum(axis=-1)
        return np.asarray(-self.sigma * leaves - normaliser)

    def log_weights(self, partitions: Partitions) -> FloatArray:
        """Log posterior weight of each partition's tree, summed over the orders of its splits."""
        leaf = self.log_leaf(partitions.counts, partitions.depths)
        leaves = np.add.reduceat(leaf, partitions.starts)
        return self.log_size(partitions.leaves) + partitions.log_orders + leaves

    def draw_masses(
        self, counts: IntArray, starts: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """m_s ~ Dirichlet(δ + n_s1, …, δ + n_sl) for every set and every partition."""
        return normalised(rng.standard_gamma(self.delta + counts), starts)

    def mean_masses(self, counts: IntArray, starts: IntArray) -> FloatArray:
        """The means of these Dirichlet laws."""
        return normalised(self.delta + counts, starts)

    def tails(self, level: float, points: int) -> tuple[float, float]:
        """Probabilities at the ends of a credible interval, whatever the number of points."""
        return (1 - level) / 2, (1 + level) / 2

    @property
    def least_pseudo_count(self) -> float:
        """What an empty cell counts for: it decides which posterior means exist."""
        return self.delta

    def log_price(self, most_leaves: int) -> FloatArray:
        """Log of what a split from l leaves costs, for l = 0 (not used) … most_leaves − 1."""
        return np.diff(self.log_size(np.arange(most_leaves + 1.0)))

    def log_gamma(self) -> FloatArray:
        """LnΓ(δ + n) for n = 0, 1, …: where the core reads the weights of all but huge leaves."""
        entries = min(max(self.sizes, default=0) + 2, MOST_TABLED)
        return np.asarray(gammaln(self.delta + np.arange(float(entries))))

    def log_leaf_probabilities(
        self, splits: IntArray, log_f: FloatArray
    ) -> tuple[FloatArray, float]:
        """Log P(l | data) for l = splits + 1, and the log normaliser, from the exact log f_Ω[k].

        P(l | data) ∝ e^{−σ l} (l−1)! f_Ω[l−1] / ∏_s Γ(N_s + δ l).
        """
        leaves = splits + 1.0
        log_p = self.log_size(leaves) + gammaln(leaves) + log_f
        total = float(logsumexp(log_p))
        return log_p - total, total

    def log_tilt(self, leaves: float) -> float:
        """Log price of one more leaf near l: the slope of log[e^{−σ l} (l−1)! / ∏ Γ(N_s + δ l)].

        Kept low enough for the series of an empty region, (d τ Γ(δ)^S)^k, to fall by 3% or more at
        each step.
        """
        return min(self._log_slope(leaves), self._steepest)

    def outruns_tilt(self, leaves: float) -> bool:
        """Whether a leaf near l is so cheap that the tilt cannot follow."""
        return self._log_slope(leaves) > self._steepest

    def _log_slope(self, leaves: float) -> float:
        price = self.delta * digamma(self._sizes + self.delta * leaves).sum()
        return float(digamma(leaves) - self.sigma - price)

    @property
    def _steepest(self) -> float:
        return float(np.log(0.97) - np.log(self.d) - self.log_empty) if self.d else np.inf

    @cached_property
    def log_empty(self) -> float:
        """Log weight of a region without points, Γ(δ)^S."""
        return float(len(self.sizes) * gammaln(self.delta))

    @cached_property
    def log_prior_total(self) -> float:
        """Log of the prior's normaliser, Σ_l e^{−σ l} (l−1)! d^{l−1} (Γ(δ)^l / Γ(δ l))^S."""
        return float(logsumexp(self._log_prior_terms))

    @property
    def prior_mean_leaves(self) -> float:
        """E[l] before any data."""
        probabilities = self.prior_leaf_probabilities()
        return float(probabilities @ np.arange(1, len(probabilities) + 1))

    def prior_leaf_probabilities(self) -> FloatArray:
        """P(l) before any data, for l = 1, 2, … as far as it matters."""
        terms = self._log_prior_terms
        return np.exp(terms - logsumexp(terms))

    @cached_property
    def _log_prior_terms(self) -> FloatArray:
        """Log of e^{−σ l} (l−1)! d^{l−1} (Γ(δ)^l / Γ(δ l))^S for l = 1, 2, … as far as needed."""
        if self.d == 0:  # one cell, and no way to split it
            return np.array([-self.sigma])
        most, sets = 20_000, len(self.sizes)
        while True:
            leaves = np.arange(1.0, most + 1)
            sequences = gammaln(leaves) + (leaves - 1) * np.log(self.d)
            masses = leaves * self.log_empty - sets * gammaln(self.delta * leaves)
            terms = -self.sigma * leaves + sequences + masses
            kept = int(np.flatnonzero(terms > terms.max() - 45.0)[-1]) + 1
            if kept < most or most > 2_000_000:
                return np.asarray(terms[:kept])
            most *= 8

    @cached_property
    def _sizes(self) -> FloatArray:
        return np.asarray(self.sizes, dtype=float)


def normalised(masses: FloatArray, starts: IntArray) -> FloatArray:
    """Masses that sum to one within each partition, for every set; all of them positive.

    Args:
        masses: Of the leaves of all partitions, a column per set.
        starts: First leaf of each partition.
    """
    # A tiny shape can give a gamma below the smallest float.
    tiny = np.finfo(float).tiny
    masses = np.maximum(masses, tiny)
    totals = np.add.reduceat(masses, starts, axis=0)
    masses /= np.repeat(totals, np.diff(starts, append=len(masses)), axis=0)
    return np.maximum(masses, tiny, out=masses)


def improper_because(delta: float, sigma: float, d: int, sets: int) -> tuple[str, str] | None:
    """Which parameter leaves no posterior, and what would do; None where the settings are fine.

    An empty cell can be split for ever. The weights summed over all partitions of l leaves behave
    like (l−1)! (d Γ(δ)^S e^{−σ})^l / Γ(δ l)^S as l grows, which has a finite sum for S δ > 1, for S
    δ = 1 if σ > ln(d S Γ(δ)^S), and never for S δ < 1.
    """
    if d == 0 or sets * delta > 1.0 + 1e-12:
        return None
    if sets * delta < 1.0 - 1e-12:
        enough = max(0.5, 1 / sets)
        if improper_because(enough, sigma, d, sets) is not None:
            enough += 0.1  # the limit itself asks for more sigma than this
        number = "one sample set" if sets == 1 else f"{sets} sample sets"
        return "delta", f"with {number} delta={enough:g} or more will do"
    least = float(np.log(d * sets) + sets * gammaln(delta))
    if sigma > least:
        return None
    enough = np.ceil(100 * least + 1e-6) / 100
    number = "one column" if d == 1 else f"{d} columns"
    return "sigma", f"with delta={delta:g} and {number} sigma={enough:g} or more will do"
