"""Words for the messages about problem files: one line, naming the key and what came."""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from ..errors import GtcontrolError, ProblemFileInvalid

__all__ = ["describe", "fail", "listed", "located", "nearest", "one_line", "shorten"]

#: Longest text of a value that is repeated in a message.
LONGEST = 40


def one_line(text: str) -> str:
    """Replace line breaks and control characters, so that a message stays one line."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def shorten(text: str) -> str:
    """Cut a text that is too long to be repeated in a message."""
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def describe(value: Any) -> str:  # noqa: PLR0911 - one line for each type of TOML
    """Say in a few words what came: the value if it is short, else its type and size."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'the string "{one_line(shorten(value))}"'
    if isinstance(value, int):
        # Python refuses to print whole numbers of thousands of digits.
        return str(value) if value.bit_length() < 100 else "a whole number of more than 30 digits"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        return f"an array of {len(value)}" if value else "an empty array"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, dt.date | dt.time):
        return f"the date or time {value}"
    return f"a {type(value).__name__}"


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the valid name that is most like `name`, if one is alike."""
    close = difflib.get_close_matches(name[:100], list(names), n=1, cutoff=0.55)
    return close[0] if close else None


def listed(names: Iterable[str]) -> str:
    """Names for a message, in back quotes."""
    return ", ".join(f"`{name}`" for name in names)


def fail(where: str, message: str) -> NoReturn:
    """Refuse a file because of the key or table `where`."""
    raise ProblemFileInvalid(f"`{where}` {message}")


@contextmanager
def located(where: str) -> Iterator[None]:
    """Put the place in the file before the message of any error for bad input."""
    try:
        yield
    except GtcontrolError as error:
        raise type(error)(f"{where}: {error}") from None
