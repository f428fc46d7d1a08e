"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from cobpm.verdict import percent

MINUS = "−"


def number(value: float, digits: int = 3) -> str:
    """A number with that many digits that count, without an exponent where it stays short."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if value == 0:
        return "0"
    size = abs(float(f"{value:.{digits}g}"))
    if size >= 10**digits and size < 1e7:
        text = f"{value:,.0f}"
    elif 1e-4 <= size < 1e7:
        text = f"{value:.{max(0, digits - 1 - math.floor(math.log10(size)))}f}"
    else:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        text = f"{mantissa}·10{power}"
    return text.replace("-", MINUS)


def interval(low: float, high: float, digits: int = 3) -> str:
    """An interval, from its lower to its upper end."""
    return f"{number(low, digits)} to {number(high, digits)}"


def plain_level(level: float) -> str:
    """The level of an interval: 0.9 is 90%."""
    return f"{100 * level:.6g}%"


def nice_ceiling(value: float) -> float:
    """The end of an axis that begins at zero: a round number beyond the value."""
    if not (0 < value < math.inf):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    steps = (1.0, 1.2, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
    return next((step * power for step in steps if value <= step * power), 10.0 * power)


def axis_end(value: float) -> str:
    """A round number, without digits that say nothing."""
    digits, dot, power = number(value).partition("·")
    return (digits.rstrip("0").rstrip(".") if "." in digits else digits) + dot + power


def short_percent(share: float) -> str:
    """A share in per cent where there is little room."""
    return percent(share).replace("more than ", "> ").replace("less than ", "< ")


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two ends, at most that many."""
    span = high - low
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return [low] if math.isfinite(low) else []
    if span == math.inf:
        return [low, high]
    power = 10.0 ** math.floor(math.log10(span / most))
    for step in (power * factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0)):
        if step == 0.0 or not math.isfinite(low / step):
            break
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            return [k * step for k in range(first, last + 1)]
    return [low, high]


def tick_labels(values: Sequence[float]) -> list[str]:
    """Labels that have the digits needed to tell neighbours apart, all the same number of them."""
    if len(values) < 2:
        return [number(value, 4) for value in values]
    step = min(b - a for a, b in pairwise(values))
    largest = max(abs(value) for value in values)
    if largest >= 1e6 or (0 < largest < 1e-3) or step <= 0:
        return [number(value, 4) for value in values]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if round(step * 10**decimals, 6) % 1 and decimals < 12:
        decimals += 1  # steps of 2.5
    return [f"{value + 0.0:,.{decimals}f}".replace("-", MINUS) for value in values]
