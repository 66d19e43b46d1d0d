"""Attractors by long integration of the flow, in factor form."""

from __future__ import annotations

import numpy as np

from ..._check import Array
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...simulation.run import simulate
from ...status import Status
from .newton import factor_newton
from .quadratic import Quadratic

__all__ = ["integrate"]

#: Times of the stages, in units of 1/‖A‖.
STAGES = (10.0, 20.0, 70.0)

#: Residual at which Newton's method takes over, and tolerance of the integration.
NEAR = 1e-3
TOLERANCE = 1e-7

#: Steps after which a stage that is slow or oscillates is left as it is.
MOST_STEPS = 300

#: Newton's method on factors is tried up to this many entries.
MOST_UNKNOWNS = 300

#: A factor beyond this size, in units of order one, has no limit.
LARGEST = 1e3


def integrate(field: Quadratic, factors: list[Array]) -> list[Array]:
    """Last covariances of trajectories that start from `factors`.

    Parameters
    ----------
    field : Quadratic
        In units of order one.
    factors : list of (d, r) arrays

    Returns
    -------
    list of (d, d) arrays
        Near an attracting equilibrium if there is one; runs that blow up are left out.
    """
    p = Parameters(
        A=field.A, B=field.B, V=field.V, noise=(field.Q + field.Q.T) / 2 if field.noisy else None
    )
    speed = float(np.linalg.norm(field.A, 2))
    unit = 1.0 / speed if speed > 0 else 1.0
    ends = (_end(field, p, L, unit) for L in factors)
    return [_settled(field, L) for L in ends if L is not None]


def _settled(field: Quadratic, L: Array) -> Array:
    """Equilibrium of the rank of L near it, or L Lᵀ if Newton's method finds none."""
    d, r = L.shape
    if r < d and not field.noisy and d * r <= MOST_UNKNOWNS:
        found = factor_newton(field, L[None], 10)
        if len(found) and np.linalg.norm(found[0] - L) <= 0.5 * np.linalg.norm(L):
            L = found[0]
    return np.asarray(L @ L.T)


def _end(field: Quadratic, p: Parameters, L: Array, unit: float) -> Array | None:
    """Factor at which one trajectory is nearly at rest, or its last one."""
    law = Gaussian(np.zeros(field.dim), L)
    for stage in STAGES:
        path = simulate(law, p, stage * unit, rtol=TOLERANCE, max_steps=MOST_STEPS)
        L = path.factors[-1]
        if np.isfinite(path.blow_up_time) or not np.linalg.norm(L) < LARGEST:
            return None
        if path.status is not Status.SUCCESS or field.residual(L @ L.T) < NEAR:
            break
        law = Gaussian.trusted(law.mean, L)
    return L
