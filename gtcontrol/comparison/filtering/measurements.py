"""Measurements of a linear system with noise, drawn exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm

from ... import _check
from ..._check import Array
from ...errors import InvalidShape, OutOfScale
from ...problem import memory
from ...problem.measurements import Measurements
from ...riccati_flow.kalman import KalmanModel

__all__ = ["check_model", "exact_step", "simulate_measurements"]


def simulate_measurements(
    model: KalmanModel,
    state: ArrayLike,
    horizon: float,
    steps: int,
    rng: np.random.Generator | int,
    *,
    forcing: ArrayLike | None = None,
) -> Measurements:
    """Draw the states of a linear system, and what is measured of them.

    State and integral of the measurement over each interval are drawn from their joint Gaussian
    law, so there is no error of discretisation.  White noise of intensity R, averaged over an
    interval of length h, has covariance R/h.

    Parameters
    ----------
    model : KalmanModel
        d states, p measurements.
    state : (d,) array
        True state at time 0.
    horizon : float
        End, > 0.
    steps : int
        Number T of intervals of equal length.
    rng : numpy.random.Generator or int
        Source of randomness, or its seed.
    forcing : (T, d) or (d,) array, optional
        Known forcing f, x' = A x + f, on each interval or at all times.

    Returns
    -------
    Measurements
        With ``times`` (T + 1,), ``states`` (T + 1, d) and ``values`` (T, p).

    Raises
    ------
    InvalidShape, InvalidNumber, NotFinite
        If an argument does not fit.
    OutOfScale
        If the states leave the range of double precision.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> model = gt.KalmanModel([[0.0, 1.0], [0.0, 0.0]], [1.0, 0.0], 0.5)
    >>> y = gt.simulate_measurements(model, [1.0, -1.0], horizon=2.0, steps=100, rng=1)
    >>> y.values.shape, y.states.shape
    ((100, 1), (101, 2))
    """
    check_model(model)
    d, p = model.dim, len(model.C)
    x = _check.vector("state", state, d)
    end = _check.number("horizon", horizon, low=0.0, strict=True)
    count = _check.integer("steps", steps, low=1)
    memory.require(f"measurements in {count} intervals", 4.0 * count * (d + p), "use fewer steps")
    if not isinstance(rng, np.random.Generator):
        rng = np.random.default_rng(_check.integer("rng", rng, low=0))
    f = None if forcing is None else _forcing(forcing, count, d)
    times = np.linspace(0.0, end, count + 1)
    h = end / count
    states, values = np.empty((count + 1, d)), np.empty((count, p))
    states[0] = x
    with np.errstate(over="ignore", invalid="ignore"):
        Phi, push, root = exact_step(model, h)
        draws = rng.standard_normal((count, d + p)) @ root.T
        for k in range(count):
            moved = Phi @ states[k] + draws[k]
            if f is not None:
                moved = moved + push @ f[k]
            states[k + 1], values[k] = moved[:d], moved[d:] / h
    if not np.all(np.isfinite(states)):
        last = int(np.argmax(~np.all(np.isfinite(states), axis=1)))
        raise OutOfScale(
            f"the state leaves the range of double precision at t = {times[last]:.6g}; shorten "
            "the horizon."
        )
    return Measurements(times, values, states, f)


def check_model(model: object) -> None:
    """Refuse what is no model.

    Raises
    ------
    InvalidShape
        If it is none.
    """
    if not isinstance(model, KalmanModel):
        raise InvalidShape(f"`model` must be a KalmanModel, not {type(model).__name__}.")


def exact_step(model: KalmanModel, h: float) -> tuple[Array, Array, Array]:
    """Exact step of (x, ∫ C x dt + v): map of x, map of the forcing, root of the covariance.

    The covariance of the noise of z' = F z + w over a step is Φ F₁₂ with the upper right block
    F₁₂ of the exponential of h [[-F, D], [0, Fᵀ]] (Van Loan 1978).
    """
    d, p = model.dim, len(model.C)
    n = d + p
    F, D = np.zeros((n, n)), np.zeros((n, n))
    F[:d, :d], F[d:, :d], D[d:, d:] = model.A, model.C, model.R
    if model.noise is not None:
        D[:d, :d] = model.noise
    zero = np.zeros((n, n))
    exponential = expm(h * np.block([[-F, D], [zero, F.T]]))
    Phi = exponential[n:, n:].T
    covariance = Phi @ exponential[:n, n:]
    push = expm(h * np.block([[F, np.eye(n)], [zero, zero]]))[:n, n : n + d]
    sizes, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    root = vectors * np.sqrt(np.maximum(sizes, 0.0))
    if model.noise is None:
        root[:d] = 0.0  # exactly: rounding must not move the state
    return Phi[:, :d], push, root


def _forcing(forcing: ArrayLike, count: int, d: int) -> Array:
    f = _check.array("forcing", forcing, (1, 2))
    if f.ndim == 1:
        f = np.tile(f, (count, 1))
    if f.shape != (count, d):
        raise InvalidShape(
            f"`forcing` must have shape ({count}, {d}) or ({d},); it has {np.shape(forcing)}."
        )
    return f
