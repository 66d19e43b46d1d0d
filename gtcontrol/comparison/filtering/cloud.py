"""N tokens that filter: softmax over all of them, and gains from their own covariance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...attention import Average, velocity
from ...problem.measurements import Measurements
from ...status import Status
from .lines import line_average
from .parameters import Bridge

__all__ = ["Cloud", "move", "steps_of"]

#: Largest step times the largest rate; the error of a step of order four is then far below that
#: of finitely many tokens, and is measured once, by halving the steps.
STEP = 0.2

#: Entries beyond this size end the run.
LARGEST = 1e100


@dataclass(frozen=True, eq=False)
class Cloud:
    """Moments of the tokens at the times of the measurements, and how the run ended."""

    means: Array
    covariances: Array
    status: Status


def steps_of(bridge: Bridge, covariances: Array, steps: Array) -> list[int]:
    """Number of Runge-Kutta steps in each interval.

    Parameters
    ----------
    bridge : Bridge
    covariances : (T + 1, d, d) array
        Of the filter, at the ends of the intervals.
    steps : (T,) array
        Lengths of the intervals.
    """
    rates = [_rate(bridge, S) for S in covariances]
    return [
        max(1, math.ceil(float(h) * max(rates[k], rates[k + 1]) / STEP))
        for k, h in enumerate(steps)
    ]


def _rate(bridge: Bridge, S: Array) -> float:
    """Bound on how fast tokens can approach or leave each other."""
    rate = float(np.linalg.norm(bridge.model.A, 2) + np.linalg.norm(S @ bridge.information, 2))
    if bridge.noise is not None:
        rate += 0.5 * float(np.linalg.norm(np.linalg.solve(S, bridge.noise), 2))
    return rate


def move(
    bridge: Bridge,
    tokens: Array,
    measurements: Measurements,
    steps: list[int],
    tell: Callable[[int], None],
    average: Average = line_average,
) -> Cloud:
    """Move tokens through all measurements by the classical Runge-Kutta method.

    Parameters
    ----------
    bridge : Bridge
    tokens : (N, d) array
        Tokens at time 0.
    measurements : Measurements
    steps : list of T int
        Steps in each interval.
    tell : callable
        Called with the number of intervals that are done.
    average : callable
        How softmax averages are computed.
    """
    count, d = len(measurements), tokens.shape[1]
    means, covariances = np.empty((count + 1, d)), np.empty((count + 1, d, d))
    x = tokens
    means[0], covariances[0] = _moments(x)
    for k in range(count):
        y = measurements.values[k]
        f = None if measurements.forcing is None else measurements.forcing[k]

        def rate(
            tokens: Array, y: Array = y, f: Array | None = f
        ) -> Array:  # bound now, not when called
            mean, S = _moments(tokens)
            return velocity(bridge.parameters(S, y, f, mean), tokens, average)

        h = float(measurements.times[k + 1] - measurements.times[k]) / steps[k]
        for _ in range(steps[k]):
            try:
                x = _step(rate, x, h)
            except np.linalg.LinAlgError:  # a covariance became singular
                return Cloud(means[: k + 1], covariances[: k + 1], Status.UNDERFLOW)
            if not np.all(np.abs(x) < LARGEST):
                return Cloud(means[: k + 1], covariances[: k + 1], Status.OVERFLOW)
        means[k + 1], covariances[k + 1] = _moments(x)
        tell(k + 1)
    return Cloud(means, covariances, Status.SUCCESS)


def _step(rate: Callable[[Array], Array], x: Array, h: float) -> Array:
    first = rate(x)
    second = rate(x + 0.5 * h * first)
    third = rate(x + 0.5 * h * second)
    fourth = rate(x + h * third)
    return np.asarray(x + (h / 6) * (first + 2 * second + 2 * third + fourth))


def _moments(tokens: Array) -> tuple[Array, Array]:
    mean = tokens.mean(axis=0)
    apart = tokens - mean
    return mean, apart.T @ apart / len(tokens)
