"""Bars for intervals, shares and weights."""

from __future__ import annotations

import math

from markupsafe import Markup

from cobpm.report.svg import drawing, element, share

LEAST = 0.004  # of the width: what can still be seen


def interval_bar(low: float, middle: float, high: float, end: float, *, height: int = 26) -> Markup:
    """An interval on an axis from 0 to `end`, with a dot at its middle.

    An arrow stands at the end of the axis if the interval goes on.
    """
    a, m, b = (_place(value, end) for value in (low, middle, high))
    width = max(b - a, LEAST)
    y = height / 2
    parts = [
        element("line", class_="axis", x1="0", x2="100%", y1=y, y2=y),
        *(
            element("line", class_="axis", x1=x, x2=x, y1=y - 4, y2=y + 4)
            for x in ("0", "50%", "100%")
        ),
        element(
            "rect",
            class_="interval",
            x=share(min(a, 1 - width)),
            y=y - 5,
            width=share(width),
            height=10,
            rx=5,
        ),
        element("circle", class_="middle", cx=share(m), cy=y, r=5.5),
    ]
    if high > end:
        parts.append(element("text", "›", class_="beyond", x="100%", y=y + 5, text_anchor="end"))
    return drawing(None, *parts, class_="bar", height=height)


def pair_of_bars(first: float, second: float, largest: float) -> Markup:
    """The shares of two sets, one bar above the other."""
    return drawing(
        None,
        *(
            element(
                "rect",
                class_=name,
                x="0",
                y=y,
                width=share(max(_place(value, largest), LEAST)),
                height=8,
                rx=1.5,
            )
            for name, value, y in (("first", first, 1), ("second", second, 12))
        ),
        class_="pair",
        height=21,
    )


def weight_bar(weight: float, largest: float) -> Markup:
    """One plain bar."""
    width = share(max(_place(weight, largest), LEAST))
    bar = element("rect", class_="weight", x="0", y=3, width=width, height=8, rx=1.5)
    return drawing(None, bar, class_="pair", height=14)


def _place(value: float, end: float) -> float:
    """Where a value lies on an axis from 0 to `end`, as a share of it."""
    if math.isnan(value) or end <= 0:
        return 0.0
    return min(max(value / end, 0.0), 1.0)


def distance_scale(low: float, middle: float, high: float, words: tuple[str, ...]) -> Markup:
    """The total variation distance from 0 to 1, large, with words at the ends and its value."""
    y, height = 42, 84
    value, start, width = words[0], low, max(high - low, 2 * LEAST)
    anchor = "start" if middle < 0.06 else "end" if middle > 0.94 else "middle"
    return drawing(
        None,
        element("line", class_="axis", x1="0", x2="100%", y1=y, y2=y),
        *(
            element("line", class_="axis", x1=share(x), x2=share(x), y1=y - 7, y2=y + 7)
            for x in (0.0, 0.25, 0.5, 0.75, 1.0)
        ),
        element(
            "rect",
            class_="interval",
            x=share(min(start, 1 - width)),
            y=y - 8,
            width=share(width),
            height=16,
            rx=8,
        ),
        element("circle", class_="middle", cx=share(middle), cy=y, r=9),
        element("text", value, class_="value", x=share(middle), y=y - 19, text_anchor=anchor),
        element("text", words[1], x="0", y=y + 31),
        element("text", words[2], x="100%", y=y + 31, text_anchor="end"),
        class_="distance",
        height=height,
    )
