"""Residual layers: one layer of step h maps N(m, L Lᵀ) to a Gaussian, exactly."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from .._check import Array
from ..field import generator, rates
from ..moments.linearisation import absorbed
from ..parameters import Parameters, check_finite
from ..problem import memory
from ..problem.definitions import SimulationProblem
from ..progress import Progress
from ..results.trajectory import factor_of
from ..schedule import Schedule
from ..status import Status
from . import finite
from .limits import LARGEST, vanishes
from .outcome import Outcome

__all__ = ["run"]

#: States that are kept: of a deeper network every n-th, and always the last.
KEPT = 4096

#: States that must fit into memory before a run begins, if there are as many layers.
LEAST = 100

#: Seconds after which progress is told again, where states are not kept layer by layer.
PATIENCE = 0.1


class _State(NamedTuple):
    """The law after a number of layers."""

    layer: int
    mean: Array
    factor: Array


def run(problem: SimulationProblem, progress: Progress) -> Outcome:
    """Apply the layers one by one; layer k uses the parameters at time k h."""
    count = problem.layers or 1
    h = problem.horizon / count
    start, noisy = problem.start, problem.noisy
    every = _spacing(count, start.dim * (1 + (start.dim if noisy else start.rank)))
    layer = _noisy_layer if noisy else _layer
    if problem.tokens is not None:
        layer = partial(finite.layer, problem.tokens)
    law = _law(problem.schedule, h)
    now = _State(0, start.mean, factor_of(start.covariance) if noisy else start.factor)
    kept, status, told = [now], Status.SUCCESS, time.monotonic()
    try:
        while now.layer < count:
            p = law(now.layer)
            if problem.feedforward is not None:
                fed = problem.feedforward, now.mean, now.factor, problem.linearisation
                p = absorbed(p, *fed)
            mean, factor = layer(p, now.mean, now.factor, h)
            status = _ending(mean, factor, noisy=noisy)
            if status is not Status.SUCCESS:
                check_finite(p, now.layer * h)
                break
            now = _State(now.layer + 1, mean, factor)
            if now.layer % every == 0:
                kept.append(now)
            if every == 1 or now.layer == count or time.monotonic() - told > PATIENCE:
                progress(now.layer / count, f"layer {now.layer} of {count}")
                told = time.monotonic()
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    if kept[-1].layer < now.layer:
        kept.append(now)
    times = h * np.array([state.layer for state in kept], dtype=float)
    if now.layer == count:
        times[-1] = problem.horizon
    return Outcome(
        status,
        times,
        np.array([state.mean for state in kept]),
        np.array([state.factor for state in kept]),
        steps=now.layer,
        evaluations=now.layer,
    )


def _spacing(count: int, numbers: int) -> int:
    """How many layers lie between two states that are kept, of so many numbers each."""
    # Twice: as a list, and as the array that is made of it.
    memory.require("the states after the layers", 2.0 * min(count, LEAST) * numbers)
    fitting = int(memory.SHARE * memory.available() / (2 * memory.FLOAT * numbers))
    return -(-count // max(min(KEPT, fitting), 1))


def _law(schedule: Schedule, h: float) -> Callable[[int], Parameters]:
    """Parameters of layer k."""
    if schedule.piecewise_constant and schedule.times.size == 2:
        p = schedule(0.0)
        return lambda k: p
    return lambda k: schedule(schedule.snap(k * h))


def _ending(mean: Array, factor: Array, *, noisy: bool) -> Status:
    """What ends the run after a layer, SUCCESS if nothing does."""
    sizes = np.abs(factor).max(axis=0)
    if not max(np.abs(mean).max(), sizes.max(initial=0.0)) < LARGEST:
        return Status.OVERFLOW
    # A column that is zero has been lost in a singular layer, and with it a rank, truly.
    return Status.UNDERFLOW if not noisy and vanishes(sizes[sizes > 0]) else Status.SUCCESS


def _layer(p: Parameters, mean: Array, factor: Array, h: float) -> tuple[Array, Array]:
    mean_rate, factor_rate = rates(mean, factor, p.A, p.heads, p.b)
    return mean + h * mean_rate, factor + h * factor_rate


def _noisy_layer(p: Parameters, mean: Array, factor: Array, h: float) -> tuple[Array, Array]:
    mean_rate, _ = rates(mean, factor, p.A, p.heads, p.b)
    step = np.eye(mean.size) + h * generator(factor @ factor.T, p.A, p.heads)
    covariance = step @ factor @ (step @ factor).T
    if p.noise is not None:
        covariance = covariance + h * p.noise
    return mean + h * mean_rate, factor_of(covariance)
