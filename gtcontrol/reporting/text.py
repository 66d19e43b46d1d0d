"""Summaries: a result as a few lines of text."""

from __future__ import annotations

import textwrap

from ..results.base import Result
from .views import view

__all__ = ["summary"]

#: Width of a summary in characters.
WIDTH = 100


def summary(result: Result) -> str:
    """Put a result into a few lines that can be read in ten seconds.

    Parameters
    ----------
    result : Result

    Returns
    -------
    str
        A headline, then one key number to a line; no line is longer than 100 characters
        unless a single word is.
    """
    seen = view(result)
    headline = _wrap(f"{seen.title}: {seen.headline}", "", "  ")
    width = max(len(fact.label) for fact in seen.facts)
    lines = [
        _wrap(fact.value, f"  {fact.label:<{width}}  ", " " * (width + 4)) for fact in seen.facts
    ]
    return "\n".join([headline, *lines])


def _wrap(text: str, first: str, rest: str) -> str:
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
