"""Ctrl-C that native solvers cannot swallow."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Interruption"]


class Interruption:
    """Remember that the user pressed Ctrl-C, even if a solver turned it into a failure.

    CasADi's solvers catch the KeyboardInterrupt that is raised in their callbacks and report
    it as a failed evaluation.  Within this context :attr:`requested` tells the truth.
    Signals can be handled in the main thread only; elsewhere nothing is changed.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None
        self._installed = False

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)
            self._installed = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, self._previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        raise KeyboardInterrupt
