"""Writing of results: one JSON file for values, one NPZ file for arrays."""

from __future__ import annotations

import json
import math
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from ..errors import GtcontrolError, OutputFailure
from .folders import FURTHER, path_of, refuse_foreign
from .plain import Arrays

__all__ = ["FORMAT", "save", "to_json"]

#: Number of the layout of the files.
FORMAT = 1


class Packable(Protocol):
    """What writing needs of a result."""

    kind: ClassVar[str]

    @property
    def answered(self) -> bool:
        """Whether the question was answered."""

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Return plain values and named arrays."""

    def files(self) -> dict[str, bytes]:
        """Return the content of further files by name."""


def to_json(result: Packable) -> str:
    """Plain values of a result as strict JSON: infinity and nan become strings."""
    values, _ = result.pack()
    document = {"format": FORMAT, "kind": result.kind, "answered": result.answered, **values}
    return json.dumps(_encode(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def save(result: Packable, directory: str | PathLike[str]) -> Path:
    """Write ``result.json`` and ``result.npz`` into `directory`, which is made if need be.

    Raises
    ------
    OutputFailure
        If the folder cannot be written, or holds files that are not of an earlier result.
    """
    folder = path_of(directory, OutputFailure)
    _, arrays = result.pack()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        refuse_foreign(directory, folder)
        with (folder / "result.npz").open("wb") as stream:
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
        (folder / "result.json").write_text(to_json(result), encoding="utf-8")
        further = result.files()
        for name, content in further.items():
            (folder / name).write_bytes(content)
        for name in set(FURTHER) - set(further):  # of an earlier result, which is replaced
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise OutputFailure(f"cannot write the result into {folder}: {error.strerror}.") from None
    except ValueError as error:  # a null character in the path; ours are passed on
        if isinstance(error, GtcontrolError):
            raise
        raise OutputFailure(f"cannot write the result into {str(folder)!r}: {error}.") from None
    return folder


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
