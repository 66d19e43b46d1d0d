"""Constant attention: V = I and a constant B, under which the precision is linear in time."""

from __future__ import annotations

import math

import numpy as np

from ..._check import Array
from ...parameters import Parameters
from ...schedule import Schedule
from .decision import RANGE_TOLERANCE
from .factorise import BIAS_TOLERANCE
from .task import Refusal, Task

__all__ = ["constant_attention"]

#: V = I multiplies errors of the mean by e^T; beyond this growth a plan is not exact.
LARGEST_GROWTH = 1e6

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


def constant_attention(task: Task) -> Schedule | Refusal:
    """V = I, B = (S₀⁺ - S₁⁺)/(2T) and a constant b, between equal ranges.

    On the range, in coordinates where S₀ = I and S₁ = diag(g²), B is diagonal with entries
    β = (1 - g⁻²)/(2T), S(t) = 1/(1 - 2βt) never blows up, and the mean obeys
    y' = (1 + S(t) β) y + c with transition e^t (1 - 2βt)^{-1/2}.  Off the range z' = z + c.
    """
    if not (task.enabled("V") and (task.same_covariance or task.enabled("B"))):
        return Refusal("it holds V = I and a constant B, and V and B are not both enabled.")
    L0, L1 = task.start.factor, task.target.factor
    U, triangle = np.linalg.qr(L0)
    sticks_out = float(np.linalg.norm(L1 - U @ (U.T @ L1)))
    if sticks_out > RANGE_TOLERANCE * float(np.linalg.norm(L1)):
        return Refusal(
            "under V = I the range of the covariance stays the same, but the factor of the target "
            f"sticks out of it by {sticks_out / float(np.linalg.norm(L1)):.2g} of its size."
        )
    T = task.horizon
    X, g, _ = np.linalg.svd(np.linalg.solve(triangle, U.T @ L1))
    if task.same_covariance:
        g = np.ones_like(g)
    frame = L0 @ X  # S₀ = frame frameᵀ, and y = dualsᵀ m are coordinates in its columns
    duals = U @ np.linalg.solve(triangle.T, X)
    B = (duals * ((1.0 - g**-2.0) / (2.0 * T))) @ duals.T
    b = _bias(task, frame, duals, g)
    if not task.enabled("b"):
        size = float(np.linalg.norm(b))
        if size > BIAS_TOLERANCE * float(np.linalg.norm(task.start.mean)):
            return Refusal(f"the mean needs a bias b of norm {size:.3g}, and b is not enabled.")
        b = np.zeros_like(b)
    elif math.exp(min(T, 700.0)) > LARGEST_GROWTH and (task.start.mean.any() or np.any(b)):
        return Refusal(
            f"under V = I errors of the mean grow by e^T, too much for the horizon T = {T:.3g}."
        )
    return task.constant(Parameters(B=B, V=np.eye(task.dim), b=b))


def _bias(task: Task, frame: Array, duals: Array, g: Array) -> Array:
    """Constant bias that carries the mean from start to target."""
    T, m0, m1 = task.horizon, task.start.mean, task.target.mean
    y0, y1 = duals.T @ m0, duals.T @ m1
    z0, z1 = m0 - frame @ y0, m1 - frame @ y1
    inside = (y1 * np.exp(-T) / g - y0) / np.array([_inflow(x, T) for x in g])
    outside = (z1 * np.exp(-T) - z0) / -np.expm1(-T)
    return np.asarray(frame @ inside + outside)


def _inflow(g: float, T: float) -> float:
    """∫₀ᵀ e^{-s} √(1 - 2βs) ds with 1 - 2βT = g⁻².

    The integral is an incomplete gamma function, which cancels for small β.  With the root as
    the variable the integrand is entire, so that Gauss-Legendre quadrature reaches rounding.
    """
    last = 1.0 / g
    y = 0.5 * (1.0 + _NODES)
    root = 1.0 - (1.0 - last) * y
    s = T * y * (1.0 + root) / (1.0 + last)
    return float(T / (1.0 + last) * np.sum(_WEIGHTS * root**2 * np.exp(-s)))
