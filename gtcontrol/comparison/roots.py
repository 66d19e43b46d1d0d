"""The stabilising root of the algebraic equation, by our own solver."""

from __future__ import annotations

import numpy as np

from .._check import Array
from ..riccati_equations.solver import solve
from ..status import RiccatiStatus
from .equation import Equation

__all__ = ["candidate_root", "stabilising_root"]


def stabilising_root(equation: Equation) -> tuple[Array, float]:
    """Return the stabilising root, and an estimate of its relative error.

    Raises
    ------
    numpy.linalg.LinAlgError
        If there is none, or none that the solver stands by.
    """
    if not equation.dim:
        return np.zeros((0, 0)), 0.0
    found = solve(equation.algebraic)
    if found.X is None or found.status is not RiccatiStatus.SUCCESS:
        raise np.linalg.LinAlgError(found.reason)
    return found.X, found.error


def candidate_root(equation: Equation) -> tuple[Array, float] | None:
    """Return the stabilising root and its error, or None if there is none."""
    try:
        return stabilising_root(equation)
    except np.linalg.LinAlgError:
        return None
