"""One interval and the last node of the program, as CasADi functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca

from ...field import rates
from .form import RUNGE_KUTTA, WEIGHTS, Form, common_sizes

__all__ = ["stage_function", "terminal_function"]


def _unpack(symbol: Any, sizes: dict[str, int]) -> dict[str, Any]:
    made, offset = {}, 0
    for name, size in sizes.items():
        made[name] = symbol[offset : offset + size]
        offset += size
    return made


def _controls_of(form: Form, u: Any) -> tuple[Any, Any, Any, Any]:
    """Matrices A, V, B and vector b of one control point; structural zeros if disabled."""
    d, offset = form.dim, 0
    made = {"A": ca.SX(d, d), "V": ca.SX(d, d), "B": ca.SX(d, d), "b": ca.SX(d, 1)}
    for c in form.controls:
        size = d if c == "b" else d * d
        piece = u[offset : offset + size]
        made[c] = piece if c == "b" else ca.reshape(piece, d, d)
        offset += size
    return made["A"], made["V"], made["B"], made["b"]


def _state_of(form: Form, x: Any) -> tuple[Any, Any]:
    d, r = form.dim, form.rank
    factor = ca.reshape(x[: d * r], d, r)
    mean = x[d * r : d * r + d] if form.mean else ca.SX(d, 1)
    return factor, mean


def stage_function(form: Form) -> Any:
    """One interval: (window, (width, trace, eigenvalue bound), parameters) -> cost, end, rows.

    With two stages the next node must equal ``end``; with one, the window holds the next node,
    and ``end`` is what it exceeds its due by.
    """
    ns, nu = form.state_size, form.control_size
    sizes = common_sizes(form)
    z = ca.SX.sym("z", form.window_size)
    per = ca.SX.sym("per", 3)
    common = ca.SX.sym("common", sum(sizes.values()))
    theta = _unpack(common, sizes)
    x = z[:ns]
    offset = form.node_size
    u = [z[offset + j * nu : offset + (j + 1) * nu] for j in range(form.points)]
    offset += form.points * nu
    slack = z[offset : offset + form.slack_size]
    offset += form.slack_size
    h = per[0] * z[ns] if form.free_time else per[0]

    rows: list[Any] = []
    cost = ca.SX(0)
    if form.stages == 2:
        F = [z[offset + j * ns : offset + (j + 1) * ns] for j in range(2)]
        for j in range(2):
            X = x + h * (RUNGE_KUTTA[j, 0] * F[0] + RUNGE_KUTTA[j, 1] * F[1])
            rows.append(F[j] - _rate(form, X, u[min(j, form.points - 1)]))
            cost += WEIGHTS[j] * h * theta["weight.kinetic"] * _kinetic(form, F[j], theta)
        end = x + h * (WEIGHTS[0] * F[0] + WEIGHTS[1] * F[1])
        if form.free_time:
            end = ca.vertcat(end, z[ns])
    else:
        following = z[form.stage_size :]
        step = following[:ns] - x
        end = step - h * _rate(form, 0.5 * (x + following[:ns]), u[0])
        cost += theta["weight.kinetic"] * _kinetic(form, step, theta) / h
        if form.free_time:
            end = ca.vertcat(end, following[ns] - z[ns])
    for point in u:
        cost += h / form.points * _control_cost(form, point, theta)
    rows += _path_rows(form, x, u, slack, per, theta)
    return ca.Function(
        "stage",
        [z, per, common],
        [cost, end, ca.vertcat(*rows)],
        ["z", "per", "common"],
        ["cost", "end", "rows"],
    )


def _rate(form: Form, x: Any, u: Any) -> Any:
    """Time derivative of the stacked state."""
    factor, mean = _state_of(form, x)
    A, V, B, b = _controls_of(form, u)
    mean_rate, factor_rate = rates(mean, factor, A, ((V, B, None),), b)
    return ca.vertcat(ca.vec(factor_rate), mean_rate) if form.mean else ca.vec(factor_rate)


def _kinetic(form: Form, rate: Any, theta: dict[str, Any]) -> Any:
    """E|v|² of tokens whose state moves at this rate."""
    kinetic = ca.sumsqr(rate)
    if form.image:
        image_rate = ca.reshape(rate[: form.dim * form.rank], form.dim, form.rank)
        kinetic += ca.sumsqr(image_rate @ theta["image"])
    return kinetic


def _control_cost(form: Form, u: Any, theta: dict[str, Any]) -> Any:
    cost, offset = ca.SX(0), 0
    for c in form.controls:
        size = form.dim if c == "b" else form.dim**2
        cost += theta[f"weight.{c}"] * ca.sumsqr(u[offset : offset + size])
        offset += size
    return cost


def _path_rows(
    form: Form, x: Any, u: Sequence[Any], slack: Any, per: Any, theta: dict[str, Any]
) -> list[Any]:
    rows = []
    for c in form.norms:
        offset = 0
        for letter in form.controls[: form.controls.index(c)]:
            offset += form.dim if letter == "b" else form.dim**2
        size = form.dim if c == "b" else form.dim**2
        rows += [
            ca.sumsqr(point[offset : offset + size]) / theta[f"norm.{c}"] ** 2 - 1 for point in u
        ]
    factor, _ = _state_of(form, x)
    if form.trace:
        rows.append(ca.sumsqr(factor) / per[1] - 1)
    if form.eigenvalue:
        # largest eigenvalue <= c iff c I - LᵀL = R Rᵀ: smooth, and right for r < d too
        R = ca.SX(form.rank, form.rank)
        k = 0
        for j in range(form.rank):
            for i in range(j, form.rank):
                R[i, j] = slack[k]
                k += 1
        defect = ca.SX.eye(form.rank) - factor.T @ factor / per[2] - R @ R.T
        rows += [defect[i, j] for j in range(form.rank) for i in range(j + 1)]
    return rows


def terminal_function(form: Form) -> Any:
    """Last node: (node, parameters) -> cost, rows of the terminal set."""
    d, r = form.dim, form.rank
    sizes = common_sizes(form)
    node = ca.SX.sym("node", form.node_size)
    common = ca.SX.sym("common", sum(sizes.values()))
    theta = _unpack(common, sizes)
    factor, mean = _state_of(form, node)
    rows = []
    if r:
        rows.append(ca.vec(ca.reshape(theta["complement"], d - r, d) @ factor))
        X = ca.reshape(theta["whiten"], r, d) @ factor
        defect = X @ X.T - ca.SX.eye(r)
        rows += [defect[i, j] for j in range(r) for i in range(j + 1)]
        if form.image:
            rows.append(ca.reshape(theta["image.target"], r - 1, r) @ (X @ theta["image"]))
    if form.mean:
        rows.append(mean - theta["mean"])
    cost = theta["weight.time"] * node[form.state_size] if form.free_time else ca.SX(0)
    return ca.Function(
        "terminal", [node, common], [cost, ca.vertcat(*rows)], ["node", "common"], ["cost", "rows"]
    )
