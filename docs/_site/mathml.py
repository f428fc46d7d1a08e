"""Formulas as MathML, which browsers draw themselves: no script, and nothing to fetch."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def mathml(tex: str, *, block: bool) -> str:
    """What docutils makes of a formula, with a little room between log and what follows it."""
    drawn = tex2mathml(tex, as_block=block)
    return re.sub(r"(<mi>l(?:og|n)</mi>\s*)(?!\s*<mo|</)", r'\1<mspace width="0.17em"/>', drawn)


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """A formula in a line of text."""
    self.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def display(self: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on a line of its own."""
    self.body.append(f'<div class="math">{mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the renderer under the name that conf.py asks for."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
