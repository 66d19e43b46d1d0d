"""The steady state by other libraries: python-control, SciPy, and slycot through python-control."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from scipy.linalg import solve_continuous_are

from ..._check import Array
from .equation import Equation

__all__ = ["Answer", "answers", "quiet", "versions"]

#: What these libraries raise where they find no answer.
FAILURES = (ArithmeticError, ValueError, TypeError, RuntimeError, IndexError, ImportError)


@dataclass(frozen=True, eq=False)
class Answer:
    """What a library returned, or the first line of why it did not."""

    name: str
    X: Array | None
    message: str = ""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what a library prints or warns of from the user."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        yield


def answers(equation: Equation) -> tuple[Answer, ...]:
    """Ask each library for the steady state of S' = A S + S Aᵀ - S Cᵀ R⁻¹ C S + Q."""
    with quiet():
        import control
        from control.exception import slycot_check

        installed = bool(slycot_check())
    e = equation.algebraic
    A, B, Q, R = (np.array(x) for x in (e.A, e.B, e.Q, e.R))
    calls: dict[str, Callable[[], Any]] = {
        "control.care": lambda: control.care(A, B, Q, R)[0],
        "control.lqe": lambda: control.lqe(A.T, np.eye(len(A)), B.T, Q, R)[1],
        "SciPy": lambda: solve_continuous_are(A, B, Q, R),
    }
    if installed:
        calls["slycot"] = lambda: control.care(A, B, Q, R, method="slycot")[0]
    made = [_asked(name, call, len(A)) for name, call in calls.items()]
    if not installed:
        made.append(Answer("slycot", None, "not installed"))
    return tuple(made)


def _asked(name: str, call: Callable[[], Any], d: int) -> Answer:
    try:
        with quiet():
            X = np.array(call(), dtype=np.float64)
    except FAILURES as error:
        text = " ".join(str(error).split())
        return Answer(name, None, f"{type(error).__name__}: {text}" if text else "failed")
    if X.shape != (d, d) or not np.all(np.isfinite(X)):
        return Answer(name, None, "returned numbers that are not finite")
    return Answer(name, X)


def versions() -> str:
    """Versions of the libraries."""
    with quiet():
        import control
        from control.exception import slycot_check

        installed = bool(slycot_check())
    slycot = getattr(sys.modules.get("slycot"), "__version__", "installed")
    return (
        f"control {control.__version__}, scipy {scipy.__version__}, "
        f"slycot {slycot if installed else 'not installed'}"
    )
