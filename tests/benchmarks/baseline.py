"""The program that a CasADi user would write by hand: what the package has to beat.

Opti, the upper triangle of S (and the mean) as the state, RK4 and multiple shooting, controls
piecewise constant on N intervals, started from linear interpolation of the states and zero
controls, solved by ipopt on the expanded graph.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import gtcontrol as gt

Array = NDArray[np.float64]
Cost = gt.KineticEnergy | gt.ControlEnergy


@dataclass(frozen=True)
class Baseline:
    """How a hand-written solve ended.

    Attributes
    ----------
    ok : bool
        Whether ipopt reported success.
    cost : float
        Cost of the plan along its replay (not the RK4 sum that ipopt minimised).
    iterations : int
    build_seconds, solve_seconds : float
        Wall time to build the program and its derivatives, and inside ipopt.
    replay_error : float
        Larger of |S(T) - S₁|/|S₁| and |m(T) - m₁|/(√tr S₁ + |m₁ - m₀|) when the controls are
        integrated by DOP853.
    """

    ok: bool
    cost: float
    iterations: int
    build_seconds: float
    solve_seconds: float
    replay_error: float


def baseline(
    start: gt.Gaussian,
    target: gt.Gaussian,
    horizon: float,
    controls: str,
    cost: Cost,
    *,
    intervals: int = 20,
    limit: float = 10.0,
    max_iterations: int = 500,
) -> Baseline:
    """Solve a steering problem the plain way.

    Parameters
    ----------
    start, target : Gaussian
        Laws of dimension d.
    horizon : float
    controls : str
        Enabled letters of "AVBb".
    cost : KineticEnergy or ControlEnergy
    intervals : int
    limit : float
        Bound on the seconds that ipopt may take.
    max_iterations : int
    """
    began = time.perf_counter()
    d = start.dim
    opti = ca.Opti()
    states = opti.variable(_state_size(d), intervals + 1)
    inputs = opti.variable(_control_size(d, controls), intervals)
    advance = _rk4(d, controls, cost, horizon / intervals)
    total = 0
    for k in range(intervals):
        following, increment = advance(states[:, k], inputs[:, k])
        opti.subject_to(states[:, k + 1] == following)
        total += increment
    first, last = _state(start), _state(target)
    opti.subject_to(states[:, 0] == first)
    opti.subject_to(states[:, intervals] == last)
    opti.minimize(total)
    t = np.linspace(0.0, 1.0, intervals + 1)
    opti.set_initial(states, np.outer(first, 1 - t) + np.outer(last, t))
    options: dict[str, Any] = {
        "print_level": 0,
        "sb": "yes",
        "max_iter": max_iterations,
        "max_wall_time": limit,
    }
    settings: dict[str, Any] = {
        "expand": True,
        "print_time": False,
        "record_time": True,
        "error_on_fail": False,
    }
    opti.solver("ipopt", settings | {"show_eval_warnings": False}, options)
    try:
        opti.solve_limited()
    except RuntimeError as failure:  # raised for each ending but success
        if "Solver failed" not in str(failure):
            raise
    stats = opti.stats()
    solve_seconds = float(stats["t_wall_total"])
    build_seconds = time.perf_counter() - began - solve_seconds
    pieces = np.asarray(opti.debug.value(inputs)).reshape(-1, intervals).T
    ok = bool(stats["success"]) and bool(np.all(np.isfinite(pieces)))
    measured, error = (
        _replay(start, target, horizon, controls, cost, pieces) if ok else (math.inf, math.inf)
    )
    return Baseline(ok, measured, int(stats["iter_count"]), build_seconds, solve_seconds, error)


def _state_size(d: int) -> int:
    return d * (d + 1) // 2 + d


def _control_size(d: int, controls: str) -> int:
    return sum(d if letter == "b" else d * d for letter in controls)


def _kinetic(cost: Cost) -> float:
    return cost.kinetic if isinstance(cost, gt.ControlEnergy) else 1.0


def _state(law: gt.Gaussian) -> Array:
    upper = np.triu_indices(law.dim)
    return np.concatenate([law.covariance[upper], law.mean])


def _rk4(d: int, controls: str, cost: Cost, h: float) -> Any:
    """One step of RK4 on the state, with the cost as a quadrature."""
    x, u = ca.SX.sym("x", _state_size(d)), ca.SX.sym("u", _control_size(d, controls))
    S, m = ca.SX(d, d), x[-d:]
    upper = list(zip(*np.triu_indices(d), strict=True))
    for k, (i, j) in enumerate(upper):
        S[int(i), int(j)] = S[int(j), int(i)] = x[k]
    A, V, B, b = (ca.SX(value) for value in _matrices(u, d, controls))
    M = A + V @ S @ B
    dS, dm = M @ S + S @ M.T, M @ m + V @ m + b
    rate = ca.SX(0)
    if isinstance(cost, gt.ControlEnergy):
        rate += ca.sumsqr(u)
    if _kinetic(cost):
        rate += _kinetic(cost) * (ca.trace(M @ S @ M.T) + ca.sumsqr(dm))
    slope = ca.vertcat(*[dS[int(i), int(j)] for i, j in upper], dm)
    f = ca.Function("f", [x, u], [slope, rate])
    k1, q1 = f(x, u)
    k2, q2 = f(x + h / 2 * k1, u)
    k3, q3 = f(x + h / 2 * k2, u)
    k4, q4 = f(x + h * k3, u)
    end = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return ca.Function("step", [x, u], [end, h / 6 * (q1 + 2 * q2 + 2 * q3 + q4)])


def _matrices(u: Any, d: int, controls: str) -> list[Any]:
    """A, V, B, b from their entries, stacked by columns; for CasADi and NumPy alike."""
    symbolic = not isinstance(u, np.ndarray)
    made, offset = [], 0
    for letter in "AVBb":
        size = d if letter == "b" else d * d
        if letter not in controls:
            made.append(np.zeros(d) if letter == "b" else np.zeros((d, d)))
            continue
        piece = u[offset : offset + size]
        offset += size
        if letter != "b":
            piece = ca.reshape(piece, d, d) if symbolic else piece.reshape(d, d, order="F")
        made.append(piece)
    return made


def _rate(
    A: Array, V: Array, B: Array, b: Array, energy: float, kinetic: float
) -> Callable[[float, Array], Array]:
    """Time derivative of (S, m, cost) under constant controls."""
    d = b.size

    def rate(_: float, y: Array) -> Array:
        S, m = y[: d * d].reshape(d, d), y[d * d : -1]
        M = A + V @ S @ B
        dm = M @ m + V @ m + b
        moved = float(np.sum((M @ S) * M) + dm @ dm)
        dS = M @ S + S @ M.T
        return np.concatenate([dS.ravel(), dm, [energy + kinetic * moved]])

    return rate


def _replay(
    start: gt.Gaussian,
    target: gt.Gaussian,
    horizon: float,
    controls: str,
    cost: Cost,
    pieces: Array,
) -> tuple[float, float]:
    """Cost and miss of the controls when the law is integrated by DOP853 (covariance form)."""
    d = start.dim
    y = np.concatenate([start.covariance.ravel(), start.mean, [0.0]])
    h = horizon / len(pieces)
    for u in pieces:
        A, V, B, b = _matrices(u, d, controls)
        energy = float(u @ u) if isinstance(cost, gt.ControlEnergy) else 0.0

        rate = _rate(A, V, B, b, energy, _kinetic(cost))
        run = solve_ivp(rate, (0.0, h), y, method="DOP853", rtol=1e-10, atol=1e-12)
        if not run.success or not np.all(np.isfinite(run.y[:, -1])):
            return math.inf, math.inf
        y = run.y[:, -1]
    S, m, S1 = y[: d * d].reshape(d, d), y[d * d : -1], target.covariance
    scale = math.sqrt(np.trace(S1)) + float(np.linalg.norm(target.mean - start.mean))
    error = max(
        float(np.linalg.norm(S - S1) / np.linalg.norm(S1)),
        float(np.linalg.norm(m - target.mean)) / scale,
    )
    return float(y[-1]), error
