"""How the values of a column read in words: numbers, whole numbers, dates, true and false."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10

# What a column holds. Dates and moments are seconds since the start of 1970 (UTC) inside.
KINDS = ("number", "integer", "boolean", "date", "moment")
DATED = ("date", "moment")
STEPS = {"integer": 1.0, "boolean": 1.0, "date": 86400.0}  # between the values of a kind
LARGEST_WHOLE = 2.0**53
# What pandas calls the row numbers that its `to_csv` put beside the columns.
ROW_NUMBERS = re.compile(r"(Unnamed: 0(\.\d+)*)?")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def common_kind(kinds: Iterable[str]) -> str:
    """The kind of a column whose samples are of these kinds."""
    found = set(kinds)
    if len(found) == 1:
        return found.pop()
    if found <= {"boolean", "integer"}:
        return "integer"
    return "moment" if found <= {"date", "moment"} else "number"


def kinds_of_all(found: Sequence[tuple[str, ...]], d: int) -> tuple[str, ...]:
    """The kinds of all columns of several tables, as a `Domain` has them: none for numbers."""
    plain = ("number",) * d
    kinds = tuple(map(common_kind, zip(*(own or plain for own in found), strict=True)))
    return () if kinds == plain else kinds


def row_numbers(whole: Mapping[str, bool], wanted: Iterable[str] = ()) -> list[str]:
    """Columns that number the rows, which tells nothing about what is in them.

    Args:
        whole: Whether each column of a table holds whole numbers, by its name.
        wanted: Columns that were asked for.

    Returns:
        Whole numbers under the names that pandas gives to what had none, unless there is nothing
        else.
    """
    asked = set(wanted)
    found = [n for n, is_whole in whole.items() if is_whole and ROW_NUMBERS.fullmatch(n)]
    found = [name for name in found if name not in asked]
    return found if len(found) < len(whole) else []


def in_words(
    name: str,
    kind: str,
    low: float,
    high: float,
    *,
    has_low: bool,
    has_high: bool,
    cut_low: bool,
    cut_high: bool,
) -> str:
    """The values of a column between two ends, as in "3 ≤ age < 5"; empty if it is not cut.

    Args:
        name: The column.
        kind: One of `KINDS`.
        low: The lower end.
        high: The upper end.
        has_low: Whether the lower end itself is meant.
        has_high: Whether the upper end itself is.
        cut_low: Whether there is anything below the lower end.
        cut_high: Whether there is anything above the upper end.
    """
    if not (cut_low or cut_high):
        return ""
    if kind in STEPS:
        low, high = _whole(low, high, STEPS[kind], has_low, has_high)
        has_low = has_high = True
    half = high / 2 - low / 2  # halved first: the difference may overflow
    least, most = value_in_words(low, kind, half), value_in_words(high, kind, half)
    if low == high:
        return f"{name} = {least}"
    if not cut_high:
        return f"{name} {'≥' if has_low else '>'} {least}"
    if not cut_low:
        return f"{name} {'≤' if has_high else '<'} {most}"
    return f"{least} {'≤' if has_low else '<'} {name} {'≤' if has_high else '<'} {most}"


def _whole(
    low: float, high: float, step: float, has_low: bool, has_high: bool
) -> tuple[float, float]:
    """The first and last value of a kind that comes in steps."""
    if max(abs(low), abs(high)) >= step * LARGEST_WHOLE:
        return low, high
    first = ceil(low / step) if has_low else floor(low / step) + 1
    last = floor(high / step) if has_high else ceil(high / step) - 1
    if first > last:  # inside the room that a repeated value was spread over
        first = last = round((low / 2 + high / 2) / step)
    return first * step, last * step


def value_in_words(value: float, kind: str, half: float = 0.0) -> str:
    """One value; numbers and moments with as many digits as an interval of this half-width needs.

    Args:
        value: The value.
        kind: One of `KINDS`.
        half: Half the width of the interval that the value is an end of; 0 for all digits.
    """
    if kind == "boolean" and value in (0.0, 1.0):
        return "true" if value else "false"
    if kind in ("date", "moment"):
        return _date_in_words(value, kind, 2 * half)
    exact = f"{value + 0.0:.15g}"  # minus zero becomes zero
    if len(exact) <= 8 or half == 0.0 or kind == "integer":
        return exact
    orders = log10(abs(value)) - log10(half)
    return f"{value:.{min(17, max(5, ceil(orders) + 2))}g}"


def _date_in_words(value: float, kind: str, width: float) -> str:
    """A date, with the time of day where a hundredth of the width is less than a day."""
    try:
        moment = EPOCH + timedelta(seconds=value)
    except OverflowError:  # years beyond 9999
        return f"{value:.15g} s after 1970"
    if kind == "date" or width >= 100 * 86400:
        return (moment + timedelta(days=0.5 * (kind != "date"))).strftime("%Y-%m-%d")
    if width >= 100 * 60:
        return (moment + timedelta(seconds=30)).strftime("%Y-%m-%d %H:%M")
    return moment.isoformat(" ", "auto" if width < 100 else "seconds").removesuffix("+00:00")
