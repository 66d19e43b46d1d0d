"""Coordinates and signs of heads for bounds on growth by norms, where LMIs would be too large."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from ..._check import Array
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..rules.base import Refuted
from ..rules.norm_growth import Growth, growth_of
from ..theory.comparison import Comparison, passage_time
from .lyapunov import solve_metric
from .quadratic_lmi import LARGEST_INTERACTIVE

__all__ = ["find"]

#: What is left of a radius and of a ceiling, so that rounding does not decide.
ROOM = 1.0 - 1e-9

#: Entries of the wrong sign on a diagonal, relative, that count as rounding.
ROUNDING = 1e-12


def find(problem: CertificationProblem) -> Iterator[Claim]:
    """Propose decay of small covariances, a bound on tr S, or on the blow-up time from below.

    Parameters
    ----------
    problem : CertificationProblem
        Families, and dimensions in which matrix inequalities are tried, have no claims here.
    """
    if len(problem.vertices) != 1 or problem.dim <= LARGEST_INTERACTIVE:
        return
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        claim = _claim(problem)
    if claim is not None:
        yield claim


def _claim(problem: CertificationProblem) -> Claim | None:
    p = problem.parameters
    arrays = {"signs": np.array([_sign(V, B) for V, B, _ in p.heads])}
    R = _coordinates(p)
    if R is not None:
        arrays["coordinates"] = R
    try:
        made = growth_of(problem, Claim("norm-growth", arrays=arrays))
    except Refuted:
        return None
    numbers = _numbers(made, with_start=problem.start is not None)
    return None if numbers is None else Claim("norm-growth", numbers=numbers, arrays=arrays)


def _numbers(made: Growth, *, with_start: bool) -> dict[str, float] | None:
    """Strongest conclusion from the comparison equation."""
    numbers = made.numbers()
    if not made.quadratic > 0:
        return None
    f = Comparison(*(Fraction(x) for x in numbers.values()))
    # Between the roots of κη² + aη + e the solution falls.
    square = made.linear**2 - 4.0 * made.quadratic * made.constant
    largest = 0.0
    if made.linear < 0 and square > 0:
        largest = ROOM * (np.sqrt(square) - made.linear) / (2.0 * made.quadratic)
    if not with_start:
        if made.constant > 0 or not largest > 0:
            return None
        return {**numbers, "radius": float(largest)}
    if made.level < largest:
        ceiling = float(largest)
        if made.constant > 0:
            least = (-made.linear - np.sqrt(square)) / (2.0 * made.quadratic)
            ceiling = max(made.level, float(min(least * 1.001, 0.5 * (least + largest))))
        numbers |= {"ceiling": ceiling, "peak": made.stretch * ceiling * (1 + 1e-9)}
        return numbers if made.constant > 0 else {**numbers, "decays": 1.0}
    lower, _ = passage_time(f, Fraction(made.level))
    return {**numbers, "lower": lower} if lower > 0 else None


def _sign(V: Array, B: Array) -> float:
    """Sign s for which sV and -sB may be positive semidefinite, by their diagonals; 0 if none."""
    first, second = np.diag(V), np.diag(B)
    for s in (1.0, -1.0):
        if np.all(s * first >= -ROUNDING * np.max(np.abs(first))) and np.all(
            s * second <= ROUNDING * np.max(np.abs(second))
        ):
            return s
    return 0.0


def _coordinates(p: Parameters) -> Array | None:
    """R such that RAR⁻¹ has a negative definite symmetric part, if A needs it and has one."""
    if not np.trace(p.A) < 0 or np.linalg.eigvalsh(p.A + p.A.T)[-1] < 0:
        return None
    try:
        W = solve_metric(-p.A)
        return None if W is None else np.asarray(np.linalg.cholesky(W).T)
    except np.linalg.LinAlgError:
        return None
