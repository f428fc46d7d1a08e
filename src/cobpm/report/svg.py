"""Elements of a drawing as text, with everything from outside escaped.

Drawings stretch with the page while their text and lines keep their size: positions are per cent
of the drawing, and paths live in a box of `BOX` units that is stretched over all of it. No element
has a style of its own, which the page's content policy would refuse; classes say what it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from markupsafe import Markup, escape

BOX = (1000, 750)  # of the same shape as a map


def element(name: str, /, *children: str, **attributes: Any) -> Markup:
    """One element. `class_` is its class, underscores are hyphens, and None leaves one out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_written(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(escape(child) for child in children)
    return Markup(f"<{name}{written}>{inside}</{name}>")  # all parts are escaped


def group(parts: Iterable[str]) -> Markup:
    """Elements one after another."""
    return Markup("").join(parts)


def drawing(label: str | None, *children: str, class_: str, height: int | None = None) -> Markup:
    """A drawing as wide as its place, with a text alternative; None if words nearby say it all."""
    role: dict[str, Any] = {"role": "img", "aria_label": label}
    if label is None:
        role = {"aria_hidden": "true"}
    return element("svg", *children, class_=class_, width="100%", height=height or "100%", **role)


def stretched(*children: str) -> Markup:
    """Paths in units of `BOX`, over all of the drawing."""
    box = f"0 0 {BOX[0]} {BOX[1]}"
    return element(
        "svg", *children, viewBox=box, preserveAspectRatio="none", width="100%", height="100%"
    )


def share(value: float) -> str:
    """A part of the drawing, from 0 to 1, in per cent."""
    return f"{_written(round(100 * value, 2))}%"


def _written(value: Any) -> str:
    """Numbers without needless digits."""
    if isinstance(value, float):
        text = f"{value:.2f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    return str(value)
