"""Quadratic certificates y = tr(W S): their rate of change as a quadratic form on covariances.

Along S' = M S + S Mᵀ + Q, M = A + Σ_h V_h S B_h,

    y' = tr((W A + Aᵀ W) S) + q_W(S) + tr(W Q),     q_W(S) = 2 Σ_h tr(W V_h S B_h S),

so that q_W is a quadratic form in the entries of S, linear in W.  On positive semidefinite S it is
bounded by more than its matrix says: the exterior power ∧²S, with the entries
S_ik S_jl - S_il S_jk for pairs i < j and k < l, is positive semidefinite, hence
⟨Z, ∧²S⟩ >= 0 for every Z ⪰ 0; and it vanishes if S has rank one.  (With N = W V and the parts
N_s, B_s symmetric, N_a, B_a antisymmetric, tr(N S B S) = tr(N_s S B_s S) - 2⟨a, ∧²S b⟩ with a, b
the entries of N_a, B_a above the diagonal.  This is why the exterior power is the right slack.)

Coordinates here are those of ``svec``: the entries on and above the diagonal, row by row, those off
the diagonal times √2, so that the inner product is the trace.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..._check import Array
from ...parameters import Parameters

__all__ = [
    "Indices",
    "drift_operator",
    "heads_of",
    "pairs",
    "quadratic_form",
    "quadratic_operator",
    "slack_form",
    "slack_operator",
    "smat",
    "svec",
    "unfolding",
    "wedge",
]


#: Arrays of indices.
Indices = NDArray[np.intp]


def pairs(order: int) -> tuple[Indices, Indices]:
    """Indices i < j of the pairs that number the rows of the exterior power."""
    i, j = np.triu_indices(order, 1)
    return np.asarray(i, dtype=np.intp), np.asarray(j, dtype=np.intp)


@cache
def unfolding(order: int) -> Array:
    """Isometry U (n², n(n+1)/2) with S.ravel() = U svec(S)."""
    i, j = np.triu_indices(order)
    made = np.zeros((order * order, i.size))
    weight = np.where(i == j, 1.0, np.sqrt(0.5))
    made[i * order + j, np.arange(i.size)] = weight
    made[j * order + i, np.arange(i.size)] = weight
    made.setflags(write=False)
    return made


def svec(matrix: Array) -> Array:
    """Coordinates (n(n+1)/2,) of a symmetric matrix (n, n)."""
    i, j = np.triu_indices(matrix.shape[0])
    return np.asarray(matrix[i, j] * np.where(i == j, 1.0, np.sqrt(2.0)))


def smat(coordinates: Array, order: int) -> Array:
    """Symmetric matrix (n, n) of coordinates (n(n+1)/2,)."""
    return np.asarray((unfolding(order) @ coordinates).reshape(order, order))


def wedge(S: Array) -> Array:
    """Exterior power ∧²S of a matrix (n, n), shape (n(n-1)/2, n(n-1)/2)."""
    i, j = pairs(S.shape[0])
    return np.asarray(S[np.ix_(i, i)] * S[np.ix_(j, j)] - S[np.ix_(i, j)] * S[np.ix_(j, i)])


def heads_of(parameters: Parameters) -> tuple[Array, Array]:
    """Value and score matrices of the heads, each (H, d, d)."""
    V, B = parameters.V, parameters.B
    return (V, B) if V.ndim == 3 else (V[None], B[None])


def quadratic_operator(V: Array, B: Array) -> Array:
    """Linear map from svec(W) to the matrix of q_W, shape (p², p) with p = d(d+1)/2.

    Parameters
    ----------
    V, B : (H, d, d) arrays
    """
    d = V.shape[-1]
    U = unfolding(d)
    p = U.shape[1]
    made = np.empty((p * p, p))
    for k in range(p):
        # tr(N S B S) = Σ N_ab S_bc B_cd S_da is a form in the entries (b, c) and (d, a) of S.
        N = U[:, k].reshape(d, d) @ V
        kernel = np.einsum("hab,hcd->bcda", N, B, optimize=True).reshape(d * d, d * d)
        form = U.T @ kernel @ U
        made[:, k] = (form + form.T).ravel()
    return made


def quadratic_form(W: Array, V: Array, B: Array) -> Array:
    """Matrix (p, p) of q_W in the coordinates svec: q_W(S) = svec(S)ᵀ Q svec(S)."""
    d = W.shape[0]
    U = unfolding(d)
    kernel = np.einsum("hab,hcd->bcda", W @ V, B, optimize=True).reshape(d * d, d * d)
    form = U.T @ kernel @ U
    return np.asarray(form + form.T)


def drift_operator(A: Array) -> Array:
    """Linear map from svec(W) to svec(W A + Aᵀ W), shape (p, p)."""
    d = A.shape[0]
    U = unfolding(d)
    eye = np.eye(d)
    return np.asarray(U.T @ (np.kron(eye, A.T) + np.kron(A.T, eye)) @ U)


@cache
def slack_operator(order: int) -> sparse.csc_matrix:
    """Linear map from svec(Z) to the matrix of ⟨Z, ∧²S⟩, shape (p², q(q+1)/2), q = d(d-1)/2."""
    d = order
    i, j = pairs(d)
    q, p = i.size, d * (d + 1) // 2
    number = np.zeros((d, d), dtype=np.intp)
    rows, columns = np.triu_indices(d)
    number[rows, columns] = number[columns, rows] = np.arange(p)
    weight = np.where(np.eye(d, dtype=bool), 1.0, np.sqrt(0.5))
    first, second = np.triu_indices(q)
    scale = np.where(first == second, 1.0, np.sqrt(2.0))
    unknown = np.arange(first.size)
    entries = []
    for sign, (a, b, c, e) in (
        (1.0, (i[first], i[second], j[first], j[second])),
        (-1.0, (i[first], j[second], j[first], i[second])),
    ):
        value = 0.5 * sign * scale * weight[a, b] * weight[c, e]
        u, v = number[a, b], number[c, e]
        entries += [(u * p + v, value), (v * p + u, value)]
    where = np.concatenate([place for place, _ in entries])
    values = np.concatenate([value for _, value in entries])
    shape = (p * p, first.size)
    return sparse.csc_matrix((values, (where, np.tile(unknown, 4))), shape=shape)


def slack_form(Z: Array, order: int) -> Array:
    """Matrix (p, p) of the form ⟨Z, ∧²S⟩ in the coordinates svec."""
    p = order * (order + 1) // 2
    return np.asarray((slack_operator(order) @ svec(Z)).reshape(p, p))
