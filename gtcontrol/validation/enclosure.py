"""How far tokens can get: a bound on the longest of them, whatever softmax does.

The softmax average of the tokens lies in their convex hull, so |V_h average| <= ‖V_h‖ R if no
token is longer than R.  Hence R' <= (λ_max((A + Aᵀ)/2) + Σ_h ‖V_h‖) R + |b|, and for a layer of
step h, R⁺ <= (‖I + hA‖ + h Σ_h ‖V_h‖) R + h |b|.  With A = 0, b = 0 and one head this is
|x| <= exp(‖V‖ t) R, so finitely many tokens never blow up in finite time.
"""

from __future__ import annotations

import numpy as np

from .._check import Array
from ..parameters import Parameters
from ..schedule import Schedule

__all__ = ["reach"]


def reach(
    schedule: Schedule, horizon: float, times: Array, layers: int | None
) -> tuple[Array, Array] | None:
    """Factor and addend of the bound |x| <= growth · R + drift at given times.

    Parameters
    ----------
    schedule : Schedule
    horizon : float
    times : (T,) array
        Increasing, from 0 on; with layers, times of layers.
    layers : int or None
        Number of residual layers up to the horizon.

    Returns
    -------
    growth, drift : (T,) arrays
        Or None, if the parameters vary continuously in time, process noise acts, or the bound
        is beyond double precision.
    """
    if schedule.noisy or not schedule.piecewise_constant:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        if layers is None:
            made = _along_flow(schedule, times)
        else:
            made = _through_layers(schedule, horizon / layers, times, layers)
    return made if np.all(np.isfinite(made)) else None


def _along_flow(schedule: Schedule, times: Array) -> tuple[Array, Array]:
    growth, drift = np.ones(times.size), np.zeros(times.size)
    factor, addend, now = 1.0, 0.0, 0.0
    pieces = list(schedule.pieces(inner=True))
    for piece in pieces:
        p = piece.law(piece.start)
        rate = float(np.linalg.eigvalsh(0.5 * (p.A + p.A.T))[-1])
        # Outside the subspace in which the parameters act, tokens stand still.
        rate = _values(p) + (rate if schedule.basis is None else max(rate, 0.0))
        bias = float(np.linalg.norm(p.b))
        last = piece is pieces[-1]
        for i in np.flatnonzero((times >= now) & ((times < piece.end) | last)):
            growth[i], drift[i] = _grow(factor, addend, rate, bias, times[i] - now)
        factor, addend = _grow(factor, addend, rate, bias, piece.end - now)
        now = piece.end
    return growth, drift


def _through_layers(schedule: Schedule, h: float, times: Array, layers: int) -> tuple[Array, Array]:
    factors, addends = [1.0], [0.0]
    for k in range(layers):
        p = schedule.inner(schedule.snap(k * h))
        step = float(np.linalg.norm(np.eye(p.dim) + h * p.A, 2))
        step = h * _values(p) + (step if schedule.basis is None else max(step, 1.0))
        factors.append(step * factors[-1])
        addends.append(step * addends[-1] + h * float(np.linalg.norm(p.b)))
    which = np.round(times / h).astype(np.intp)
    return np.array(factors)[which], np.array(addends)[which]


def _values(p: Parameters) -> float:
    return sum(float(np.linalg.norm(V, 2)) for V, _, _ in p.heads)


def _grow(
    factor: float, addend: float, rate: float, bias: float, duration: float
) -> tuple[float, float]:
    """Solution of R' = rate R + bias after a while, as a factor and an addend."""
    grown = float(np.exp(rate * duration))
    pushed = duration if rate == 0 else float(np.expm1(rate * duration)) / rate
    return factor * grown, addend * grown + bias * pushed
