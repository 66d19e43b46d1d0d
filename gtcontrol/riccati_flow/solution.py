"""S(t) by the closed form, refused where it is not proved that S still exists."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, expm, solve_triangular

from .. import _check
from .._check import Array
from ..errors import InvalidNumber, OutOfScale
from .crossing import blow_up
from .flow import transition
from .status import Crossing, CrossingStatus

__all__ = ["covariance_at", "factor_at", "transport"]


def factor_at(A: ArrayLike, K: ArrayLike, factor: ArrayLike, time: float) -> Array:
    """Return a factor of S(t) = Φ L (I - C)⁻¹ Lᵀ Φᵀ, of the rank of the start.

    Parameters
    ----------
    A, K : (d, d) arrays
        K symmetric.
    factor : (d, r) array
        Factor L of the start.
    time : float
        Not negative, and before the blow-up.

    Returns
    -------
    (d, r) array

    Raises
    ------
    InvalidNumber
        If it is not proved that there is no blow-up up to that time.  (The formula itself may
        return a positive definite matrix behind the blow-up, which is no solution.)
    OutOfScale
        If numbers overflow.
    """
    time = _check.number("time", time, low=0.0)
    crossing = blow_up(A, K, factor)
    _refuse_blow_up(crossing, time)
    A, K = _check.square("A", A), _check.symmetric("K", K)
    L = _check.array("factor", factor, 2)
    Phi, G = transition(A, K, time)
    C = L.T @ G @ L
    try:
        root = cholesky(np.eye(L.shape[1]) - 0.5 * (C + C.T), lower=True)
    except np.linalg.LinAlgError:
        raise OutOfScale(
            f"at t = {time:.17g} the covariance is too near to its blow-up at "
            f"{crossing.estimate:.17g} for double precision."
        ) from None
    return np.asarray(solve_triangular(root, (Phi @ L).T, lower=True).T)


def covariance_at(
    A: ArrayLike, K: ArrayLike, factor: ArrayLike, noise: ArrayLike, time: float
) -> Array:
    """Return S(t) of S' = A S + S Aᵀ + S K S + Q, for any K; see :func:`transport`.

    Parameters
    ----------
    A, K : (d, d) arrays
        K symmetric.
    factor : (d, r) array
        Factor L of the start.
    noise : (d, d) array
        Intensity Q, symmetric positive semidefinite.
    time : float
        Not negative, and before the blow-up.

    Returns
    -------
    (d, d) array

    Raises
    ------
    InvalidNumber
        If it is not proved that there is no blow-up up to that time.
    OutOfScale
        If numbers overflow.
    """
    time = _check.number("time", time, low=0.0)
    _refuse_blow_up(blow_up(A, K, factor, noise), time)
    A, K = _check.square("A", A), _check.symmetric("K", K)
    return transport(
        A, K, _check.array("factor", factor, 2), _check.symmetric("noise", noise), time
    )


def transport(A: Array, K: Array, factor: Array, noise: Array, time: float) -> Array:
    """Return S(t) of S' = A S + S Aᵀ + S K S + Q by doubling, where S is known to exist.

    A step takes S to Γ + Φ S (I - G S)⁻¹ Φᵀ; two steps are one of the same form with

        Φ₂ = Φ (I - Γ G)⁻¹ Φ,   Γ₂ = Γ + Φ Γ (I - G Γ)⁻¹ Φᵀ,   G₂ = G + Φᵀ G (I - Γ G)⁻¹ Φ,

    which keeps Γ and G symmetric and needs no growing exponential.  On a short step the matrices
    follow from the exponential H of h [[-Aᵀ, -K], [Q, A]]: Γ = H₂₁ H₁₁⁻¹, Φ = H₁₁⁻ᵀ and
    G = -H₁₁⁻¹ H₁₂.

    Parameters
    ----------
    A, K : (d, d) arrays
        K symmetric; if K <= 0, S exists for ever.
    factor : (d, r) array
        Factor L of the start.
    noise : (d, d) array
        Intensity Q, symmetric positive semidefinite.
    time : float
        Not negative.

    Returns
    -------
    (d, d) array

    Raises
    ------
    OutOfScale
        If numbers overflow.
    """
    Q, L = noise, factor
    size = max(float(np.linalg.norm(X, 2)) for X in (A, K, Q))
    halvings = max(0, math.frexp(8 * size * time)[1])
    d = len(A)
    try:
        S = _doubled(A, K, L, Q, time, halvings)
    except np.linalg.LinAlgError:  # overflow, or the inverse of what has underflown
        S = np.full((d, d), np.nan)
    if not np.all(np.isfinite(S)):
        raise OutOfScale(
            f"numbers leave the range of double precision before t = {time:.6g}; shorten the time."
        )
    return np.asarray(0.5 * (S + S.T))


def _doubled(A: Array, K: Array, L: Array, Q: Array, time: float, halvings: int) -> Array:
    d, one = len(A), np.eye(len(A))
    with np.errstate(all="ignore"):
        H = expm(math.ldexp(time, -halvings) * np.block([[-A.T, -K], [Q, A]]))
        inverse = np.linalg.inv(H[:d, :d])
        Phi, Gamma, G = inverse.T, H[d:, :d] @ inverse, -inverse @ H[:d, d:]
        for _ in range(halvings):
            middle = np.linalg.inv(one - Gamma @ G)
            # middle Γ = Γ (I - G Γ)⁻¹.
            grown = Gamma + Phi @ middle @ Gamma @ Phi.T
            seen = G + Phi.T @ G @ middle @ Phi
            Phi = Phi @ middle @ Phi
            Gamma, G = 0.5 * (grown + grown.T), 0.5 * (seen + seen.T)
        moved = Phi @ L
        inner = np.linalg.inv(np.eye(L.shape[1]) - L.T @ G @ L)
        S = Gamma + moved @ inner @ moved.T
    return np.asarray(S)


def _refuse_blow_up(crossing: Crossing, time: float) -> None:
    """Refuse a time up to which no existence is proved.

    Raises
    ------
    InvalidNumber
        If it is refused.
    """
    never = crossing.status is CrossingStatus.NEVER and crossing.proved
    if not never and not (crossing.proved and time <= crossing.lower):
        raise InvalidNumber(
            f"`time` is {time:.17g}, but the covariance is only proved to exist up to "
            f"{crossing.lower if crossing.proved else 0.0:.17g}; ask for an earlier time."
        )
