"""Saving and loading of results: one JSON file for values, one NPZ file for arrays."""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import OutputFailure, ResultFileInvalid
from .base import Result
from .reachability import Reachability
from .steering import Steering
from .tokens import TokenRun
from .trajectory import Trajectory

__all__ = ["load", "save", "to_json"]

FORMAT = 1

# What the readers of JSON, ZIP and NPY files raise for damaged ones.
_DAMAGED = (
    ValueError,
    TypeError,
    AttributeError,
    EOFError,
    RuntimeError,
    MemoryError,
    OverflowError,
    zipfile.BadZipFile,
    zlib.error,
)

_KINDS: dict[str, type[Result]] = {
    made.kind: made for made in (Trajectory, Steering, Reachability, TokenRun)
}


def to_json(result: Result) -> str:
    """Plain values of a result as strict JSON: infinity and nan become strings."""
    values, _ = result.pack()
    document = {"format": FORMAT, "kind": result.kind, "answered": result.answered, **values}
    return json.dumps(_encode(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def save(result: Result, directory: str | PathLike[str]) -> Path:
    """Write ``result.json`` and ``result.npz`` into `directory`, which is made if need be."""
    folder = Path(directory)
    _, arrays = result.pack()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "result.npz").open("wb") as stream:
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
        (folder / "result.json").write_text(to_json(result), encoding="utf-8")
    except OSError as error:
        raise OutputFailure(f"cannot write the result into {folder}: {error.strerror}.") from None
    return folder


def load(directory: str | PathLike[str]) -> Result:
    """Restore a result that ``result.save(directory)`` (or ``gtcontrol run``) has written.

    Parameters
    ----------
    directory : path
        Folder with ``result.json`` and ``result.npz``.

    Raises
    ------
    ResultFileInvalid
        If the files are missing, damaged, or of another format.
    """
    folder = Path(directory)
    try:
        values = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        # Opened here, as NumPy leaves a damaged archive open.
        with (
            (folder / "result.npz").open("rb") as stream,
            np.load(stream, allow_pickle=False) as stored,
        ):
            arrays = {key: stored[key] for key in stored.files}
    except OSError as error:
        raise ResultFileInvalid(
            f"no saved result in {folder}: {error.strerror or error} ({error.filename or ''})."
        ) from None
    except _DAMAGED as error:
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ResultFileInvalid(f"the saved result in {folder} is damaged: {what}.") from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ResultFileInvalid(f"the saved result in {folder} is not of format {FORMAT}.")
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ResultFileInvalid(f"the saved result in {folder} is of unknown kind {kind!r}.")
    for array in arrays.values():
        array.setflags(write=False)
    try:
        return _KINDS[kind].unpack(values, arrays)
    except KeyError as error:
        raise ResultFileInvalid(
            f"the saved result in {folder} is damaged: {error} is missing."
        ) from None
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        raise ResultFileInvalid(f"the saved result in {folder} is damaged: {error}") from None


def _encode(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    if isinstance(value, np.generic):
        return _encode(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
