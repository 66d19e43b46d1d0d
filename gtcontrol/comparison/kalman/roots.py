"""The stabilising root of the algebraic equation, by our own solver."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

from ..._check import Array
from ...riccati_equations.solver import solve
from ...status import RiccatiStatus
from .equation import Equation

__all__ = ["candidate_root", "stabilising_root"]


def stabilising_root(equation: Equation) -> tuple[Array, float]:
    """Return the stabilising root, and an estimate of its relative error.

    Raises
    ------
    numpy.linalg.LinAlgError
        If there is none, or none that the solver stands by.
    """
    d = equation.dim
    X, errors = np.zeros((d, d)), [0.0]
    linked = (equation.A != 0) | (equation.K != 0) | (equation.Q != 0)
    count, labels = connected_components(linked, directed=False)
    for label in range(count):
        # States that have nothing to do with each other may be of very different scales.
        rows = np.flatnonzero(labels == label)
        part = equation if count == 1 else equation.on(np.eye(d)[:, rows])
        found = solve(part.algebraic)
        if found.X is None or found.status is not RiccatiStatus.SUCCESS:
            raise np.linalg.LinAlgError(found.reason)
        X[np.ix_(rows, rows)] = found.X
        errors.append(found.error)
    return X, max(errors)


def candidate_root(equation: Equation) -> tuple[Array, float] | None:
    """Return the stabilising root and its error, or None if there is none."""
    try:
        return stabilising_root(equation)
    except np.linalg.LinAlgError:
        return None
