"""The map of two columns: who is denser where, some points, and the regions of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from cobpm.arrays import FloatArray
from cobpm.report.axes import Axis, across, up, widened
from cobpm.report.names import cut
from cobpm.report.svg import BOX, drawing, element, share, stretched
from cobpm.report.where import Region

if TYPE_CHECKING:
    from cobpm.views import MapView

STEPS = (1.5, 3.0, 10.0)  # times denser, where the shade changes
MOST_POINTS = 250  # of each set laid over a map
NARROWEST = 0.012  # share of a map that can still be seen
MOST_NUMBERS = 12  # regions with their number on the map
WIDE, HIGH = BOX


def patterns() -> Markup:
    """Fillings for the second set, so that colour alone tells nothing."""

    def pattern(name: str, gap: int, back: str | None) -> Markup:
        line = element("path", d=f"M0 {gap}L{gap} 0", class_="stroke")
        ground = element("rect", width=gap, height=gap, class_=back)
        return element(
            "pattern", ground, line, id=name, width=gap, height=gap, patternUnits="userSpaceOnUse"
        )

    fills = [pattern("hatch", 5, None)]
    fills += [pattern(f"second-{k}", 14, f"s{k}") for k in range(1, len(STEPS) + 2)]
    return element("svg", element("defs", *fills), class_="defs", aria_hidden="true")


def shades(view: MapView) -> list[str]:
    """A class for each cell, row by row: who is denser beyond doubt, and how much."""
    level = (1 + np.searchsorted(np.log(STEPS), np.abs(view.log_ratio))).astype(str)
    named = np.where(view.high < 0, np.char.add("s", level), "none")
    named = np.where(view.low > 0, np.char.add("f", level), named)
    return [str(name) for name in np.where(view.known, named, "").ravel()]


def map_figure(
    view: MapView,
    axes: tuple[Axis, Axis],
    names: tuple[str, str],
    columns: tuple[int, int],
    regions: tuple[Region, ...],
    label: str,
    key: str,
) -> Markup:
    """The map of two columns.

    Args:
        view: The numbers.
        axes: Across and up.
        names: Of the two columns, to show.
        columns: Their numbers.
        regions: Rows of the table.
        label: What the map shows, in words.
        key: Id of the figure.
    """
    x, y = axes
    grid = x.place(view.edges[0]) * WIDE, y.place(view.edges[1]) * HIGH
    plot = drawing(
        label,
        element("rect", class_="ground", width="100%", height="100%"),
        stretched(*cell_paths(shades(view), *grid), *_point_paths(view, x, y)),
        *_region_parts(regions, columns, x, y),
        class_="plot",
    )
    return element(
        "figure",
        element("p", f"↑ {cut(names[1], 40)}", class_="up-name"),
        up(y.marks()),
        element("div", plot, class_="frame"),
        across(x),
        element("p", f"{cut(names[0], 40)} →", class_="across-name"),
        class_="map",
        id=key,
    )


def cell_paths(cells: list[str], x: FloatArray, y: FloatArray) -> list[Markup]:
    """One path for each shade: the cells of a row that share it, as far as they touch, in one."""
    wide = len(x) - 1
    found: dict[str, list[str]] = {}
    for row in range(len(y) - 1):
        top, bottom = sorted((round(float(y[row])), round(float(y[row + 1]))))
        line = cells[row * wide : (row + 1) * wide]
        start = 0
        for k in range(1, wide + 1):
            if k < wide and line[k] == line[start]:
                continue
            if line[start]:
                a, b = round(float(x[start])), round(float(x[k]))
                found.setdefault(line[start], []).append(f"M{a} {top}H{b}V{bottom}H{a}z")
            start = k
    return [
        element("path", class_=f"cell {name}", d="".join(found[name])) for name in sorted(found)
    ]


def _point_paths(view: MapView, x: Axis, y: Axis) -> list[Markup]:
    """Dots for the first set, crosses for the second."""
    paths = []
    for name, points, mark in (
        ("dots", view.points[0], "h0"),
        ("crosses", view.points[1], "m-5-5l10 10m-10 0l10-10"),
    ):
        some = points[np.linspace(0, len(points) - 1, min(len(points), MOST_POINTS)).astype(int)]
        places = zip(x.place(some[:, 0]) * WIDE, y.place(some[:, 1]) * HIGH, strict=True)
        path = "".join(f"M{a:.0f} {b:.0f}{mark}" for a, b in places)
        paths.append(element("path", class_=name, d=path))
    return paths


def _region_parts(
    regions: tuple[Region, ...],
    columns: tuple[int, int],
    x: Axis,
    y: Axis,
) -> list[Markup]:
    """Outlines of the regions, which light up with their rows; small ones lie on top."""
    if not regions:
        return []
    low, high = (np.array([getattr(r, end) for r in regions]) for end in ("low", "high"))
    (left, right), (lower, upper) = (
        axis.place(widened(low[:, k], high[:, k], axis.low, axis.step))
        for axis, k in zip((x, y), columns, strict=True)
    )
    boxes = np.column_stack([left, right, upper, lower])
    for low_end, high_end in ((0, 1), (2, 3)):  # a single value has no width, but a place
        narrow = np.maximum(NARROWEST - (boxes[:, high_end] - boxes[:, low_end]), 0.0) / 2
        boxes[:, low_end] -= narrow
        boxes[:, high_end] += narrow
    area = (boxes[:, 1] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 2])
    tiled = _disjoint(boxes)
    parts = []
    for k in np.argsort(-area, kind="stable").tolist():
        left, right, top, bottom = boxes[k]
        parts.append(
            element(
                "rect",
                class_="region tiled" if tiled else "region",
                data_region=regions[k].number,
                x=share(left),
                y=share(top),
                width=share(right - left),
                height=share(bottom - top),
            )
        )
    for k in range(min(len(regions), MOST_NUMBERS) if tiled else 0):
        left, right, top, bottom = boxes[k]
        if right - left > 0.05 and bottom - top > 0.06:
            middle = {"x": share((left + right) / 2), "y": share((top + bottom) / 2)}
            words = str(regions[k].number)
            parts.append(element("text", words, class_="number", dy="0.33em", **middle))
    return parts


def _disjoint(boxes: FloatArray) -> bool:
    """Whether no two regions overlap in these columns."""
    tiny = 1e-9
    left = np.maximum(boxes[:, None, 0], boxes[None, :, 0])
    right = np.minimum(boxes[:, None, 1], boxes[None, :, 1])
    top = np.maximum(boxes[:, None, 2], boxes[None, :, 2])
    bottom = np.minimum(boxes[:, None, 3], boxes[None, :, 3])
    overlap = (right - left > tiny) & (bottom - top > tiny)
    np.fill_diagonal(overlap, False)
    return not bool(overlap.any())


def legend(tags: tuple[Markup, Markup], drawn: frozenset[str]) -> Markup:
    """What the shades that were drawn and the marks mean."""
    steps = [f"{step:g}" for step in STEPS]
    spans = [f"< {steps[0]}", *map("{} – {}".format, steps, steps[1:]), f"> {steps[-1]}"]
    rows = [
        element(
            "li",
            element("span", tag, " denser, times", class_="who"),
            element(
                "ul",
                *(
                    element("li", _swatch(f"{letter}{k}"), span)
                    for k, span in enumerate(spans, start=1)
                ),
            ),
        )
        for tag, letter in zip(tags, "fs", strict=True)
        if any(shade.startswith(letter) for shade in drawn)
    ]
    others = (("none", "no clear difference"), ("empty", "hardly any points"))
    rows.append(element("li", element("ul", *(element("li", _swatch(c), t) for c, t in others))))
    marks = (("dots", "M9 7h0", tags[0]), ("crosses", "M5 3l8 8M5 11l8-8", tags[1]))
    points = (
        element("li", _icon(element("path", class_=name, d=path)), "a point of ", tag)
        for name, path, tag in marks
    )
    rows.append(element("li", element("ul", *points)))
    return element("ul", *rows, class_="legend")


def _swatch(name: str) -> Markup:
    return _icon(element("rect", class_=f"cell {name}", width=18, height=14))


def _icon(part: Markup) -> Markup:
    return element("svg", part, width=18, height=14, aria_hidden="true")
