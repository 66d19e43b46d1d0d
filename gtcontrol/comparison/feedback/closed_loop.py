"""Many laws at once under a plan, with and without feedback.

A fixed mesh serves all laws, so that the plan, its law and the Riccati matrix are evaluated once
for each of its times, and a step of all laws is a few products of stacks.  Classical
Runge-Kutta; how well the mesh resolves the closed loop is measured by halving it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._check import Array
from ...parameters import Parameters
from ...progress import Progress
from ...results.feedback import Controls, corrections, deviation, saturate
from .nominal import Nominal

__all__ = ["ClosedLoop", "Ends", "Stack"]

#: A law whose size is so many times that of the largest at the start or of the plan has escaped.
ESCAPED = 1e3

#: Laws of each path that are kept.
LAWS = 13


@dataclass(frozen=True, eq=False)
class Stack:
    """Laws of one rank: means (s, k) and factors (s, k, r)."""

    means: Array
    factors: Array

    def __getitem__(self, chosen: NDArray[np.bool_]) -> Stack:
        return Stack(self.means[chosen], self.factors[chosen])

    def __len__(self) -> int:
        return len(self.means)

    @property
    def sizes(self) -> Array:
        """√(|m|² + |L|²) of each law."""
        return np.asarray(
            np.sqrt(np.sum(self.means**2, axis=1) + np.sum(self.factors**2, axis=(1, 2)))
        )


@dataclass(frozen=True, eq=False)
class Ends:
    """How a stack of laws ended.

    Attributes
    ----------
    laws : Stack
        At the end, or where they escaped.
    escaped : (s,) array
        Time at which a law left every bound, inf if it did not.
    saturated : (s,) array
        Share of the time during which a control was cut to its bound.
    exceeded : (s,) array of bool
        Whether a bound on the covariance was broken.
    times, history : (h,) and (h, s) arrays
        W₂ distance from the law of the plan; inf once escaped.
    path_times, path_means, path_factors : (p,), (p, s, k) and (p, s, k, r) arrays
        The laws on their way.
    """

    laws: Stack
    escaped: Array
    saturated: Array
    exceeded: NDArray[np.bool_]
    times: Array
    history: Array
    path_times: Array
    path_means: Array
    path_factors: Array


class ClosedLoop:
    """The plan with its feedback on a mesh.

    Parameters
    ----------
    nominal : Nominal
    times : (2 N + 1,) array
        Nodes and middles; breakpoints of the plan are among the nodes.
    values : (2 N + 1, n, n) array
        Riccati matrix at these times.
    weights : mapping from control letter to float
    """

    def __init__(
        self, nominal: Nominal, times: Array, values: Array, weights: Mapping[str, float]
    ) -> None:
        self.bounds, self.weights = nominal.bounds, dict(weights)
        self.times, self.values = times, values
        laws = [nominal.at(float(t)) for t in times]
        self.means = np.array([m for m, _ in laws])
        self.factors = np.array([L for _, L in laws])
        self.plan: list[tuple[Parameters, Parameters, Parameters]] = []
        pieces = list(nominal.pieces)
        ends = np.array([piece.end for piece in pieces])
        for i in range(0, len(times) - 2, 2):
            piece = pieces[min(int(np.searchsorted(ends, times[i + 1])), len(pieces) - 1)]
            a, b, c = (piece.law(float(np.clip(times[j], piece.start, piece.end)))
                       for j in (i, i + 1, i + 2))  # fmt: skip
            self.plan.append((a, b, c))
        size = np.sqrt(np.sum(self.means**2, axis=1) + np.sum(self.factors**2, axis=(1, 2)))
        self.size = float(size.max())

    def run(self, starts: Stack, progress: Progress, *, feedback: bool) -> Ends:
        """Move laws from time 0 to the end.

        Parameters
        ----------
        starts : Stack
        progress : callable
            Told the fraction of the mesh that is done.
        feedback : bool
            Whether the plan is corrected, or followed as it is.
        """
        count, steps = len(starts), len(self.plan)
        means, factors = starts.means.copy(), starts.factors.copy()
        escaped = np.full(count, np.inf)
        saturated, exceeded = np.zeros(count), np.zeros(count, dtype=bool)
        limit = ESCAPED * np.maximum(starts.sizes, self.size)
        history = np.full((steps + 1, count), np.inf)
        history[0] = self._distance(0, starts)
        nodes = self.times[::2]  # which crowd near the end: the laws kept are spread in time
        kept = np.unique(np.searchsorted(nodes, np.linspace(0.0, 1.0, LAWS) * nodes[-1]))
        path = [(means.copy(), factors.copy())]
        active = np.arange(count)
        for step in range(steps):
            if step % 16 == 0:
                progress(step / steps, "")
            now = Stack(means[active], factors[active])
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                after, cut = self._step(step, now, feedback=feedback)
                gone = ~(after.sizes <= limit[active])
            escaped[active[gone]] = self.times[2 * step + 2]
            active, after, cut = active[~gone], after[~gone], cut[~gone]
            means[active], factors[active] = after.means, after.factors
            width = (self.times[2 * step + 2] - self.times[2 * step]) / self.times[-1]
            saturated[active] += width * cut
            exceeded[active] |= self._exceeds(after)
            history[step + 1, active] = self._distance(2 * step + 2, after)
            if step + 1 in kept:
                path.append((means.copy(), factors.copy()))
        return Ends(
            Stack(means, factors), escaped, saturated, exceeded, self.times[::2], history,
            self.times[2 * kept], np.array([m for m, _ in path]), np.array([L for _, L in path]),
        )  # fmt: skip

    def _step(self, step: int, x: Stack, *, feedback: bool) -> tuple[Stack, Array]:
        """One Runge-Kutta step, and the share of its stages at which a control was cut."""
        i = 2 * step
        h = self.times[i + 2] - self.times[i]
        first, middle, last = self.plan[step]
        cut = np.zeros(len(x))
        total_m, total_L = np.zeros_like(x.means), np.zeros_like(x.factors)
        m, L = x.means, x.factors
        for p, j, ahead, weight in (
            (first, i, 0.5 * h, 1), (middle, i + 1, 0.5 * h, 2), (middle, i + 1, h, 2),
            (last, i + 2, 0.0, 1),
        ):  # fmt: skip
            rate_m, rate_L, now = self._rates(p, j, Stack(m, L), feedback=feedback)
            cut += weight * now / 6
            total_m, total_L = total_m + weight * rate_m, total_L + weight * rate_L
            m, L = x.means + ahead * rate_m, x.factors + ahead * rate_L
        return Stack(x.means + h / 6 * total_m, x.factors + h / 6 * total_L), cut

    def _rates(
        self, p: Parameters, j: int, x: Stack, *, feedback: bool
    ) -> tuple[Array, Array, Array]:
        if not feedback:
            return *stack_rates(p, {}, x), np.zeros(len(x))
        # A law that overflows within a step has escaped, which is found after the step.
        finite = np.isfinite(x.sizes)
        known = Stack(
            np.where(finite[:, None], x.means, 0.0), np.where(finite[:, None, None], x.factors, 0.0)
        )
        apart = deviation(known.means, known.factors, self.means[j], self.factors[j])
        costate = apart @ self.values[j]
        changes = corrections(p, self.means[j], self.factors[j], self.weights, costate)
        controls, cut = saturate(p, changes, self.bounds, (len(x),))
        return *stack_rates(p, controls, x), cut

    def _distance(self, j: int, x: Stack) -> Array:
        apart = deviation(x.means, x.factors, self.means[j], self.factors[j])
        return np.asarray(np.linalg.norm(apart, axis=1))

    def _exceeds(self, x: Stack) -> Array:
        made = np.zeros(len(x), dtype=bool)
        if self.bounds.trace is not None:
            made |= np.sum(x.factors**2, axis=(1, 2)) > self.bounds.trace
        if self.bounds.largest_eigenvalue is not None and x.factors.shape[2]:
            largest = np.linalg.norm(x.factors, ord=2, axis=(1, 2)) ** 2
            made |= largest > self.bounds.largest_eigenvalue
        return made


def stack_rates(p: Parameters, controls: Controls, x: Stack) -> tuple[Array, Array]:
    """Rates (s, k) and (s, k, r) of a stack of laws, each under its own controls.

    The formula of :mod:`gtcontrol.field`, whose transposes are those of single matrices.
    """
    m, L = x.means[..., None], x.factors
    Lt = np.swapaxes(L, -1, -2)
    A, b = controls.get("A", p.A), controls.get("b", p.b)
    mean_rate, factor_rate = A @ m + b[..., None], A @ L
    several = p.V.ndim == 3
    changed = {c: controls[c] for c in "VB" if c in controls}
    for h, (plan_V, plan_B, beta) in enumerate(p.heads):
        own = {c: value[:, h] if several else value for c, value in changed.items()}
        V, B = own.get("V", plan_V), own.get("B", plan_B)
        tilt = B @ m if beta is None else B @ m + beta[:, None]
        mean_rate = mean_rate + V @ (m + L @ (Lt @ tilt))
        factor_rate = factor_rate + V @ (L @ (Lt @ (B @ L)))
    return mean_rate[..., 0], factor_rate
