"""Exact derivatives of the flow, in covariance and in factor coordinates.

The right-hand sides are polynomials in the state and in the parameters, so their derivatives
are written by the product rule; no differences are taken.  A *variation* is a stack of k
directions: one array with a leading axis of length k for each part that varies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...parameters import Parameters

__all__ = [
    "Variation",
    "control_basis",
    "covariance_derivative",
    "factor_derivative",
    "shapes",
    "symmetric_basis",
]

#: A part that does not vary.
ZERO = 0.0


@dataclass(frozen=True, eq=False)
class Variation:
    """Directions of change; a part that is 0.0 does not change.

    Attributes
    ----------
    count : int
        Number k of directions.
    mean : (k, d) array or 0
    matrix : (k, d, d) or (k, d, r) array or 0
        Of the covariance, or of the factor.
    A : (k, d, d) array or 0
    V, B : (k, d, d) or (k, H, d, d) arrays or 0
    b : (k, d) array or 0
    """

    count: int
    mean: Array | float = ZERO
    matrix: Array | float = ZERO
    A: Array | float = ZERO
    V: Array | float = ZERO
    B: Array | float = ZERO
    b: Array | float = ZERO

    def of_head(self, letter: str, h: int, *, several: bool) -> Array | float:
        """Change of V or B of head h."""
        value: Array | float = getattr(self, letter)
        return value[:, h] if several and isinstance(value, np.ndarray) else value


def shapes(p: Parameters) -> dict[str, tuple[int, ...]]:
    """Shape of each control of parameters, by its letter."""
    return {letter: getattr(p, letter).shape for letter in "AVBb"}


def control_basis(p: Parameters, controls: str) -> Variation:
    """All entries of the controls named, one after the other in the order given, as directions."""
    sizes = {c: shapes(p)[c] for c in controls}
    total = sum(int(np.prod(shape)) for shape in sizes.values())
    made: dict[str, Array] = {}
    first = 0
    for letter, shape in sizes.items():
        count = int(np.prod(shape))
        stack = np.zeros((total, count))
        stack[first : first + count] = np.eye(count)
        made[letter] = stack.reshape(total, *shape)
        first += count
    return Variation(total, **made)


def symmetric_basis(dim: int) -> Array:
    """Directions of the entries (i, j), i <= j, of a symmetric matrix, row by row.

    Returns
    -------
    (d(d+1)/2, d, d) array
    """
    rows, columns = np.triu_indices(dim)
    made = np.zeros((rows.size, dim, dim))
    at = np.arange(rows.size)
    made[at, rows, columns] = 1.0
    made[at, columns, rows] = 1.0
    return made


def covariance_derivative(
    p: Parameters, mean: Array, covariance: Array, change: Variation
) -> tuple[Array, Array]:
    """Change of (m', S') for each direction of change of (m, S, A, V, B, b).

    With M = A + Σ_h V_h S B_h, tilt τ_h = B_h m + β_h,

        m' = A m + b + Σ_h V_h (m + S τ_h),      S' = M S + S Mᵀ + noise.

    Returns
    -------
    mean_change : (k, d) array
    covariance_change : (k, d, d) array
    """
    dS, dm, S = change.matrix, change.mean, covariance
    generator, generator_change = p.A, change.A
    mean_change = _act(p.A, dm) + _act(change.A, mean) + change.b
    several = p.V.ndim == 3
    for h, (V, B, beta) in enumerate(p.heads):
        dV = change.of_head("V", h, several=several)
        dB = change.of_head("B", h, several=several)
        tilt = B @ mean if beta is None else B @ mean + beta
        generator = generator + V @ S @ B
        generator_change = generator_change + _times(_times(dV, S), B)
        generator_change = generator_change + _times(V, _times(dS, B)) + _times(V @ S, dB)
        inner = dm + _act(dS, tilt) + _act(S, _act(B, dm) + _act(dB, mean))
        mean_change = mean_change + _act(V, inner) + _act(dV, mean + S @ tilt)
    half = _times(generator_change, S) + _times(generator, dS)
    k = change.count
    return (
        np.broadcast_to(mean_change, (k, *mean.shape)),
        np.broadcast_to(half + _transposed(half), (k, *S.shape)),
    )


def factor_derivative(
    p: Parameters, mean: Array, factor: Array, change: Variation
) -> tuple[Array, Array]:
    """Change of (m', L') for each direction of change of (m, L, A, V, B, b).

        m' = A m + b + Σ_h V_h (m + L Lᵀ τ_h),      L' = A L + Σ_h V_h L (Lᵀ B_h L).

    Returns
    -------
    mean_change : (k, d) array
    factor_change : (k, d, r) array
    """
    dL, dm, L = change.matrix, change.mean, factor
    mean_change = _act(p.A, dm) + _act(change.A, mean) + change.b
    factor_change = _times(p.A, dL) + _times(change.A, L)
    several = p.V.ndim == 3
    for h, (V, B, beta) in enumerate(p.heads):
        dV = change.of_head("V", h, several=several)
        dB = change.of_head("B", h, several=several)
        tilt = B @ mean if beta is None else B @ mean + beta
        dtilt = _act(B, dm) + _act(dB, mean)
        inner = dm + _act(dL, L.T @ tilt) + _act(L, _act(_transposed(dL), tilt))
        inner = inner + _act(L @ L.T, dtilt)
        mean_change = mean_change + _act(V, inner) + _act(dV, mean + L @ (L.T @ tilt))
        score = L.T @ B @ L
        dscore = _times(_transposed(dL), B @ L) + _times(L.T @ B, dL)
        dscore = dscore + _times(_times(L.T, dB), L)
        factor_change = factor_change + _times(V, _times(dL, score) + _times(L, dscore))
        factor_change = factor_change + _times(dV, L @ score)
    k = change.count
    return (
        np.broadcast_to(mean_change, (k, *mean.shape)),
        np.broadcast_to(factor_change, (k, *L.shape)),
    )


def _times(x: Array | float, y: Array | float) -> Array | float:
    """Product of matrices or stacks of them; 0 if a factor is 0."""
    return x @ y if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) else ZERO


def _act(x: Array | float, v: Array | float) -> Array | float:
    """Matrix or stack of them, times a vector or a stack of them; 0 if a factor is 0."""
    if not (isinstance(x, np.ndarray) and isinstance(v, np.ndarray)):
        return ZERO
    return np.asarray((x @ v[..., None])[..., 0])


def _transposed(x: Array | float) -> Array | float:
    return np.swapaxes(x, -1, -2) if isinstance(x, np.ndarray) else ZERO
