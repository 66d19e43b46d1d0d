"""Equilibria for V_h = v_h I, all of them: the algebraic Bernoulli equation.

With K = Σ v_h (B_h + B_hᵀ), S' = A S + S Aᵀ + S K S.  The range of an equilibrium S = U P Uᵀ is
invariant under A, A U = U Λ, and X = P⁻¹ solves X Λ + Λᵀ X = -Uᵀ K U.  So equilibria are the
A-invariant subspaces on which the solution of this linear equation is positive definite.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, schur, solve_continuous_lyapunov

from ..._check import Array

__all__ = ["MOST_SUBSETS", "bernoulli"]

#: Invariant subspaces that are tried at most, the most unstable ones first.
MOST_SUBSETS = 1024

#: Pair sums of eigenvalues below this fraction of the largest eigenvalue count as zero.
SINGULAR = 1e-11


def bernoulli(A: Array, K: Array, most: int = MOST_SUBSETS) -> tuple[list[Array], bool]:
    """Equilibria of S' = A S + S Aᵀ + S K S other than 0.

    Parameters
    ----------
    A, K : (d, d) arrays
        K symmetric.
    most : int
        Number of invariant subspaces to try.

    Returns
    -------
    found : list of (d, d) arrays
    complete : bool
        Whether all isolated equilibria with a range spanned by whole eigenspaces were tried and
        no continuum was met.
    """
    d = A.shape[0]
    T, Z = schur(A, output="real")
    blocks = _blocks(T)
    values = np.linalg.eigvals(A)
    size = float(np.max(np.abs(values), initial=0.0))
    gaps = np.abs(values[:, None] - values[None, :]) + np.diag(np.full(d, np.inf))
    complete = d == 1 or float(gaps.min()) > 1e-8 * size
    order = sorted(range(len(blocks)), key=lambda i: -T[blocks[i][0], blocks[i][0]])
    subsets = itertools.chain.from_iterable(
        itertools.combinations(order, k) for k in range(1, len(order) + 1)
    )
    if 2 ** len(order) - 1 > most:
        # The attractors for each rank are the leading invariant subspaces.
        leading: list[tuple[int, ...]] = [tuple(order[:k]) for k in range(1, len(order) + 1)]
        subsets = itertools.chain(leading, itertools.islice(subsets, most - len(leading)))
        complete = False
    found = []
    for subset in subsets:
        select = np.zeros(d, dtype=np.int32)
        for i in subset:
            select[list(blocks[i])] = 1
        P, regular = _on_subspace(T, Z, select, K, SINGULAR * size)
        complete = complete and regular
        if P is not None:
            found.append(P)
    return found, complete


def _blocks(T: Array) -> list[tuple[int, ...]]:
    """Indices of the diagonal blocks of a real Schur form."""
    d, blocks, i = T.shape[0], [], 0
    while i < d:
        width = 2 if i + 1 < d and T[i + 1, i] != 0 else 1
        blocks.append(tuple(range(i, i + width)))
        i += width
    return blocks


def _on_subspace(
    T: Array, Z: Array, select: NDArray[np.int32], K: Array, smallest: float
) -> tuple[Array | None, bool]:
    """Equilibrium on the invariant subspace of selected eigenvalues; whether it is decided."""
    ordered, basis, *_, info = lapack.dtrsen(select, T, Z, job="N")
    if info != 0:
        return None, False
    r = int(select.sum())
    block, U = np.triu(ordered[:r, :r], -1), basis[:, :r]
    values = np.linalg.eigvals(block)
    if float(np.min(np.abs(values[:, None] + values[None, :]))) <= smallest:
        return None, False
    X = solve_continuous_lyapunov(block.T, -U.T @ K @ U)
    X = (X + X.T) / 2
    spread = np.linalg.eigvalsh(X)
    if spread[0] <= 1e-13 * max(abs(spread[-1]), abs(spread[0])):
        return None, True
    L = U @ np.linalg.inv(np.linalg.cholesky(X)).T
    return L @ L.T, True
