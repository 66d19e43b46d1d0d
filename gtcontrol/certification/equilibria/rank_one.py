"""Equilibria of rank one: A x = -Σ_h (xᵀ B_h x) V_h x.

With one head, x is an eigenvector of the pencil A x = μ V x, and its length follows from
xᵀ B x = -μ.  With several heads the equation is solved by Newton's method on factors.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eig

from ..._check import Array
from .quadratic import Quadratic

__all__ = ["rank_one"]

#: Imaginary parts below this fraction of an eigenvalue come from rounding.
REAL = 1e-7


def rank_one(field: Quadratic) -> list[Array]:
    """Candidates for equilibria of rank one from the eigenvectors of the pencil, (d, d) arrays.

    Parameters
    ----------
    field : Quadratic
        In units of order one; with several heads or with noise the list is empty.
    """
    if len(field.V) != 1 or field.noisy:
        return []
    V, B = field.V[0], field.B[0]
    alphas, vectors = eig(field.A, V, homogeneous_eigvals=True)
    found = []
    for (alpha, beta), x in zip(alphas.T, vectors.T, strict=True):
        size = np.hypot(abs(alpha), abs(beta))
        if abs(beta) <= REAL**2 * size or size == 0:  # V x = 0: A x = 0 would be needed too
            continue
        mu = alpha / beta
        if abs(mu.imag) > REAL * (abs(mu) + REAL):
            continue
        phase = x[np.argmax(np.abs(x))]
        u = np.real(x / phase)
        u = u / np.linalg.norm(u)
        curvature = float(u @ B @ u)
        if curvature != 0 and -mu.real / curvature > 0:
            found.append(-mu.real / curvature * np.outer(u, u))
    return found
