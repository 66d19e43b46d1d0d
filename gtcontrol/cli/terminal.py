"""What a person sees while and after a command runs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ..problem.messages import one_line
from ..progress import Progress, silent

__all__ = ["complain", "progress_bar", "say", "warnings_on_one_line"]


def say(text: str) -> None:
    """Print to standard output."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    # A reader that has gone is noticed here, where it is handled, and not when Python ends.
    sys.stdout.flush()


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
