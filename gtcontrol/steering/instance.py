"""One steering problem as numbers for a program: parameters, bounds, starts, solutions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .._check import Array
from ..problem.costs import ControlEnergy, KineticEnergy, MinimumTime
from ..problem.definitions import SteeringProblem
from .course import Course, Ends
from .reduction import Reduction
from .scaling import Units
from .transcription.form import NODES, Form, common_sizes
from .transcription.program import Program, program

__all__ = ["Instance", "Solution", "effective_controls", "instance_of"]

#: Weight of the control energy that makes a minimum-time problem strictly convex.
REGULARISATION = 1e-5

#: A bound that never binds, in scaled units.
LOOSE = 1e12


@dataclass(frozen=True, eq=False)
class Solution:
    """Arrays of a solved program in scaled units: what remains of the vector of unknowns."""

    widths: Array
    factors: Array
    means: Array
    factor_rates: Array
    mean_rates: Array
    controls: Mapping[str, Array]
    time: float
    cost: float
    unknowns: Array


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem in scaled units, in the span of its end points.

    Attributes
    ----------
    entries, norms : mapping from letter to float
        Bounds on the scaled controls.
    trace, eigenvalue : float
        Bounds on the scaled covariance (LOOSE if there is none).
    """

    problem: SteeringProblem
    reduction: Reduction
    units: Units
    ends: Ends
    form: Form
    weights: Mapping[str, float]
    entries: Mapping[str, float]
    norms: Mapping[str, float]
    trace: float
    eigenvalue: float

    @property
    def program(self) -> Program:
        """The program of this form (built once)."""
        return program(self.form)

    def parameters(self, widths: Array) -> Array:
        """Parameter vector of the program for a mesh of the given widths."""
        L1 = self.ends.last_factor
        r = L1.shape[1]
        U = np.linalg.svd(L1)[0] if r else np.eye(L1.shape[0])
        first = [self.ends.first_factor.ravel("F")]
        first += [self.ends.first_mean] if self.form.mean else []
        common: dict[str, Array | float] = dict.fromkeys(common_sizes(self.form), 0.0)
        common |= dict(self.weights)
        common |= {f"norm.{c}": self.norms[c] for c in self.form.norms}
        common |= {
            "start": np.concatenate(first),
            "whiten": np.asarray(np.linalg.pinv(L1)) if r else np.zeros((0, L1.shape[0])),
            "complement": np.asarray(U[:, r:].T, dtype=np.float64),
            "mean": self.ends.last_mean if self.form.mean else np.zeros(0),
            "image": np.zeros(0),
            "image.target": np.zeros(0),
        }
        if self.form.image and self.ends.pinned is not None:
            first_a, last_a = self.ends.pinned
            common["image"] = first_a
            common["image.target"] = np.linalg.svd(last_a[:, None])[0][:, 1:].T
        limits = np.stack([widths, np.full(widths.size, self.trace)], axis=0)
        limits = np.concatenate([limits, np.full((1, widths.size), self.eigenvalue)])
        # The start is given: where a bound is tight there, its slack would be singular.
        limits[1:, 0] = LOOSE
        return self.program.pack_parameters(common, limits)

    def variable_bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds of the unknowns: entries of the controls, and the horizon."""
        form = self.form
        upper = np.full(form.variables, np.inf)
        lower = -upper
        u = np.concatenate(
            [np.full(_size(form, c), self.entries.get(c, np.inf)) for c in form.controls]
            or [np.zeros(0)]
        )
        for k in range(form.intervals):
            base = k * form.stage_size
            if form.free_time:
                lower[base + form.state_size] = 1e-6
            base += form.node_size
            upper[base : base + form.points * u.size] = np.tile(u, form.points)
            lower[base : base + form.points * u.size] = -np.tile(u, form.points)
        if form.free_time:
            lower[form.variables - 1] = 1e-6
        return lower, upper

    def unknowns(self, course: Course, widths: Array) -> Array:
        """Vector of unknowns along a course."""
        form = self.form
        edges = np.concatenate([[0.0], np.cumsum(widths)])
        edges[-1] = 1.0
        parts = []
        for k in range(form.intervals + 1):
            state = course.at(float(edges[k]))
            parts.append(self._node(state.factor, state.mean, course.time))
            if k == form.intervals:
                break
            inner = [course.at(float(edges[k] + c * widths[k])) for c in NODES]
            for j in range(form.points):
                u = {
                    c: inner[j].controls[c]
                    if form.points == 2
                    else 0.5 * (inner[0].controls[c] + inner[1].controls[c])
                    for c in form.controls
                }
                parts += [self._clip(c, u[c]).ravel("F") for c in form.controls]
            parts.append(self._slack(state.factor))
            # dL/dt = (dL/dtau)/T in the units of a free horizon
            if form.stages == 2:
                parts += [
                    self._rates(s.factor_rate / course.time, s.mean_rate / course.time)
                    for s in inner
                ]
        return np.concatenate(parts)

    def solution(self, unknowns: Array, widths: Array, cost: float) -> Solution:
        """Take the unknowns apart."""
        form = self.form
        d, n = form.dim, form.intervals
        stages = unknowns[: n * form.stage_size].reshape(n, form.stage_size)
        nodes = np.concatenate(
            [stages[:, : form.node_size], unknowns[None, n * form.stage_size :]], axis=0
        )
        time = float(nodes[-1, form.state_size]) if form.free_time else 1.0
        factors, means = self._states(nodes[:, : form.state_size])
        inner = stages[:, form.node_size :]
        width = form.points * form.control_size
        points = inner[:, :width].reshape(n, form.points, form.control_size)
        if form.stages == 2:
            slopes = inner[:, width + form.slack_size :].reshape(n, 2, form.state_size)
        else:
            steps = np.diff(nodes[:, : form.state_size], axis=0)
            slopes = np.repeat((steps / (widths[:, None] * time))[:, None], 2, axis=1)
        factor_rates, mean_rates = self._states(slopes, rate=True)
        controls, offset = {}, 0
        for c in form.controls:
            size = _size(form, c)
            piece = points[..., offset : offset + size]
            # matrices are stacked by columns
            controls[c] = (
                piece if c == "b" else np.swapaxes(piece.reshape(n, form.points, d, d), 2, 3)
            )
            offset += size
        return Solution(
            widths, factors, means, factor_rates, mean_rates, controls, time, cost, unknowns
        )

    def control_rows(self, unknowns: Array) -> Array:
        """Controls of each interval, shape (N, points x control size)."""
        form = self.form
        stages = unknowns[: form.intervals * form.stage_size].reshape(form.intervals, -1)
        return stages[:, form.node_size : form.node_size + form.points * form.control_size]

    def with_control_rows(self, unknowns: Array, rows: Array) -> Array:
        """The unknowns with other controls."""
        new = unknowns.copy()
        self.control_rows(new)[:] = rows  # a view
        return new

    # -- pieces of the above ---------------------------------------------------------------

    def _node(self, factor: Array, mean: Array, time: float) -> Array:
        parts = [factor.ravel("F")]
        parts += [mean] if self.form.mean else []
        parts += [np.array([time])] if self.form.free_time else []
        return np.concatenate(parts)

    def _rates(self, factor_rate: Array, mean_rate: Array) -> Array:
        parts = [factor_rate.ravel("F")] + ([mean_rate] if self.form.mean else [])
        return np.concatenate(parts)

    def _states(self, flat: Array, *, rate: bool = False) -> tuple[Array, Array]:
        """Factors (..., d, r) and means (..., d) from stacked states."""
        d, r = self.form.dim, self.form.rank
        lead = flat.shape[:-1]
        factors = np.swapaxes(flat[..., : d * r].reshape(*lead, r, d), -1, -2)
        if self.form.mean:
            return factors, flat[..., d * r :]
        if self.form.image and self.ends.pinned is not None:
            return factors, factors @ self.ends.pinned[0]
        fixed = np.zeros(d) if rate else self.ends.first_mean
        return factors, np.broadcast_to(fixed, (*lead, d))

    def _clip(self, letter: str, u: Array) -> Array:
        """Move a starting control inside its bounds."""
        limit = self.entries.get(letter)
        if limit is not None:
            u = np.clip(u, -0.95 * limit, 0.95 * limit)
        norm = self.norms.get(letter)
        if norm is not None:
            u = u * min(1.0, 0.95 * norm / max(float(np.linalg.norm(u)), 1e-300))
        return u

    def _slack(self, factor: Array) -> Array:
        if not self.form.eigenvalue:
            return np.zeros(0)
        gap = np.eye(self.form.rank) - factor.T @ factor / self.eigenvalue
        values, vectors = np.linalg.eigh(gap)
        root = vectors * np.sqrt(np.maximum(values, 1e-3))
        triangle = np.asarray(np.linalg.qr(root.T, mode="r"))
        return triangle[np.triu_indices(self.form.rank)]


def effective_controls(controls: str, *, mean: bool, rank: int) -> str:
    """Drop the controls that move nothing, which an optimal plan leaves at zero."""
    kept = set(controls)
    if "V" not in kept or not rank:
        kept.discard("B")
    if not mean:
        kept.discard("b")
        if "B" not in kept:
            kept.discard("V")
    return "".join(c for c in controls if c in kept)


def instance_of(
    problem: SteeringProblem, reduction: Reduction, units: Units, intervals: int
) -> Instance:
    """Bring a problem into scaled units and choose the form of its program."""
    first, last = reduction.start, reduction.target
    movable = "A" in problem.controls or {"V", "B"} <= set(problem.controls)
    (L0, m0), (L1, m1) = units.scale(first), units.scale(last)
    if not movable:  # the covariance stays: steer the mean alone
        L0, L1 = L0[:, :0], L1[:, :0]
    mean = bool(np.any(m0) or np.any(m1))
    pinned = _pinned(L0, m0, L1, m1) if mean and not set(problem.controls) & {"V", "b"} else None
    controls = effective_controls(problem.controls, mean=mean, rank=L0.shape[1])
    entries, norms = _bounds(problem, controls, units)
    free_time = isinstance(problem.cost, MinimumTime)
    bounded = bool(entries or norms)
    limits = problem.bounds
    form = Form(
        dim=m0.size,
        rank=L0.shape[1],
        mean=mean and pinned is None,
        image=pinned is not None,
        controls=controls,
        intervals=intervals,
        # Within an interval V and B may chatter against each other: hold them constant.  A
        # bounded control is held constant too, so that the bound holds between the points.
        points=1 if bounded or {"V", "B"} <= set(controls) else 2,
        free_time=free_time,
        norms="".join(c for c in controls if c in norms),
        trace=limits.trace is not None and L0.shape[1] > 0,
        eigenvalue=limits.largest_eigenvalue is not None and L0.shape[1] > 0,
    )
    area = units.length**2
    return Instance(
        problem,
        reduction,
        units,
        Ends(L0, L1, m0, m1, pinned),
        form,
        _weights(problem, controls, units, m0.size),
        entries,
        norms,
        LOOSE if limits.trace is None else limits.trace / area,
        LOOSE if limits.largest_eigenvalue is None else limits.largest_eigenvalue / area,
    )


def _pinned(L0: Array, m0: Array, L1: Array, m1: Array) -> tuple[Array, Array] | None:
    """Coordinates (a₀, a₁) of the means in the factors, if they lie in the ranges."""
    if not L0.shape[1]:
        return None
    first = np.asarray(np.linalg.lstsq(L0, m0, rcond=None)[0], dtype=np.float64)
    if np.linalg.norm(L0 @ first - m0) > 1e-9 * np.linalg.norm(m0):
        return None
    return first, np.asarray(np.linalg.lstsq(L1, m1, rcond=None)[0], dtype=np.float64)


def _bounds(
    problem: SteeringProblem, controls: str, units: Units
) -> tuple[dict[str, float], dict[str, float]]:
    entries, norms = dict(problem.bounds.entries), dict(problem.bounds.norms)
    return (
        {c: entries[c] / units.control(c) for c in controls if c in entries},
        {c: norms[c] / units.control(c) for c in controls if c in norms},
    )


def _weights(problem: SteeringProblem, controls: str, units: Units, dim: int) -> dict[str, float]:
    cost = problem.cost
    weights = {f"weight.{c}": 0.0 for c in controls} | {"weight.kinetic": 0.0, "weight.time": 0.0}
    if isinstance(cost, ControlEnergy):
        weights |= {f"weight.{c}": units.weight(c) for c in controls}
        weights["weight.kinetic"] = cost.kinetic * units.kinetic
    elif isinstance(cost, KineticEnergy):
        weights["weight.kinetic"] = units.kinetic
    else:
        weights["weight.time"] = 1.0
        for c in controls:
            size = cost.bound / units.control(c)
            count = dim if c == "b" else dim**2
            weights[f"weight.{c}"] = REGULARISATION / (
                len(controls) * size**2 * (count if cost.norm == "entries" else 1)
            )
    return weights


def _size(form: Form, letter: str) -> int:
    return form.dim if letter == "b" else form.dim**2
