"""Ctrl-C that native solvers cannot swallow."""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, TextIO

__all__ = ["Interruption"]


#: What CasADi writes when it has caught a KeyboardInterrupt; no option of it turns that off.
_CAUGHT = re.compile(r"CasADi - [^\n]*?KeyboardInterruptException[^\n]*\n")


class _WithoutCaught:
    """A stream without the lines that match `_CAUGHT`, which arrive in pieces."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._held = ""

    def write(self, text: str) -> int:
        """Write text; what may become such a line waits for its end."""
        if not self._held and not text.startswith("CasADi - "):
            return self._stream.write(text)
        self._held += text
        if "\n" in text:
            self.release()
        return len(text)

    def release(self) -> None:
        """Write what was held back, unless it is such a line."""
        held, self._held = _CAUGHT.sub("", self._held), ""
        if held:
            self._stream.write(held)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Interruption:
    """Remember that the user pressed Ctrl-C, even if a solver turned it into a failure.

    CasADi's solvers catch the KeyboardInterrupt that is raised in their callbacks and report
    it as a failed evaluation.  Within this context :attr:`requested` tells the truth, and the
    warning that CasADi then writes to standard error, and nothing else, is left out.
    Signals can be handled in the main thread only; elsewhere nothing is changed.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None
        self._installed = False
        self._stderr: TextIO = sys.stderr
        self._quiet: _WithoutCaught | None = None

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)
            self._installed = True
            self._stderr = sys.stderr
            if sys.stderr is not None:
                self._quiet = _WithoutCaught(self._stderr)
                sys.stderr = self._quiet
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, self._previous)
            if self._quiet is not None:
                self._quiet.release()
                sys.stderr = self._stderr

    @contextmanager
    def unmasked(self) -> Iterator[None]:
        """Let an interruption out as KeyboardInterrupt, whatever a native library made of it.

        Pressed while compiled code calls Python, Ctrl-C may surface as SystemError or
        RuntimeError.  Errors that come without Ctrl-C pass unchanged.
        """
        try:
            yield
        except Exception as error:
            if self.requested:
                raise KeyboardInterrupt from error
            raise

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        raise KeyboardInterrupt
