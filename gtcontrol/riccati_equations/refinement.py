"""Newton's method with residuals in twice the precision, and an estimate of what is left.

A step is the solution of the Lyapunov equation of the closed loop, in double precision; it removes
all of the error but a share of about ε ‖F‖ ‖L⁻¹‖ (the rounding of the step; L is the derivative of
the equation) and ‖G‖ ‖D‖ ‖L⁻¹‖ (the curvature of the equation).  While this share is small, a few
steps give the solution to almost twice the precision, so that the floats that are returned are
the solution correctly rounded, and their error is known: it is the rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._check import Array
from .closed_loop import ClosedLoop
from .equation import Balanced, RiccatiEquation
from .pairs import Pair
from .residual import Data, Remainder

__all__ = ["EPS", "Refined", "refined"]

EPS = 2.220446049250313e-16

#: Relative error of the pair at which refinement ends.
ENOUGH = 2.0**-66

#: Share of the error that a step may leave; above, double precision does not suffice.
CONTRACTION = 0.1

#: Relative errors of the residual in pairs.
FLOOR = 2.0**-97

MOST_STEPS = 12

#: Norms below this may have lost terms to underflow.
SMALLEST = 1e-140


@dataclass(frozen=True, eq=False)
class Refined:
    """A solution as a pair, in balanced coordinates.

    Attributes
    ----------
    X : Pair
    loop : ClosedLoop
    gain : (m, n) array
    left : float
        Estimated error of the pair relative to X, in the original coordinates.
    size : float
        Sum of the norms of the terms of the equation.
    condition : float
        ‖L⁻¹‖ times the size of the terms relative to X: how much relative changes of the data are
        magnified at most, in balanced coordinates.
    """

    X: Pair
    loop: ClosedLoop
    gain: Array
    left: float
    size: float
    condition: float


def refined(scaled: Balanced, start: Array) -> Refined | None:
    """Refine an approximate stabilising solution of a balanced equation.

    Returns
    -------
    Refined or None
        None unless the steps contract and the closed loop is stable beyond rounding.
    """
    equation, data = scaled.equation, Data(scaled.equation)
    X = Pair.of(start)
    loop, size, last = None, np.inf, np.inf
    for _ in range(MOST_STEPS):
        rest = data.remainder(X)
        if rest is None:
            return None
        if loop is None or size > 1e-6:
            loop = ClosedLoop.of(equation.A - equation.B @ rest.gain, discrete=equation.discrete)
            if loop is None:
                return None
        change = loop.solve(rest.value)
        if change is None:
            return None
        X = X.moved(change)
        size = _relative(scaled, change, X.high)
        if not size <= max(0.5 * last, ENOUGH) and size < 1e-3:
            return None
        if size <= 1e-6 or size == 0.0:
            share = _share(scaled, loop, rest.weight, change)
            seen = size / last if 0.0 < last < 1e-3 else np.inf
            left = min(share if share <= CONTRACTION else 1.0, seen) * size
            if left <= ENOUGH and min(share, seen) <= CONTRACTION:
                return _finished(equation, X, loop, rest, change, left)
        last = size
    return None


def _finished(
    equation: RiccatiEquation,
    X: Pair,
    loop: ClosedLoop,
    rest: Remainder,
    change: Array,
    left: float,
) -> Refined:
    inverse, norm = loop.inverse_norm, float(np.linalg.norm(X.high))
    condition = inverse * rest.size / norm if norm > 0 else inverse * rest.size
    # The gain was that of the matrix before the last step.
    moved = equation.B.T @ change @ (loop.matrix if loop.discrete else np.eye(len(change)))
    gain = rest.gain + np.linalg.solve(rest.weight, moved)
    return Refined(X, loop, gain, left + FLOOR * condition, rest.size, condition)


def _share(scaled: Balanced, loop: ClosedLoop, weight: Array, change: Array) -> float:
    """Bound on the share of the error that is left after a step."""
    inverse = loop.inverse_norm
    B = scaled.equation.B
    curvature = np.linalg.norm(B @ np.linalg.solve(weight, B.T)) * np.linalg.norm(change)
    lever = float(np.linalg.norm(loop.matrix))
    if loop.discrete:
        curvature *= lever**2
        lever = 1.0 + lever**2
    return inverse * (4 * EPS * lever + float(curvature))


def _relative(scaled: Balanced, change: Array, X: Array) -> float:
    """Size of a change relative to X: the larger of balanced and original coordinates."""
    pairs = ((change, X), (scaled.back(change), scaled.back(X)))
    return max(_ratio(float(np.linalg.norm(a)), float(np.linalg.norm(b))) for a, b in pairs)


def _ratio(change: float, size: float) -> float:
    if size > SMALLEST:
        return change / size
    return 0.0 if change == 0 else np.inf
