"""How far finitely many tokens can get: a bound on their norms that holds for every cloud.

A softmax average lies in the convex hull of the tokens, so its norm is at most R = max_i |x_i|.
For the farthest token then R' <= (μ(A) + Σ_h ‖V_h‖ + ℓ) R + |b| + c, where μ(A) is the largest
eigenvalue of (A + Aᵀ)/2 and |outer · act(inner x + bias)| <= ℓ |x| + c; Gronwall's inequality
integrates it.  A residual layer has R⁺ <= (‖I + hA‖ + h Σ_h ‖V_h‖ + hℓ) R + h (|b| + c).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from .._check import Array
from ..feedforward import FeedForward
from ..parameters import Parameters
from ..schedule import Schedule

__all__ = ["largest_norm", "layer_growth", "norm_bounds", "value_norms"]

#: Activations with |act(u)| <= |u|, and those with |act(u)| <= 1.
BELOW_IDENTITY = {"relu", "leaky_relu", "gelu", "silu", "tanh", "identity"}
BELOW_ONE = {"tanh", "sigmoid"}


def norm_bounds(
    tokens: Array,
    schedule: Schedule,
    horizon: float,
    times: Sequence[float],
    *,
    layers: int | None = None,
    feedforward: FeedForward | None = None,
) -> Array | None:
    """Bound on the largest norm of a token at each time, for the flow or for residual layers.

    It holds for every number of tokens, every mask and every softmax temperature.

    Parameters
    ----------
    tokens : (N, d) array
        At time 0.
    schedule : Schedule
    horizon : float
    times : sequence of k floats
        Increasing, in [0, horizon]; with layers, times of layers.
    layers : int, optional
        Number of residual layers up to the horizon.
    feedforward : FeedForward, optional

    Returns
    -------
    (k,) array or None
        None where nothing is known: parameters that vary continuously, process noise, or an
        activation of one's own.
    """
    growth = (0.0, 0.0) if feedforward is None else layer_growth(feedforward)
    if growth is None or schedule.noisy or not schedule.piecewise_constant:
        return None
    U = schedule.basis if feedforward is None else None
    law = schedule if U is None else schedule.inner
    inner = tokens if U is None else tokens @ U
    outside = 0.0 if U is None else largest_norm(tokens - inner @ U.T)
    start = largest_norm(inner)
    with np.errstate(over="ignore"):
        if layers is None:
            radii = _flow(start, law, schedule.times, times, growth)
        else:
            steps = [round(t * layers / horizon) for t in times]
            h = horizon / layers
            radii = _layers(start, lambda k: law(schedule.snap(k * h)), h, steps, growth)
        # What lies outside the subspace of the schedule stays.
        return np.minimum(np.hypot(radii, outside), np.finfo(np.float64).max)


def largest_norm(tokens: Array) -> float:
    """Largest Euclidean norm of a token."""
    size = float(np.max(np.abs(tokens), initial=0.0))
    if size == 0 or not np.isfinite(size):
        return size
    scaled = tokens / size  # squares of large entries would overflow
    return size * math.sqrt(float(np.max(np.einsum("ij,ij->i", scaled, scaled))))


def layer_growth(layer: FeedForward) -> tuple[float, float] | None:
    """Numbers ℓ, c with |outer · act(inner x + bias)| <= ℓ |x| + c for all x."""
    outer = float(np.linalg.norm(layer.outer, 2))
    if layer.activation in BELOW_ONE:
        return 0.0, outer * math.sqrt(layer.hidden)
    if layer.activation in BELOW_IDENTITY:
        inner = float(np.linalg.norm(layer.inner, 2))
        return outer * inner, outer * float(np.linalg.norm(layer.bias))
    return None


def value_norms(p: Parameters) -> float:
    """Sum of the spectral norms of the value matrices."""
    return float(sum(np.linalg.norm(V, 2) for V, _, _ in p.heads))


def _flow(
    radius: float,
    law: Callable[[float], Parameters],
    breakpoints: Array,
    times: Sequence[float],
    growth: tuple[float, float],
) -> Array:
    """Follow R' = rate R + source from edge to edge of the pieces."""
    edges = sorted({0.0, *times, *(float(t) for t in breakpoints if t < times[-1])})
    reached = {0.0: radius}
    seen: Parameters | None = None
    rate = source = 0.0
    for start, end in pairwise(edges):
        p = law(start)
        if p is not seen:
            seen = p
            rate = float(np.linalg.eigvalsh(0.5 * (p.A + p.A.T))[-1]) + value_norms(p) + growth[0]
            source = float(np.linalg.norm(p.b)) + growth[1]
        time = end - start
        gained = np.expm1(rate * time) / rate if rate else time
        radius = float(np.exp(rate * time) * radius + source * gained)
        reached[end] = radius
    return np.array([reached[float(t)] for t in times])


def _layers(
    radius: float,
    law: Callable[[int], Parameters],
    h: float,
    steps: Sequence[int],
    growth: tuple[float, float],
) -> Array:
    """Follow R⁺ = factor R + h source from layer to layer; `steps` are the layers wanted."""
    reached = {0: radius}
    seen: Parameters | None = None
    factor = source = 0.0
    for k in range(max(steps)):
        p = law(k)
        if p is not seen:
            seen = p
            kept = np.eye(p.dim) + h * p.A
            factor = float(np.linalg.norm(kept, 2)) + h * (value_norms(p) + growth[0])
            source = float(np.linalg.norm(p.b)) + growth[1]
        radius = factor * radius + h * source
        reached[k + 1] = radius
    return np.array([reached[k] for k in steps])
