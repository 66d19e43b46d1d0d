"""Equilibria of every rank by the equation of their factors, solved in balls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flint import arb, arb_mat

from gtcontrol.arithmetic.matrices import BallMatrix
from gtcontrol.arithmetic.newton import zero_radius
from gtcontrol.arithmetic.norms import norm_bound


def factor_radius(A: Any, heads: Sequence[tuple[Any, Any]], rank: int) -> float:
    """Radius in which there is an equilibrium of exactly this rank, near diag(1, …, 1, 0, …, 0).

    The factor L of an equilibrium L Lᵀ obeys A L + Σ V L (Lᵀ B L) = L Ω with Ω skew.  It is made
    unique by E₁ᵀ L symmetric, E₁ the first `rank` columns of the identity (turn L), which makes
    the equations for (L, Ω) square.  For rank one they say that L is a nonlinear eigenvector.

    Parameters
    ----------
    A : (d, d) ball matrix
    heads : sequence of (V, B)
        Parameters in coordinates in which the approximate factor is E₁.
    rank : int

    Returns
    -------
    float
        ρ such that |L - E₁|_F <= ρ for the factor of an exact equilibrium; inf if not proved.
        If ρ < 1 its rank is `rank`.
    """
    d, r = A.nrows(), rank
    if r == 0:
        return 0.0
    L = arb_mat(d, r)
    for i in range(r):
        L[i, i] = arb(1)
    skews = [(i, j) for i in range(r) for j in range(i + 1, r)]
    omega = arb_mat(r, r)
    turned = L.transpose()
    G = A * L
    for V, B in heads:
        G = G + V * L * (turned * B * L)
    for i, j in skews:
        mean = (G[i, j] - G[j, i]) / 2
        omega[i, j], omega[j, i] = mean.mid(), -mean.mid()
    value = [*(G - L * omega).entries(), *([arb(0)] * len(skews))]
    columns = []
    for i in range(d):
        for j in range(r):
            D = arb_mat(d, r)
            D[i, j] = arb(1)
            image = A * D - D * omega
            for V, B in heads:
                image = image + V * D * (turned * B * L)
                image = image + V * L * (D.transpose() * B * L + turned * B * D)
            gauge = turned * D
            columns.append([*image.entries(), *(gauge[a, b] - gauge[b, a] for a, b in skews)])
    for i, j in skews:
        image = arb_mat(d, r)
        for k in range(d):
            image[k, j], image[k, i] = -L[k, i], L[k, j]
        columns.append([*image.entries(), *([arb(0)] * len(skews))])
    gain = math.fsum(norm_bound(V) * norm_bound(B) for V, B in heads) * (1 + 2.0**-40)
    # ‖E₁‖ = 1: three terms of degree two, and D Ω with |D||Ω|_F <= (|D|² + |Ω|_F²/2)/√2.
    value_of = BallMatrix(arb_mat([[x] for x in value]))
    jacobian = BallMatrix(arb_mat(columns).transpose())
    return zero_radius(value_of, jacobian, [3 * gain + 1.0, gain])
