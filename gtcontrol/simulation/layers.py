"""Residual layers: one layer of step h maps N(m, L Lᵀ) to a Gaussian, exactly."""

from __future__ import annotations

import numpy as np

from .._check import Array
from ..field import generator, rates
from ..parameters import Parameters, check_finite
from ..problem.definitions import SimulationProblem
from ..progress import Progress
from ..results.trajectory import factor_of
from ..status import Status
from .outcome import Outcome

__all__ = ["run"]

#: Cubes of entries beyond this size leave the range of double precision.
LARGEST = 1e100


def run(problem: SimulationProblem, progress: Progress) -> Outcome:
    """Apply the layers one by one; layer k uses the parameters at time k h."""
    count = problem.layers or 1
    h = problem.horizon / count
    noisy = problem.schedule.noisy
    start = problem.start
    states = [(start.mean, factor_of(start.covariance) if noisy else start.factor)]
    status = Status.SUCCESS
    try:
        for k in range(count):
            p = problem.schedule(problem.schedule.snap(k * h))
            mean, factor = (_noisy_layer if noisy else _layer)(p, *states[-1], h)
            size = max(np.max(np.abs(mean)), np.max(np.abs(factor), initial=0.0))
            if not size < LARGEST:
                check_finite(p, k * h)
                status = Status.OVERFLOW
                break
            states.append((mean, factor))
            progress((k + 1) / count, f"layer {k + 1} of {count}")
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    times = h * np.arange(len(states), dtype=float)
    if status is Status.SUCCESS:
        times[-1] = problem.horizon
    means, factors = np.array([m for m, _ in states]), np.array([f for _, f in states])
    return Outcome(status, times, means, factors, len(states) - 1)


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
