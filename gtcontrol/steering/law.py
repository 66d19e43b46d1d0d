"""From the solver's arrays to controls as a function of time.

The solver's path is polynomial on each interval.  Where a control is free of bounds, it is
corrected so that the tokens follow this very path: a plan that the solver holds to be exact
at its collocation points is then exact in between, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._check import Array
from ..field import rates
from ..parameters import Parameters
from ..schedule import Law, Schedule
from .instance import Instance, Solution
from .transcription.form import NODES

__all__ = ["schedule_of"]


def schedule_of(instance: Instance, solution: Solution) -> Schedule:
    """Controls of a solution in the user's units, as a schedule."""
    form, units = instance.form, instance.units
    horizon = units.time * solution.time
    edges = np.concatenate([[0.0], np.cumsum(solution.widths)])
    times = horizon * edges
    times[-1] = horizon
    free = {
        c: c in form.controls and c not in instance.entries and c not in form.norms for c in "Ab"
    }
    laws: list[Law] = []
    for k in range(form.intervals):
        panel = _Panel(
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
            correct_linear=free["A"] and form.rank > 0,
            correct_bias=free["b"] and form.mean,
            carry_mean=form.mean and "b" not in form.controls,
        )
        laws.append(_physical(panel, horizon, units.length))
    return Schedule.from_pieces(times, laws, form.dim, basis=instance.reduction.basis)


@dataclass(frozen=True, eq=False)
class _Panel:
    """Path and controls on one interval, in scaled units and path time."""

    start: float
    width: float
    factor: Array
    mean: Array
    factor_rates: Array
    mean_rates: Array
    controls: dict[str, Array]
    correct_linear: bool
    correct_bias: bool
    carry_mean: bool

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
        heads = ((V, B, None),)
        if self.correct_linear:
            got_mean, got = rates(m, L, A, heads, b)
            if self.carry_mean:
                defect = np.column_stack([factor_rate - got, mean_rate - got_mean])
                A = A + defect @ np.linalg.pinv(np.column_stack([L, m]))
            else:
                A = A + (factor_rate - got) @ np.linalg.pinv(L)
        if self.correct_bias:
            got_mean, _ = rates(m, L, A, heads, b)
            b = b + mean_rate - got_mean
        return A, V, B, b


def _physical(panel: _Panel, horizon: float, length: float) -> Law:
    def law(t: float) -> Parameters:
        A, V, B, b = panel.at(t / horizon)
        return Parameters.trusted(A / horizon, B / length**2, V / horizon, b * (length / horizon))

    return law
