"""Whether a filter is as wrong as it says: innovations, and the true state."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.stats import chi2

from ..._check import Array
from ...problem.measurements import Measurements
from ...results.filtering import Consistency
from ...riccati_flow.kalman import KalmanModel
from .measurements import exact_step

__all__ = ["consistency", "normalised_innovations"]

#: Probability of the bands, and the quantile of a standard normal that belongs to it.
PROBABILITY, QUANTILE = 0.95, 1.96


def normalised_innovations(
    model: KalmanModel, measurements: Measurements, means: Array, covariances: Array
) -> Array:
    """Measurements minus their predictions, divided by the Cholesky factor of their covariance.

    The prediction of the average over an interval starts from the estimate at its beginning, and
    is exact: with the exact step (Φ, Σ) of state and integral of the measurement,
    ν = y - Φ_y m/h and E = (Φ_y S Φ_yᵀ + Σ_yy)/h².

    Returns
    -------
    (T, p) array
        Independent standard normal numbers if the filter is right.
    """
    d = model.dim
    made = np.empty((len(measurements), len(model.C)))
    known: dict[float, tuple[Array, Array, Array]] = {}
    for k, h in enumerate(measurements.steps):
        key = float(f"{h:.15g}")
        if key not in known:
            known[key] = exact_step(model, float(h))
        Phi, push, root = known[key]
        moved = Phi[d:] @ means[k]
        if measurements.forcing is not None:
            moved = moved + push[d:] @ measurements.forcing[k]
        E = (Phi[d:] @ covariances[k] @ Phi[d:].T + root[d:] @ root[d:].T) / h**2
        made[k] = solve_triangular(
            cholesky(E, lower=True), measurements.values[k] - moved / h, lower=True
        )
    return made


def consistency(
    measurements: Measurements, innovations: Array, means: Array, covariances: Array
) -> Consistency:
    """Put the statistics together."""
    count, p = innovations.shape
    tail = 0.5 * (1 - PROBABILITY)
    size = float(np.mean(np.sum(innovations**2, axis=1)))
    low, high = (float(chi2.ppf(q, count * p)) / count for q in (tail, 1 - tail))
    total = float(np.sum(innovations**2))
    products = float(np.sum(innovations[1:] * innovations[:-1]))
    correlation = products / total if total > 0 else 0.0
    state: tuple[float | None, float | None, float | None] = None, None, None
    S = covariances[-1]
    values = np.linalg.eigvalsh(S)
    if measurements.states is not None and values[0] > 1e-12 * values[-1]:
        off = measurements.states[-1] - means[-1]
        ends = [float(chi2.ppf(q, len(off))) for q in (tail, 1 - tail)]
        state = float(off @ np.linalg.solve(S, off)), ends[0], ends[1]
    bound = QUANTILE / np.sqrt(count * p)
    return Consistency(size, low, high, correlation, float(bound), *state)
