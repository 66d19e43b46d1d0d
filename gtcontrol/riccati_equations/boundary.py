"""Linear equations in block triangular coordinates, with a block on the boundary of stability.

In orthonormal coordinates Z = [Z₁, Z₂] with the closed loop F block upper triangular, the Newton
equation F' D + D F = -C falls into an equation for D₁₁, one for D₁₂ and one for D₂₂.  If one of the
diagonal blocks of F has its spectrum on the boundary of stability, the equation of that block is
singular and its part of D is left at zero.  The equation of D₁₂ is regular if only one block is
on the boundary; if both are, it may be singular too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, solve_sylvester

from .._check import Array
from .closed_loop import ClosedLoop

__all__ = ["Free", "Split", "on_boundary"]

#: Singular values of the operator on the boundary below this fraction of its size are zero.
SINGULAR = 1e-10

#: Number of unknowns up to which mixed blocks are solved by least squares.
LARGEST_SQUARES = 225

#: A right side whose part that nothing balances is below this fraction of the terms has none.
BALANCED = 1e-9


@dataclass(frozen=True, eq=False)
class Split:
    """Coordinates that split the closed loop.

    Attributes
    ----------
    basis : (n, n) array
        Z, orthogonal.
    first : int
        Size of the first block.
    solve_first, solve_last : bool
        Whether the first and the second block are off the boundary, so that their parts of D
        are solved for.
    discrete : bool
    """

    basis: Array
    first: int
    solve_first: bool
    solve_last: bool
    discrete: bool

    def correction(self, F: Array, C: Array) -> Array | None:
        """D with F' D + D F = -C (F' D F - D = -C) but for the block on the boundary, or None."""
        k, Z = self.first, self.basis
        moved, right = Z.T @ F @ Z, Z.T @ C @ Z
        F1, F12, F2 = moved[:k, :k], moved[:k, k:], moved[k:, k:]
        D1, D2 = np.zeros((k, k)), np.zeros_like(F2)
        if self.solve_first:
            made = self._inner(F1, right[:k, :k])
            if made is None:
                return None
            D1 = made
        mixed = right[:k, k:] + (F1.T @ D1 @ F12 if self.discrete else D1 @ F12)
        D12 = self._sylvester(F1, F2, mixed)
        if D12 is None:
            return None
        if self.solve_last:
            if self.discrete:
                across = F12.T @ D12 @ F2
                last = right[k:, k:] + F12.T @ D1 @ F12 + across + across.T
            else:
                last = right[k:, k:] + F12.T @ D12 + D12.T @ F12
            made = self._inner(F2, last)
            if made is None:
                return None
            D2 = made
        D = Z @ np.block([[D1, D12], [D12.T, D2]]) @ Z.T
        return np.asarray(0.5 * (D + D.T))

    def _inner(self, F: Array, C: Array) -> Array | None:
        if not len(F):
            return np.zeros_like(F)
        loop = ClosedLoop.of(F, discrete=self.discrete)
        if loop is None or not loop.margin > 0:
            return None
        return loop.solve(0.5 * (C + C.T))

    def _sylvester(self, F1: Array, F2: Array, C: Array) -> Array | None:
        """D with F1' D + D F2 = -C, or F1' D F2 - D = -C; by least squares if it is small."""
        if not C.size:
            return C
        k, m = C.shape
        if k * m <= LARGEST_SQUARES:
            # Row by row, F1' D F2 is the Kronecker product of F1' and F2' times D.
            operator = (
                np.kron(F1.T, F2.T) - np.eye(k * m)
                if self.discrete
                else np.kron(F1.T, np.eye(m)) + np.kron(np.eye(k), F2.T)
            )
            made = np.linalg.lstsq(operator, -C.ravel(), rcond=SINGULAR)[0]
            return np.asarray(made.reshape(k, m), dtype=np.float64)
        try:
            if not self.discrete:
                made = solve_sylvester(F1.T, F2, -C)
            elif self.solve_last:
                back = np.linalg.inv(F1.T)
                made = solve_sylvester(-back, F2, -back @ C)
            else:
                back = np.linalg.inv(F2)
                made = solve_sylvester(F1.T, -back, -C @ back)
        except (LinAlgError, ValueError):  # singular; overflow
            return None
        return np.asarray(made) if np.all(np.isfinite(made)) else None


@dataclass(frozen=True, eq=False)
class Free:
    """Solutions of the equation on the boundary.

    Attributes
    ----------
    X : (k, k) array
        The one of least norm.
    freedom : int
        Dimension of the space of symmetric solutions.
    """

    X: Array
    freedom: int


def on_boundary(F: Array, C: Array, size: float, terms: float, *, discrete: bool) -> Free | None:
    """Solve F' X + X F = -C (F' X F - X = -C) with the spectrum of F on the boundary.

    Parameters
    ----------
    F : (k, k) array
    C : (k, k) array
        Symmetric.
    size : float
        Size of the whole matrix of which F is a part, to which zero is relative.
    terms : float
        Size of the terms of which C is the sum, to which what is left is compared.

    Returns
    -------
    Free or None
        None if no solution exists.
    """
    k = len(F)
    eye = np.eye(k)
    basis = [
        (eye[:, [i]] @ eye[[j]] + eye[:, [j]] @ eye[[i]]) * (0.5 if i == j else np.sqrt(0.5))
        for i in range(k)
        for j in range(i, k)
    ]
    stack = np.array(basis)
    moved = F.T @ stack @ F - stack if discrete else F.T @ stack + stack @ F
    operator = np.einsum("aij,bij->ab", stack, moved)
    right = -np.einsum("aij,ij->a", stack, C)
    left, sigma, back = np.linalg.svd(operator)
    kept = sigma > SINGULAR * (1.0 + size**2 if discrete else size)
    reached = left.T @ right
    if float(np.linalg.norm(reached[~kept])) > BALANCED * terms:
        return None
    X = np.einsum("a,aij->ij", back[kept].T @ (reached[kept] / sigma[kept]), stack)
    return Free(X, int(np.sum(~kept)))
