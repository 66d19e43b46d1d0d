"""The quadratic term K = Σ_h v_h (B_h + B_hᵀ) of heads whose value matrices are V_h = v_h I."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._check import Array
from ..arithmetic import balls, floats, fractions
from ..arithmetic.balls import Balls
from ..arithmetic.floats import Enclosure
from ..arithmetic.fractions import Fractions
from ..errors import InvalidMethod

__all__ = [
    "enclosed_term",
    "exact_term",
    "quadratic_balls",
    "quadratic_term",
    "scalar_values",
]


def scalar_values(heads: Sequence[tuple[Array, Array, Any]]) -> tuple[float, ...] | None:
    """Return the v_h of heads with V_h = v_h I exactly, or None if a head has another V.

    A head with B_h = 0 does nothing to the covariance, and counts as v_h = 0.

    Parameters
    ----------
    heads : sequence of (V (d, d), B (d, d), β)
        As in ``Parameters.heads``.
    """
    values = []
    for V, B, _ in heads:
        if not np.any(B):
            values.append(0.0)
            continue
        v = float(V[0, 0])
        if not np.array_equal(V, v * np.eye(V.shape[0])):
            return None
        values.append(v)
    return tuple(values)


def quadratic_term(heads: Sequence[tuple[Array, Array, Any]]) -> Array:
    """Return K = Σ_h v_h (B_h + B_hᵀ), shape (d, d), rounded to floats.

    Raises
    ------
    InvalidMethod
        If some V_h is not a multiple of the identity.
    """
    values = _values(heads)
    d = heads[0][1].shape[0]
    return sum(
        (v * (B + B.T) for v, (_, B, _) in zip(values, heads, strict=True)), np.zeros((d, d))
    )


def exact_term(heads: Sequence[tuple[Array, Array, Any]]) -> Fractions:
    """Return the exact K as a matrix of fractions."""
    parts = []
    for v, (_, B, _) in zip(_values(heads), heads, strict=True):
        exact = fractions.fractions(B)
        parts.append((exact + exact.transpose()) * fractions.fraction(v))
    made = parts[0]
    for part in parts[1:]:
        made = made + part
    return made


def quadratic_balls(heads: Sequence[tuple[Array, Array, Any]]) -> Balls:
    """Return K in balls of the current precision."""
    d = heads[0][1].shape[0]
    made = balls.zeros(d, d)
    for v, (_, B, _) in zip(_values(heads), heads, strict=True):
        exact = balls.balls(B)
        made = made + (exact + exact.transpose()) * balls.ball(v)
    return made


def enclosed_term(heads: Sequence[tuple[Array, Array, Any]]) -> Enclosure:
    """Return K in floats with error bounds, for matrices that are too large for balls."""
    d = heads[0][1].shape[0]
    made = floats.exact(np.zeros((d, d)))
    for v, (_, B, _) in zip(_values(heads), heads, strict=True):
        exact = floats.exact(B)
        made = made + (exact + exact.T).scaled(v)
    return made


def _values(heads: Sequence[tuple[Array, Array, Any]]) -> tuple[float, ...]:
    values = scalar_values(heads)
    if values is None:
        raise InvalidMethod(
            "the closed form needs every value matrix V to be a multiple of the identity."
        )
    return values
