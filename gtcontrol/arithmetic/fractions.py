"""Matrices of exact fractions (FLINT's ``fmpq_mat``), made from floats without rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from .._check import Array

__all__ = ["column", "fraction", "fractions", "identity", "rounded", "total"]
__all__ = ["column", "fraction", "fractions", "identity", "positive_definite", "rounded"]

# FLINT has no stubs.
Fractions = Any


def fraction(value: float) -> Any:
    """Exact fraction of a float."""
    return fmpq(*float(value).as_integer_ratio())


def fractions(matrix: Array) -> Fractions:
    """Exact matrix of a 2-d array of floats; a vector becomes a column."""
    rows = np.atleast_2d(matrix) if np.ndim(matrix) != 1 else np.reshape(matrix, (-1, 1))
    return fmpq_mat([[fraction(x) for x in row] for row in rows.tolist()])


def identity(order: int) -> Fractions:
    """Exact identity matrix."""
    return fmpq_mat([[int(i == j) for j in range(order)] for i in range(order)])


def total(matrices: Sequence[Array]) -> Fractions:
    """Exact sum of matrices of floats, at least one."""
    made = fractions(matrices[0])
    for other in matrices[1:]:
        made = made + fractions(other)
    return made


def rounded(matrix: Array, bits: int) -> Array:
    """Round entries to multiples of 2^-bits, so that exact fractions stay short."""
    return np.asarray(np.ldexp(np.round(np.ldexp(matrix, bits)), -bits))


def positive_definite(matrix: Fractions) -> bool:
    """Whether a symmetric matrix of fractions is proved to be positive definite.

    Balls are tried first; a matrix that they cannot decide is eliminated exactly.
    """
    n = matrix.nrows()
    if n == 0:
        return True
    entries = matrix.tolist()
    if any(entries[i][j] != entries[j][i] for i in range(n) for j in range(i)):
        return False
    for bits in (64, 192):
        with balls.precision(bits):
            if balls.positive_definite(balls.from_fractions(matrix)):
                return True
    return n <= LARGEST_EXACT and _eliminates(entries)


def _eliminates(rows: list[list[Any]]) -> bool:
    """Whether all pivots of symmetric elimination are positive."""
    n = len(rows)
    for k in range(n):
        pivot = rows[k][k]
        if pivot <= 0:
            return False
        for i in range(k + 1, n):
            factor = rows[k][i] / pivot
            if factor != 0:
                for j in range(i, n):
                    rows[i][j] -= factor * rows[k][j]
    return True


def column(entries: list[Any]) -> Fractions:
    """Column of given fractions."""
    return fmpq_mat([[x] for x in entries])
