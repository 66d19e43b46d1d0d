"""How Sphinx makes web pages of this folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gtcontrol

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "gtcontrol"
author = "The gtcontrol developers"
copyright = f"2026, {author}"
version = release = gtcontrol.__version__

extensions = [
    "mathml",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

exclude_patterns = ["_build", "_extensions"]
root_doc = "index"

autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
# Docstrings name types as readers know them, such as "(d, r) array", which is no class.
napoleon_preprocess_types = False
nitpick_ignore_regex = [("py:class", r"(?!gtcontrol\.).*")]

html_theme = "furo"
html_title = f"gtcontrol {release}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_show_sphinx = False


#: Docstrings of properties, which napoleon would split at their first colon.
properties: dict[str, list[str]] = {}


def escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings write |x| for a norm, which is no substitution of reStructuredText."""
    lines[:] = [
        line
        if line.lstrip().startswith((">>>", "..."))
        else "``".join(
            part if i % 2 else part.replace("|", r"\|") for i, part in enumerate(line.split("``"))
        )
        for line in lines
    ]
    if what == "property":
        properties[name] = list(lines)


def restore(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = properties.get(name, lines)


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", escape_bars, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", restore, priority=600)  # after it
