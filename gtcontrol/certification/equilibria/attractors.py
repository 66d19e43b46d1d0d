"""Attractors by long integration of the flow, in factor form."""

from __future__ import annotations

import numpy as np

from ..._check import Array
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...simulation.run import simulate
from .quadratic import Quadratic

__all__ = ["integrate"]

#: Time in units of 1/‖A‖, and the relative tolerance (Newton's method follows).
HORIZON = 100.0
TOLERANCE = 1e-8

#: Steps after which a slow or oscillating run is left as it is.
MOST_STEPS = 1500


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
    horizon = HORIZON / speed if speed > 0 else HORIZON
    found = []
    for L in factors:
        start = Gaussian(np.zeros(field.dim), L)
        path = simulate(start, p, horizon, rtol=TOLERANCE, max_steps=MOST_STEPS)
        last = path.factors[-1]
        if np.isfinite(path.blow_up_time) or not np.linalg.norm(last) < 1e6:
            continue
        found.append(last @ last.T)
    return found
