"""The stabilising root of the algebraic equation, by our own solver."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, solve_continuous_are

from .._check import Array
from ..riccati_equations.judgement import judge
from .equation import Equation

__all__ = ["candidate_root", "stabilising_root"]


def stabilising_root(equation: Equation) -> tuple[Array, float]:
    """Return the stabilising root, which must exist, and an estimate of its relative error."""
    if not equation.dim:
        return np.zeros((0, 0)), 0.0
    inner = equation.algebraic
    X = solve_continuous_are(inner.A, inner.B, inner.Q, inner.R)
    X = 0.5 * (X + X.T)
    return X, judge(inner, X).error_estimate


def candidate_root(equation: Equation) -> tuple[Array, float] | None:
    """Return the stabilising root and its error, or None if there is none."""
    try:
        return stabilising_root(equation)
    except LinAlgError:
        return None
