"""Divergences: from the masses of the cells to one number, and its posterior mean in closed form.

With p the masses of the first set over the cells of a partition and q those of the second:

    tv                  ½ ∑ |p − q|
    hellinger           √(1 − ∑ √(pq))
    squared_hellinger   1 − ∑ √(pq)
    kl                  ∑ p log(p/q)
    reverse_kl          ∑ q log(q/p)
    jeffreys            kl + reverse_kl
    js                  ½ ∑ p log(p/m) + ½ ∑ q log(q/m)   with m = ½(p + q)
    chi2                ∑ (p − q)²/q
    renyi:α             log I(α) / (α − 1)                with I(α) = ∑ p^α q^(1−α);
    tsallis:α           (I(α) − 1) / (α − 1)              order 1 is kl for all three,
    alpha:α  (Amari)    (I(α) − 1) / (α(α − 1))           order 0 of the last is reverse_kl
    a function φ        ∑ p φ(q/p)                        φ convex, φ(1) = 0

Logarithms are natural. The cells of all draws stand one after another in flat arrays, and `starts`
says where each draw begins.

Given the partition, p ~ Dirichlet(a) and q ~ Dirichlet(b) with a = δ + counts of the first set and
b = δ + counts of the second. `Additive` holds the mean of the divergence where it is closed form.

When does the mean exist? An empty cell can always occur. Its mass m is Beta(δ, ·), and E[m^−k] is
finite only for δ > k, so E[I(α)] needs δ > α − 1 and δ > −α. The Rényi divergence takes the
logarithm of I(α), which is bounded by multiples of log(1/m) summed over the cells, and E[log(1/m)]
is finite for every δ > 0: its mean always exists, even where the mean of the integral inside it,
and so of chi2, tsallis and alpha of that order, does not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, poch

from cobpm.samples import Seen, bad

FloatArray = NDArray[np.float64]
Starts = NDArray[np.integer[Any]]
Formula = Callable[[FloatArray, FloatArray, Starts], FloatArray]
Pointwise = Callable[[FloatArray, FloatArray], FloatArray]

# The rows of a summary table, in its order.
SUMMARY = ("tv", "hellinger", "kl", "reverse_kl", "jeffreys", "js", "chi2", "renyi:2")


@dataclass(frozen=True)
class Term:
    """One sum over leaves, `scale(A, B) * sum of leaf(a, b)`, with A and B the sums of a and b."""

    leaf: Pointwise
    scale: Pointwise


@dataclass(frozen=True)
class Additive:
    """A posterior mean given the partition: the sum of the terms, plus `shift(A, B)`."""

    terms: tuple[Term, ...]
    shift: Pointwise

    def mean(self, a: FloatArray, b: FloatArray, starts: Starts) -> FloatArray:
        """The mean for each draw."""
        A, B = _total(a, starts), _total(b, starts)
        sums = (term.scale(A, B) * _total(term.leaf(a, b), starts) for term in self.terms)
        return sum(sums, start=self.shift(A, B))


@dataclass(frozen=True)
class Divergence:
    """A divergence between two sets of masses on the same cells.

    Attributes:
        name: The canonical name, for instance "renyi:2".
        label: The name in words.
        formula: The number for each draw, from (p, q, starts). Use `of_masses`, which guards it.
        additive: The posterior mean given the partition where it is closed form, else None.
        mean_needs_delta_above: The posterior mean exists if and only if delta is above this.
        empty_set: Which set's empty cells stand in the way of the mean, "first" or "second".
        largest: The upper bound of the divergence.
        steep: Whether it outgrows p log(p/q) where one set has next to nothing, as orders above 1
            do: then a few cells that are empty by chance can decide a draw.
    """

    name: str
    label: str
    formula: Formula
    additive: Additive | None = None
    mean_needs_delta_above: float = 0.0
    empty_set: str = "second"
    largest: float = np.inf
    steep: bool = False

    def of_masses(self, p: FloatArray, q: FloatArray, starts: Starts) -> FloatArray:
        """The divergence of each draw, from positive masses that sum to one within each draw."""
        return self._within_bounds(self.formula, p, q, starts)

    def plug(self, a: FloatArray, b: FloatArray, starts: Starts) -> FloatArray:
        """The divergence of the posterior mean masses a/A and b/B of each draw."""

        def formula(a: FloatArray, b: FloatArray, starts: Starts) -> FloatArray:
            A, B = (_spread(_total(x, starts), starts, x.size) for x in (a, b))
            return self.formula(a / A, b / B, starts)

        return self._within_bounds(formula, a, b, starts)

    def mean_given_partition(self, a: FloatArray, b: FloatArray, starts: Starts) -> FloatArray:
        """The exact posterior mean given each draw's partition. Ask `mean_exists` first."""
        if self.additive is None:
            raise TypeError(f"the mean of {self.name} has no closed form")
        return self._within_bounds(self.additive.mean, a, b, starts)

    def _within_bounds(
        self, formula: Formula, x: FloatArray, y: FloatArray, starts: Starts
    ) -> FloatArray:
        out = np.empty(len(starts))
        with np.errstate(over="ignore"):  # what leaves the range of floats is infinite
            for draws, leaves, local in _blocks(starts, x.size):
                out[draws] = formula(x[leaves], y[leaves], local)
        return np.clip(out, 0.0, self.largest, out=out)  # rounding may overstep by a hair

    def mean_exists(self, delta: float) -> bool:
        """Whether the posterior mean is finite, whatever empty cells the partitions have."""
        return delta > self.mean_needs_delta_above

    def why_no_mean(self, delta: float) -> str:
        """One sentence for the reader of a table without this mean; empty if the mean exists."""
        if self.mean_exists(delta):
            return ""
        start = f"The mean of the {self.label} does not exist with delta={delta:g}: cells without "
        needed = self.mean_needs_delta_above
        if needed == np.inf:
            return start + f"points of the {self.empty_set} set make it infinite; read the median."
        return start + (
            f"points of the {self.empty_set} set make it infinite unless delta is above "
            f"{needed:g}; read the median, or choose such a delta."
        )


Asked: TypeAlias = str | Callable[[Any], Any] | Divergence  # what a user may name one by


def _blocks(starts: Starts, total: int, size: int = 1 << 15) -> Iterator[tuple[slice, slice, Any]]:
    """Whole draws, about `size` leaves at a time, so that temporaries are small and stay in cache.

    Yields the draws, their leaves, and where each draw begins within these leaves.
    """
    starts = starts.astype(np.intp, copy=False)
    ends = np.append(starts[1:], total)
    first = 0
    while first < len(starts):
        begin = int(starts[first])
        last = max(first + 1, int(np.searchsorted(ends, begin + size, side="right")))
        yield slice(first, last), slice(begin, int(ends[last - 1])), starts[first:last] - begin
        first = last


# --- formulas ---------------------------------------------------------------------------------


def _total(x: FloatArray, starts: Starts) -> FloatArray:
    return np.add.reduceat(x, starts)


def _spread(per_draw: FloatArray, starts: Starts, total: int) -> FloatArray:
    """The number of each draw, repeated for all its leaves."""
    return np.repeat(per_draw, np.diff(starts, append=total))


def _tv(p: FloatArray, q: FloatArray, starts: Starts) -> FloatArray:
    return _total(np.abs(p - q), starts) / 2


def _squared_hellinger(p: FloatArray, q: FloatArray, starts: Starts) -> FloatArray:
    # The same as 1 − ∑ √(pq), without its loss of digits when p and q are close.
    return _total((np.sqrt(p) - np.sqrt(q)) ** 2, starts) / 2


def _hellinger(p: FloatArray, q: FloatArray, starts: Starts) -> FloatArray:
    return np.sqrt(_squared_hellinger(p, q, starts))


def _kl(p: FloatArray, q: FloatArray, starts: Starts) -> FloatArray:
    return _total(p * np.log(p / q), starts)


def _reverse_kl(p: FloatArray, q: FloatArray, starts: Starts) -> FloatArray:
    return _kl(q, p, starts)


def _jeffreys(p: FloatArray, q: FloatArray, starts: Starts) -> FloatArray:
    return _total((p - q) * np.log(p / q), starts)


def _js(p: FloatArray, q: FloatArray, starts: Starts) -> FloatArray:
    m = (p + q) / 2
    return _total(p * np.log(p / m) + q * np.log(q / m), starts) / 2


def _chi2(p: FloatArray, q: FloatArray, starts: Starts) -> FloatArray:
    return _total((p - q) ** 2 / q, starts)


def _log_integral(p: FloatArray, q: FloatArray, starts: Starts, order: float) -> FloatArray:
    """The logarithm of I(α) = ∑ p^α q^(1−α), for any positive masses."""
    # I(α) − 1 = ∑ p (e^x − 1) with x = (α − 1) log(p/q), and the same from the side of q. The
    # nearer side keeps all digits for orders close to 1 (from p) or to 0 (from q).
    base, power = (p, order - 1) if order > 0.5 else (q, order)
    exponent = power * np.log(p / q)
    excess = _total(base * np.expm1(exponent), starts)
    # Nearly disjoint masses leave the range of floats: there, sum relative to the largest summand.
    extreme = ~((excess > -0.9) & (excess < 1e300))
    log_integral = np.log1p(np.where(extreme, 0.0, excess))
    if extreme.any():
        exponent += np.log(base)
        largest = np.maximum.reduceat(exponent, starts)
        exponent -= _spread(largest, starts, p.size)
        log_sum = largest + np.log(_total(np.exp(exponent), starts))
        log_integral = np.where(extreme, log_sum, log_integral)
    return log_integral


def _max_log_ratio(p: FloatArray, q: FloatArray, starts: Starts) -> FloatArray:
    return np.log(np.maximum.reduceat(p / q, starts))


# --- posterior means given the partition ------------------------------------------------------

# E[p log p] = a/A (ψ(a + 1) − ψ(A + 1)) and E[log q] = ψ(b) − ψ(B), with ψ the digamma function.
_KL_TERM = Term(
    leaf=lambda a, b: a * (digamma(a + 1) - digamma(b)),
    scale=lambda A, B: 1 / A,
)
_REVERSE_KL_TERM = Term(
    leaf=lambda a, b: b * (digamma(b + 1) - digamma(a)),
    scale=lambda A, B: 1 / B,
)


def _kl_shift(A: FloatArray, B: FloatArray) -> FloatArray:
    return digamma(B) - digamma(A + 1)


def _moment(a: FloatArray, power: float) -> FloatArray:
    """Γ(a + power) / Γ(a), the moment of a Gamma(a) variable: infinite if a + power ≤ 0."""
    moment = np.asarray(poch(a, power), dtype=np.float64)
    return np.where(a + power > 0, moment, np.inf)


def _integral_mean(order: float, factor: float) -> Additive | None:
    """The mean of factor · (I(α) − 1), from E[p^α] = moment(a, α) / moment(A, α), likewise q."""
    # Next to orders 0 and 1 a large factor meets a difference of equals: no digits would be left.
    if min(abs(order), abs(order - 1)) < 1e-3:
        return None
    rest = 1 - order
    term = Term(
        leaf=lambda a, b: _moment(a, order) * _moment(b, rest),
        scale=lambda A, B: factor / (_moment(A, order) * _moment(B, rest)),
    )
    return Additive((term,), shift=lambda A, B: np.full(A.shape, -factor))


# --- the family -------------------------------------------------------------------------------

_FIXED = {
    divergence.name: divergence
    for divergence in (
        Divergence(
            "kl", "Kullback-Leibler divergence", _kl, Additive((_KL_TERM,), shift=_kl_shift)
        ),
        Divergence(
            "reverse_kl",
            "reverse Kullback-Leibler divergence",
            _reverse_kl,
            Additive((_REVERSE_KL_TERM,), shift=lambda A, B: _kl_shift(B, A)),
        ),
        Divergence(
            "jeffreys",
            "Jeffreys divergence",
            _jeffreys,
            Additive(
                (_KL_TERM, _REVERSE_KL_TERM),
                shift=lambda A, B: _kl_shift(A, B) + _kl_shift(B, A),
            ),
        ),
        Divergence("js", "Jensen-Shannon divergence", _js, largest=float(np.log(2))),
        Divergence("tv", "total variation distance", _tv, largest=1.0),
        Divergence("hellinger", "Hellinger distance", _hellinger, largest=1.0),
        Divergence(
            "squared_hellinger",
            "squared Hellinger distance",
            _squared_hellinger,
            _integral_mean(0.5, factor=-1.0),
            largest=1.0,
        ),
        Divergence(
            "chi2",
            "chi-squared divergence",
            _chi2,
            _integral_mean(2.0, factor=1.0),
            mean_needs_delta_above=1.0,
            steep=True,
        ),
    )
}

_LONG_NAMES = {
    "kullback_leibler": "kl",
    "jensen_shannon": "js",
    "total_variation": "tv",
    "chi_squared": "chi2",
}

# Every name, with an example of the order where there is one.
NAMES = (*_FIXED, "renyi:2", "tsallis:2", "alpha:0.5")


@cache
def _of_order(family: str, order: float) -> Divergence:
    """The member of a family with an order other than its limits; the order has been checked."""
    name = f"{family}:{_plain(order)}"
    if family == "renyi":
        label = f"Rényi divergence of order {_plain(order)}"
        if order == np.inf:
            return Divergence(name, label, _max_log_ratio, steep=True)
        return Divergence(
            name,
            label,
            lambda p, q, s: _log_integral(p, q, s, order) / (order - 1),
            steep=order > 1,
        )
    amari = family == "alpha"
    factor = 1 / (order * (order - 1)) if amari else 1 / (order - 1)
    return Divergence(
        name,
        f"{'Amari alpha' if amari else 'Tsallis'} divergence of order {_plain(order)}",
        lambda p, q, s: factor * np.expm1(_log_integral(p, q, s, order)),
        _integral_mean(order, factor),
        mean_needs_delta_above=round(max(order - 1, -order, 0.0), 12),  # 1.4 - 1 is 0.4 here
        empty_set="first" if order < 0 else "second",
        steep=not 0 <= order <= 1,
    )


def _of_function(phi: Callable[[FloatArray], Any], owner: str) -> Divergence:
    """The divergence ∑ p φ(q/p) of a convex function φ."""
    _check_convex(phi, owner)

    def formula(p: FloatArray, q: FloatArray, starts: Starts) -> FloatArray:
        values = _apply(phi, q / p, owner)
        if np.isnan(values).any():
            at = (q / p)[np.isnan(values)][0]
            raise bad(
                "divergence", owner, "be a function without NaN", Seen(f"NaN at phi({at:.3g})")
            )
        return _total(p * values, starts)

    known_as = getattr(phi, "__name__", type(phi).__name__)
    name = "phi" if known_as in ("<lambda>", "phi") else f"phi:{known_as}"
    # Where q vanishes p φ(q/p) grows like q^−k; where p does, like p^(1−k).
    towards_zero, towards_infinity = _growth(phi, -1), _growth(phi, +1) - 1
    return Divergence(
        name,
        f"divergence with {name.replace(':', ' = ')}",
        formula,
        mean_needs_delta_above=max(towards_zero, towards_infinity, 0.0),
        empty_set="second" if towards_zero >= towards_infinity else "first",
    )


# --- names and functions from the user ----------------------------------------------------------


def parse(divergence: Asked, owner: str) -> Divergence:
    """The divergence that a user means by a name ("kl", "Reverse KL", "renyi:2") or a function.

    Args:
        divergence: A name, in any case and with hyphens or spaces for underscores; or a convex
            function φ with φ(1) = 0 that works on arrays, for ∑ p φ(q/p).
        owner: The function the user called, for error messages.
    """
    if isinstance(divergence, Divergence):
        return divergence
    if isinstance(divergence, str):
        return _named(divergence, owner)
    if callable(divergence):
        return _of_function(divergence, owner)
    raise bad("divergence", owner, "be a name or a convex function", divergence, _choices())


def _choices() -> str:
    names = ", ".join(f"'{name}'" for name in NAMES)
    return f"The names are {names} (orders are yours to choose)."


def _named(text: str, owner: str) -> Divergence:
    letters = unicodedata.normalize("NFKD", text.strip().lower())
    letters = "".join(c for c in letters if not unicodedata.combining(c))  # Rényi is renyi
    family, colon, order_text = (part.strip() for part in letters.partition(":"))
    family = re.sub(r"[\s\W_]+", "_", family)
    family = _LONG_NAMES.get(family, family)
    if family in _FIXED:
        if colon:
            raise bad("divergence", owner, f"be '{family}' without an order", text)
        return _FIXED[family]
    if family not in ("renyi", "tsallis", "alpha"):
        close = get_close_matches(family, [*NAMES, *_LONG_NAMES], n=1)
        hint = f"Did you mean '{close[0]}'? " if close else ""
        raise bad("divergence", owner, "be a known name", text, hint + _choices())
    try:
        order = float(order_text)
    except ValueError:
        order = np.nan
    if np.isnan(order):
        rule = f"give {family} a number as its order, for example '{family}:2'"
        raise bad("divergence", owner, rule, text)
    problem = _problem_with_order(family, order)
    if problem is not None:
        raise bad("divergence", owner, problem[0], text, problem[1])
    if order == 1:
        return _FIXED["kl"]
    if order == 0:
        return _FIXED["reverse_kl"]
    # The two differ by less than 710 / order: nothing, in double precision.
    return _of_order(family, np.inf if order > 1e18 else order)


def _problem_with_order(family: str, order: float) -> tuple[str, str] | None:
    """The rule an order breaks and the way out, if there is a problem."""
    if family == "renyi" and order <= 0:
        rule = "have a positive Rényi order"
        if order == 0:
            return rule, "Order 0 compares supports, and all cells have mass: it is always 0."
        return rule, (
            f"Order {_plain(order)} is {1 / (1 / order - 1):.4g} times order {_plain(1 - order)} "
            f"with the two sets exchanged: ask for 'renyi:{_plain(1 - order)}' that way round."
        )
    if family == "tsallis" and not 0 < order <= 1000:
        rule = "have a Tsallis order above 0 and at most 1000"
        if order == 0:
            return rule, "Order 0 compares supports, and all cells have mass: it is always 0."
        if -1000 <= order < 0:
            return rule, f"Negative orders turn its sign: ask for 'alpha:{_plain(order)}' instead."
        return rule, "For a worst case over cells, ask for 'renyi:inf'."
    if family == "alpha" and not abs(order) <= 1000:
        rule = "have an alpha order between -1000 and 1000"
        return rule, "For a worst case over cells, ask for 'renyi:inf'."
    return None


def _plain(order: float) -> str:
    """All digits of a number, without a trailing '.0'."""
    return repr(float(order)).removesuffix(".0")


def _apply(phi: Callable[[FloatArray], Any], t: FloatArray, owner: str) -> FloatArray:
    """phi(t), or an error that says what phi should have returned."""
    rule = "be a function of an array that returns an array of as many real numbers"
    way_out = "Write it with NumPy, for example lambda t: t * np.log(t)."
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(phi(t))
    except (TypeError, ValueError) as error:
        raise bad("divergence", owner, rule, Seen(f"an error: {error}"), way_out) from error
    if values.shape != t.shape or values.dtype.kind not in "fiu":
        got = Seen(f"{values.dtype} values of shape {values.shape} for {t.shape}")
        raise bad("divergence", owner, rule, got, way_out)
    return values.astype(np.float64, copy=False)


def _check_convex(phi: Callable[[FloatArray], Any], owner: str) -> None:
    """Refuse a phi that is not finite, not zero at 1 or, on a grid of ratios, not convex."""
    t = np.geomspace(1e-2, 1e2, 61)  # the middle one is 1
    t[30] = 1.0
    values = _apply(phi, t, owner)
    if not np.isfinite(values).all():
        got = Seen(f"a function that is not at {t[~np.isfinite(values)][0]:.3g}")
        raise bad("divergence", owner, "be finite at positive ratios", got)
    if abs(values[30]) > 1e-9:
        rule, got = "be a function phi with phi(1) = 0", Seen(f"phi(1) = {values[30]:.6g}")
        raise bad("divergence", owner, rule, got, "Subtract that constant from it.")
    steps = np.diff(t)
    slopes = np.diff(values) / steps
    rounding = 1e-9 * (1 + np.maximum(abs(values[1:]), abs(values[:-1]))) / steps
    falls = np.diff(slopes) < -(rounding[1:] + rounding[:-1])
    if falls.any():
        got = Seen(f"one that bends down near {t[1:-1][falls][0]:.3g}")
        raise bad("divergence", owner, "be a convex function", got, "Negate it if it is concave.")


def _growth(phi: Callable[[FloatArray], Any], direction: int) -> float:
    """The exponent k with which phi grows: t^k towards infinity (+1), t^−k towards zero (−1)."""
    for digits in (150, 75, 37, 18):  # fast growth overflows far out: look nearer then
        with np.errstate(all="ignore"):
            t = 10.0 ** (direction * np.array([digits / 2, digits]))
            near, far = np.abs(np.asarray(phi(t), dtype=np.float64))
        if np.isfinite(far):
            # Two decimals forgive logarithms: t log t has exponent 1.
            return round(np.log10(far / near) / (digits / 2), 2) if near and far else 0.0
    return np.inf
