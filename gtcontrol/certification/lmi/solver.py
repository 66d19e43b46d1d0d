"""Semidefinite programs are asked of one solver after the other, and nothing of them leaks out."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import cvxpy as cp
import numpy as np

__all__ = ["Answer", "Ending", "solve"]

# cvxpy has no stubs.
Problem = Any

#: Solvers in the order in which they are tried, with their options.
LADDER: tuple[tuple[str, dict[str, Any]], ...] = (
    ("CLARABEL", {"tol_gap_abs": 1e-6, "tol_gap_rel": 1e-6, "tol_feas": 1e-8}),
    ("CLARABEL", {"static_regularization_constant": 1e-10, "tol_gap_rel": 1e-5, "tol_feas": 1e-7}),
    ("SCS", {"eps": 1e-7, "max_iters": 2_500, "time_limit_secs": 5.0}),
)


class Ending(Enum):
    """How a solver ended; whatever it was, a certificate counts only once it is proved."""

    CANDIDATE = "The solver returned a point, which still has to be proved."
    INACCURATE = "The solver returned a point of low accuracy, which still has to be proved."
    INFEASIBLE = "The solver found the inequalities to be contradictory."
    FAILED = "No solver returned a point."


@dataclass(frozen=True)
class Answer:
    """How the last solver ended, and its name."""

    ending: Ending
    solver: str

    @property
    def has_point(self) -> bool:
        """Whether the variables of the problem hold a point."""
        return self.ending in (Ending.CANDIDATE, Ending.INACCURATE)


_ENDINGS = {
    "optimal": Ending.CANDIDATE,
    "optimal_inaccurate": Ending.INACCURATE,
    "user_limit": Ending.INACCURATE,
    "infeasible": Ending.INFEASIBLE,
    "infeasible_inaccurate": Ending.INFEASIBLE,
}


def solve(problem: Problem, *, attempts: int = len(LADDER)) -> Answer:
    """Solve a cvxpy problem by the ladder, until a solver returns a point or infeasibility.

    Parameters
    ----------
    problem : cvxpy.Problem
    attempts : int
        Steps of the ladder to take at most.

    Returns
    -------
    Answer
    """
    answer = Answer(Ending.FAILED, "")
    for name, options in LADDER[:attempts]:
        ending = _once(problem, name, options)
        answer = Answer(ending, name)
        if ending in (Ending.CANDIDATE, Ending.INFEASIBLE) or answer.has_point:
            return answer
    return answer


def _once(problem: Problem, name: str, options: dict[str, Any]) -> Ending:
    with _silenced():
        try:
            problem.solve(solver=name, **options)
        except (cp.error.SolverError, ArithmeticError, ValueError, np.linalg.LinAlgError):
            # cvxpy raises for what a solver could not do; that is an answer here.
            return Ending.FAILED
    ending = _ENDINGS.get(str(problem.status), Ending.FAILED)
    if ending in (Ending.CANDIDATE, Ending.INACCURATE) and not _finite(problem):
        return Ending.FAILED
    return ending


def _finite(problem: Problem) -> bool:
    values = [variable.value for variable in problem.variables()]
    return all(v is not None and bool(np.all(np.isfinite(v))) for v in values)


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Drop what cvxpy and the solvers warn of and print: their words are not those of the user."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
