"""What a report says about a result, before any layout: words, numbers, tables, code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .models import Model

__all__ = ["Fact", "Table", "View"]


@dataclass(frozen=True)
class Fact:
    """One line of a key-number table."""

    label: str
    value: str


@dataclass(frozen=True)
class Table:
    """A table with a title, one header and rows of text; `note` says how to read it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class View:
    """A result in words.

    Attributes
    ----------
    title : str
        Name of the problem, or the kind of result.
    verdict : str
        The ending in one or two words.
    good : bool
        Whether the verdict is the one hoped for; a blow-up is an answer and counts as good.
    headline : str
        The answer in one or two sentences.
    facts : tuple of Fact
        Key numbers, most important first.
    statement : tuple of Fact
        The problem that was posed.
    captions : mapping from figure name to str
        One sentence for each picture: what to see.
    notes : tuple of str
        What the model of this problem has beyond the standard equations.
    model : Model or None
        What moves the tokens, if it is not the flow of a Gaussian that stays one.
    noise : bool
        Whether process noise acts in this problem.
    layered : bool
        Whether the model is that of one layer of a real Transformer, which `model` or `notes`
        tell, instead of the flow.
    tables : tuple of Table
    command, code : str
        How to compute the result again, from the shell and from Python; empty if unknown.
    """

    title: str
    verdict: str
    good: bool
    headline: str
    facts: tuple[Fact, ...]
    statement: tuple[Fact, ...]
    captions: Mapping[str, str]
    notes: tuple[str, ...] = ()
    model: Model | None = None
    noise: bool = False
    layered: bool = False
    tables: tuple[Table, ...] = ()
    command: str = ""
    code: str = ""
