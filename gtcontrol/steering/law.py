"""From the solver's arrays to controls as a function of time.

The solver's path is polynomial on each interval.  Where a control is free of bounds, it is
corrected so that the tokens follow this very path: a plan that the solver holds to be exact
at its collocation points is then exact in between, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .._check import Array
from ..field import rates
from ..parameters import Parameters
from ..schedule import Law, Schedule
from .instance import Instance, Solution
from .transcription.form import NODES

__all__ = ["schedule_of"]

#: V is corrected only if that changes it by less than this fraction everywhere.
LARGEST_CORRECTION = 0.2


def schedule_of(instance: Instance, solution: Solution) -> Schedule:
    """Controls of a solution in the user's units, as a schedule."""
    form, units = instance.form, instance.units
    horizon = units.time * solution.time
    edges = np.concatenate([[0.0], np.cumsum(solution.widths)])
    times = horizon * edges
    times[-1] = horizon
    panels = _panels(instance, solution, edges)
    laws = [_physical(panel, horizon, units.length) for panel in panels]
    return Schedule.from_pieces(times, laws, form.dim, basis=instance.reduction.basis)


def _panels(instance: Instance, solution: Solution, edges: Array) -> list[_Panel]:
    form = instance.form
    free = {c for c in form.controls if c not in instance.entries and c not in form.norms}
    panels = [
        _Panel(
            start=float(edges[k]),
            width=float(solution.widths[k]),
            # rates per unit of scaled path time
            factor=solution.factors[k],
            mean=solution.means[k],
            factor_rates=solution.factor_rates[k] * solution.time,
            mean_rates=solution.mean_rates[k] * solution.time,
            # A, V, b per unit of path time; B as it is
            controls={
                c: u[k] * (1.0 if c == "B" else solution.time) for c, u in solution.controls.items()
            },
            mover="A" if "A" in free and form.rank else "",
            correct_bias="b" in free and form.mean,
            carry_mean=form.mean and "b" not in form.controls,
            bias_scale=_bias_scale(instance),
        )
        for k in range(form.intervals)
    ]
    if {"V", "B"} <= free and "A" not in free and form.rank:
        trial = [replace(panel, mover="V") for panel in panels]
        if all(_small_correction(old, new) for old, new in zip(panels, trial, strict=True)):
            return trial
    return panels


def _bias_scale(instance: Instance) -> float:
    """√(w_A/w_b): the length of the coordinate that b multiplies."""
    A, b = (instance.weights.get(f"weight.{c}", 0.0) for c in "Ab")
    return math.sqrt(A / b) if A > 0 and b > 0 else 1.0


def _small_correction(old: _Panel, new: _Panel) -> bool:
    """Whether correcting V changes it little: it divides by Lᵀ B L, which may be singular."""
    for x in (0.0, 0.5, 1.0):
        tau = old.start + x * old.width
        before, after = old.at(tau)[1], new.at(tau)[1]
        if np.linalg.norm(after - before) > LARGEST_CORRECTION * np.linalg.norm(before):
            return False
    return True


#: Below these sizes, relative to the whole, a correction fades out instead of dividing by zero.
SINGULAR, CROSSING = 1e-3, 0.02


@dataclass(frozen=True, eq=False)
class _Panel:
    """Path and controls on one interval, in scaled units and path time.

    ``mover`` names the matrix, A or V, that is corrected to follow the path; with
    ``carry_mean`` it has to carry the mean along, as there is no bias to do so.
    """

    start: float
    width: float
    factor: Array
    mean: Array
    factor_rates: Array
    mean_rates: Array
    controls: dict[str, Array]
    mover: str
    correct_bias: bool
    carry_mean: bool
    bias_scale: float

    def at(self, tau: float) -> tuple[Array, Array, Array, Array]:
        """Controls A, V, B, b at path time tau in [0, 1]."""
        theta = (tau - self.start) / self.width
        # linear interpolant of the stage derivatives, and its integral from 0
        span = NODES[1] - NODES[0]
        values = np.array([NODES[1] - theta, theta - NODES[0]]) / span
        integrals = np.array([NODES[1] * theta - theta**2 / 2, theta**2 / 2 - NODES[0] * theta]) * (
            self.width / span
        )
        L = self.factor + np.tensordot(integrals, self.factor_rates, 1)
        m = self.mean + np.tensordot(integrals, self.mean_rates, 1)
        factor_rate = np.tensordot(values, self.factor_rates, 1)
        mean_rate = np.tensordot(values, self.mean_rates, 1)
        d = m.size
        made = {c: np.zeros(d) if c == "b" else np.zeros((d, d)) for c in "AVBb"}
        for c, u in self.controls.items():
            made[c] = u[0] if u.shape[0] == 1 else np.tensordot(values, u, 1)
        A, V, B, b = (made[c] for c in "AVBb")
        got_mean, got = rates(m, L, A, ((V, B, None),), b)
        defect = factor_rate - got
        if self.mover == "A" and self.correct_bias:
            # A and b share the defect so that w_A |A|² + w_b |b|² is least
            row = np.append(np.zeros(L.shape[1]), self.bias_scale)
            defect = np.column_stack([defect, mean_rate - got_mean])
            joint = defect @ np.linalg.pinv(np.vstack([np.column_stack([L, m]), row]))
            return A + joint[:, :-1], V, B, b + self.bias_scale * joint[:, -1]
        if self.mover:
            inverse, acted = np.linalg.pinv(L), m
            if self.mover == "V":  # V acts on L (LᵀBL) and on m + L (LᵀBm)
                inverse = _tamed_inverse(L.T @ (B @ L), SINGULAR) @ inverse
                acted = m + L @ (L.T @ (B @ m))
            joint = defect @ inverse
            if self.carry_mean:
                joint = joint + _carry(mean_rate - got_mean - joint @ acted, acted, L)
            A, V = (A + joint, V) if self.mover == "A" else (A, V + joint)
        if self.correct_bias:
            got_mean, _ = rates(m, L, A, ((V, B, None),), b)
            b = b + mean_rate - got_mean
        return A, V, B, b


def _tamed_inverse(X: Array, size: float) -> Array:
    """Pseudoinverse, but smooth and bounded where singular values pass through zero.

    Singular values above a few times ``size`` |X| are inverted to rounding.
    """
    U, s, Wt = np.linalg.svd(X)
    cut = (size * s[0]) ** 2 if s.size else 0.0
    if cut == 0.0:
        return np.zeros_like(X.T)
    return np.asarray((Wt.T * (s / (s**2 + cut * np.exp(-(s**2) / cut)))) @ U.T)


def _carry(defect: Array, acted: Array, L: Array) -> Array:
    """Matrix that moves the mean by `defect` and leaves the range of L alone.

    It divides by the distance of what it acts on from that range.  A path may cross the range,
    where no matrix moves the one without the other: there the correction fades out, instead of
    having a pole that no integrator would see.
    """
    Q, _ = np.linalg.qr(L)
    away = acted - Q @ (Q.T @ acted)
    square = float(away @ away)
    cut = CROSSING**2 * float(acted @ acted + np.sum(L**2))
    if cut == 0.0:
        return np.zeros((acted.size, acted.size))
    return np.outer(defect, away) / (square + cut * math.exp(-square / cut))


def _physical(panel: _Panel, horizon: float, length: float) -> Law:
    def law(t: float) -> Parameters:
        A, V, B, b = panel.at(t / horizon)
        return Parameters.trusted(A / horizon, B / length**2, V / horizon, b * (length / horizon))

    return law
