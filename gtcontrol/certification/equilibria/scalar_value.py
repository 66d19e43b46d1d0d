"""Equilibria for V_h = v_h I: those of a Riccati equation, on invariant subspaces of A."""

from __future__ import annotations

import numpy as np

from ..._check import Array
from ...riccati_flow.bernoulli import attractor
from ...riccati_flow.equilibria import equilibria

__all__ = ["MOST_SUBSPACES", "bernoulli"]

#: Invariant subspaces that are looked at.
MOST_SUBSPACES = 1024


def bernoulli(A: Array, K: Array, most: int = MOST_SUBSPACES) -> tuple[list[Array], bool]:
    """Equilibria of S' = A S + S Aᵀ + S K S other than 0.

    Parameters
    ----------
    A, K : (d, d) arrays
        K symmetric.
    most : int
        Number of invariant subspaces to look at.  If there are more, and K <= 0, the attractors of
        all ranks are listed besides.

    Returns
    -------
    found : list of (d, d) arrays
        By falling rank.
    complete : bool
        Whether these are all: every subspace was looked at, and there is no continuum.
    """
    listed = equilibria(A, K, most)
    found = [e.covariance for e in reversed(listed.found) if e.rank]
    if not listed.complete and np.linalg.eigvalsh(K)[-1] <= 0:
        limits = (attractor(A, K, r).covariance for r in range(len(A), 0, -1))
        found = [*(S for S in limits if S is not None), *found]
    return found, listed.complete and not listed.continua
