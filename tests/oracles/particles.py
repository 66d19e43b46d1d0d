"""Softmax attention over N tokens, written plainly: the full N by N matrix of weights.

Nothing of ``gtcontrol``.  Token i scores token j by ⟨B x_i + β, x_j⟩, with the query on the
side of B: a transposed B, which passes every test with V = I and every test of ranks and
symmetries, gives other tokens here.
"""

import numpy as np

__all__ = ["flow", "layers", "moments", "velocity"]


def velocity(X, A, heads, b):
    """Velocities (N, d) of tokens X (N, d) under heads (V, B, β)."""
    moved = X @ A.T + b
    for V, B, beta in heads:
        queries = X @ B.T + beta
        scores = queries @ X.T  # [i, j]: query i, key j
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        moved = moved + weights @ X @ V.T
    return moved


def flow(X, A, heads, b, horizon, steps):
    """Tokens at the horizon, by the classical Runge–Kutta method of order four."""
    h = horizon / steps
    for _ in range(steps):
        k1 = velocity(X, A, heads, b)
        k2 = velocity(X + h / 2 * k1, A, heads, b)
        k3 = velocity(X + h / 2 * k2, A, heads, b)
        k4 = velocity(X + h * k3, A, heads, b)
        X = X + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return X


def layers(X, A, heads, b, horizon, count):
    """Tokens after `count` residual layers of step horizon/count."""
    h = horizon / count
    for _ in range(count):
        X = X + h * velocity(X, A, heads, b)
    return X


def moments(X):
    """Mean and covariance (normalised by N) of tokens."""
    deviations = X - X.mean(axis=0)
    return X.mean(axis=0), deviations.T @ deviations / len(X)
