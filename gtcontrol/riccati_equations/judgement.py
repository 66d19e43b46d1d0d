"""Judging a matrix that is claimed to solve a Riccati equation, whoever computed it.

A small residual alone proves little: an equation has many solutions, and each has a residual of
rounding size.  So the residual is joined by the distance to the nearest solution (one step of
Newton's method), the closed loop, the signs of the eigenvalues, and the name of the root.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import _check
from .._check import Array
from ..arithmetic import dyadic
from ..status import Definiteness
from .closed_loop import ClosedLoop, Complex
from .equation import Balanced, RiccatiEquation, balanced
from .pairs import Pair
from .residual import Data

__all__ = ["Judgement", "RiccatiEquation", "definiteness_of", "judge"]

#: A matrix whose distance to a solution is above this fraction of it is no solution.
FAR = 0.1

#: Where the distance cannot be told, a residual below this counts as a solution.
NEGLIGIBLE = 1e-8

#: Distance from the boundary of stability, relative to the closed loop, that rounding explains.
AXIS = 1e-13

EPS = 2.220446049250313e-16


@dataclass(frozen=True, eq=False)
class Judgement:
    """What is true of a matrix as a solution of a Riccati equation.

    Attributes
    ----------
    residual : float
        Residual relative to the terms of the equation (Frobenius norms).
    error_estimate : float
        Estimated distance to the nearest solution relative to X, by one step of Newton's method;
        inf if the closed loop has eigenvalues whose sum (or product minus 1) vanishes, so that
        the distance cannot be told.
    spectrum : (n,) complex array
        Eigenvalues of the closed loop, the least stable one first.
    stabilising : bool
        Whether all of them are stable, beyond rounding.
    definite : Definiteness
        Signs of the eigenvalues of X, decided for the floats as they are.
    lowest, highest : float
        Extreme eigenvalues of X in double precision.
    rank : int
        Number of eigenvalues of X above rounding.
    root : str
        Which solution it is, in words.
    """

    residual: float
    error_estimate: float
    spectrum: Complex
    stabilising: bool
    definite: Definiteness
    lowest: float
    highest: float
    rank: int
    root: str


def judge(equation: RiccatiEquation, X: ArrayLike) -> Judgement:
    """Judge a matrix as a solution of an equation.

    Parameters
    ----------
    equation : RiccatiEquation
    X : (n, n) array
        Symmetric.

    Raises
    ------
    InvalidShape, NotFinite, NotSymmetric
        If X does not fit.
    """
    given = _check.symmetric("X", X, equation.dim)
    scaled = balanced(equation)
    moved = given * scaled.scale[:, None] * scaled.scale
    inner = scaled.equation
    rest = Data(inner).remainder(Pair.of(moved))
    values = np.linalg.eigvalsh(given)
    size = float(np.max(np.abs(values)))
    rank = int(np.sum(np.abs(values) > EPS * len(given) * size))
    signs = definiteness_of(given)
    ends = float(values[0]), float(values[-1])
    if rest is None:
        none = np.full(equation.dim, np.nan + 0j)
        word = "no solution: R + B' X B is singular, or the equation overflows"
        return Judgement(math.inf, math.inf, none, False, signs, *ends, rank, word)
    loop = ClosedLoop.of(inner.A - inner.B @ rest.gain, discrete=inner.discrete)
    if loop is None:
        spectrum = np.linalg.eigvals(inner.A - inner.B @ rest.gain).astype(np.complex128)
        word = "a solution with the closed-loop eigenvalue -1 on the unit circle"
        return Judgement(rest.relative, math.inf, spectrum, False, signs, *ends, rank, word)
    error = _distance(loop, rest.value, moved, scaled)
    stabilising, word = _root(loop, rest.relative, error)
    return Judgement(rest.relative, error, loop.spectrum, stabilising, signs, *ends, rank, word)


def definiteness_of(X: Array) -> Definiteness:
    """Signs of the eigenvalues of a symmetric matrix of floats, decided exactly.

    Above order 80, where floats with error bounds do not decide, a semidefinite matrix counts as
    indefinite.
    """
    if not X.any():
        return Definiteness.ZERO
    exact = dyadic.dyadic(X)
    if dyadic.positive_definite(exact):
        return Definiteness.POSITIVE_DEFINITE
    if dyadic.positive_definite(-exact):
        return Definiteness.NEGATIVE_DEFINITE
    if dyadic.positive_semidefinite(exact):
        return Definiteness.POSITIVE_SEMIDEFINITE
    if dyadic.positive_semidefinite(-exact):
        return Definiteness.NEGATIVE_SEMIDEFINITE
    return Definiteness.INDEFINITE


def _distance(loop: ClosedLoop, residual: Array, X: Array, scaled: Balanced) -> float:
    """Size of the Newton step relative to X, in the original coordinates."""
    change = loop.solve(residual)
    if change is None:
        return math.inf
    size = float(np.linalg.norm(scaled.back(X)))
    moved = float(np.linalg.norm(scaled.back(change)))
    if size == 0.0:
        return 0.0 if moved == 0.0 else math.inf
    return moved / size


def _root(loop: ClosedLoop, residual: float, error: float) -> tuple[bool, str]:
    """Whether a solution stabilises, and its name."""
    size = 1.0 if loop.discrete else float(np.linalg.norm(loop.matrix, 2))
    key = np.abs(loop.spectrum) - 1.0 if loop.discrete else loop.spectrum.real
    line = "unit circle" if loop.discrete else "imaginary axis"
    n, near = len(key), AXIS * max(size, 1e-300)
    unstable, axis = int(np.sum(key > near)), int(np.sum(np.abs(key) <= near))
    if error > FAR and not (axis and residual <= NEGLIGIBLE):
        known = f"a solution is about {error:.2g} of it away" if error < math.inf else "none near"
        return False, f"no solution: relative residual {residual:.2g}, {known}"
    if not unstable and not axis:
        return True, "the stabilising solution"
    on = f", {axis} on the {line}" if axis else ""
    if unstable == n:
        return False, "the anti-stabilising solution: every closed-loop eigenvalue is unstable"
    if not unstable:
        return False, f"a marginal solution: {axis} of {n} closed-loop eigenvalues on the {line}"
    worst = loop.spectrum[0]
    return False, (
        f"another solution: {unstable} of {n} closed-loop eigenvalues unstable{on} (worst "
        f"{_complex(worst)})"
    )


def _complex(value: complex) -> str:
    if abs(value.imag) <= 1e-14 * abs(value):
        return f"{value.real:.6g}"
    return f"{value.real:.6g}{value.imag:+.6g}i"
