"""Closed forms of the covariance for V = v I, from the matrix exponential alone.

With K = v (B + Bᵀ) the covariance obeys S' = A S + S Aᵀ + S K S + Q, a Riccati equation:
[X; Y]' = [[-Aᵀ, -K], [Q, A]] [X; Y] and S = Y X⁻¹ (Radon).  Nothing of ``gtcontrol``.
"""

import numpy as np
from scipy.linalg import expm

__all__ = ["covariance", "first_crossing_free", "gramian"]


def covariance(A, K, S0, t, Q=None):
    """Covariance at time t; valid up to the first time at which det X vanishes."""
    d = A.shape[0]
    Q = np.zeros((d, d)) if Q is None else Q
    flow = expm(t * np.block([[-A.T, -K], [Q, A]]))
    X = flow[:d, :d] + flow[:d, d:] @ S0
    Y = flow[d:, :d] + flow[d:, d:] @ S0
    return np.linalg.solve(X.T, Y.T).T


def gramian(A, K, L0, t):
    """C(t) = L₀ᵀ ∫₀ᵗ e^{Aᵀs} K e^{As} ds L₀: the covariance blows up when λ_max C reaches 1."""
    d = A.shape[0]
    flow = expm(t * np.block([[-A.T, K], [np.zeros((d, d)), A]]))
    return L0.T @ flow[d:, d:].T @ flow[:d, d:] @ L0


def first_crossing_free(A, K, L0, end, level=0.9, samples=200):
    """Largest sampled time up to `end` before which λ_max C stays below `level`."""
    last = 0.0
    for t in np.linspace(0, end, samples + 1)[1:]:
        if np.linalg.eigvalsh(gramian(A, K, L0, t))[-1] >= level:
            break
        last = float(t)
    return last
