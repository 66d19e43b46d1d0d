"""The first error of a problem file as one line: the key, what came, and what is expected."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from .messages import describe, listed, nearest, one_line, shorten

__all__ = ["explain"]


def explain(
    error: ValidationError,
    model: type[BaseModel],
    owners: Callable[[str], Sequence[str]] = lambda _: (),
) -> str:
    """Return the first thing that is wrong, as one line.

    Unknown keys come first: a misspelt key also shows as a missing one.

    Parameters
    ----------
    error : ValidationError
    model : type of the schema
    owners : callable, optional
        The kinds of file that have a key of this name at the top.
    """
    found = error.errors(include_url=False, include_input=True)
    found.sort(key=lambda e: e["type"] != "extra_forbidden")
    first = found[0]
    text = _sentence(first, model, owners)
    more = len(found) - 1
    return one_line(text if not more else f"{text} (and {more} more)")


def _sentence(error: Any, model: type[BaseModel], owners: Callable[[str], Sequence[str]]) -> str:
    loc: tuple[str | int, ...] = error["loc"]
    if error["type"] == "extra_forbidden":
        kinds = owners(str(loc[0])) if len(loc) == 1 else ()
        if kinds:
            return f"unknown key `{_path(loc)}`, which belongs to the kind {' or '.join(kinds)}."
        return _unknown(loc, model)
    extra = error.get("ctx", {})
    key = _path(loc) + extra.get("at", "")
    expected = _expected(loc, model)
    if error["type"] == "missing":
        return f"`{key}` is missing; expected {expected}."
    came = extra.get("came") or describe(error["input"])
    expected = extra.get("expected") or expected
    return f"`{key}` is {came}; expected {expected}."


def _unknown(loc: tuple[str | int, ...], model: type[BaseModel]) -> str:
    key = str(loc[-1])
    here = _descend(loc[:-1], model)
    names = list(here.model_fields) if here else []
    text = f"unknown key `{_path(loc)}`"
    homes = [
        f"{table}.{key}"
        for table, inner in ((n, _model_of(f.annotation)) for n, f in model.model_fields.items())
        if inner is not None and inner is not here and key in inner.model_fields
    ]
    close = nearest(key, names)
    if homes and close is None:
        return f"{text}; did you mean `{homes[0]}`?"
    if close is not None:
        return f"{text}; did you mean `{close}`?"
    return f"{text}; valid here: {listed(names)}."


def _path(loc: tuple[str | int, ...]) -> str:
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{shorten(part)}" if text else shorten(part)
    return text


def _expected(loc: tuple[str | int, ...], model: type[BaseModel]) -> str:
    names = [part for part in loc if isinstance(part, str)]
    owner = _descend(tuple(names[:-1]), model)
    if owner is None or not names or names[-1] not in owner.model_fields:
        return "a value that the schema allows"
    field = owner.model_fields[names[-1]]
    if field.description:
        return field.description
    annotation = field.annotation
    inner = _model_of(annotation)
    if inner is not None:
        table = f"with the keys {listed(inner.model_fields)}"
        many = "list[" in str(annotation) and not isinstance(loc[-1], int)
        return f"an array of tables {table}" if many else f"a table {table}"
    return _described(annotation) or "a value that the schema allows"


def _described(annotation: Any) -> str:
    """Find the description in an annotation such as ``Annotated[...] | None``."""
    if get_origin(annotation) is Annotated:
        for mark in annotation.__metadata__:
            if isinstance(mark, FieldInfo) and mark.description:
                return mark.description
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(f'"{v}"' for v in get_args(annotation))
    return next(filter(None, (_described(a) for a in get_args(annotation))), "")


def _descend(loc: tuple[str | int, ...], model: type[BaseModel]) -> type[BaseModel] | None:
    here: type[BaseModel] | None = model
    for part in loc:
        if isinstance(part, int):
            continue
        if here is None or part not in here.model_fields:
            return None
        here = _model_of(here.model_fields[part].annotation)
    return here


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """Return the table behind ``Table``, ``Table | None`` or ``list[Table]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Annotated, list, Union, types.UnionType):
        return next(filter(None, (_model_of(a) for a in get_args(annotation))), None)
    return None
