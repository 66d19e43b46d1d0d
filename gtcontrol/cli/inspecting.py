"""Inspecting a model that is named on the command line, without a problem file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InvalidMethod, InvalidNumber
from .session import Question, run_task

__all__ = ["inspect_model"]

#: Longest name of a folder that is made of the name of a model.
LONGEST = 60


def inspect_model(
    model: str,
    options: Mapping[str, Any],
    out: Path | None,
    *,
    as_json: bool = False,
    quiet: bool = False,
) -> int:
    """Inspect a model, write the results into a folder, and return the exit code.

    Parameters
    ----------
    model : str
        What :func:`gtcontrol.pretrained.load` takes.
    options : mapping
        Values of ``input``, ``data``, ``tokens``, ``sequences``, ``layers`` and ``seed``.
    out : Path, optional
        Folder for the results; by default ``runs/MODEL``, in letters that every file system has.
    as_json, quiet : bool
        What is printed.

    Raises
    ------
    InvalidNumber, InvalidMethod
        If an option is out of range.
    """
    from .kinds.inspect import INPUTS, InspectExpect, InspectTable, InspectTask

    if options["input"] not in INPUTS:
        raise InvalidMethod(f"`--input` is {options['input']!r:.40}; expected {', '.join(INPUTS)}.")
    for name, low in (("tokens", 2), ("sequences", 2), ("layers", 1), ("seed", 0)):
        if options[name] is not None and options[name] < low:
            raise InvalidNumber(f"`--{name}` is {options[name]}; it must be at least {low}.")
    if not model:
        raise InvalidMethod("MODEL is empty; name a folder, a file, or a model on the hub.")
    data = options["data"]
    given = {**options, "data": None if data is None else str(data)}
    task = InspectTask(InspectExpect(), "", InspectTable(model=model, **given), Path())
    folder = Path("runs") / _named(model) if out is None else out
    return run_task(task, Question("inspect", "", "", folder), as_json=as_json, quiet=quiet)


def _named(model: str) -> str:
    """Name of a folder for the results of a model."""
    base = model.rstrip("/\\").removeprefix("package:")
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", base).strip("-.")
    return plain[-LONGEST:].lstrip("-.") or "model"
