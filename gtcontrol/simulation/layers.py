"""Residual layers: one layer of step h maps N(m, L Lᵀ) to a Gaussian, exactly."""

from __future__ import annotations

import numpy as np

from ..field import generator, rates
from ..parameters import Parameters
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
    mean, factor = problem.start.mean, problem.start.factor
    noisy = any(piece.law(piece.start).noise is not None for piece in problem.schedule.pieces())
    if noisy:
        factor = factor_of(factor @ factor.T)
    means, factors, status = [mean], [factor], Status.SUCCESS
    try:
        for k in range(count):
            p = problem.schedule(k * h)
            if noisy:
                mean, factor = _noisy_layer(p, mean, factor, h)
            else:
                mean_rate, factor_rate = rates(mean, factor, p.A, p.heads, p.b)
                mean, factor = mean + h * mean_rate, factor + h * factor_rate
            size = max(np.max(np.abs(mean)), np.max(np.abs(factor), initial=0.0))
            if not size < LARGEST:
                status = Status.OVERFLOW
                break
            means.append(mean)
            factors.append(factor)
            progress((k + 1) / count, f"layer {k + 1} of {count}")
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    times = h * np.arange(len(means))
    if status is Status.SUCCESS:
        times[-1] = problem.horizon
    return Outcome(status, times, np.array(means), np.array(factors), len(means) - 1)


def _noisy_layer(
    p: Parameters, mean: np.ndarray, factor: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray]:
    mean_rate, _ = rates(mean, factor, p.A, p.heads, p.b)
    step = np.eye(mean.size) + h * generator(factor @ factor.T, p.A, p.heads)
    covariance = step @ factor @ (step @ factor).T
    if p.noise is not None:
        covariance = covariance + h * p.noise
    return mean + h * mean_rate, factor_of(covariance)
