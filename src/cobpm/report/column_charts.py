"""One column of two sets: a small card for each column, and the large drawing of a single one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from cobpm.arrays import FloatArray
from cobpm.report.axes import Axis, across, up, widened
from cobpm.report.names import cut
from cobpm.report.numbers import axis_end, interval, number
from cobpm.report.svg import BOX, drawing, element, share, stretched
from cobpm.report.where import Region
from cobpm.units import value_in_words

if TYPE_CHECKING:
    from cobpm.views import ColumnView

WIDE, HIGH = BOX
RATIOS = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1000.0)  # to mark on the axis of ratios
LARGEST = np.log(1000.0)  # log ratio that is drawn
NARROWEST = 0.008  # share of the line that can still be seen
USUAL = 0.85  # of the bins, whose intervals are drawn in full


def card(view: ColumnView, axis: Axis, name: str, sets: tuple[str, str]) -> Markup:
    """A column in small: both histograms, back to back, and where one is denser beyond doubt."""
    distance = f"Distance {number(view.tv, 2)} ({interval(*view.tv_interval, digits=2)})"
    return element(
        "article",
        element("h3", name),
        element("p", distance, class_="small"),
        _histograms(view, axis, f"{_shape(axis, sets)} {_where_denser(view, sets)}", height=116),
        _strip(view, axis),
        across(axis, most=4),
        class_="card",
    )


def line_figure(
    view: ColumnView,
    axis: Axis,
    name: str,
    sets: tuple[str, str],
    tags: tuple[Markup, Markup],
    regions: tuple[Region, ...],
) -> Markup:
    """A single column in large: both histograms, and the ratio of the densities with its band."""
    end = _largest(view)
    label = f"Ratio of the densities along {name}. {_where_denser(view, sets)}"
    ratio = drawing(
        label,
        element("rect", class_="ground", width="100%", height="100%"),
        element("line", class_="axis", x1="0", x2="100%", y1="50%", y2="50%"),
        stretched(*_band(view, axis, end)),
        *_spans(regions, axis, view.step),
        class_="plot",
    )
    directions = tags[0], " upwards, ", tags[1], " downwards"
    return element(
        "figure",
        element("p", "Shares: ", *directions, class_="up-name"),
        element("div", _histograms(view, axis, _shape(axis, sets), height=180), class_="top"),
        element("p", "Times denser: ", *directions, class_="up-name"),
        up(_ratio_marks(end)),
        element("div", ratio, class_="frame"),
        across(axis),
        element("p", f"{cut(name, 40)} →", class_="across-name"),
        class_="map line",
        id="map-1",
    )


def column_axis(view: ColumnView, boolean: bool, upward: bool = False) -> Axis:
    """The axis of a column."""
    low, high = float(view.edges[0]), float(view.edges[-1])
    return Axis(low, high, view.dated, view.step, boolean, upward)


def _histograms(view: ColumnView, axis: Axis, label: str, height: int) -> Markup:
    """The first set upwards, the second downwards, from one line."""
    x = axis.place(view.edges) * WIDE
    largest = float(view.shares.max()) or 1.0
    middle = HIGH / 2
    paths = []
    for name, shares, sign in (("first", view.shares[0], -1), ("below", view.shares[1], 1)):
        heights = middle + sign * shares / largest * (middle - 8)
        steps = "".join(
            f"L{a:.0f} {y:.0f}H{b:.0f}" for a, b, y in zip(x[:-1], x[1:], heights, strict=True)
        )
        paths.append(element("path", class_=name, d=f"M0 {middle:.0f}{steps}V{middle:.0f}z"))
    line = element("line", class_="base", x1="0", x2="100%", y1="50%", y2="50%")
    return drawing(label, stretched(*paths), line, class_="histograms", height=height)


def _strip(view: ColumnView, axis: Axis) -> Markup:
    """Where one set is denser beyond doubt."""
    x = axis.place(view.edges)
    parts = [element("rect", class_="ground", width="100%", height=10)]
    for first, last, sign in _runs(view.sign):
        if sign:
            a, b = x[first], x[last]
            name = "first" if sign > 0 else "second"
            parts.append(element("rect", class_=name, x=share(a), width=share(b - a), height=10))
    return drawing(None, *parts, class_="strip", height=10)


def _runs(signs: FloatArray) -> list[tuple[int, int, int]]:
    """Neighbouring bins of one sign: the first edge, the last one, the sign."""
    starts = np.flatnonzero(np.diff(signs, prepend=np.inf))
    ends = np.append(starts[1:], len(signs))
    return [(int(a), int(b), int(signs[a])) for a, b in zip(starts, ends, strict=True)]


def _largest(view: ColumnView) -> float:
    """The log ratio at the ends of the axis: that of a round ratio.

    It is beyond all estimates, and the intervals of most bins. A few bins with hardly any points
    have intervals that would flatten the rest.
    """
    ends = np.fmax(np.abs(view.low), np.abs(view.high))
    ends = ends[np.isfinite(ends)]
    estimates = np.abs(view.log_ratio[np.isfinite(view.log_ratio)])
    usual = float(np.quantile(ends, USUAL)) if len(ends) else 0.0
    largest = min(max(usual, float(estimates.max(initial=0.0))), LARGEST)
    return next(float(np.log(r)) for r in RATIOS[1:] if np.log(r) >= largest - 1e-9)


def _ratio_marks(end: float) -> list[tuple[float, str]]:
    """Round ratios on the axis, the same upwards and downwards."""
    shown = [r for r in RATIOS[1:] if np.log(r) <= end + 1e-9][-3:]
    places = [(0.5, "1")]
    for ratio in shown:
        part = float(np.log(ratio)) / end / 2
        places += [(0.5 - part, axis_end(ratio)), (0.5 + part, axis_end(ratio))]
    # Marks that would touch are left out, the outermost ones kept.
    kept: list[tuple[float, str]] = []
    for place, label in sorted(places, key=lambda mark: -abs(mark[0] - 0.5)):
        if all(abs(place - other) > 0.08 for other, _ in kept):
            kept.append((place, label))
    return kept


def _band(view: ColumnView, axis: Axis, end: float) -> list[Markup]:
    """The interval of the log ratio as an area, in steps, and the estimate as a line."""
    x = axis.place(view.edges) * WIDE

    def y(values: FloatArray) -> FloatArray:
        return np.clip(0.5 - values / end / 2, 0.0, 1.0) * HIGH

    low, high, estimate = y(view.low), y(view.high), y(view.log_ratio)
    areas, lines = [], []
    for k in np.flatnonzero(np.isfinite(view.log_ratio)).tolist():
        a, b = f"{x[k]:.0f}", f"{x[k + 1]:.0f}"
        areas.append(f"M{a} {high[k]:.0f}H{b}V{low[k]:.0f}H{a}z")
        lines.append(f"M{a} {estimate[k]:.0f}H{b}")
    return [
        element("path", class_="band", d="".join(areas)),
        element("path", class_="estimate", d="".join(lines)),
    ]


def _spans(regions: tuple[Region, ...], axis: Axis, step: float | None) -> list[Markup]:
    parts = []
    for region in regions:
        a, b = axis.place(widened(region.low[:1], region.high[:1], axis.low, step)).ravel().tolist()
        spare = max(NARROWEST - (b - a), 0.0) / 2  # a single value has a place, too
        a, b = a - spare, b + spare
        parts.append(
            element(
                "rect",
                class_="region tiled",
                data_region=region.number,
                x=share(a),
                y="0",
                width=share(b - a),
                height="100%",
            )
        )
        if b - a > 0.04:
            middle = share((a + b) / 2)
            parts.append(element("text", str(region.number), class_="number", x=middle, y="1.2em"))
    return parts


def _shape(axis: Axis, sets: tuple[str, str]) -> str:
    labels = [label for _, label in axis.marks()] or [number(axis.low, 4)]
    return f"Histograms from {labels[0]} to {labels[-1]}: {sets[0]} upwards, {sets[1]} downwards."


def _where_denser(view: ColumnView, sets: tuple[str, str]) -> str:
    """In words, where one set is denser beyond doubt."""
    parts = []
    for first, last, sign in _runs(view.sign):
        if sign:
            low, high = (float(view.edges[k]) for k in (first, last))
            kind = "moment" if view.dated else "number"
            least, most = (value_in_words(end, kind, high / 2 - low / 2) for end in (low, high))
            parts.append(f"{sets[sign < 0]} from {least} to {most}")
    if not parts:
        return "Neither set is denser anywhere beyond doubt."
    more = f", and in {len(parts) - 8} more stretches" if len(parts) > 8 else ""
    return f"Denser beyond doubt: {', '.join(parts[:8])}{more}."
