"""Names as a page can show them: of any text, short, visible, and still distinct.

Names of sets and columns come from files of all kinds. They may be empty, hundreds of characters
long, hold line breaks, or turn the direction of what follows them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cobpm.posterior import Posterior

LONGEST = 48  # characters of a name in running text
NO_NAME = "(no name)"
_ISOLATE, _END = "\u2068", "\u2069"  # what is between them does not turn its surroundings


def shown_names(names: Iterable[str]) -> tuple[str, ...]:
    """Each name as a page can show it; names that become alike are numbered."""
    found: list[str] = []
    for name in names:
        base = text = shown(name)
        number = 1
        while text in found:
            number += 1
            text = f"{base} ({number})"
        found.append(text)
    return tuple(found)


def shown(name: str) -> str:
    """One name: on one line, not too long, without characters that cannot be seen."""
    text = clean(name) or NO_NAME
    if len(text) > LONGEST:  # its beginning and its end: often only the end tells names apart
        head = LONGEST * 5 // 8
        text = f"{text[:head].rstrip()}…{text[head + 1 - LONGEST :].lstrip()}"
    if any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text):
        text = f"{_ISOLATE}{text}{_END}"
    return text


def clean(text: str) -> str:
    """A text on one line, without characters that cannot be seen."""
    return " ".join("".join(map(_visible, text)).split())


def cut(text: str, most: int) -> str:
    """The beginning of a text, where there is little room."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _visible(letter: str) -> str:
    kind = unicodedata.category(letter)
    if letter.isspace():
        return " "
    if kind == "Cf" and letter != "\u200d":  # direction marks and the like; emoji need the joiner
        return ""
    return "\ufffd" if kind in ("Cc", "Cs", "Co", "Cn") else letter


def renamed(post: Posterior, names: Sequence[str], columns: Sequence[str]) -> Posterior:
    """The same posterior with other names for its sets and columns."""
    frames = [
        # The columns of a turned frame are directions, and have names of their own.
        replace(frame, domain=replace(frame.domain, columns=tuple(columns)))
        if frame.straight
        else frame
        for frame in post.frames
    ]
    labels: dict[str, Any] = {"names": tuple(names), "columns": tuple(columns)}
    samples = None if post.samples is None else replace(post.samples, **labels)
    return replace(post, frames=tuple(frames), samples=samples, **labels)
