"""Reading problem files: TOML, checked against the schema of its kind."""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from ..errors import ProblemFileInvalid
from .explain import explain
from .messages import describe, nearest, one_line
from .schema import Document

__all__ = ["LARGEST_FILE", "parse", "read", "text"]

#: Problem files larger than this are refused before they are read; big arrays go into NPZ.
LARGEST_FILE = 5_000_000

#: Dotted keys longer than this are refused: the parser's time grows with their square.
DEEPEST_KEY = 32

_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DEEP_KEY = re.compile(rf"(?<![\w\-\"']){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{DEEPEST_KEY}}}")

D = TypeVar("D", bound=Document)

#: Finds the schema of a kind; raises ProblemFileInvalid for an unknown one.
ModelOf = Callable[[str], type[D]]

#: Names the kinds of file that have a key of this name at the top.
Owners = Callable[[str], Sequence[str]]


def _nobody(_: str) -> Sequence[str]:
    return ()


def read(path: Path, model_of: ModelOf[D], owners: Owners = _nobody) -> D:
    """Read a problem file.

    Parameters
    ----------
    path : Path
        A TOML file in UTF-8 of at most 5 MB.
    model_of : callable
        Returns the schema of a kind.
    owners : callable, optional
        Names the kinds that have a key, for a message about one that does not belong here.

    Raises
    ------
    ProblemFileInvalid
        If the file cannot be read or does not follow the schema; one line.
    """
    return parse(text(path), model_of, owners)


def parse(text: str, model_of: ModelOf[D], owners: Owners = _nobody) -> D:
    """Check the text of a problem file against the schema of its kind."""
    values = _toml(text)
    kind = values.get("kind")
    if kind is None:
        raise ProblemFileInvalid('`kind` is missing; expected a string, as in kind = "steer".')
    if not isinstance(kind, str):
        raise ProblemFileInvalid(f"`kind` is {describe(kind)}; expected a string.")
    model = model_of(kind)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ProblemFileInvalid(explain(error, model, owners)) from None


def text(path: Path) -> str:
    """Read the text of a problem file.

    Raises
    ------
    ProblemFileInvalid
        If it is no regular file, too large, or no text in UTF-8.
    """
    raw = _bytes(path)
    try:
        decoded = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ProblemFileInvalid(
            f"is no text in UTF-8 (byte {raw[error.start]:#04x} on line {line}); "
            "expected a problem file (TOML)."
        ) from None
    if "\0" in decoded:
        raise ProblemFileInvalid("holds null bytes; expected a problem file (TOML).")
    return decoded


def _bytes(path: Path) -> bytes:
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            what = "a folder" if stat.S_ISDIR(about.st_mode) else "no regular file"
            raise ProblemFileInvalid(f"is {what}; expected a problem file (TOML).")
        if about.st_size > LARGEST_FILE:
            raise ProblemFileInvalid(
                f"has {about.st_size / 1e6:.1f} MB; problem files may have at most "
                f"{LARGEST_FILE / 1e6:.0f} MB. Put large arrays into an NPZ file (`file = ...`)."
            )
        with path.open("rb") as stream:
            return stream.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise ProblemFileInvalid(f"does not exist{_similar(path)}") from None
    except OSError as error:
        raise ProblemFileInvalid(f"cannot be read: {error.strerror or error}.") from None


def _similar(path: Path) -> str:
    """Name the problem file beside a missing one that its name is most like."""
    try:
        close = nearest(path.stem, [file.stem for file in path.parent.glob("*.toml")])
    except OSError:
        close = None
    return f"; did you mean `{path.parent / close}.toml`?" if close else "."


def _toml(text: str) -> dict[str, Any]:
    if deep := _DEEP_KEY.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        raise ProblemFileInvalid(f"line {line}: a key of more than {DEEPEST_KEY} parts.")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = re.sub(r"\(at line (\d+), column (\d+)\)", r"(line \1, column \2)", str(error))
        raise ProblemFileInvalid(f"is no valid TOML: {one_line(message)}.") from None
    except RecursionError:
        raise ProblemFileInvalid("nests its arrays or tables too deeply.") from None
    except ValueError as error:  # whole numbers of thousands of digits
        raise ProblemFileInvalid(f"is no valid TOML: {one_line(str(error))}.") from None
