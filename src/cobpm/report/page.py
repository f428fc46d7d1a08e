"""The frame of a page: templates, style sheet, script, and what all reports share."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

import cobpm
from cobpm.report.maps import patterns
from cobpm.report.svg import element


def fill(template: str, title: str, **content: Any) -> str:
    """A whole page from one of the templates."""
    style, script = _read("style.css"), _read("script.js")
    return (
        _environment()
        .get_template(template)
        .render(
            title=title,
            style=Markup(style),
            script=Markup(script),
            style_hash=_hash(style),
            script_hash=_hash(script),
            patterns=patterns(),
            version=cobpm.__version__,
            written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            **content,
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["key"] = _sort_key
    return environment


@cache
def _read(name: str) -> str:
    """A file that came with the package."""
    return (files("cobpm.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What the content policy knows an inline style sheet or script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _sort_key(value: float) -> str:
    """A number as scripts read it."""
    named = {"inf": "Infinity", "-inf": "-Infinity", "nan": ""}
    return named.get(str(float(value)), f"{value:.6g}")


def tag(which: str, name: str) -> Markup:
    """The name of a set with its mark: a dot for the first, a diamond for the second."""
    marks = {
        "first": element("circle", cx=5, cy=5, r=5),
        "second": element("path", d="M5 0L10 5L5 10L0 5z"),
    }
    mark = element("svg", marks[which], viewBox="0 0 10 10", aria_hidden="true")
    # The mark stays on the line of what it marks.
    head = name[: min(len(name.partition(" ")[0]), 14)]
    held = element("span", mark, head, class_="nb")
    return element("bdi", held, name[len(head) :], class_=f"set {which}")


def listed(names: Iterable[str], most: int = 40) -> str:
    """Names one after another, not too many of them."""
    found = list(names)
    more = [f"and {len(found) - most:,} more"] if len(found) > most else []
    return ", ".join(found[:most] + more)


def full_names(shown: Iterable[str], given: Iterable[str]) -> list[tuple[str, str]]:
    """Names that are not shown as they are, as Python writes them."""
    return [(one, ascii(name)) for one, name in zip(shown, given, strict=True) if one != name]
