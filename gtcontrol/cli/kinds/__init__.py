"""The kinds of problem files, one module each.

A module of a kind defines ``ABOUT`` (one line), ``TEMPLATE`` (the commented file that
``gtcontrol new`` writes) and ``DOCUMENT``, the :class:`~.base.KindDocument` with the
schema.  To add a kind, write such a module and name it in :data:`KINDS`.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Protocol, cast

from ...errors import ProblemFileInvalid
from ...problem import files
from ...problem.messages import describe, listed, located, nearest, one_line
from .base import KindDocument, Source, Task

__all__ = ["KINDS", "Kind", "load", "owners", "prepare", "read"]

#: The kinds, in the order in which help texts list them; each is a module of this package.
KINDS = (
    "steer",
    "track",
    "export",
    "simulate",
    "reach",
    "certify",
    "design",
    "compare",
    "filter",
    "closeness",
    "mixture",
    "tokens",
    "inspect",
)


class Kind(Protocol):
    """What the module of a kind holds."""

    ABOUT: str
    TEMPLATE: str
    DOCUMENT: type[KindDocument]


def load(kind: str) -> Kind:
    """Import the module of a kind."""
    if kind not in KINDS:
        close = nearest(kind, KINDS)
        hint = f"did you mean `{close}`?" if close else f"the kinds are {listed(KINDS)}."
        raise ProblemFileInvalid(f"`kind` is {describe(kind)}; {hint}")
    return cast(Kind, importlib.import_module(f"{__name__}.{kind}"))


def owners(key: str) -> list[str]:
    """The kinds whose files have a key or table of this name at the top."""
    return [f"`{kind}`" for kind in KINDS if key in load(kind).DOCUMENT.model_fields]


def read(path: Path) -> KindDocument:
    """Read a problem file and check it against the schema of its kind."""
    with located(one_line(str(path))):
        return files.read(path, lambda kind: load(kind).DOCUMENT, owners)


def prepare(document: KindDocument, path: Path) -> Task:
    """Build the values of a problem that was read from `path`."""
    with located(one_line(str(path))):
        return document.prepare(Source(path.stem, path.parent))
