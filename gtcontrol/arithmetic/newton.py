"""Existence of a zero near an approximate one, proved by Newton and Kantorovich's theorem.

Let f(x + δ) = f + J δ + (terms of degree 2 and 3), of norms at most κ₂|δ|² and κ₃|δ|³ (as symmetric
multilinear maps).  For any matrix C, the map δ ↦ δ - C f(x + δ) takes the ball |δ| <= ρ into
itself if |C f| + ‖I - C J‖ ρ + ‖C‖ (κ₂ρ² + κ₃ρ³) <= ρ, and it is a contraction there if
‖I - C J‖ + ‖C‖ (2κ₂ρ + 3κ₃ρ²) < 1.  C is then invertible, and f has exactly one zero in the ball.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from flint import arb, arb_mat

from . import balls
from .norms import frobenius_bound, norm_bound

__all__ = ["factor_radius", "zero_radius"]


def zero_radius(
    value: balls.Balls, jacobian: balls.Balls, quadratic: float, cubic: float = 0.0
) -> float:
    """Radius around an approximate zero in which there is exactly one zero.

    Parameters
    ----------
    value : (m, 1) ball matrix
        f(x).
    jacobian : (m, m) ball matrix
        J = f'(x).
    quadratic, cubic : float
        κ₂ and κ₃ of the module.

    Returns
    -------
    float
        A proved radius, nearly the smallest; inf if none was found.
    """
    centre = balls.middle(jacobian)
    if not np.all(np.isfinite(centre)):
        return math.inf
    try:
        C = balls.balls(np.asarray(np.linalg.inv(centre), dtype=np.float64))
    except np.linalg.LinAlgError:
        return math.inf
    if not C.nrows():
        return 0.0
    miss = frobenius_bound(C * value)
    defect = norm_bound(balls.identity(C.nrows()) - C * jacobian)
    size = norm_bound(C)
    if not (math.isfinite(miss) and math.isfinite(defect) and math.isfinite(size)):
        return math.inf
    radius = 1.01 * miss + 1e-300
    for _ in range(60):
        if _contracts(radius, miss, defect, size, (quadratic, cubic)):
            return radius
        radius *= 1.5
    return math.inf


def _contracts(
    radius: float, miss: float, defect: float, size: float, terms: tuple[float, float]
) -> bool:
    rho, c = arb(radius), arb(size)
    second, third = (arb(x) for x in terms)
    inside = miss + arb(defect) * rho + c * (second * rho**2 + third * rho**3)
    slope = defect + c * (2 * second * rho + 3 * third * rho**2)
    return bool(inside <= rho) and bool(slope < 1)


def factor_radius(
    A: balls.Balls, heads: Sequence[tuple[balls.Balls, balls.Balls]], rank: int
) -> float:
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
    return zero_radius(
        arb_mat([[x] for x in value]), arb_mat(columns).transpose(), 3 * gain + 1.0, gain
    )
