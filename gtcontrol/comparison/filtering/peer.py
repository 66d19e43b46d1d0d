"""The Kalman-Bucy filter of python-control, fed with the same measurements."""

from __future__ import annotations

import warnings

import numpy as np

from ..._check import Array
from ...errors import OutOfScale
from ...gaussian import Gaussian
from ...problem.measurements import Measurements
from ...progress import Progress, silent
from ...riccati_flow.kalman import KalmanModel

__all__ = ["kalman_bucy"]

#: Tolerances of the integrator of python-control; the absolute one is relative to the sizes.
RTOL, ATOL = 1e-12, 1e-15


def kalman_bucy(
    model: KalmanModel, start: Gaussian, measurements: Measurements, progress: Progress = silent
) -> tuple[Array, Array]:
    """Run the estimator that python-control makes of the model.

    Its system integrates mean and covariance together.  It is run interval by interval, as it
    would interpolate a measurement that jumps.

    Returns
    -------
    means : (T + 1, d) array
    covariances : (T + 1, d, d) array

    Raises
    ------
    OutOfScale
        If its integrator fails.
    """
    import control  # takes more than a second to import

    d, p = model.dim, len(model.C)
    one = np.eye(d)
    # Inputs: d known forcings, then d disturbances with the intensity of the process noise.
    plant = control.ss(model.A, np.hstack([one, one]), model.C, np.zeros((p, 2 * d)), inputs=2 * d)
    noise = np.zeros((d, d)) if model.noise is None else model.noise
    estimator = control.create_estimator_iosystem(
        plant, noise, model.R, P0=start.covariance, control_indices=d
    )
    times, count = measurements.times, len(measurements)
    means, covariances = np.empty((count + 1, d)), np.empty((count + 1, d, d))
    means[0], covariances[0] = start.mean, start.covariance
    forcing = np.zeros((count, d)) if measurements.forcing is None else measurements.forcing
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its notices are about plots and labels
        for k in range(count):
            state = np.concatenate([means[k], covariances[k].ravel()])
            size = float(np.max(np.abs(state)))
            inputs = np.concatenate([measurements.values[k], forcing[k]])
            try:
                made = control.input_output_response(
                    estimator,
                    times[k : k + 2],
                    np.stack([inputs, inputs], axis=1),
                    state,
                    solve_ivp_method="DOP853",
                    solve_ivp_kwargs={"rtol": RTOL, "atol": ATOL * max(size, 1e-100)},
                )
            except RuntimeError as error:
                raise OutOfScale(
                    f"python-control's filter fails at t = {times[k]:.6g}: {error}"
                ) from None
            last = np.asarray(made.states)[:, -1]
            means[k + 1], S = last[:d], last[d:].reshape(d, d)
            covariances[k + 1] = 0.5 * (S + S.T)
            progress((k + 1) / count, f"python-control's filter at t = {times[k + 1]:.4g}")
    return means, covariances
