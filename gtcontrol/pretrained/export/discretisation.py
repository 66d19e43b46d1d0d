"""Parameters of residual layers that follow a schedule, as a schedule of one piece for each.

Layer k maps N(m, S) to N(m + h v, (I + h M) S (I + h M)ᵀ), with M = A + Σ_h V_h S B_h and the
velocity v of the mean: exactly, not only to first order in h.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.integrate import solve_ivp

from ..._check import Array
from ...errors import OutOfScale
from ...field import generator, rates
from ...gaussian import Gaussian
from ...parameters import Parameters, check_finite
from ...schedule import Law, Schedule
from ...simulation.run import simulate
from ...status import Status

__all__ = ["corrected", "require_finite", "sampled"]

#: Relative tolerance of the flow whose steps the corrected layers take.
RTOL = 1e-12


def sampled(schedule: Schedule, horizon: float, layers: int) -> Schedule:
    """Layer k has the parameters at time k h: the moments are off by O(h).

    These are the layers of ``gt.simulate(..., layers=n)`` and ``gt.simulate_tokens(...,
    layers=n)``.
    """
    times = _times(horizon, layers)
    pieces = [_at(schedule, t) for t in times[:-1]]
    return Schedule(times, pieces, basis=schedule.basis)


def corrected(schedule: Schedule, horizon: float, layers: int, start: Gaussian) -> Schedule:
    """Layers whose Gaussian law is that of the flow after each of them, for every n.

    In the flow from `start` a token at x at time t is at m(t+h) + Φ (x - m(t)) at time t + h,
    where Φ' = M(t) Φ.  V, B and β are those at time t, and A and b are chosen such that the layer
    is this affine map on the law of its tokens:

        A = (Φ - I)/h - Σ_h V_h S B_h,    b = (m⁺ - m)/h - A m - Σ_h V_h (m + S (B_h m + β_h)),

    which differ from those of the schedule by O(h).

    Raises
    ------
    OutOfScale
        If the flow does not reach the horizon.
    """
    whole = simulate(start, schedule, horizon)
    if whole.status is not Status.SUCCESS:
        raise OutOfScale(
            f"the law of the start does not reach the horizon {horizon:g}, but ends at t = "
            f"{min(whole.blow_up_time, float(whole.times[-1])):.6g} ({whole.status.name}): no "
            "layers can have its moments; shorten the horizon."
        )
    U = schedule.basis
    mean, factor = start.mean, start.factor
    if U is not None:
        mean, factor = U.T @ mean, U.T @ factor
    times = _times(horizon, layers)
    pieces = []
    for t, end in pairwise(times.tolist()):
        p = _at(schedule, t)
        new_mean, new_factor, transition = _advance(schedule, t, end, mean, factor)
        pieces.append(_layer(p, mean, factor, new_mean, transition, end - t))
        mean, factor = new_mean, new_factor
    return Schedule(times, pieces, basis=U)


def require_finite(start: Gaussian, layers: Schedule, schedule: Schedule) -> Gaussian:
    """Return the law after all layers, which must stay within double precision.

    Raises
    ------
    OutOfScale
        If it does not: the steps are too long for the schedule, or its law itself blows up.
    """
    count = layers.times.size - 1
    path = simulate(start, layers, layers.horizon, layers=count)
    if path.status is Status.OVERFLOW:
        flow = simulate(start, schedule, layers.horizon)
        why = (
            f"the law of the plan itself blows up at t = {flow.blow_up_time:.6g}, and no number of "
            "layers follows it beyond; shorten the horizon"
            if flow.status is Status.BLOW_UP
            else f"steps of {layers.horizon / count:.3g} are too long for it; take more layers"
        )
        raise OutOfScale(
            f"with {count} layer{'' if count == 1 else 's'} the law of the tokens leaves double "
            f"precision in layer {path.steps + 1}: {why}."
        )
    return path.final


def _times(horizon: float, layers: int) -> Array:
    times = np.arange(layers + 1, dtype=np.float64) * (horizon / layers)
    times[-1] = horizon
    return times


def _at(schedule: Schedule, t: float) -> Parameters:
    time = schedule.snap(float(t))
    p = schedule.inner(time)
    check_finite(p, time)
    return p


def _layer(
    p: Parameters, mean: Array, factor: Array, new_mean: Array, transition: Array, h: float
) -> Parameters:
    """Parameters whose layer of step h is the given affine map on N(mean, factor factorᵀ)."""
    S = factor @ factor.T
    unit = np.eye(mean.size)
    A = (transition - unit) / h - generator(S, np.zeros_like(S), p.heads)
    moved, _ = rates(mean, factor, A, p.heads, np.zeros_like(mean))
    b = (new_mean - mean) / h - moved
    return Parameters.trusted(A, p.B, p.V, b, None, p.beta)


def _advance(
    schedule: Schedule, start: float, end: float, mean: Array, factor: Array
) -> tuple[Array, Array, Array]:
    """Mean and factor at time `end`, and the transition matrix of tokens from `start` to it."""
    d = mean.size
    state = np.concatenate([mean, factor.ravel(), np.eye(d).ravel()])
    slack = 1e-12 * schedule.horizon  # a breakpoint that is `start` or `end` up to rounding
    for piece in schedule.pieces(inner=True):
        low, high = max(piece.start, start), min(piece.end, end)
        if high - low <= slack:
            continue
        state = _integrate(piece.law, low, high, state, factor.shape)
    cut = d + factor.size
    return state[:d], state[d:cut].reshape(factor.shape), state[cut:].reshape(d, d)


def _integrate(law: Law, low: float, high: float, state: Array, shape: tuple[int, ...]) -> Array:
    d, size = shape[0], shape[0] * shape[1]

    def right_side(t: float, y: Array) -> Array:
        p = law(t)
        factor = y[d : d + size].reshape(shape)
        moved, stretched = rates(y[:d], factor, p.A, p.heads, p.b)
        turned = generator(factor @ factor.T, p.A, p.heads) @ y[d + size :].reshape(d, d)
        return np.concatenate([moved, stretched.ravel(), turned.ravel()])

    scale = float(np.max(np.abs(state)))
    done = solve_ivp(
        right_side, (low, high), state, method="DOP853", rtol=RTOL, atol=1e-2 * RTOL * scale
    )
    if not done.success:
        raise OutOfScale(
            f"the flow could not be followed from t = {low:.6g} to {high:.6g}: {done.message}"
        )
    return np.asarray(done.y[:, -1])
