"""The filter of N tokens, linearised about its law: responses to the draw at the start."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._check import Array
from ...gaussian import Gaussian
from ...problem.measurements import Measurements
from ...results.trajectory import Trajectory
from .hermite import Indices, Terms, exponents
from .parameters import Bridge

__all__ = ["LOWEST", "Response", "Responses"]

#: Terms from this degree on are errors of the softmax, lower ones of the draw at the start.
LOWEST = 3

#: Largest step times the largest rate.
STEP = 0.4


@dataclass(frozen=True, eq=False)
class Responses:
    """Sizes of the responses |δm|, |δS| to each α at all times, shape (T + 1, n)."""

    means: Array
    covariances: Array
    degrees: Indices


class _State(NamedTuple):
    """δm (n, d), δS (n, d, d) and the c_α (k, n), one for each of n starts."""

    mean: Array
    covariance: Array
    draw: Array

    def plus(self, h: float, rate: _State) -> _State:
        """A step of length h."""
        return _State(*(x + h * y for x, y in zip(self, rate, strict=True)))


class _Field(NamedTuple):
    """What the linearised filter is at one time; see :mod:`.fluctuations`."""

    F: Array
    pull: Array
    drive: Array
    spread: Array
    into: Array
    out_of: Array

    def rate(self, state: _State) -> _State:
        """Rate of change of a state."""
        n, d = state.mean.shape
        left = self.F @ state.covariance
        moved = state.mean @ self.F.T + state.covariance @ self.pull
        spread = (state.draw.T @ self.spread).reshape(n, d, d)
        return _State(
            moved + state.draw.T @ self.drive,
            left + np.swapaxes(left, 1, 2) + spread,
            self.into.T @ (self.out_of @ state.draw),
        )


class Response:
    """The linearised filter, started by each α by itself.

    Parameters
    ----------
    bridge : Bridge
    trajectory : Trajectory
        The flow of the law.
    measurements : Measurements
    random : (n, r) array of int
        The α that are random at the start.
    degree : int
        Largest degree that is followed.
    """

    def __init__(
        self,
        bridge: Bridge,
        trajectory: Trajectory,
        measurements: Measurements,
        random: Indices,
        degree: int,
    ) -> None:
        self.bridge, self.trajectory, self.measurements = bridge, trajectory, measurements
        self.random = random
        r = trajectory.factors.shape[2]
        self.terms = Terms(exponents(r, degree, LOWEST), min(len(bridge.model.C), r))

    def followed(self) -> Responses:
        """Integrate over all intervals by the classical Runge-Kutta method."""
        times = self.measurements.times
        state = self._start()
        means, covariances = [state.mean], [state.covariance]
        for k in range(len(self.measurements)):
            start, end = float(times[k]), float(times[k + 1])
            law = self.trajectory.at(start)
            pieces = max(1, math.ceil((end - start) * self._rate(law) / STEP))
            h = (end - start) / pieces
            first = self._field(k, law)
            for i in range(pieces):
                middle = self._field(k, self.trajectory.at(start + (i + 0.5) * h))
                last = self._field(k, self.trajectory.at(min(start + (i + 1) * h, end)))
                state = _stepped(first, middle, last, state, h)
                first = last
            means.append(state.mean)
            covariances.append(state.covariance)
        return Responses(
            np.linalg.norm(np.array(means), axis=2),
            np.sqrt(np.sum(np.array(covariances) ** 2, axis=(2, 3))),
            self.random.sum(axis=1),
        )

    def _rate(self, law: Gaussian) -> float:
        gain = law.covariance @ self.bridge.information
        return float(np.linalg.norm(self.bridge.model.A, 2) + np.linalg.norm(gain, 2))

    def _start(self) -> _State:
        """Errors of mean and covariance for |α| = 1, 2, and the draw itself for the others."""
        L = self.trajectory.factors[0]
        d, n = L.shape[0], len(self.random)
        mean, covariance = np.zeros((n, d)), np.zeros((n, d, d))
        draw = np.zeros((len(self.terms.alpha), n))
        row = {tuple(a): i for i, a in enumerate(self.terms.alpha.tolist())}
        for i, alpha in enumerate(self.random):
            entries = np.flatnonzero(alpha)
            if alpha.sum() == 1:
                mean[i] = L[:, entries[0]]
            elif alpha.sum() == 2 and entries.size == 1:
                # z² - 1 averages to √2 c, and a product of two coordinates to c.
                covariance[i] = math.sqrt(2.0) * np.outer(L[:, entries[0]], L[:, entries[0]])
            elif alpha.sum() == 2:
                moved = np.outer(L[:, entries[0]], L[:, entries[1]])
                covariance[i] = moved + moved.T
            else:
                draw[row[tuple(alpha.tolist())], i] = 1.0
        return _State(mean, covariance, draw)

    def _field(self, k: int, law: Gaussian) -> _Field:
        bridge, L, v = self.bridge, law.factor, self.bridge.value
        S = L @ L.T
        y = self.measurements.values[k]
        B = -0.5 * bridge.information / v
        H = L.T @ B @ L
        offset = np.zeros(L.shape[1]) if bridge.centred else L.T @ (B @ law.mean)
        W, u = self.terms.on_plane(offset, H)
        gradient, hessian = self.terms.expected(u)
        into, out_of = self.terms.mixing(W, u)
        spread = np.einsum("ia,nab,bc,jc->nij", L, hessian, H, L, optimize=True)
        spread = v * (spread + np.swapaxes(spread, 1, 2))
        return _Field(
            bridge.model.A - S @ bridge.information,
            bridge.weighted @ (y - bridge.model.C @ law.mean),
            v * (gradient @ L.T),
            spread.reshape(len(spread), -1),
            v * into,
            out_of,
        )


def _stepped(first: _Field, middle: _Field, last: _Field, state: _State, h: float) -> _State:
    a = first.rate(state)
    b = middle.rate(state.plus(0.5 * h, a))
    c = middle.rate(state.plus(0.5 * h, b))
    d = last.rate(state.plus(h, c))
    return state.plus(h / 6, a).plus(h / 3, b).plus(h / 3, c).plus(h / 6, d)
