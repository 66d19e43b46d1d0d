"""The problems that come with gtcontrol, each of which states what it expects."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..errors import ProblemFileInvalid
from .messages import nearest, shorten

__all__ = ["names", "path"]


@cache
def _folder() -> Path:
    package = Path(__file__).resolve().parents[1]
    # An installed wheel holds the problems inside the package; a checkout beside it.
    for folder in (package / "zoo", package.parent / "problems"):
        if folder.is_dir():
            return folder
    raise ProblemFileInvalid(f"the problems are missing from this installation ({package}).")


def names() -> tuple[str, ...]:
    """Names of the problems, in alphabetical order."""
    return tuple(sorted(file.stem for file in _folder().glob("*.toml")))


def path(name: str) -> Path:
    """File of the problem called `name`.

    Raises
    ------
    ProblemFileInvalid
        If there is none; the message names the nearest one.
    """
    if name not in names():
        close = nearest(name, names())
        hint = f"did you mean `{close}`?" if close else "`gtcontrol list` shows all problems."
        raise ProblemFileInvalid(f"there is no problem called {shorten(name)!r}; {hint}")
    return _folder() / f"{name}.toml"
