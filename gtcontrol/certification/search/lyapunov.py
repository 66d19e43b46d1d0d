"""Metrics W for which WV has a positive definite symmetric part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import eig, rsf2csf, schur
from scipy.linalg.lapack import dtrsyl

from ..._check import Array

__all__ = ["lyapunov_metric", "sector_metrics", "solve_metric"]

#: Metrics with a larger condition number are useless in floats.
WORST_CONDITION = 1e10

#: Largest dimension in which the triangular factor is shrunk by powers.
LARGEST_SHRUNK = 12


def solve_metric(V: Array) -> Array | None:
    """Solve WV + VᵀW = I, scaled; None unless W comes out positive definite.

    Parameters
    ----------
    V : (d, d) array
    """
    return lyapunov_metric(*schur(V, output="real"), np.eye(len(V)))


def lyapunov_metric(upper: Array, basis: Array, right: Array) -> Array | None:
    """Solve WV + VᵀW = right for V = basis upper basisᵀ, scaled; None unless W > 0.

    Parameters
    ----------
    upper, basis : (d, d) arrays
        Real Schur form of V and its orthogonal basis.
    right : (d, d) array
        Symmetric.
    """
    inner = basis.T @ right @ basis
    solved, scale, info = dtrsyl(upper, upper, inner, trana="T", tranb="N")
    if info < 0 or not scale > 0 or not np.all(np.isfinite(solved)):
        return None
    return _normalised(basis @ (solved / scale) @ basis.T)


def sector_metrics(V: Array, upper: Array, basis: Array) -> Iterator[Array]:
    """Metrics in which V is nearly normal, so that ν comes near max |Im λ|/Re λ.

    The eigenvectors, made orthonormal, serve if they are independent enough.  For Jordan blocks the
    off-diagonal part of the triangular factor is shrunk by powers of a small number instead.

    Parameters
    ----------
    V, upper, basis : (d, d) arrays
        V with its real Schur form and orthogonal basis.
    """
    choices = [eig(V)[1]]
    if len(V) <= LARGEST_SHRUNK:
        _, unitary = rsf2csf(upper, basis)
        choices += [unitary * small ** np.arange(len(V)) for small in (0.3, 0.1, 0.01)]
    for T in choices:
        try:
            inverse = np.linalg.inv(T)
        except np.linalg.LinAlgError:
            continue
        made = _normalised((np.conj(inverse.T) @ inverse).real)
        if made is not None:
            yield made


def _normalised(W: Array) -> Array | None:
    """Make symmetric, with smallest eigenvalue one; None unless positive definite."""
    W = 0.5 * (W + W.T)
    if not np.all(np.isfinite(W)):
        return None
    ends = np.linalg.eigvalsh(W)
    return W / ends[0] if ends[0] * WORST_CONDITION > ends[-1] else None
