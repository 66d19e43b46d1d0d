"""All positive definite equilibria for d = 2, without starts: two conics in a plane.

At an equilibrium of full rank without noise M = Ω S⁻¹ with Ω skew, so tr M = 0, which is linear
in S: tr A + Σ tr(B_h V_h S) = 0.  In this plane S' = 0 is three conics; two random combinations
of them meet in at most four points, which are filtered by the third.
"""

from __future__ import annotations

import numpy as np

from ..._check import Array
from .quadratic import Quadratic, coordinates, symmetric

__all__ = ["planar"]

#: Below this size, relative to its terms, the linear equation or the resultant is empty.
EMPTY = 1e-12


def planar(field: Quadratic) -> Array:
    """Candidates for equilibria of full rank, semidefinite or not.

    Parameters
    ----------
    field : Quadratic
        Of dimension 2, in units of order one, without noise.

    Returns
    -------
    (K, 2, 2) array
        Real parts of the common points of two conics, K <= 4, to be refined and filtered; empty
        if the equations are degenerate.
    """
    weight = coordinates(
        sum((B @ V + (B @ V).T) / 2 for V, B in zip(field.V, field.B, strict=True))
    )
    if np.linalg.norm(weight) <= EMPTY:
        return np.zeros((0, 2, 2))
    base = -np.trace(field.A) * weight / (weight @ weight)
    directions = np.linalg.svd(weight[None])[2][1:]  # (2, 3), orthogonal to the weight
    # Turned by a generic angle, so that no two solutions share a coordinate by symmetry.
    directions = np.array([[np.cos(0.7), np.sin(0.7)], [-np.sin(0.7), np.cos(0.7)]]) @ directions
    # F(base + p u + q v) as three polynomials with rows (1, p, q, p², pq, q²).
    u, v = directions
    T, J = field.tensor, field.linear
    columns = [
        coordinates(field.Q) + J @ base + T @ base @ base,
        J @ u + 2 * (T @ base) @ u,
        J @ v + 2 * (T @ base) @ v,
        T @ u @ u,
        2 * (T @ u) @ v,
        T @ v @ v,
    ]
    conics = np.array(columns).T
    # Of the three conics two remain after the projection on the larger part of their span.
    first, second = np.linalg.svd(conics)[2][:2]
    points = _meet(first, second)
    return symmetric(np.array([base + p * u + q * v for p, q in points]).reshape(-1, 3), 2)


def _meet(first: Array, second: Array) -> list[tuple[float, float]]:
    """Real parts of the common points of two conics (1, p, q, p², pq, q²)."""
    nodes = np.exp(2j * np.pi * np.arange(5) / 5)
    values = np.array([np.linalg.det(_sylvester(first, second, q)) for q in nodes])
    # The resultant has degree 4 in q; its coefficients from its values at roots of unity.
    powers = np.array([np.mean(values * nodes ** (-k)) for k in range(5)]).real
    size = np.max(np.abs(powers))
    if size <= EMPTY:
        return []
    roots = np.roots(powers[::-1] / size)
    points = []
    for q in roots:
        # The null vector of the Sylvester matrix (transposed) is (p³, p², p, 1).
        null = np.linalg.svd(_sylvester(first, second, q))[2][-1].conj()
        p = null[2] / null[3] if abs(null[3]) > EMPTY else 0.0
        points.append((float(np.real(p)), float(np.real(q))))
    return points


def _sylvester(first: Array, second: Array, q: complex) -> Array:
    """Sylvester matrix in p of two conics at q, acting on (p³, p², p, 1)."""
    rows = []
    for c in (first, second):
        two, one, zero = c[3], c[1] + c[4] * q, c[0] + c[2] * q + c[5] * q * q
        rows += [[two, one, zero, 0], [0, two, one, zero]]
    return np.array(rows, dtype=complex)
