"""Divergences between many sets at once: one matrix per drawn partition.

Most divergences are made of sums that a matrix product works out for all pairs of sets. With P and
Q the masses of two lists of sets over the cells of one partition, a column for each set,

    I(α)    =  (P^α)ᵀ Q^(1−α)                        Hellinger, chi-squared, Rényi, Tsallis, Amari
    kl      =  Σ P log P − Pᵀ log Q                  and from it reverse_kl and jeffreys

The others (total variation, Jensen–Shannon, Rényi of order ∞, functions of the user's) are worked
out row by row with the formula that `Divergence` has for a single pair. So are rows in which a
product has lost its digits: sets that are nearly equal, or nearly disjoint at an extreme order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cobpm.arrays import BoolArray, FloatArray
from cobpm.divergences import Divergence

# A product is good to about 1e-15. Below this the difference of two sets keeps too few digits …
CLOSE = 1e-7
EQUAL = 1e-13  # … and below this it is zero: a set and itself, or all sets on a single cell
# What is left of an integral of nearly disjoint sets; below, summands may have vanished.
DISJOINT = 1e-200

Products = Callable[[FloatArray, FloatArray], tuple[FloatArray, BoolArray]]


def divergence_matrix(divergence: Divergence, p: FloatArray, q: FloatArray) -> FloatArray:
    """The divergence of every set of `p` from every set of `q` on the cells of one partition.

    Args:
        divergence: What to work out.
        p: Positive masses, a row per cell and a column per set; columns sum to one.
        q: Masses of other sets on the same cells, or the same array again.

    Returns:
        Entry (i, j) is the divergence from set i of `p` to set j of `q`.
    """
    cells, sets = q.shape
    found, rows = np.empty((p.shape[1], sets)), np.arange(p.shape[1])
    if (by_products := _products(divergence)) is not None:
        with np.errstate(all="ignore"):  # what overflows is found and worked out again
            found, lost = by_products(p, q)
            rows = np.flatnonzero((lost | ~np.isfinite(found)).any(axis=1))
    flat, starts = np.ascontiguousarray(q.T).ravel(), np.arange(sets) * cells
    for i in rows:
        found[i] = divergence.of_masses(np.tile(p[:, i], sets), flat, starts)
    return np.clip(found, 0.0, divergence.largest)


def _products(divergence: Divergence) -> Products | None:
    """How to get all pairs by matrix products, and which came out with too few digits."""
    family, _, order = divergence.name.partition(":")
    if family in _OF_KL:
        return _OF_KL[family]
    if family in _OF_INTEGRAL:
        alpha, value = _OF_INTEGRAL[family]
    elif family in ("renyi", "tsallis", "alpha") and order != "inf":
        alpha = float(order)
        # Next to these orders a large factor meets a difference of equals.
        if min(abs(alpha), abs(alpha - 1)) < 1e-3:
            return None
        value = _of_order(family, alpha)
    else:
        return None

    def work_out(p: FloatArray, q: FloatArray) -> tuple[FloatArray, BoolArray]:
        integral = _power(p, alpha).T @ _power(q, 1 - alpha)
        near = (np.abs(integral - 1.0) < CLOSE) & (np.abs(integral - 1.0) > EQUAL)
        return value(integral), near | (integral < DISJOINT)

    return work_out


def _of_order(family: str, alpha: float) -> Callable[[FloatArray], FloatArray]:
    if family == "renyi":
        return lambda integral: np.log(integral) / (alpha - 1)
    factor = 1 / (alpha - 1) if family == "tsallis" else 1 / (alpha * (alpha - 1))
    return lambda integral: factor * (integral - 1.0)


_OF_INTEGRAL: dict[str, tuple[float, Callable[[FloatArray], FloatArray]]] = {
    "squared_hellinger": (0.5, lambda integral: 1.0 - integral),
    "hellinger": (0.5, lambda integral: np.sqrt(np.maximum(1.0 - integral, 0.0))),
    "chi2": (2.0, lambda integral: integral - 1.0),
}


def _power(masses: FloatArray, exponent: float) -> FloatArray:
    if exponent == 0.5:
        return np.sqrt(masses)
    return np.asarray(masses**exponent)


def _kl(p: FloatArray, q: FloatArray) -> tuple[FloatArray, BoolArray]:
    own = (p * np.log(p)).sum(axis=0)
    found = own[:, None] - p.T @ np.log(q)
    return found, (np.abs(found) < CLOSE) & (np.abs(found) > EQUAL)


def _reverse_kl(p: FloatArray, q: FloatArray) -> tuple[FloatArray, BoolArray]:
    found, poor = _kl(q, p)
    return found.T.copy(), poor.T


def _jeffreys(p: FloatArray, q: FloatArray) -> tuple[FloatArray, BoolArray]:
    there, poor_there = _kl(p, q)
    back, poor_back = _reverse_kl(p, q)
    return there + back, poor_there | poor_back


_OF_KL = {"kl": _kl, "reverse_kl": _reverse_kl, "jeffreys": _jeffreys}
