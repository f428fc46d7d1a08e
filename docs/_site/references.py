"""What the reference shows, and how names in it find each other."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import cobpm

KEPT: dict[str, list[str]] = {}


def public(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.Node
) -> nodes.Node | None:
    """Lead `cobpm.posterior.Posterior`, where a class is at home, to `cobpm.Posterior`.

    And `Posterior.draws` likewise, from whatever module speaks of it.
    """
    parts = node.get("reftarget", "").split(".")
    places = [place for place, part in enumerate(parts[:3]) if part in cobpm.__all__]
    if not places or (places[0] > 0 and parts[0] != "cobpm"):
        return None
    target = ".".join(["cobpm", *parts[places[0] :]])
    return env.domains["py"].resolve_xref(
        env, node["refdoc"], app.builder, "obj", target, node, text
    )


def skip(app: Sphinx, what: str, name: str, item: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what Python writes about the fields of a named tuple."""
    about = getattr(item, "__doc__", None) or ""
    return True if about.startswith("Alias for field number") else None


def results(
    app: Sphinx, what: str, name: str, item: Any, options: Any, signature: str, returns: str
) -> tuple[str, str] | None:
    """Leave out how to make a result: the functions do that."""
    return ("", "") if what == "class" and is_dataclass(item) else None


def keep(app: Sphinx, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Remember the text of a property; napoleon takes what is before a colon for its type."""
    if what == "property":
        KEPT[name] = list(lines)


def give_back(app: Sphinx, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Undo what napoleon made of it."""
    if what == "property":
        lines[:] = KEPT.pop(name)


def plain_fields(app: Sphinx, tree: nodes.document, docname: str) -> None:
    """A dash before what a parameter is, and no type where it may be anything: words say more."""
    for field in tree.findall(nodes.field_body):
        for text in [text for text in field.findall(nodes.Text) if text == " -- "]:
            text.parent.replace(text, nodes.Text(" – "))
        for word in [word for word in field.findall(nodes.emphasis) if word.astext() == "Any"]:
            line = word.parent
            place = line.index(word)
            around = line.children[place - 1 : place + 2 : 2]
            if [part.astext() for part in around] == [" (", ")"]:
                line.children[place - 1 : place + 2] = []


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen to Sphinx."""
    app.connect("missing-reference", public)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-signature", results)
    app.connect("autodoc-process-docstring", keep, priority=400)  # napoleon is at 500
    app.connect("autodoc-process-docstring", give_back, priority=600)
    app.connect("doctree-resolved", plain_fields)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
