"""The blow-up time in floats, by integration in pieces."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...field import generator
from ...gaussian import Gaussian, norm
from ...parameters import Parameters
from ...results.trajectory import Trajectory
from ...simulation.run import simulate
from ...status import Status

__all__ = ["Estimate", "estimate_blow_up", "resumable"]

#: Pieces of integration, each twice as long as the one before, and bound on all their steps.
PIECES = 120
MOST_STEPS = 3_000

#: The covariance is at rest when it changes, in one unit of its own time, by less than this.
AT_REST = 1e-10

#: Times at which a path is looked at, and log10 of the last (T - t)/T.
SAMPLES = 40
CLOSEST = -10.0


@dataclass(frozen=True, eq=False)
class Estimate:
    """What integration in floats saw.

    Attributes
    ----------
    time : float
        Blow-up time, inf if none was seen.
    reached : float
        Time up to which was integrated.
    times : (n,) array
    factors : tuple of n (d, r) arrays
        Some times in the last piece of the integration (it began at times[0]), ever denser near
        the blow-up, and the factors there; empty without a blow-up.
    """

    time: float
    reached: float
    times: Array
    factors: tuple[Array, ...]

    @property
    def direction(self) -> Array:
        """Covariance at the last time, divided by its trace, shape (d, d)."""
        L = self.factors[-1] / norm(self.factors[-1])
        return np.asarray(L @ L.T)


def estimate_blow_up(
    parameters: Parameters, factor: Array, horizon: float | None = None
) -> Estimate:
    """Integrate to a horizon, or in pieces from the natural time scale on.

    The mean plays no part in the covariance, so it is held at zero.

    Parameters
    ----------
    parameters : Parameters
    factor : (d, r) array
    horizon : float, optional

    Raises
    ------
    KeyboardInterrupt
        If the integration was interrupted.
    """
    p, d = parameters, parameters.dim
    still = Parameters.trusted(p.A, p.B, p.V, np.zeros(d), p.noise)
    law, clock, steps = Gaussian.trusted(np.zeros(d), factor), 0.0, 0
    span = 4.0 / _speed(still, law) if horizon is None else horizon
    for _ in range(PIECES if horizon is None else 1):
        if not 0 < span < math.inf or steps >= MOST_STEPS:
            break
        path = simulate(law, still, span, max_steps=MOST_STEPS - steps)
        if path.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        law, steps = resumable(path), steps + path.steps
        if path.status is Status.BLOW_UP:
            return _sampled(path, clock)
        clock += float(path.times[-1])
        if path.status is not Status.SUCCESS and path.status is not Status.UNDERFLOW:
            break
        if _at_rest(still, law):
            break
        span = max(2.0 * span, 4.0 / _speed(still, law))
    return Estimate(math.inf, clock, np.zeros(0), ())


def resumable(path: Trajectory) -> Gaussian:
    """The last law of a path, without the column of the factor that left the range of floats."""
    law = path.final
    if path.status is not Status.UNDERFLOW or not law.rank:
        return law
    sizes = np.abs(law.factor).max(axis=0)
    return Gaussian.trusted(law.mean, law.factor[:, sizes > sizes.min()])


def _sampled(path: Trajectory, clock: float) -> Estimate:
    """What a path that blew up looks like, at times that are even in log(T - t)."""
    end = path.blow_up_time
    times = np.minimum(end * (1.0 - np.logspace(0.0, CLOSEST, SAMPLES)), path.times[-1])
    factors = tuple(path.at(float(t)).factor for t in times)
    return Estimate(clock + end, clock + float(path.times[-1]), clock + times, factors)


def _at_rest(p: Parameters, law: Gaussian) -> bool:
    """Whether the covariance hardly changes; if it vanished, only noise could revive it."""
    S = law.covariance
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        M = generator(S, p.A, p.heads)
        change = M @ S + S @ M.T
        if p.noise is not None:
            change = change + p.noise
        pace = float(np.linalg.norm(p.A)) + float(np.linalg.norm(M - p.A))
        return float(np.linalg.norm(change)) <= AT_REST * pace * float(np.linalg.norm(S))


def _speed(p: Parameters, law: Gaussian) -> float:
    """Size of the generator, in units of 1/time."""
    with np.errstate(over="ignore", invalid="ignore"):
        linear = float(np.linalg.norm(p.A))
        quadratic = sum(float(np.linalg.norm(V) * np.linalg.norm(B)) for V, B, _ in p.heads)
        noise = 0.0 if p.noise is None else float(np.trace(p.noise))
        # With noise alone, the time after which it makes attention as fast.
        return linear + quadratic * law.trace + math.sqrt(quadratic * noise) or 1.0
