"""Lyapunov equations and inequalities: solved with a verdict, and used to bound G(t) for ever.

If P >= 0 and Aᵀ P + P A + K <= 0, then G(t) = ∫₀ᵗ Φᵀ K Φ <= P - Φᵀ P Φ <= P for all t >= 0, because
the derivative of G + Φᵀ P Φ is Φᵀ (Aᵀ P + P A + K) Φ <= 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from scipy.linalg import schur, solve_continuous_lyapunov, solve_sylvester

from .. import _check
from .._check import Array

__all__ = ["LyapunovSolution", "LyapunovStatus", "lasting_bound", "solve"]

#: Eigenvalue sums below this fraction of the largest one count as zero.
SINGULAR = 1e-13


class LyapunovStatus(Enum):
    """What is known of the solutions of A X + X Aᵀ + C = 0."""

    UNIQUE = "There is exactly one solution."
    NOT_UNIQUE = "There are solutions, but two eigenvalues of A sum to zero, so X is not unique."
    NO_SOLUTION = "Two eigenvalues of A sum to zero and C has a part that nothing balances."


@dataclass(frozen=True, eq=False)
class LyapunovSolution:
    """A solution of A X + X Aᵀ + C = 0, or why there is none.

    Attributes
    ----------
    status : LyapunovStatus
    X : (d, d) array or None
        The solution; the one of least norm if it is not unique; None if there is none.
    kernel : (m, d, d) array
        Basis of the solutions for C = 0: X plus any combination of it is a solution.
    defect : float
        Distance of C from the right sides that can be solved, relative to C.
    """

    status: LyapunovStatus
    X: Array | None
    kernel: Array
    defect: float


def solve(A: Array, C: Array) -> LyapunovSolution:
    """Solve A X + X Aᵀ + C = 0, or say that X is not unique, or that there is none.

    Parameters
    ----------
    A, C : (d, d) arrays
        C symmetric.
    """
    A = _check.square("A", A)
    C = _check.symmetric("C", C, len(A))
    values = np.linalg.eigvals(A)
    sums = np.abs(values[:, None] + values)
    d = len(A)
    # Pairs of a defective zero sum are perturbed by a root of the rounding: looked at in the SVD.
    size = max(float(sums.max(initial=0.0)), float(np.linalg.norm(A, 2)))
    if size > 0 and sums.min(initial=np.inf) > 1e-5 * size:
        X = solve_continuous_lyapunov(A, -C)
        return LyapunovSolution(LyapunovStatus.UNIQUE, _half(X), np.zeros((0, d, d)), 0.0)
    operator, basis = _operator(A)
    left, sigma, right = np.linalg.svd(operator)
    kept = sigma > SINGULAR * max(d, 1) * max(float(sigma[0]), 0.0)
    right_side = -np.array([np.sum(E * C) for E in basis])
    reached = left.T @ right_side
    scale = float(np.linalg.norm(right_side))
    defect = float(np.linalg.norm(reached[~kept])) / scale if scale > 0 else 0.0
    kernel = np.einsum("mk,kij->mij", right[~kept], basis)
    X = np.einsum("k,kij->ij", right[kept].T @ (reached[kept] / sigma[kept]), basis)
    if kept.all():
        return LyapunovSolution(LyapunovStatus.UNIQUE, X, kernel, 0.0)
    if defect > 1e-10:
        return LyapunovSolution(LyapunovStatus.NO_SOLUTION, None, kernel, defect)
    return LyapunovSolution(LyapunovStatus.NOT_UNIQUE, X, kernel, defect)


def _operator(A: Array) -> tuple[Array, Array]:
    """Matrix of X -> A X + X Aᵀ in an orthonormal basis of symmetric matrices, and the basis."""
    d = len(A)
    basis = []
    for i in range(d):
        for j in range(i, d):
            E = np.zeros((d, d))
            E[i, j] = E[j, i] = 1.0 if i == j else np.sqrt(0.5)
            basis.append(E)
    stack = np.array(basis)
    moved = A @ stack + stack @ A.T
    return np.einsum("kij,mij->km", stack, moved), stack


def lasting_bound(A: Array, K: Array, margin: float = 1e-9, drop: float = 0.5) -> Array | None:
    """Find P > 0 with Aᵀ P + P A + K < 0, or return None; A without imaginary eigenvalues.

    In coordinates that split the unstable from the stable part, P is block diagonal: on the stable
    part the Gramian of K₊ (the positive part) enlarged, on the unstable part the solution X of
    Aᵀ X + X A = -K diminished, if it is positive definite; what is off the diagonal of K is
    outweighed by the enlargement.

    Parameters
    ----------
    A, K : (d, d) arrays
    margin : float
        Size of the strict inequality, relative to K.
    drop : float
        Share of the least eigenvalue by which X is diminished.
    """
    d = len(A)
    size = float(np.linalg.norm(A, 2))
    if size == 0:
        return None
    T, Z, unstable = schur(A, output="real", sort="rhp")
    values = np.linalg.eigvals(T)
    if np.min(np.abs(values.real)) < 1e-12 * size:
        return None
    k = int(unstable)
    # Columns of `basis` span the unstable and the stable subspace.
    basis = Z.copy()
    if 0 < k < d:
        basis[:, k:] += Z[:, :k] @ solve_sylvester(T[:k, :k], -T[k:, k:], -T[:k, k:])
    turned = basis.T @ K @ basis
    turned = _half(turned)
    P = np.zeros((d, d))
    weight = float(np.linalg.norm(turned, 2)) or size
    slack = margin * weight
    if k:
        X = _gramian(-T[:k, :k], -turned[:k, :k])
        W = _gramian(-T[:k, :k], np.eye(k))
        lowest = float(np.linalg.eigvalsh(X)[0])
        if lowest <= 0:
            return None
        less = drop * lowest / float(np.linalg.norm(W, 2))
        P[:k, :k] = X - less * W
        if k < d:
            slack += 1.01 * float(np.linalg.norm(turned[:k, k:], 2)) ** 2 / less
    if k < d:
        values, vectors = np.linalg.eigh(turned[k:, k:])
        positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
        P[k:, k:] = _gramian(T[k:, k:], positive + slack * np.eye(d - k))
    back = np.linalg.inv(basis)
    return _half(back.T @ P @ back)


def _gramian(A: Array, C: Array) -> Array:
    """Solution of Aᵀ X + X A = -C."""
    return _half(solve_continuous_lyapunov(A.T, -C))


def _half(X: Any) -> Array:
    return np.asarray(0.5 * (X + X.T), dtype=np.float64)
