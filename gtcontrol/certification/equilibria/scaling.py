"""Units in which equilibria are of order one, so that starts and tolerances need no scale."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize

from ..._check import Array
from .quadratic import Quadratic

__all__ = ["scaled"]

#: Weight that decides where the data do not (and keeps the minimum finite).
WEIGHT = 1e-3


def scaled(field: Quadratic) -> tuple[Quadratic, Array]:
    """Change the units of tokens and of time.

    Tokens x_i are measured in units t_i that balance the entries of A, V (a similarity) and B (a
    congruence): the sum of the logarithms of their squared norms, which is convex in log t, is
    minimal.  A common factor then makes A of the size of Σ V_h S B_h at S = I, and time makes
    both of size one.

    Returns
    -------
    field : Quadratic
        In the new units: S = diag(t) S̃ diag(t).
    units : (d,) array
        t, powers of two, so that the change of units rounds nothing.
    """
    x = np.log2(np.exp(_balance(field)))
    balanced = field.changed(np.diag(np.exp2(np.round(x))))
    A, gain = float(np.linalg.norm(balanced.A)), balanced.gain
    noise = float(np.linalg.norm(balanced.Q))
    if A == 0 and noise > 0 and gain > 0:
        common = (noise / gain) ** 0.25
    elif A > 0 and gain > 0:
        common = math.sqrt(A / gain)
    else:
        common = 1.0
    units = np.exp2(np.round(x) + np.round(np.log2(common)))
    made = field.changed(np.diag(units))
    # Only the product V_h (...) B_h counts for the covariance; time is measured in units of 1/|A|.
    speed = max(float(np.linalg.norm(made.A)), made.gain, float(np.linalg.norm(made.Q)))
    speed = speed if speed > 0 else 1.0
    sizes = np.linalg.norm(made.V, axis=(1, 2))
    sizes = np.where(sizes > 0, sizes, 1.0)[:, None, None]
    V, B = made.V / sizes, made.B * sizes
    return Quadratic(made.A / speed, V, B / speed, made.Q / speed), units


def _balance(field: Quadratic) -> Array:
    """Logarithms of the units of the tokens, up to a common factor."""
    d = field.dim
    similar = [m**2 for m in (_unit(field.A), _unit(np.abs(field.V).sum(axis=0))) if np.any(m)]
    B = _unit(np.abs(field.B).sum(axis=0))
    congruent = (B + B.T) ** 2
    # What is subtracted is the mean logarithm of the terms, which bounds the cost from below.
    many = (congruent > 0).sum(axis=1)
    share = 4.0 * many / max(int(many.sum()), 1)

    def cost(x: Array) -> tuple[float, Array]:
        value, slope = WEIGHT * float(x @ x), 2 * WEIGHT * x
        for m in similar:
            terms = m * np.exp(2.0 * (x[None, :] - x[:, None]))
            total = terms.sum()
            value += float(np.log(total))
            slope = slope + 2.0 * (terms.sum(axis=0) - terms.sum(axis=1)) / total
        if many.any():
            terms = congruent * np.exp(2.0 * (x[None, :] + x[:, None]))
            total = terms.sum()
            value += float(np.log(total)) - float(share @ x)
            slope = slope + 2.0 * (terms.sum(axis=0) + terms.sum(axis=1)) / total
            slope = slope - share
        return value, slope

    if d == 1:
        return np.zeros(1)
    bound = 40.0
    found = minimize(cost, np.zeros(d), jac=True, method="L-BFGS-B", bounds=[(-bound, bound)] * d)
    return np.asarray(found.x - np.mean(found.x))


def _unit(matrix: Array) -> Array:
    """Absolute values relative to the largest."""
    size = np.max(np.abs(matrix), initial=0.0)
    return np.abs(matrix) / size if size > 0 else np.abs(matrix)
