"""Rates of change, and layers, of the law of one token among N: the closure of the moments."""

from __future__ import annotations

import numpy as np

from .._check import Array
from ..finite_attention.closure import attend, residual
from ..finite_tokens import FiniteTokens
from ..parameters import Parameters
from ..results.trajectory import factor_of

__all__ = ["covariance_rate", "factor_rate", "layer"]


def factor_rate(
    tokens: FiniteTokens, p: Parameters, mean: Array, factor: Array
) -> tuple[Array, Array]:
    """Derivatives of the mean (d,) and of the factor (d, r).

    The covariance of a token x with velocity v obeys S' = Cov(v, x) + Cov(x, v) exactly: what
    is random in attention, given the token, does not enter.  The closure takes the tokens to
    be independent draws from N(m, S) at every time.
    """
    mean_rate, matrix_rate = p.A @ mean + p.b, p.A @ factor
    for head in p.heads:
        V = head[0]
        if np.any(V):
            seen = attend(mean, factor, head, tokens)
            moved = V @ factor
            mean_rate = mean_rate + V @ mean + moved @ seen.mean
            matrix_rate = matrix_rate + moved @ seen.slope
    return mean_rate, matrix_rate


def covariance_rate(
    tokens: FiniteTokens, p: Parameters, mean: Array, covariance: Array
) -> tuple[Array, Array]:
    """Derivatives of the mean (d,) and of the covariance (d, d), process noise included."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    # The symmetric root is a smooth function of the covariance; eigenvectors are not.
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    mean_rate, root_rate = factor_rate(tokens, p, mean, root)
    rate = root_rate @ root
    rate = rate + rate.T
    return mean_rate, rate if p.noise is None else rate + p.noise


def layer(
    tokens: FiniteTokens, p: Parameters, mean: Array, factor: Array, h: float
) -> tuple[Array, Array]:
    """Mean and square factor after a residual layer x⁺ = x + h v(x).

    Here what is random in attention enters, by h² times its covariance.
    """
    moved_mean, step = mean + h * (p.A @ mean + p.b), factor + h * (p.A @ factor)
    added = np.zeros((mean.size, mean.size)) if p.noise is None else h * p.noise
    for head in p.heads:
        V = head[0]
        if np.any(V):
            seen = attend(mean, factor, head, tokens, noise=True)
            value = h * (V @ factor)
            moved_mean = moved_mean + h * (V @ mean) + value @ seen.mean
            step = step + value @ seen.slope
            added = added + value @ residual(seen) @ value.T
    return moved_mean, factor_of(step @ step.T + added)
