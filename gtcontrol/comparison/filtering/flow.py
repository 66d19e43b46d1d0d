"""The filter as the flow of the mean-field Transformer under a schedule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from ... import _check
from ..._check import Array
from ...errors import InvalidMethod, InvalidNumber, InvalidShape, OutOfScale
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...problem.measurements import Measurements
from ...progress import Progress, silent
from ...results.trajectory import Trajectory
from ...riccati_flow.kalman import KalmanModel
from ...schedule import Law, Schedule
from ...simulation.run import simulate
from .measurements import check_model
from .parameters import Bridge

__all__ = ["CovariancePath", "check_problem", "checked_value", "filter_flow", "filter_schedule"]

#: Relative tolerance of the integration of the flow.
RTOL = 1e-12


class CovariancePath:
    """S(t) of the filter in closed form, which does not depend on the measurements.

    With H = exp(h [[-Aᵀ, W], [Q, A]]), a step takes S to (H₂₁ + H₂₂ S)(H₁₁ + H₁₂ S)⁻¹.

    Parameters
    ----------
    model : KalmanModel
    start : Gaussian
    times : (T + 1,) array
        Times at which S is remembered.
    """

    def __init__(self, model: KalmanModel, start: Gaussian, times: Array) -> None:
        d = model.dim
        Q = np.zeros((d, d)) if model.noise is None else model.noise
        self._matrix = np.block([[-model.A.T, model.information], [Q, model.A]])
        self.times = times
        nodes = [start.covariance]
        known: dict[float, Array] = {}
        for h in np.diff(times):
            key = float(f"{h:.15g}")  # equal but for rounding
            if key not in known:
                known[key] = expm(h * self._matrix)
            nodes.append(_moved(known[key], nodes[-1]))
        self.nodes = np.array(nodes)
        if not np.all(np.isfinite(self.nodes)):
            raise OutOfScale(
                "the covariance of the filter leaves the range of double precision; shorten the "
                "horizon, or take shorter intervals."
            )

    def within(self, k: int, t: float) -> Array:
        """S at time t in interval k, shape (d, d)."""
        h = t - float(self.times[k])
        return self.nodes[k] if h == 0 else _moved(expm(h * self._matrix), self.nodes[k])


def _moved(H: Array, S: Array) -> Array:
    d = len(S)
    made = np.linalg.solve((H[:d, :d] + H[:d, d:] @ S).T, (H[d:, :d] + H[d:, d:] @ S).T).T
    return np.asarray(0.5 * (made + made.T))


def filter_schedule(
    model: KalmanModel, start: Gaussian, measurements: Measurements, *, value: float = 1.0
) -> Schedule:
    """Return the Transformer that filters these measurements.

    Two heads: V₁ = v I with B₁ = -Cᵀ R⁻¹ C/(2 v), and uniform attention (B₂ = 0) with
    V₂ = -v I - ½ S Cᵀ R⁻¹ C, whose average is the mean of the tokens; and b = S Cᵀ R⁻¹ y + f.
    S(t) is known in advance.  Process noise Q is realised without noise by A + ½ Q S⁻¹ and
    V₂ - ½ Q S⁻¹.  The law N(m, S) of the tokens then obeys

        m' = A m + f + S Cᵀ R⁻¹ (y - C m),   S' = A S + S Aᵀ + Q - S Cᵀ R⁻¹ C S.

    Parameters
    ----------
    model : KalmanModel
        d states, p measurements.
    start : Gaussian
        Law of the state at time 0; of full rank if the model has process noise.
    measurements : Measurements
        Of p measurements.
    value : float
        v, not 0.  The law does not depend on it, finitely many tokens do.

    Returns
    -------
    Schedule
        With a breakpoint wherever the measurement jumps.

    Raises
    ------
    InvalidShape, InvalidMethod, InvalidNumber
        If the arguments do not fit, the start is too singular for process noise, or v is 0.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> model = gt.KalmanModel([[0.0]], [[1.0]])
    >>> start = gt.Gaussian([0.0], [[1.0]])
    >>> y = gt.Measurements([0.0, 1.0], [[2.0]])
    >>> path = gt.simulate(start, gt.filter_schedule(model, start, y))
    >>> round(float(path.final.mean[0]), 9), round(path.final.trace, 9)
    (1.0, 0.5)
    """
    check_problem(model, start, measurements)
    bridge = Bridge(model, checked_value(value))
    path = CovariancePath(model, start, measurements.times)
    laws = [_law(bridge, path, measurements, k) for k in range(len(measurements))]
    return Schedule.from_pieces(measurements.times, laws, model.dim)


def _law(bridge: Bridge, path: CovariancePath, measurements: Measurements, k: int) -> Law:
    y = measurements.values[k]
    f = None if measurements.forcing is None else measurements.forcing[k]

    def law(t: float) -> Parameters:
        return bridge.parameters(path.within(k, t), y, f)

    return law


def filter_flow(
    start: Gaussian, schedule: Schedule, progress: Progress = silent
) -> tuple[Trajectory, NDArray[np.intp]]:
    """Simulate, and return the trajectory with the indices of its nodes at the breakpoints."""
    made = simulate(start, schedule, rtol=RTOL, max_steps=10_000_000, progress=progress)
    nodes = np.searchsorted(made.times, schedule.times - 1e-12 * schedule.horizon)
    return made, nodes


def check_problem(model: KalmanModel, start: Gaussian, measurements: Measurements) -> None:
    """Hold model, start and measurements against each other.

    Raises
    ------
    InvalidShape
        If one of them is something else, or sizes differ.
    InvalidMethod
        If there is process noise and the start does not have full rank.
    """
    check_model(model)
    if not isinstance(start, Gaussian):
        raise InvalidShape(f"`start` must be a Gaussian, not {type(start).__name__}.")
    if not isinstance(measurements, Measurements):
        raise InvalidShape(
            f"`measurements` must be Measurements, not {type(measurements).__name__}; make them "
            "by `gt.Measurements(times, values)`."
        )
    d, p = model.dim, len(model.C)
    if start.dim != d:
        raise InvalidShape(f"`start` has dimension {start.dim}, but the model has {d} states.")
    if measurements.values.shape[1] != p:
        raise InvalidShape(
            f"`measurements` hold {measurements.values.shape[1]} value(s) at a time, but the "
            f"model measures {p}."
        )
    for name, value in (("states", measurements.states), ("forcing", measurements.forcing)):
        if value is not None and value.shape[1] != d:
            raise InvalidShape(
                f"`{name}` of the measurements has {value.shape[1]} columns, but the model has "
                f"{d} states."
            )
    if model.noise is not None and np.any(model.noise) and start.rank < d:
        raise InvalidMethod(
            f"process noise in a noise-free Transformer needs a start of full rank {d}, as it is "
            f"made by ½ Q S⁻¹; the rank is {start.rank}."
        )


def checked_value(value: float) -> float:
    """Return v, checked.

    Raises
    ------
    InvalidNumber
        If it is 0 or no number.
    """
    v = _check.number("value", value)
    if v == 0.0:
        raise InvalidNumber("`value` must not be 0: attention would do nothing.")
    return v
