"""The built program: layout of unknowns and rows, and its solvers."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from ..._check import Array
from .derivatives import LaidOut, lay_out, stage_blocks, stage_places, terminal_blocks
from .form import Form, common_sizes
from .stage import stage_function, terminal_function

__all__ = ["Options", "Program", "program"]

Options = tuple[tuple[str, Any], ...]


class Program:
    """A program of one form: expressions of the unknowns w and the parameters p.

    The unknowns are x₀, u₀, F₀, x₁, u₁, F₁, …, x_N; the rows, for each interval, are the
    continuity of the node, (at the first one) the initial state, the dynamics and the path
    bounds; last comes the terminal set.
    """

    def __init__(self, form: Form) -> None:
        self.form = form
        self._sizes = common_sizes(form)
        self._stage, self._terminal = stage_function(form), terminal_function(form)
        # With one stage the function of an interval sees the next node, and "end" is a defect.
        self._sign = -1 if form.stages == 2 else 1
        self._path_rows = int(self._stage.size1_out(2))
        self._solvers: dict[tuple[str, Options], Any] = {}
        self.row_names = self._name_rows()
        self.equality = [not name.startswith(("norm", "trace")) for name, _ in self.row_names]

    # -- numbers in and out --------------------------------------------------------------

    def pack_parameters(self, common: Mapping[str, Array | float], per_interval: Array) -> Array:
        """Stack the parameters.

        Parameters
        ----------
        common : mapping
            Values by the names of :func:`common_sizes`; matrices are stacked by columns.
        per_interval : (3, N) array
            Width of each interval, bound on the trace, bound on the largest eigenvalue.
        """
        parts = [np.ravel(np.asarray(common[name], dtype=float), "F") for name in self._sizes]
        return np.concatenate([*parts, np.ravel(per_interval, "F")])

    def row_bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds of the rows; every row is shifted to 0."""
        lower = np.where(self.equality, 0.0, -np.inf)
        return lower, np.zeros(lower.size)

    def solver(self, name: str, options: Options) -> Any:
        """Return the solver "ipopt" or "fatrop" with these options, built when first asked."""
        key = (name, options)
        if key not in self._solvers:
            make = self._fatrop if name == "fatrop" else self._ipopt
            self._solvers[key] = make(dict(options))
        return self._solvers[key]

    def residuals(self, w: Array, p: Array) -> Array:
        """Rows at a point, as they stand in :attr:`row_names`."""
        return np.asarray(self._row_function(w, p)).ravel()

    @functools.cached_property
    def _row_function(self) -> Any:
        w, p, _, g = self._expressions(mapped=True)
        return ca.Function("rows", [w, p], [g])

    # -- expressions ---------------------------------------------------------------------

    def _name_rows(self) -> list[tuple[str, int]]:
        form = self.form
        names: list[tuple[str, int]] = []
        for k in range(form.intervals):
            names += [("continuity", k)] * form.node_size
            names += [("initial state", 0)] * (form.state_size if k == 0 else 0)
            names += [("dynamics", k)] * form.rate_size
            names += [(f"norm of {c}", k) for c in form.norms for _ in range(form.points)]
            names += [("trace of the covariance", k)] * form.trace
            names += [("largest eigenvalue of the covariance", k)] * form.slack_size
        last = form.intervals
        names += [("terminal range", last)] * ((form.dim - form.rank) * form.rank)
        names += [("terminal covariance", last)] * (form.rank * (form.rank + 1) // 2)
        mean_rows = (form.dim if form.mean else 0) + (form.rank - 1 if form.image else 0)
        return names + [("terminal mean", last)] * mean_rows

    def _split(self, w: Any, p: Any) -> tuple[Any, Any, Any, Any]:
        """Unknowns per interval, last node, parameters per interval, shared parameters."""
        form, count = self.form, sum(self._sizes.values())
        body = form.intervals * form.stage_size
        stages = ca.reshape(w[:body], form.stage_size, form.intervals)
        return stages, w[body:], ca.reshape(p[count:], 3, form.intervals), p[:count]

    def _windows(self, stages: Any, last: Any) -> Any:
        """What the function of each interval sees, one column per interval."""
        if self.form.stages == 2:
            return stages
        following = ca.horzcat(stages[: self.form.node_size, 1:], last)
        return ca.vertcat(stages, following)

    def _expressions(self, *, mapped: bool) -> tuple[Any, Any, Any, Any]:
        """Unknowns, parameters, objective and rows.

        Mapped, all intervals are one call, which evaluates fastest; unrolled, the program
        can be expanded to scalar operations, which fatrop needs.
        """
        form, n = self.form, self.form.intervals
        w = ca.MX.sym("w", form.variables)
        p = ca.MX.sym("p", sum(self._sizes.values()) + 3 * n)
        stages, last, per, common = self._split(w, p)
        windows = self._windows(stages, last)
        if mapped:
            costs, ends, rows = self._stage.map(n)(windows, per, ca.repmat(common, 1, n))
            cost = ca.sum2(costs)
            columns = [(ends[:, k], rows[:, k]) for k in range(n)]
        else:
            outs = [self._stage(windows[:, k], per[:, k], common) for k in range(n)]
            cost = sum((out[0] for out in outs), ca.MX(0))
            columns = [(out[1], out[2]) for out in outs]
        end_cost, end_rows = self._terminal(last, common)
        offset = 0
        for name, size in self._sizes.items():
            if name == "start":
                break
            offset += size
        start = common[offset : offset + form.state_size]
        parts = []
        for k, (end, row) in enumerate(columns):
            if form.stages == 2:
                following = stages[: form.node_size, k + 1] if k + 1 < n else last
                parts.append(following - end)  # fatrop finds the dynamics only in this order
            else:
                parts.append(end)
            if k == 0:
                parts.append(stages[: form.state_size, 0] - start)
            parts.append(row)
        return w, p, cost + end_cost, ca.vertcat(*parts, end_rows)

    # -- solvers -------------------------------------------------------------------------

    def _fatrop(self, options: dict[str, Any]) -> Any:
        w, p, f, g = self._expressions(mapped=False)
        settings: dict[str, Any] = {
            "structure_detection": "auto",
            "equality": self.equality,
            "expand": True,
            "print_time": False,
            "error_on_fail": False,
            "show_eval_warnings": False,
            "calc_lam_p": False,  # sensitivities to the parameters are not used
            "fatrop": {"print_level": 0, **options},
        }
        return ca.nlpsol("steer", "fatrop", {"x": w, "p": p, "f": f, "g": g}, settings)

    def _ipopt(self, options: dict[str, Any]) -> Any:
        w, p, f, g, derivatives = self._with_derivatives
        settings: dict[str, Any] = {
            "print_time": False,
            "error_on_fail": False,
            "show_eval_warnings": False,
            "calc_lam_p": False,  # sensitivities to the parameters are not used
            "ipopt": {"print_level": 0, "sb": "yes", **options},
            **derivatives,
        }
        return ca.nlpsol("steer", "ipopt", {"x": w, "p": p, "f": f, "g": g}, settings)

    @functools.cached_property
    def _with_derivatives(self) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        w, p, f, g = self._expressions(mapped=True)
        return w, p, f, g, self._derivatives(w, p, f, g)

    def _derivatives(self, w: Any, p: Any, f: Any, g: Any) -> dict[str, Any]:
        n = self.form.intervals
        stages, last, per, common = self._split(w, p)
        windows = self._windows(stages, last)
        point = windows, last, per, common, ca.repmat(common, 1, n)
        gradient, ends, paths, hessian = stage_blocks(self._stage, self._sign)
        end_gradient, end_rows, end_hessian = terminal_blocks(self._terminal)
        slopes = gradient.map(n)(windows, per, point[-1])
        own, size = self.form.stage_size, self.form.node_size
        grad = ca.vertcat(ca.vec(slopes[:own, :]), end_gradient(last, common))
        if self.form.stages == 1:  # what an interval adds to the slope in the next node
            added = ca.vertcat(slopes[own:, :], ca.MX(own - size, n))
            grad += ca.vertcat(ca.MX(own, 1), ca.vec(added)[: n * own - own + size])
        jacobian = self._jacobian(point, ends, paths, end_rows)
        lam_f, lam_g = ca.MX.sym("lam_f"), ca.MX.sym("lam_g", g.numel())
        hess = self._hessian(point, hessian, end_hessian, lam_f, lam_g)
        return {
            "grad_f": ca.Function("nlp_grad_f", [w, p], [f, grad], ["x", "p"], ["f", "grad_f_x"]),
            "jac_g": ca.Function("nlp_jac_g", [w, p], [g, jacobian], ["x", "p"], ["g", "jac_g_x"]),
            "hess_lag": ca.Function(
                "nlp_hess_l",
                [w, p, lam_f, lam_g],
                [hess],
                ["x", "p", "lam_f", "lam_g"],
                ["hess_gamma_x_x"],
            ),
        }

    def _jacobian(self, point: Any, ends: Any, paths: Any, end_rows: Any) -> Any:
        form, n = self.form, self.form.intervals
        windows, last, per, common, shared = point
        gap_tops, row_tops, end_top = self._tops()
        rows = end_top + form.terminal_size
        identity: list[tuple[int, int]] = []
        for k, top in enumerate(gap_tops if form.stages == 2 else ()):
            identity += [(top + i, (k + 1) * form.stage_size + i) for i in range(form.node_size)]
        first = gap_tops[0] + form.node_size
        identity += [(first + i, i) for i in range(form.state_size)]
        return lay_out(
            (rows, form.variables),
            [
                LaidOut(
                    ends,
                    ca.vec(ends.function.map(n)(windows, per, shared)),
                    stage_places(form, gap_tops),
                ),
                LaidOut(
                    paths,
                    ca.vec(paths.function.map(n)(windows, per, shared)),
                    stage_places(form, row_tops),
                ),
                LaidOut(
                    end_rows,
                    end_rows.function(last, common),
                    ((end_top, n * form.stage_size),),
                ),
            ],
            identity,
        )

    def _hessian(self, point: Any, hessian: Any, end_hessian: Any, lam_f: Any, lam_g: Any) -> Any:
        form, n = self.form, self.form.intervals
        windows, last, per, common, shared = point
        gap_tops, row_tops, end_top = self._tops()
        lam_ends = ca.horzcat(*[lam_g[top : top + form.node_size] for top in gap_tops])
        lam_rows = ca.horzcat(*[lam_g[top : top + self._path_rows] for top in row_tops])
        curvature = hessian.function.map(n)(
            windows, per, shared, ca.repmat(lam_f, 1, n), lam_ends, lam_rows
        )
        body = n * form.stage_size
        return lay_out(
            (form.variables, form.variables),
            [
                LaidOut(
                    hessian,
                    ca.vec(curvature),
                    stage_places(form, [k * form.stage_size for k in range(n)]),
                ),
                LaidOut(
                    end_hessian,
                    end_hessian.function(last, common, lam_f, lam_g[end_top:]),
                    ((body, body),),
                ),
            ],
            [],
        )

    def _tops(self) -> tuple[list[int], list[int], int]:
        """First row of each interval's continuity and path rows, and of the terminal set."""
        form = self.form
        gaps, rows, offset = [], [], 0
        for k in range(form.intervals):
            gaps.append(offset)
            offset += form.node_size + (form.state_size if k == 0 else 0)
            rows.append(offset)
            offset += self._path_rows
        return gaps, rows, offset


@functools.lru_cache(maxsize=32)
def program(form: Form) -> Program:
    """Build the program of a form, or return it if it was built before."""
    return Program(form)
