"""Formulas as MathML: pages show them without a network and without scripts.

Docutils translates the TeX; what it cannot translate is a warning, and so fails the build.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def translate(node: Any, *, block: bool) -> str:
    """Return the formula of a node as MathML."""
    try:
        markup = str(tex2mathml(node.astext(), as_block=block))
    except (MathError, IndexError, SyntaxError) as error:
        logger.warning("cannot translate the formula %r: %s", node.astext(), error, location=node)
        return f"<code>{nodes.unescape(node.astext())}</code>"
    # Bars are brackets here; browsers would space them like an operator between two terms.
    return re.sub(
        r"<mo[^>]*>([|‖∥])</mo>", r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', markup
    )


def inline(translator: Any, node: Any) -> None:
    translator.body.append(translate(node, block=False))
    raise nodes.SkipNode


def block(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="math">{translate(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
