"""What a quadratic certificate says in time: the bound on y(t) = tr(W S(t))."""

from __future__ import annotations

import math

import numpy as np

from ..._check import Array
from ...gaussian import Gaussian
from ...results.claims import Claim
from ..rules.inequality import comparison_of
from .comparison import solution

__all__ = ["envelope", "levels"]


def envelope(claim: Claim, start: Gaussian | None, times: Array) -> Array:
    """Bound on y(t) = tr(W S(t)) by a claim with a comparison equation.

    It bounds y from below for the rule ``blow-up-upper`` and from above for the others; with
    y' <= e - y²/θ, for instance, it is γ coth(t γ/θ + const), γ = √(e θ).

    Parameters
    ----------
    claim : Claim
        Claim of one of the rules ``ultimate-bound``, ``decay``, ``blow-up-upper``,
        ``blow-up-lower``.
    start : Gaussian or None
        Law at time 0; None for the bound that holds from every start, which is infinite at t = 0.
    times : (k,) array

    Returns
    -------
    (k,) array
        In floats, for pictures: inf where the solution has blown up.
    """
    level = math.inf if start is None else float(levels(claim, start.covariance[None])[0])
    return solution(comparison_of(claim), level, times)


def levels(claim: Claim, covariances: Array) -> Array:
    """Values y = tr(W S) of covariances S.

    Parameters
    ----------
    claim : Claim
    covariances : (k, d, d) array

    Returns
    -------
    (k,) array
    """
    return np.asarray(np.einsum("ij,kij->k", claim.arrays["W"], covariances))
