"""Loading of saved results of every kind."""

from __future__ import annotations

import json
import zipfile
import zlib
from os import PathLike

import numpy as np

from ..errors import ResultFileInvalid
from .base import Result
from .certificate import Certificate
from .closeness import Closeness
from .comparison import Comparison
from .design import Design
from .export import ExportCheck
from .filtering import FilterRun
from .folders import path_of
from .forecast import Forecast
from .inspection import Inspection
from .mixture import MixtureRun
from .reachability import Reachability
from .riccati import RiccatiSolution
from .steering import Steering
from .tokens import TokenRun
from .tracking import Tracking
from .trajectory import Trajectory
from .validation import Validation
from .writing import FORMAT

__all__ = ["load"]

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
    made.kind: made
    for made in (
        Trajectory,
        Steering,
        Reachability,
        TokenRun,
        Certificate,
        Design,
        RiccatiSolution,
        Comparison,
        FilterRun,
        Forecast,
        Inspection,
        Closeness,
        MixtureRun,
        Tracking,
        Validation,
        ExportCheck,
    )
}


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
    folder = path_of(directory, ResultFileInvalid)
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
        if "pickle" in what:  # NumPy's guess about anything that is no archive
            what = "result.npz is not an NPZ file"
        raise ResultFileInvalid(f"the saved result in {folder} is damaged: {what}.") from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ResultFileInvalid(f"the saved result in {folder} is not of format {FORMAT}.")
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ResultFileInvalid(f"the saved result in {folder} is of unknown kind {kind!r}.")
    for array in arrays.values():
        array.setflags(write=False)
    try:
        result = _KINDS[kind].unpack(values, arrays)
    except KeyError as error:
        raise ResultFileInvalid(
            f"the saved result in {folder} is damaged: {error} is missing."
        ) from None
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        raise ResultFileInvalid(f"the saved result in {folder} is damaged: {error}") from None
    if values.get("answered") != result.answered:
        raise ResultFileInvalid(
            f"the saved result in {folder} is damaged: `answered` is "
            f"{values.get('answered')!r:.40}, but the rest says {result.answered}."
        )
    return result
