"""Summaries: a result as a few lines of text."""

from __future__ import annotations

import textwrap

from ..results.base import Result
from ..results.certificate import Certificate
from ..results.design import Design
from .views import view
from .views.claims import rows

__all__ = ["explain", "summary"]

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


def explain(result: Certificate | Design) -> str:
    """Put each claim of a certificate or a design into a few lines, the strongest first.

    Parameters
    ----------
    result : Certificate or Design

    Returns
    -------
    str
        For each claim whether it is proved or numerical, its theorem, and what it says; where a
        proof failed, why.
    """
    problem = result.problem if isinstance(result, Certificate) else result.question
    lines = []
    for theorem, verdict, certainty, text in rows(problem, result.claims):
        lines += [f"{certainty} {verdict}, by: {theorem}", _wrap(text, "  ", "  ")]
    return "\n".join(lines) or "Nothing was found."


def _wrap(text: str, first: str, rest: str) -> str:
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
