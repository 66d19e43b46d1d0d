"""Looking for a plan: integrate towards an estimated blow-up until its bracket is narrow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..._check import Array
from ...arithmetic import balls, taylor
from ...parameters import Parameters
from .coordinates import find_coordinates
from .covariance import CovarianceFlow
from .directions import find_eigenvectors, find_ray
from .estimate import Estimate
from .plan import (
    MOST_BITS,
    MOST_STEPS,
    MOST_WORK,
    Bracket,
    Plan,
    order_for,
    start_tube,
    to_floats,
    work,
)

__all__ = ["TARGET", "draft", "pursue"]

# FLINT has no stubs.
Ball = Any

#: Relative width at which a bracket is narrow enough: a few floats.
TARGET = 1e-15

#: Relative width below which no more bits are spent.
NARROW = 1e-12

#: Bits that are tried first, and the relative error beyond which twice as many are taken.
FIRST_BITS = 128
WORST_ERROR = 2.0**-50

#: Bits that truncation loses against rounding in each step.
SPARE_BITS = 8

#: Steps between two tries of the bounds, and tries without a narrower bracket before giving up
#: (first with none, then with one; T - t falls by a factor 10 in about three tries).
STRIDE = 4
PATIENCE = (150, 12)


def draft(parameters: Parameters, factor: Array, seen: Estimate) -> Plan:
    """Plan without steps: coordinates, and the bounds for the direction of the blow-up.

    Parameters
    ----------
    parameters : Parameters
    factor : (d, r) array
    seen : Estimate
        Integration in floats that saw a blow-up.
    """
    guess = seen.direction
    T = find_coordinates(parameters, seen)
    ray = find_ray(parameters, T, guess)
    eigenvectors = find_eigenvectors(parameters, guess)
    return Plan(FIRST_BITS, order_for(FIRST_BITS), T, np.zeros(0), ray, eigenvectors)


def pursue(
    parameters: Parameters,
    factor: Array,
    plan: Plan,
    estimate: float,
    progress: Callable[[float], None] = lambda part: None,
) -> tuple[Plan, Bracket] | None:
    """Extend a plan until its bracket is narrow; None if no step is proved.

    The bracket of the plan may lack an upper end: see ``Bracket.proved``.

    Parameters
    ----------
    parameters : Parameters
    factor : (d, r) array
    plan : Plan
        What :func:`draft` returned.
    estimate : float
        Blow-up time found by integration in floats; only the first half is not tested.
    progress : callable
        Called with the part done, in [0, 1].
    """
    bits, best, left = FIRST_BITS, None, MOST_WORK
    while bits <= MOST_BITS:
        trial = replace(plan, bits=bits, order=order_for(bits))
        most = min(MOST_STEPS, int(left / work(parameters.dim, trial.order, 1)))
        found, steps, exact_enough = _attempt(parameters, factor, trial, most, estimate, progress)
        left -= work(parameters.dim, trial.order, steps)
        if found is not None and _better(found[1], best):
            best = found
        if best is not None and best[1].width <= NARROW:
            break
        if exact_enough or (plan.ray is None and not plan.eigenvectors):
            break  # without a bound at the end, more bits prove nothing but a longer existence
        bits *= 2
    return best


def _attempt(
    parameters: Parameters,
    factor: Array,
    plan: Plan,
    most: int,
    estimate: float,
    progress: Callable[[float], None],
) -> tuple[tuple[Plan, Bracket] | None, int, bool]:
    """Best plan at one precision, the steps it took, and whether more bits would not help."""
    best: tuple[Plan, Bracket] | None = None
    with balls.precision(plan.bits):
        flow = CovarianceFlow(parameters, plan.coordinates)
        restart = plan.restart(parameters, flow)
        tube, time, steps = start_tube(flow, factor), balls.ball(0.0), list[float]()
        idle = 0
        while len(steps) < most and idle < PATIENCE[best is not None and best[1].proved]:
            expansion = taylor.expand(flow, tube, plan.order)
            step = taylor.step_size(expansion, plan.bits - SPARE_BITS)
            moved = taylor.advance(flow, expansion, step) if 0 < step < math.inf else None
            if moved is None or not moved.error < WORST_ERROR * taylor.norm(moved.centre):
                return best, len(steps), False
            tube, time = moved, time + balls.ball(step)
            steps.append(step)
            if len(steps) % STRIDE or balls.below(time) < 0.5 * estimate:
                continue
            progress(_part(balls.below(time), estimate))
            bracket = to_floats(time, *restart.bracket(tube.matrix))
            narrower = best is None or bracket.width < 0.9 * best[1].width
            idle = 0 if narrower and bracket.proved else idle + 1
            if narrower or _better(bracket, best):
                best = replace(plan, steps=np.array(steps)), bracket
            if bracket.width <= TARGET:
                break
    return best, len(steps), True


def _better(bracket: Bracket, best: tuple[Plan, Bracket] | None) -> bool:
    """Whether a bracket is narrower, or has at least the larger lower end."""
    if best is None:
        return True
    old = best[1]
    return (bracket.width, -bracket.lower) < (old.width, -old.lower)


def _part(time: float, estimate: float) -> float:
    """Part of the way to a bracket of full width, on the scale of log(T - t)."""
    gap = max((estimate - time) / estimate, 1e-16) if estimate > 0 else 1.0
    return min(1.0, -math.log10(min(gap, 1.0)) / 16.0)
