"""First approximations of the stabilising solution in double precision; nothing is checked here."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, ordqz, schur
from scipy.linalg.lapack import dtrsyl

from .._check import Array
from .equation import RiccatiEquation

__all__ = ["first"]


def first(equation: RiccatiEquation) -> Array | None:
    """Approximate the stabilising solution, or return None if no method yields a matrix."""
    with np.errstate(all="ignore"):
        try:
            if equation.discrete:
                made = _symplectic(equation)
            elif equation.bernoulli:
                made = _bernoulli(equation)
            else:
                made = _hamiltonian(equation)
        except (LinAlgError, ValueError):  # no convergence, no order, overflow
            return None
    if made is None or not np.all(np.isfinite(made)):
        return None
    return np.asarray(0.5 * (made + made.T))


def _hamiltonian(equation: RiccatiEquation) -> Array | None:
    """Stable invariant subspace [I; X] of the Hamiltonian (Laub 1979)."""
    A, Q = equation.without_cross
    H = np.block([[A, -equation.quadratic], [-Q, -A.T]])
    _, Z, count = schur(H, output="real", sort="lhp")
    n = len(A)
    return _graph(Z[:, :n]) if int(count) == n else None


def _symplectic(equation: RiccatiEquation) -> Array | None:
    """Stable deflating subspace [I; X] of the symplectic pencil (Pappas, Laub, Sandell 1980)."""
    A, Q = equation.without_cross
    n = len(A)
    eye, zero = np.eye(n), np.zeros((n, n))
    M = np.block([[A, zero], [-Q, eye]])
    L = np.block([[eye, equation.quadratic], [zero, A.T]])
    _, _, alpha, beta, _, Z = ordqz(M, L, sort="iuc", output="real")
    inside = np.abs(alpha) < np.abs(beta)
    return _graph(Z[:, :n]) if int(np.sum(inside)) == n else None


def _graph(basis: Array) -> Array:
    """X with [I; X] spanning the same space as the columns of `basis`."""
    n = basis.shape[1]
    return np.asarray(np.linalg.solve(basis[:n].T, basis[n:].T))


def _bernoulli(equation: RiccatiEquation) -> Array | None:
    """X = U Y⁻¹ U' on the unstable left invariant subspace A' U = U Λ, with Y Λ + Λ' Y = U' G U."""
    T, Z, count = schur(equation.A.T, output="real", sort=lambda x, _: x > 0)
    k = int(count)
    if k == 0:
        return np.zeros_like(equation.A)
    U = Z[:, :k]
    Y, scale, info = dtrsyl(T[:k, :k], T[:k, :k], U.T @ equation.quadratic @ U, trana="T")
    if info < 0 or scale == 0:
        return None
    return np.asarray(U @ np.linalg.solve(0.5 * (Y + Y.T) / scale, U.T))
