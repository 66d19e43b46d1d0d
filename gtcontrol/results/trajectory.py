"""Result of a simulation: the Gaussian law along time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.interpolate import PPoly
from scipy.optimize import brentq

from .. import _check
from .._check import Array
from ..errors import InvalidNumber
from ..finite_tokens import FiniteTokens
from ..gaussian import Gaussian
from ..problem.definitions import SimulationProblem
from ..status import Status
from .base import Arrays, Result
from .feedforward import pack_feedforward, unpack_feedforward
from .packing import pack_gaussian, unpack_gaussian
from .plain import agree, pack_plain, plain, read_array, read_status, read_times, restore
from .schedules import pack_schedule, unpack_schedule

__all__ = ["Interpolant", "Trajectory"]


@dataclass(frozen=True, eq=False)
class Interpolant:
    """Continuous extension of an integrator: state (mean, matrix, clock) per step.

    Within step i the state is polynomial in s in [i, i + 1]; its last entry is the time t(s),
    which is linear in ordinary steps and slows down near a blow-up.

    Parameters
    ----------
    polynomial : scipy.interpolate.PPoly
        Value (k + k·c + 1,): mean, then matrix (factor or covariance) row by row, then clock.
    columns : int
        Number of columns c of the matrix.
    covariance_form : bool
        Whether the matrix is the covariance itself.
    basis : (d, k) array or None
        Subspace in which the state moves; ``rest`` holds what stays constant outside it.
    rest : (d, 1 + c) array or None
    """

    polynomial: PPoly
    columns: int
    covariance_form: bool = False
    basis: Array | None = None
    rest: Array | None = None

    def __call__(self, t: float, times: Array) -> tuple[Array, Array]:
        """Mean and matrix at time t; `times` are the node times of the trajectory."""
        nodes = self.polynomial.x
        i = int(np.clip(np.searchsorted(times, t, side="right") - 1, 0, times.size - 2))
        low, high = float(nodes[i]), float(nodes[i + 1])
        width = times[i + 1] - times[i]
        s = low + (high - low) * (float(np.clip((t - times[i]) / width, 0, 1)) if width else 0.0)
        state = np.asarray(self.polynomial(s))
        if abs(state[-1] - t) > 1e-14 * max(abs(t), float(width)) and 0 < t - times[i] < width:
            clock = PPoly(self.polynomial.c[:, i : i + 1, -1], nodes[i : i + 2])
            if clock(low) < t < clock(high):
                s = float(brentq(lambda x: float(clock(x)) - t, low, high, xtol=1e-300))
                state = np.asarray(self.polynomial(s))
        return lift(*split(state[:-1], self.columns), self.basis, self.rest)


def lift(
    mean: Array, matrix: Array, basis: Array | None, rest: Array | None
) -> tuple[Array, Array]:
    """Embed a state in coordinates of `basis` into all d coordinates."""
    if basis is None or rest is None:
        return mean, matrix
    return basis @ mean + rest[:, 0], basis @ matrix + rest[:, 1:]


def split(state: Array, columns: int) -> tuple[Array, Array]:
    """Split a state (mean, matrix) of length k + k·columns."""
    k = state.size // (1 + columns)
    return state[:k], state[k:].reshape(k, columns)


def factor_of(covariance: Array) -> Array:
    """Square factor of a covariance that an integrator has computed, shape (d, d)."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


@dataclass(frozen=True, eq=False)
class Trajectory(Result):
    """The Gaussian law along time, as far as it was computed.

    Attributes
    ----------
    problem : SimulationProblem
        With ``tokens`` the law is that of one token among so many, by the closure.
    status : Status
        SUCCESS, or why the trajectory ends before the horizon.
    times : (n,) array
        Increasing times of the accepted steps (or layers); never padded.  Of a deep network
        these are every n-th layer, evenly spaced, and the last one.
    means : (n, d) array
    factors : (n, d, r) array
        With process noise, or layers of finitely many tokens, they are d by d and the rank
        may grow.
    blow_up_time : float
        Estimated time of finite-time blow-up, inf when there is none before the horizon.
    steps, evaluations : int
        Accepted steps (or layers, whether kept or not) and evaluations of the vector field.
    seconds : float
        Wall time spent.
    """

    kind: ClassVar[str] = "simulation"

    problem: SimulationProblem
    status: Status
    times: Array
    means: Array
    factors: Array
    blow_up_time: float
    steps: int
    evaluations: int
    seconds: float
    interpolant: Interpolant | None = None

    @property
    def answered(self) -> bool:
        """Whether the simulation reached the horizon or a blow-up."""
        return self.status.answered

    @property
    def final(self) -> Gaussian:
        """The last law that was computed."""
        return self._law(self.means[-1], self.factors[-1])

    @property
    def covariances(self) -> Array:
        """Covariances at the stored times, shape (n, d, d)."""
        return np.asarray(self.factors @ np.swapaxes(self.factors, 1, 2))

    @property
    def traces(self) -> Array:
        """Traces of the covariance at the stored times, shape (n,)."""
        return np.asarray(np.sum(self.factors**2, axis=(1, 2)))

    @property
    def eigenvalues(self) -> Array:
        """Leading min(d, r) eigenvalues of the covariance, largest first, shape (n, r)."""
        if not self.factors.shape[2]:
            return np.zeros((self.times.size, 0))
        return np.asarray(np.linalg.svd(self.factors, compute_uv=False)) ** 2

    def at(self, t: float) -> Gaussian:
        """Law at time t, from the integrator's continuous extension.

        Between residual layers tokens do not move: the law after the last layer that is
        complete at time t is returned (of a deep network, after the last one that was kept).

        Raises
        ------
        InvalidNumber
            If t lies outside the part that was computed.
        """
        t = _check.number("t", t)
        last = float(self.times[-1])
        if not 0 <= t <= last * (1 + 1e-14):
            why = (
                f" (blow-up at {self.blow_up_time:.12g})" if np.isfinite(self.blow_up_time) else ""
            )
            raise InvalidNumber(f"`t` must lie in [0, {last:.12g}]{why}; it is {t:.12g}.")
        if self.interpolant is None or t >= last or self.times.size == 1:
            slack = 1e-12 * last
            i = int(np.searchsorted(self.times, t + slack, side="right")) - 1
            return self._law(self.means[i], self.factors[i])
        mean, matrix = self.interpolant(t, self.times)
        return self._law(mean, factor_of(matrix) if self.interpolant.covariance_form else matrix)

    def _law(self, mean: Array, factor: Array) -> Gaussian:
        if self.problem.noisy:  # the factor is d by d, whatever the rank
            return Gaussian.from_covariance(mean, factor @ factor.T)
        # A column is exactly zero only after a layer that is singular in its direction.
        return Gaussian.trusted(mean, factor[:, factor.any(axis=0)])

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays of the trajectory."""
        p = self.problem
        values = {
            "name": p.name,
            "status": self.status.name,
            "horizon": p.horizon,
            "layers": p.layers,
            "rtol": p.rtol,
            "max_steps": p.max_steps,
            "linearisation": p.linearisation,
            "blow_up_time": self.blow_up_time,
            "steps": self.steps,
            "evaluations": self.evaluations,
            "seconds": self.seconds,
            "tokens": None if p.tokens is None else pack_plain(p.tokens),
        }
        arrays = {"times": self.times, "means": self.means, "factors": self.factors}
        arrays |= pack_gaussian("start", p.start) | pack_schedule("schedule", p.schedule)
        layer_values, layer_arrays = pack_feedforward("feedforward", p.feedforward)
        values, arrays = values | layer_values, arrays | layer_arrays
        dense = self.interpolant
        if dense is not None:
            values["covariance_form"] = dense.covariance_form
            values["columns"] = dense.columns
            arrays["dense.coefficients"] = dense.polynomial.c
            arrays["dense.nodes"] = dense.polynomial.x
            if dense.basis is not None and dense.rest is not None:
                arrays["dense.basis"] = dense.basis
                arrays["dense.rest"] = dense.rest
        return values, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> Trajectory:
        """Restore a trajectory."""
        problem = SimulationProblem(
            start=unpack_gaussian("start", arrays),
            schedule=unpack_schedule("schedule", arrays),
            feedforward=unpack_feedforward("feedforward", values, arrays),
            tokens=_unpack_tokens(values["tokens"]),
            **plain(SimulationProblem, values),
        )
        _check.number("horizon", problem.horizon, low=0.0, strict=True)
        if problem.layers is not None:
            _check.integer("layers", problem.layers, low=1)
        times = read_times(arrays, "times", problem.horizon)
        d, count = problem.start.dim, times.size
        agree("the dimension of the schedule", problem.schedule.dim, d)
        if problem.feedforward is not None:
            agree("the dimension of the feed-forward layer", problem.feedforward.dim, d)
        columns = d if problem.noisy else problem.start.rank
        status = read_status(values)
        if status is Status.BLOW_UP:
            _check.number("blow_up_time", values["blow_up_time"], low=0.0, strict=True)
        return cls(
            problem=problem,
            status=status,
            times=times,
            means=read_array(arrays, "means", count, d),
            factors=read_array(arrays, "factors", count, d, columns),
            interpolant=_unpack_interpolant(values, arrays, count, d),
            **plain(cls, values),
        )


def _unpack_tokens(values: Any) -> FiniteTokens | None:
    return None if values is None else restore(FiniteTokens, values)


def _unpack_interpolant(
    values: dict[str, Any], arrays: Arrays, count: int, d: int
) -> Interpolant | None:
    if "dense.nodes" not in arrays:
        return None
    rest = plain(Interpolant, values)
    columns = rest["columns"]
    basis = remainder = None
    inner = d
    if "dense.basis" in arrays:
        basis = read_array(arrays, "dense.basis", d, None)
        remainder = read_array(arrays, "dense.rest", d, 1 + columns)
        inner = basis.shape[1]
    size = inner * (1 + columns) + 1
    polynomial = PPoly(
        read_array(arrays, "dense.coefficients", None, count - 1, size),
        read_array(arrays, "dense.nodes", count),
    )
    return Interpolant(polynomial, basis=basis, rest=remainder, **rest)
