"""Linear and quadratic maps of symmetric matrices as ball matrices in orthonormal coordinates.

Coordinates svec(D) are the upper triangle row by row, with entries off the diagonal times √2, so
that the Euclidean norm of svec(D) is the Frobenius norm of D.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flint import arb, arb_mat

from . import balls
from .norms import norm_bound

__all__ = [
    "curvature",
    "derivative",
    "in_coordinates",
    "linearisation",
    "matrix_of",
    "weighted_cubic",
]

Balls = balls.Balls


def _pairs(d: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(d) for j in range(i, d)]


def in_coordinates(S: Balls) -> Balls:
    """Column of the m = d (d + 1)/2 coordinates of a symmetric matrix (upper triangle read)."""
    root = arb(2).sqrt()
    pairs = _pairs(S.nrows())
    return arb_mat([[S[i, j] if i == j else root * S[i, j]] for i, j in pairs])


def matrix_of(s: Balls, d: int) -> Balls:
    """Symmetric matrix of a column of coordinates."""
    half = (arb(1) / 2).sqrt()
    made = arb_mat(d, d)
    for k, (i, j) in enumerate(_pairs(d)):
        value = s[k, 0] if i == j else half * s[k, 0]
        made[i, j] = value
        made[j, i] = value
    return made


def _basis(d: int) -> list[Balls]:
    half = (arb(1) / 2).sqrt()
    made = []
    for i, j in _pairs(d):
        E = arb_mat(d, d)
        E[i, j] = arb(1) if i == j else half
        E[j, i] = E[i, j]
        made.append(E)
    return made


def _operator(d: int, image: Callable[[Balls], Balls]) -> Balls:
    """Matrix of D ↦ W(D) + W(D)ᵀ for a linear W."""
    columns = []
    for E in _basis(d):
        W = image(E)
        columns.append([x for (x,) in in_coordinates(W + W.transpose()).tolist()])
    return arb_mat(columns).transpose()


def linearisation(A: Balls, heads: Sequence[tuple[Balls, Balls]], S: Balls) -> Balls:
    """Derivative (m, m) of S ↦ M S + S Mᵀ, M = A + Σ V S B, for heads (V, B)."""
    M, through = A, [(V, B * S) for V, B in heads]
    for V, B in heads:
        M = M + V * S * B

    def image(E: Balls) -> Balls:
        W = M * E
        for V, right in through:
            W = W + V * E * right
        return W

    return _operator(A.nrows(), image)


def derivative(heads: Sequence[tuple[Balls, Balls]], D: Balls) -> Balls:
    """Matrix of E ↦ T(D, E), symmetric and bilinear with T(D, D) = Σ V D B D + its transpose."""
    through = [(V, B * D, V * D * B) for V, B in heads]

    def image(E: Balls) -> Balls:
        W = arb_mat(E.nrows(), E.ncols())
        for V, right, left in through:
            W = W + V * E * right + left * E
        return W / 2

    return _operator(D.nrows(), image)


def curvature(
    heads: Sequence[tuple[Balls, Balls]], d: int, metric: Balls, inverse: Balls
) -> tuple[float, tuple[Balls, ...]]:
    """Quadratic part T of the covariance field in coordinates y = G svec(D).

    Parameters
    ----------
    heads : sequence of (V, B)
    d : int
    metric, inverse : (m, m) ball matrices
        G and an enclosure of its inverse.

    Returns
    -------
    bilinear : float
        κ with |T(y, z)| <= κ |y| |z|: the norm of a multilinear map is at most the spectral norm
        of its coefficients written as a matrix, with one index for the rows.
    even : tuple of m (m, m) ball matrices
        N_a, symmetric in all three indices, with ⟨y, T(y, y)⟩ = Σ y_a ⟨y, N_a y⟩.
    """
    m = metric.nrows()
    slabs = []
    for a in range(m):
        column = arb_mat([[inverse[i, a]] for i in range(m)])
        slabs.append((metric * derivative(heads, matrix_of(column, d)) * inverse).tolist())
    # slabs[a][k][b] is the k-th coordinate of T(e_a, e_b).
    rows = [[slabs[a][k][b] for a in range(m) for b in range(m)] for k in range(m)]
    columns = [[slabs[a][k][b] for k in range(m) for b in range(m)] for a in range(m)]
    even = tuple(
        arb_mat(
            [
                [(slabs[a][k][b] + slabs[k][a][b] + slabs[b][k][a]) / 3 for b in range(m)]
                for k in range(m)
            ]
        )
        for a in range(m)
    )
    return min(_unfolded(rows), _unfolded(columns)), even


def weighted_cubic(even: Sequence[Balls], inverse: Balls) -> float:
    """Bound κ with |Σ y_a ⟨z, N_a z⟩| <= κ |y| |K z|², given an enclosure of K⁻¹."""
    turned = inverse.transpose()
    slabs = [(turned * N * inverse).tolist() for N in even]
    m = len(slabs)
    rows = [[slabs[a][k][b] for k in range(m) for b in range(m)] for a in range(m)]
    columns = [[slabs[a][k][b] for a in range(m) for b in range(m)] for k in range(m)]
    return min(_unfolded(rows), _unfolded(columns))


def _unfolded(rows: list[list[Any]]) -> float:
    return norm_bound(arb_mat(rows))
