"""Axes of drawings: places, round values to mark, and what to call them, dates included."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from cobpm.arrays import FloatArray
from cobpm.report.numbers import tick_labels, ticks
from cobpm.report.svg import drawing, element, share

# Steps between dates, from fine to coarse: the unit, how many, its seconds, and the digits to show.
DATE_STEPS = (
    *(("s", k, 1, (11, 19)) for k in (1, 5, 15, 30)),
    *(("m", k, 60, (11, 16)) for k in (1, 5, 15, 30)),
    *(("h", k, 3600, (5, 16)) for k in (1, 3, 6, 12)),
    *(("D", k, 86_400, (0, 10)) for k in (1, 2, 7, 14)),
    *(("M", k, 2_629_746, (0, 7)) for k in (1, 2, 3, 6)),
    *(("Y", k, 31_556_952, (0, 4)) for k in (1, 2, 5, 10, 20, 50, 100, 500, 1000)),
)


@dataclass(frozen=True)
class Axis:
    """One direction of a drawing.

    Attributes:
        low: The value where it begins.
        high: The value where it ends.
        dated: Whether values are dates, in seconds since the start of 1970 (UTC).
        step: Distance of the values if they lie on a lattice whose values are half a step from the
            ends, else None.
        boolean: Whether values are 0 for false and 1 for true.
        upward: Whether it goes from the bottom to the top.
    """

    low: float
    high: float
    dated: bool = False
    step: float | None = None
    boolean: bool = False
    upward: bool = False

    def place(self, values: FloatArray | float) -> FloatArray:
        """Shares of the drawing, from its left or its top; values beyond lie at the ends."""
        # Halved, so that no difference overflows.
        span = self.high / 2 - self.low / 2
        with np.errstate(invalid="ignore"):
            shares = (np.asarray(values, dtype=float) / 2 - self.low / 2) / (span or 1.0)
        shares = np.clip(np.nan_to_num(shares, nan=0.5), 0.0, 1.0)
        return 1.0 - shares if self.upward else shares

    def marks(self, most: int = 5) -> list[tuple[float, str]]:
        """Values to mark, as their places, with what to write there."""
        if self.dated and abs(self.low) < 1e11 and abs(self.high) < 1e11:
            values, labels = _dates(self.low, self.high, most)
        else:
            values = self._on_lattice(ticks(self.low, self.high, most))
            labels = tick_labels(values)
        if self.boolean:
            values, labels = [0.0, 1.0], ["false", "true"]
        return list(zip(self.place(np.array(values)).tolist(), labels, strict=True))

    def _on_lattice(self, values: list[float]) -> list[float]:
        """Those of some round values that can occur; all if there is no lattice."""
        if self.step is None:
            return values
        found = [v for v in values if abs((v - self.low) / self.step % 1.0 - 0.5) < 0.05]
        if len(found) < 2 and self.high - self.low < 3 * self.step:  # one or two values: name them
            count = round((self.high - self.low) / self.step)
            found = [self.low + (k + 0.5) * self.step for k in range(count)]
        return found or values


def _dates(low: float, high: float, most: int) -> tuple[list[float], list[str]]:
    """Round dates between two ends, at most that many, and their names."""
    for unit, count, length, (first, last) in DATE_STEPS:
        if (high - low) / (count * length) > most:
            continue  # not worth counting them
        start, stop = (
            np.datetime64(math.floor(end), "s").astype(f"M8[{unit}]").astype(int)
            for end in (low, high)
        )
        dates = np.arange(start // count * count, stop + 1, count).astype(f"M8[{unit}]")
        seconds = dates.astype("M8[s]").astype(float)
        inside = (low <= seconds) & (seconds <= high)
        if np.count_nonzero(inside) <= most:
            words = dates[inside].astype("M8[s]")
            return seconds[inside].tolist(), [str(d).replace("T", " ")[first:last] for d in words]
    return [], []


def widened(low: FloatArray, high: FloatArray, edge: float, step: float | None) -> FloatArray:
    """Ends of intervals, (2, n), moved half a step outwards where they are values of a lattice.

    "2 or less" and "3 or more" then touch, between their bars.

    Args:
        low: Lower ends.
        high: Upper ends.
        edge: The end of a bin, which lies between two values of the lattice.
        step: Distance of the values, or None if there is no lattice.
    """
    ends = np.stack([low, high])
    if step is None:
        return ends
    with np.errstate(invalid="ignore"):
        on_value = np.abs((ends - edge) / step % 1.0 - 0.5) < 0.05
    return ends + np.where(on_value, [[-step / 2], [step / 2]], 0.0)


def across(axis: Axis, most: int = 5) -> Markup:
    """The marks of an axis below a drawing."""
    parts = []
    for place, label in axis.marks(most - 1 if axis.dated else most):  # dates are long
        anchor = "start" if place < 0.04 else "end" if place > 0.96 else "middle"
        x = share(place)
        parts.append(element("line", class_="axis", x1=x, x2=x, y1=0, y2=5))
        parts.append(element("text", label, x=x, y=19, text_anchor=anchor))
    return drawing(None, *parts, class_="across", height=24)


def up(marks: list[tuple[float, str]]) -> Markup:
    """The marks of an axis to the left of a drawing."""
    parts = []
    for place, label in marks:
        y = share(place)
        shift = "0.8em" if place < 0.03 else "-0.1em" if place > 0.97 else "0.33em"
        parts.append(element("text", label, x="100%", dx=-8, y=y, dy=shift, text_anchor="end"))
    return drawing(None, *parts, class_="up")
