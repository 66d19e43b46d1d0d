"""Left eigenvectors of matrices of floats: exact ones, or enclosures by balls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import acb, acb_mat

from .._check import Array
from .fractions import fractions

__all__ = ["enclosed_left_eigenpair", "is_left_eigenvector"]

# FLINT has no stubs.
Ball = Any


def is_left_eigenvector(matrix: Array, vector: Array, value: Array) -> bool:
    """Whether w' M = λ w' holds exactly, in fractions.

    Parameters
    ----------
    matrix : (d, d) array
    vector : (d, 2) array
        Real and imaginary part of w.
    value : (2,) array
        Real and imaginary part of λ.
    """
    real, imaginary = (float(x) for x in value)
    turn = fractions(np.array([[real, imaginary], [-imaginary, real]]))
    w = fractions(vector)
    # In columns (p, q): M' p = a p - b q and M' q = b p + a q.
    made = fractions(matrix.T) * w
    return bool(made == w * turn) and bool(np.any(vector != 0))


def enclosed_left_eigenpair(
    matrix: Array, value: Array
) -> tuple[tuple[Ball, Ball], Sequence[Ball], Sequence[Ball]] | None:
    """Enclose the simple eigenvalue nearest to a value, and its left eigenvector.

    Returns
    -------
    value, real, imaginary
        Balls: the eigenvalue (a, b), and the parts of w with w' M = (a + b i) w'; None if FLINT
        cannot tell the eigenvalues apart.
    """
    rows = [[acb(x) for x in row] for row in matrix.tolist()]
    try:
        values, left = acb_mat(rows).eig(left=True, algorithm="rump", tol=None)
    except ValueError:  # FLINT says so when eigenvalues are multiple
        return None
    aim = acb(float(value[0]), float(value[1]))
    sizes = [float(abs(x - aim).mid()) for x in values]
    j = int(np.argmin(sizes))
    order = matrix.shape[0]
    w = [left[j, i] for i in range(order)]
    return (values[j].real, values[j].imag), [x.real for x in w], [x.imag for x in w]
