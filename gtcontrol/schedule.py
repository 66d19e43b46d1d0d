"""Parameters in time: piecewise constant, or a function of time between breakpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from . import _check
from ._check import Array
from .errors import IncompatibleSchedule, InvalidShape
from .parameters import Parameters

__all__ = ["Piece", "Schedule", "resolve"]

Law = Callable[[float], Parameters]


@dataclass(frozen=True)
class Piece:
    """One smooth piece of a schedule: ``law(t)`` holds on the closed interval [start, end]."""

    start: float
    end: float
    law: Law
    constant: bool


class Schedule:
    """Transformer parameters as a function of time on [0, horizon].

    Parameters
    ----------
    times : (k + 1,) array
        Increasing breakpoints; ``times[0]`` is 0 and ``times[-1]`` the horizon.
    parameters : sequence of k Parameters
        ``parameters[i]`` holds on [times[i], times[i+1]).
    basis : (D, d) array, optional
        Orthonormal basis of the subspace in which the parameters act, given in its
        coordinates; the schedule then has dimension D and acts as zero outside it.

    Raises
    ------
    IncompatibleSchedule
        If the times do not increase from 0, or the numbers or dimensions do not fit.
    """

    def __init__(
        self, times: ArrayLike, parameters: Sequence[Parameters], *, basis: Array | None = None
    ) -> None:
        breakpoints = _check_breakpoints(times)
        if not isinstance(parameters, Sequence):
            raise InvalidShape(
                f"`parameters` must be a sequence of Parameters, not {type(parameters).__name__}."
            )
        if len(parameters) != breakpoints.size - 1:
            raise IncompatibleSchedule(
                f"{breakpoints.size} times bound {breakpoints.size - 1} piece(s), but "
                f"{len(parameters)} parameters were given."
            )
        for p in parameters:
            _check_parameters(p)
        dims = {p.dim for p in parameters}
        if len(dims) > 1:
            raise IncompatibleSchedule(f"the pieces have different dimensions {sorted(dims)}.")
        laws = [_constant(p) for p in parameters]
        self._build(breakpoints, laws, dims.pop(), basis=basis, constant=True)

    @classmethod
    def constant(cls, parameters: Parameters, horizon: float) -> Schedule:
        """Hold one set of parameters on [0, horizon]."""
        return cls([0.0, _check.number("horizon", horizon, low=0.0, strict=True)], [parameters])

    @classmethod
    def from_function(
        cls, function: Law, horizon: float, *, breakpoints: ArrayLike | None = None
    ) -> Schedule:
        """Use a function of time.

        Parameters
        ----------
        function : callable
            ``function(t)`` returns the Parameters at time t in [0, horizon].
        horizon : float
            End of the schedule, > 0.
        breakpoints : array, optional
            Increasing times where the function or a derivative jumps; integrators and
            quadratures restart there.

        Raises
        ------
        IncompatibleSchedule, InvalidNumber, InvalidShape
            If the times do not fit, or the function does not return Parameters.
        """
        if not callable(function):
            raise InvalidShape(
                f"`function` must be a function of time, not {type(function).__name__}; hold "
                "constant parameters by `Schedule.constant`."
            )
        end = _check.number("horizon", horizon, low=0.0, strict=True)
        inner = np.empty(0) if breakpoints is None else _check.vector("breakpoints", breakpoints)
        outside = inner[(inner < 0) | (inner > end)]
        if outside.size:
            raise IncompatibleSchedule(
                f"`breakpoints` must lie in [0, {end:g}]; {outside[0]:g} does not."
            )
        inner = inner[(inner > 0) & (inner < end)]
        if not np.all(np.diff(inner) > 0):
            raise IncompatibleSchedule("`breakpoints` must increase strictly.")
        times = _check_breakpoints(np.concatenate([[0.0], inner, [end]]))
        dim = _check_parameters(function(0.0)).dim

        def law(t: float) -> Parameters:
            return _check_parameters(function(t), dim, t)

        return cls.from_pieces(times, [law] * (times.size - 1), dim)

    @classmethod
    def from_pieces(
        cls, times: Array, laws: Sequence[Law], dim: int, *, basis: Array | None = None
    ) -> Schedule:
        """Join one smooth law per interval; for controllers, which know their own pieces.

        Parameters
        ----------
        times : (k + 1,) array
            Increasing breakpoints from 0.
        laws : sequence of k callables
            ``laws[i](t)`` returns Parameters of dimension ``dim``, valid on the closed interval.
        dim : int
            Dimension of the laws.
        basis : (D, dim) array, optional
            Orthonormal basis of the subspace in which the laws act; the schedule then has
            dimension D and acts as zero outside it.
        """
        made = object.__new__(cls)
        made._build(_check_breakpoints(times), list(laws), dim, basis=basis, constant=False)
        return made

    def _build(
        self, times: Array, laws: list[Law], dim: int, *, basis: Array | None, constant: bool
    ) -> None:
        self._times = times
        self._laws = laws
        self._inner_dim = dim
        self._basis = basis
        self._constant = constant

    @property
    def times(self) -> Array:
        """Breakpoints from 0 to the horizon, shape (k + 1,)."""
        return self._times

    @property
    def horizon(self) -> float:
        """End of the schedule."""
        return float(self._times[-1])

    @property
    def dim(self) -> int:
        """Dimension d of the tokens."""
        return self._inner_dim if self._basis is None else int(self._basis.shape[0])

    @property
    def basis(self) -> Array | None:
        """Orthonormal basis (d, k) of the subspace in which the parameters act, if any."""
        return self._basis

    @property
    def piecewise_constant(self) -> bool:
        """Whether the parameters are constant between the breakpoints."""
        return self._constant

    @cached_property
    def noisy(self) -> bool:
        """Whether there is process noise on any piece."""
        return any(piece.law(piece.start).noise is not None for piece in self.pieces(inner=True))

    def __call__(self, t: float) -> Parameters:
        """Parameters at time t; at a breakpoint, those of the piece that begins there."""
        inner = self.inner(t)
        return inner if self._basis is None else inner.lift(self._basis)

    def inner(self, t: float) -> Parameters:
        """Parameters at time t in the coordinates of :attr:`basis` (or in full)."""
        if type(t) is not float:  # checking a float again would take as long as the rest
            t = _check.number("t", t)
        slack = 1e-12 * self.horizon
        if not -slack <= t <= self.horizon + slack:
            raise IncompatibleSchedule(
                f"the schedule is defined on [0, {self.horizon:g}]; it was asked for t = {t:g}."
            )
        i = int(np.searchsorted(self._times, t, side="right")) - 1
        return self._laws[min(max(i, 0), len(self._laws) - 1)](t)

    def snap(self, t: float) -> float:
        """Move t onto a breakpoint that differs from it by rounding only.

        Residual layer k begins at k·h, which rounding may put just before a breakpoint.
        """
        nearest = float(self._times[np.argmin(np.abs(self._times - t))])
        return nearest if abs(nearest - t) <= 1e-12 * self.horizon else t

    def pieces(self, *, inner: bool = False) -> Iterator[Piece]:
        """Iterate over the smooth pieces, in time order.

        With ``inner`` the laws act in the coordinates of :attr:`basis`.
        """
        for i, law in enumerate(self._laws):
            lifted = law if inner or self._basis is None else _lifted(law, self._basis)
            yield Piece(float(self._times[i]), float(self._times[i + 1]), lifted, self._constant)

    def __repr__(self) -> str:
        form = "piecewise constant" if self._constant else "function of time"
        return (
            f"Schedule({form}, dim={self.dim}, horizon={self.horizon:g}, pieces={len(self._laws)})"
        )


def resolve(
    parameters: Parameters | Schedule, horizon: float | None, dim: int
) -> tuple[Schedule, float]:
    """Return the schedule and the horizon that a simulation in dimension `dim` was asked for.

    Raises
    ------
    IncompatibleSchedule, InvalidShape, InvalidNumber
        If the horizon is missing, not positive or beyond the schedule, or dimensions differ.
    """
    if isinstance(parameters, Parameters):
        if horizon is None:
            raise IncompatibleSchedule("`horizon` is needed with constant parameters.")
        end = _check.number("horizon", horizon, low=0.0, strict=True)
        schedule = Schedule.constant(parameters, end)
    elif isinstance(parameters, Schedule):
        schedule = parameters
        end = schedule.horizon if horizon is None else horizon
        end = _check.number("horizon", end, low=0.0, strict=True)
        if end > schedule.horizon * (1 + 1e-12):
            raise IncompatibleSchedule(
                f"`horizon` is {end:g}, but the schedule ends at {schedule.horizon:g}."
            )
    else:
        raise IncompatibleSchedule(
            f"`parameters` must be Parameters or a Schedule, not {type(parameters).__name__}."
        )
    if schedule.dim != dim:
        raise InvalidShape(
            f"the parameters have dimension {schedule.dim}, but the start has {dim}."
        )
    return schedule, end


def _check_parameters(value: object, dim: int | None = None, t: float = 0.0) -> Parameters:
    if not isinstance(value, Parameters):
        raise InvalidShape(f"a schedule is made of Parameters, not {type(value).__name__}.")
    if dim is not None and value.dim != dim:
        raise IncompatibleSchedule(
            f"the function of the schedule returns dimension {dim} at t = 0, but {value.dim} "
            f"at t = {t:.6g}."
        )
    return value


def _constant(parameters: Parameters) -> Law:
    return lambda t: parameters


def _lifted(law: Law, basis: Array) -> Law:
    return lambda t: law(t).lift(basis)


def _check_breakpoints(times: ArrayLike) -> Array:
    result = _check.vector("times", times)
    if result.size < 2 or result[0] != 0 or not np.all(np.diff(result) > 0):
        raise IncompatibleSchedule(
            "`times` must increase strictly from 0 to the horizon and hold at least two entries."
        )
    return result
