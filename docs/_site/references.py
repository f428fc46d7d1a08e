"""What the reference shows, and how names in it find each other."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import cobpm


def public(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.Node
) -> nodes.Node | None:
    """Lead `cobpm.posterior.Posterior`, where a class is at home, to `cobpm.Posterior`."""
    target = node.get("reftarget", "")
    rest = target.removeprefix("cobpm.").partition(".")[2]
    name = rest.partition(".")[0]
    if not target.startswith("cobpm.") or name not in cobpm.__all__:
        return None
    domain = env.domains["py"]
    assert app.builder is not None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", f"cobpm.{rest}", node, text)


def skip(app: Sphinx, what: str, name: str, item: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what Python writes about the fields of a named tuple."""
    about = getattr(item, "__doc__", None) or ""
    return True if about.startswith("Alias for field number") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen to Sphinx."""
    app.connect("missing-reference", public)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
