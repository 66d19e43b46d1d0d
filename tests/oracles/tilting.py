"""Velocity, mean and covariance rates of mean-field attention by Gauss–Hermite quadrature.

Nothing of ``gtcontrol``: the softmax average over N(m, L Lᵀ) is taken as a ratio of two
integrals, and the rates as moments of the velocity.
"""

import itertools

import numpy as np

__all__ = ["nodes", "rates", "velocity"]


def nodes(mean, factor, points=64):
    """Nodes (n, d) and weights (n,) of Gauss–Hermite quadrature for N(mean, factor factorᵀ)."""
    z, w = np.polynomial.hermite_e.hermegauss(points)
    rank = factor.shape[1]
    grid = np.array(list(itertools.product(z, repeat=rank))).reshape(-1, rank)
    weights = np.array([np.prod(c) for c in itertools.product(w, repeat=rank)])
    return mean + grid @ factor.T, weights / weights.sum()


def velocity(x, keys, weights, A, heads, b):
    """Velocity of one token x under heads (V, B, β): A x + b + Σ V E[y e^{⟨Bx+β,y⟩}]/E[e^…]."""
    moved = A @ x + b
    for V, B, beta in heads:
        tilt = weights * np.exp(keys @ (B @ x + beta))
        moved = moved + V @ (tilt @ keys) / tilt.sum()
    return moved


def rates(mean, factor, A, heads, b):
    """(m', S') of tokens that move by :func:`velocity`: E v, and E[v (x-m)ᵀ] plus transpose."""
    keys, weights = nodes(mean, factor)
    tokens, share = nodes(mean, factor, points=4)  # v is a polynomial of low degree, if affine
    v = np.array([velocity(x, keys, weights, A, heads, b) for x in tokens])
    mean_rate = share @ v
    half = (v * share[:, None]).T @ (tokens - mean)
    return mean_rate, half + half.T
