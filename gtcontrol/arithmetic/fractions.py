"""Matrices of exact fractions (FLINT's ``fmpq_mat``), made from floats without rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from .._check import Array

__all__ = ["column", "fraction", "fractions", "identity", "rounded", "total"]

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


def column(entries: list[Any]) -> Fractions:
    """Column of given fractions."""
    return fmpq_mat([[x] for x in entries])
