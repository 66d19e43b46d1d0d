"""S(t) by the closed form, refused where it is not proved that S still exists."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, solve_triangular

from .. import _check
from .._check import Array
from ..errors import InvalidNumber, OutOfScale
from .crossing import blow_up
from .flow import transition
from .status import CrossingStatus

__all__ = ["factor_at"]


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
    never = crossing.status is CrossingStatus.NEVER and crossing.proved
    if not never and not (crossing.proved and time <= crossing.lower):
        raise InvalidNumber(
            f"`time` is {time:.17g}, but the covariance is only proved to exist up to "
            f"{crossing.lower if crossing.proved else 0.0:.17g}; ask for an earlier time."
        )
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
