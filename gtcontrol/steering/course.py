"""Courses: a path of (factor, mean) with controls, from which the solver starts.

Everything is in the scaled units of the solver, with time running from 0 to 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm

from .._check import Array
from ..gaussian import align
from ..results.steering import Steering
from .scaling import Units

__all__ = ["Course", "Ends", "State", "Variation", "from_plan", "straight"]


@dataclass(frozen=True, eq=False)
class State:
    """Factor, mean and their rates at one time, and the controls by letter when asked for."""

    factor: Array
    mean: Array
    factor_rate: Array
    mean_rate: Array
    make_controls: Callable[[], dict[str, Array]]

    @functools.cached_property
    def controls(self) -> dict[str, Array]:
        """Controls by letter."""
        return self.make_controls()


@dataclass(frozen=True, eq=False)
class Course:
    """A named path: ``at(tau)`` for tau in [0, 1]."""

    name: str
    at: Callable[[float], State]
    time: float = 1.0


@dataclass(frozen=True, eq=False)
class Ends:
    """End points in scaled units; ``pinned`` holds (a₀, a₁) if L(T) a₀ = L₁ a₁ must hold."""

    first_factor: Array
    last_factor: Array
    first_mean: Array
    last_mean: Array
    pinned: tuple[Array, Array] | None = None


@dataclass(frozen=True)
class Variation:
    """How a start departs from the transport geodesic.

    Attributes
    ----------
    turn : float
        Size of a random rotation of the target factor's columns, away from the aligned ones.
    flip : int
        Number of principal directions that arrive reversed, beginning with those along which
        start and target overlap least: each choice of signs has a local minimum of its own.
    detour : float
        Size of a random bend of the path, relative to the factors.  A reversed direction
        needs one, as the straight line passes through rank loss.
    share : float
        Part of the motion that is given to attention when A is enabled too.  With V = B = 0
        the derivative in V and in B vanishes, so a solver started there never sees them.
    noise : float
        Size of random entries added to A, V and B, for the same reason.
    rest : bool
        Whether A, V and B begin with nothing but the noise, so that the solver chooses them.
    signs : tuple of (d,) arrays
        Signs before and after a time ``switch``: attention acts along the principal axes of
        the covariance with these signs.  (V, B) and (V G, G B) with G² = I and G S = S G move
        the covariance alike, but not the mean, so each choice leads to minima of its own.
    switch : float
        Time, from 0 to 1, at which the signs change.
    """

    turn: float = 0.0
    flip: int = 0
    detour: float = 0.0
    share: float = 0.0
    noise: float = 0.0
    rest: bool = False
    signs: tuple[Array, Array] | None = None
    switch: float = 1.0


def straight(
    name: str, ends: Ends, enabled: str, rng: np.random.Generator, variation: Variation
) -> Course:
    """Straight line in (factor, mean), varied: the transport geodesic if nothing is."""
    v = variation
    L0, m0, m1 = ends.first_factor, ends.first_mean, ends.last_mean
    L1 = _aligned(ends)
    r = L0.shape[1]
    if v.turn and r > 1:
        L1 = L1 @ _random_rotation(r, v.turn, rng, ends)
    if v.flip:
        _, Z = np.linalg.eigh(L0.T @ L1)  # ascending: least overlap first
        L1 = L1 @ (np.eye(r) - 2 * Z[:, : v.flip] @ Z[:, : v.flip].T)
    d = m0.size
    bend = _bend(L0, L1, v.detour, rng) if v.detour else np.zeros_like(L0)
    jitter = {c: v.noise * rng.standard_normal((d, d)) for c in "AVB" if c in enabled}
    mean_rate = m1 - m0

    def at(tau: float) -> State:
        L, m = (1 - tau) * L0 + tau * L1 + tau * (1 - tau) * bend, (1 - tau) * m0 + tau * m1
        factor_rate = L1 - L0 + (1 - 2 * tau) * bend

        def controls() -> dict[str, Array]:
            if v.rest:
                made = {c: np.zeros((d, d)) for c in enabled if c != "b"}
                if "b" in enabled:
                    made["b"] = mean_rate.copy()
            else:
                made = _split(L, m, factor_rate, mean_rate, enabled, v.share)
            if v.signs is not None:
                _sign(made, L, m, v.signs[0 if tau < v.switch else 1])
            for c, extra in jitter.items():
                made[c] = made[c] + extra
            return made

        return State(L, m, factor_rate, mean_rate, controls)

    return Course(name, at)


def from_plan(
    plan: Steering, units: Units, basis: Array | None, enabled: str, ends: Ends
) -> Course:
    """The course of an earlier plan, stretched to the present horizon."""
    old = plan.horizon
    first = plan.trajectory.at(0.0)

    def inner(x: Array) -> Array:
        return x if basis is None else basis.T @ x

    # The factor of the plan may differ from ours by a rotation of its columns.
    turn = np.linalg.lstsq(inner(first.factor) / units.length, ends.first_factor, rcond=None)[0]

    def at(tau: float) -> State:
        law = plan.trajectory.at(min(tau * old, float(plan.trajectory.times[-1])))
        p = plan.schedule(min(tau * old, old))
        L, m = law.factor, law.mean
        V, B, _ = p.heads[0]
        factor_rate = p.A @ L + V @ (L @ (L.T @ (B @ L)))
        mean_rate = (p.A + V) @ m + V @ (L @ (L.T @ (B @ m))) + p.b
        stretch = old / units.time
        made = {}
        for c, value, speed in (("A", p.A, 1), ("V", V, 1), ("B", B, 0), ("b", p.b, 1)):
            if c in enabled:
                u = inner(value) if c == "b" or basis is None else basis.T @ value @ basis
                made[c] = u / units.control(c) * (stretch if speed else 1.0)
        rates = (inner(factor_rate) @ turn, inner(mean_rate))
        return State(
            inner(L) @ turn / units.length,
            inner(m) / units.length,
            rates[0] * old / units.length,
            rates[1] * old / units.length,
            lambda: made,
        )

    return Course("earlier plan", at, old / units.time)


def _aligned(ends: Ends) -> Array:
    """Target factor with its columns turned nearest to the start's, as far as they are free."""
    if ends.pinned is None:
        return align(ends.first_factor, ends.last_factor)
    first, last = (_reflect_to_axis(a) for a in ends.pinned)
    start, end = ends.first_factor @ first.T, ends.last_factor @ last.T
    end = np.concatenate([end[:, :1], align(start[:, 1:], end[:, 1:])], axis=1)
    return end @ first


def _reflect_to_axis(a: Array) -> Array:
    """Symmetric orthogonal matrix that maps `a` onto a multiple |a| of the first axis."""
    v = a / np.linalg.norm(a)
    v = v - np.eye(a.size)[0]
    size = float(v @ v)
    return np.eye(a.size) if size < 1e-30 else np.eye(a.size) - 2 * np.outer(v, v) / size


def _random_rotation(r: int, size: float, rng: np.random.Generator, ends: Ends) -> Array:
    G = size * rng.standard_normal((r, r))
    if ends.pinned is not None:
        a = ends.pinned[0] / np.linalg.norm(ends.pinned[0])
        keep = np.eye(r) - np.outer(a, a)
        G = keep @ G @ keep
    return np.asarray(expm(G - G.T))


def _bend(L0: Array, L1: Array, size: float, rng: np.random.Generator) -> Array:
    """Random direction whose columns are as long as those of the factors."""
    _, sigma, Zt = np.linalg.svd(L0, full_matrices=False)
    last = np.linalg.norm(L1 @ Zt.T, axis=0)
    G = rng.standard_normal(L0.shape) / np.sqrt(L0.shape[0])
    return np.asarray(4.0 * size * (G * np.sqrt(sigma * last)) @ Zt)


def _sign(controls: dict[str, Array], L: Array, m: Array, signs: Array) -> None:
    """Give attention a sign along each principal axis of the covariance."""
    _, axes = np.linalg.eigh(L @ L.T)
    G = (axes * signs) @ axes.T
    V = controls["V"] @ G
    if "b" in controls:
        controls["b"] = controls["b"] + (controls["V"] - V) @ m
    controls["V"], controls["B"] = V, G @ controls["B"]


def _split(
    L: Array, m: Array, factor_rate: Array, mean_rate: Array, enabled: str, share: float
) -> dict[str, Array]:
    """Controls that move (L, m) at the given rates, as far as those enabled allow it."""
    d = m.size
    M = factor_rate @ np.linalg.pinv(L) if L.shape[1] else np.zeros((d, d))
    attention = "V" in enabled and "B" in enabled
    part = 0.0 if not attention else (share if "A" in enabled else 1.0)
    made = {c: np.zeros(d) if c == "b" else np.zeros((d, d)) for c in enabled}
    V = np.zeros((d, d))
    size = float(np.linalg.norm(M))
    if part and size > 0:
        inverse = np.linalg.pinv(L @ L.T, rcond=1e-12, hermitian=True)
        balance = np.sqrt(part * size / np.linalg.norm(inverse))
        V, made["B"] = part * M / balance, balance * inverse
    if "V" in enabled and "b" not in enabled and not part and m @ m > 0:
        V = np.outer(mean_rate - M @ m, m) / (m @ m)
    if "V" in enabled:
        made["V"] = V
    if "A" in enabled:
        made["A"] = (1 - part) * M
    if "b" in enabled:
        made["b"] = mean_rate - (M + V) @ m
    return made
