"""What a person sees while and after a command runs."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ..problem.messages import one_line
from ..progress import Progress, silent

__all__ = [
    "Unprintable",
    "complain",
    "progress_bar",
    "say",
    "unprintable",
    "warnings_on_one_line",
]


class Unprintable(Exception):
    """Standard output takes no more, as on a full disk."""


def say(text: str) -> None:
    """Print to standard output.

    Raises
    ------
    Unprintable
        If standard output cannot be written, for another reason than that its reader has gone.
    """
    if sys.__stdout__ is None and sys.stdout is sys.__stdout__:
        raise Unprintable("cannot print to standard output: it is closed.")
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        # A reader that has gone is noticed here, where it is handled, and not when Python ends.
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unprintable(unprintable(error)) from None


def unprintable(error: OSError) -> str:
    """Say that standard output cannot be written, and let go of what is still to be written.

    Otherwise Python would try to write it once more when it ends, and complain on its own.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return f"cannot print to standard output: {error.strerror or error}."


def complain(text: str) -> None:
    """Print one line to standard error."""
    sys.stderr.write(f"gtcontrol: {one_line(text)}\n")


@contextmanager
def warnings_on_one_line() -> Iterator[None]:
    """Show warnings as one line each, without the place in the source that raised them."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: complain(f"warning: {message}")
        yield


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Progress]:
    """Show a bar on standard error if that is a terminal, and yield what moves it."""
    if quiet or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda fraction, text: bar.update(task, completed=fraction, description=text)
