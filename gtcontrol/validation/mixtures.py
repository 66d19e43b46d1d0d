"""A mixture of Gaussians under attention, beside mixtures of Gaussians that follow it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import _check
from .._check import Array
from .._threads import single_threaded
from ..errors import InvalidNumber, InvalidShape
from ..gaussian import Gaussian, align, wasserstein
from ..mixture import Mixture
from ..parameters import Parameters
from ..problem import memory
from ..problem.definitions import MixtureProblem
from ..progress import Progress, silent
from ..results.mixture import MixtureRun
from ..results.trajectory import Trajectory, factor_of
from ..schedule import Schedule
from ..simulation.run import simulate
from ..status import Status
from .mean_field import WeightedLaw, gaussian_average, march, velocity
from .nodes import Nodes, normal_nodes, number_of_nodes, padded
from .short_times import finished, rate_of, resolved, told, wanted_times
from .slices import directions, sliced

__all__ = ["follow_mixture"]

#: Nodes of each component that are kept for pictures.
KEPT = 250

#: Entries beyond this size end the study.
LARGEST = 1e6


@single_threaded
def follow_mixture(
    start: Mixture,
    parameters: Parameters | Schedule,
    horizon: float | None = None,
    *,
    times: ArrayLike | None = None,
    count: int = 1024,
    seeds: int = 2,
    progress: Progress = silent,
    name: str = "",
) -> MixtureRun:
    """Follow a mixture of Gaussians, and measure how far it is from its moved components.

    For a mixture the softmax average over all tokens is
    Σ_k π_k(x) (m_k + S_k (B x + β)) with weights π_k that depend on x, so that it is not affine:
    the components are coupled, and none of them stays Gaussian.  The true law is compared with
    two mixtures of Gaussians of the same weights: components that each attend to themselves
    only, and components that are moved by the affine maps nearest (in mean square) to the true
    field.  The error of the first grows like t from the start, in the moments too; the
    second has moments within O(t²), but its shape is off by O(t).

    The true law is the mean field, carried by weighted nodes, as in :func:`gtcontrol.closeness`.

    Parameters
    ----------
    start : Mixture
        Of dimension d, with K components.
    parameters : Parameters or Schedule
        Of dimension d.
    horizon : float, optional
        Last time; by default the horizon of the schedule.
    times : (k,) array, optional
        Increasing times in (0, horizon], at least two; by default horizon/2ⁱ, i = 4, ..., 0.
    count : int
        Number of nodes of each component, rounded up to a power of two.
    seeds : int
        Sets of nodes, at least two: what they do not agree about is not resolved.
    progress : callable, optional
        Called as ``progress(fraction, text)``.
    name : str, optional
        Name of the problem, kept in the result.

    Returns
    -------
    MixtureRun
        Up to the blow-up of a component, if one lies before the horizon; it then says so.
        After Ctrl-C, of the sets of nodes that were finished (status INTERRUPTED).

    Raises
    ------
    InvalidShape, InvalidNumber, InvalidMethod, IncompatibleSchedule
        If the arguments do not fit, if there is process noise, or if the nodes are too few.
    KeyboardInterrupt
        If it was interrupted before two sets of nodes were finished.
    """
    began = time.perf_counter()
    if not isinstance(start, Mixture):
        raise InvalidShape(f"`start` must be a Mixture, not {type(start).__name__}.")
    schedule, end = resolved(parameters, horizon, start.dim)
    wanted = wanted_times(times, end)
    nodes = number_of_nodes(_check.integer("count", count, low=2), start.dim)
    memory.require(
        f"{nodes} nodes for each of {len(start.laws)} components",
        60.0 * nodes * len(start.laws) * start.dim,
        "take fewer nodes",
    )
    problem = MixtureProblem(
        start, schedule, end, nodes, _check.integer("seeds", seeds, low=2), name
    )
    flows = [simulate(law, schedule, end) for law in start.laws]
    if any(flow.status is Status.INTERRUPTED for flow in flows):
        raise KeyboardInterrupt
    last = min(float(flow.times[-1]) for flow in flows)
    wanted = wanted[wanted <= last * (1 + 1e-12)]
    if wanted.size < 2:
        raise InvalidNumber(
            f"a component by itself blows up at t = {last:.6g}, before two of the times; shorten "
            "the horizon."
        )
    studies = finished(
        lambda seed: _Study(problem, flows, wanted, seed).run(
            told(progress, seed, problem.seeds, end)
        ),
        problem.seeds,
        least=2,
    )
    return _result(problem, flows, wanted, studies, time.perf_counter() - began)


@dataclass
class _Seen:
    """What one set of nodes has seen: distances (5, k), the coupled law's nodes at each time."""

    curves: Array
    followers: list[tuple[Array, Array]]
    size: list[float]
    laws: list[tuple[Array, Array]]
    tokens: Array


class _Study:
    """One set of nodes for each component, moved together with the Gaussians that follow."""

    def __init__(
        self, problem: MixtureProblem, flows: list[Trajectory], times: Array, seed: int
    ) -> None:
        start = problem.start
        self.problem, self.flows, self.times = problem, flows, times
        self.parts, self.dim = len(start.laws), start.dim
        self.nodes = [
            normal_nodes(problem.count, seed * self.parts + k, law)
            for k, law in enumerate(start.laws)
        ]
        weighted = zip(start.weights, self.nodes, strict=True)
        self.weights = np.concatenate([p * nodes.weights for p, nodes in weighted])
        self.along = directions(start.dim)

    def run(self, tell: Callable[[float], None]) -> _Seen:
        """Move everything and measure at each time."""
        start = self.problem.start
        means = np.array([law.mean for law in start.laws])
        factors = np.array([padded(law.factor) for law in start.laws])
        state = self._joined(self._spread(means, factors), means, factors)
        last = float(self.times[-1])
        ends = [start.gaussian, *(flow.at(last) for flow in self.flows)]
        rate = max(rate_of(self.problem.schedule(0.0), None, law) for law in ends)
        curves, followers, size, tokens = [], [], [], state[: self.weights.size]
        laws: list[tuple[Array, Array]] = []
        for t, moved in march(self._rates, state, self.times, rate):
            if not np.all(np.abs(moved) < LARGEST):
                break
            tell(t)
            tokens, means, factors = self._split(moved)
            coupled = self._spread(means, factors)
            row, unit, laws = self._measure(t, tokens, means, factors, coupled)
            curves.append(row)
            followers.append((coupled, self.weights))
            size.append(unit)
        return _Seen(np.array(curves).T, followers, size, laws, tokens)

    def _rates(self, t: float, state: Array) -> Array:
        p = self.problem.schedule(min(t, self.problem.horizon))
        tokens, means, factors = self._split(state)
        shares = self.problem.start.weights
        covariances = factors @ np.swapaxes(factors, 1, 2)
        near = WeightedLaw(shares, means, covariances, self._spread(means, factors), self.weights)
        mean_rates, factor_rates = np.empty_like(means), np.empty_like(factors)
        for k, nodes in enumerate(self.nodes):
            field = _field(p, near, nodes.points @ factors[k].T + means[k])
            mean_rates[k] = nodes.weights @ field
            # Stein's lemma: E v(m + L z) zᵀ = E[Dv] L.
            factor_rates[k] = (field.T * nodes.weights) @ nodes.points
        return self._joined(velocity(p, None, tokens, self.weights, near), mean_rates, factor_rates)

    def _measure(
        self, t: float, tokens: Array, means: Array, factors: Array, coupled: Array
    ) -> tuple[list[float], float, list[tuple[Array, Array]]]:
        """Distances at one time, the unit of length, and all components."""
        alone = [flow.at(t) for flow in self.flows]
        apart = np.concatenate([n.moved(law) for n, law in zip(self.nodes, alone, strict=True)])
        true = [self.nodes[k].moments(part) for k, part in enumerate(self._components(tokens))]
        laws = [_stacked(true), (means, factors @ np.swapaxes(factors, 1, 2))]
        laws.append(_stacked([(law.mean, law.covariance) for law in alone]))
        whole = [self._whole(*components) for components in laws]
        unit = float(np.sqrt(whole[0].trace))
        slice_unit = unit / np.sqrt(self.dim)
        shapes = [
            sliced(part, _matched(moments, part, nodes), nodes.weights, self.along) ** 2
            for moments, part, nodes in zip(true, self._components(tokens), self.nodes, strict=True)
        ]
        row = [
            sliced(tokens, apart, self.weights, self.along) / slice_unit,
            sliced(tokens, coupled, self.weights, self.along) / slice_unit,
            wasserstein(whole[0], whole[2]) / unit,
            wasserstein(whole[0], whole[1]) / unit,
            float(np.sqrt(self.problem.start.weights @ shapes)) / slice_unit,
        ]
        return row, slice_unit, laws

    def _whole(self, means: Array, covariances: Array) -> Gaussian:
        """The Gaussian with the moments of a mixture."""
        p = self.problem.start.weights
        mean = p @ means
        between = ((means - mean).T * p) @ (means - mean)
        return Gaussian.from_covariance(mean, np.tensordot(p, covariances, 1) + between)

    def _components(self, tokens: Array) -> list[Array]:
        return np.split(tokens, self.parts)

    def _spread(self, means: Array, factors: Array) -> Array:
        """Nodes of the mixture of N(m_k, L_k L_kᵀ)."""
        return np.concatenate(
            [n.points @ L.T + m for n, m, L in zip(self.nodes, means, factors, strict=True)]
        )

    def _joined(self, tokens: Array, means: Array, factors: Array) -> Array:
        return np.concatenate([tokens, means, factors.reshape(-1, self.dim)])

    def _split(self, state: Array) -> tuple[Array, Array, Array]:
        n, parts = self.weights.size, self.parts
        factors = state[n + parts :].reshape(parts, self.dim, self.dim)
        return state[:n], state[n : n + parts], factors


def _field(p: Parameters, near: WeightedLaw, tokens: Array) -> Array:
    """Velocity of tokens in the field of a mixture of Gaussians, in closed form."""
    moved = tokens @ p.A.T + p.b
    for V, B, beta in p.heads:
        queries = tokens @ B.T if beta is None else tokens @ B.T + beta
        average, _ = gaussian_average(queries, near.shares, near.means, near.covariances)
        moved = moved + average @ V.T
    return np.asarray(moved)


def _matched(moments: tuple[Array, Array], tokens: Array, nodes: Nodes) -> Array:
    """Nodes of the Gaussian with given moments, coupled to the tokens as well as can be."""
    regression = (tokens.T * nodes.weights) @ nodes.points
    factor = align(regression, factor_of(moments[1]))
    return np.asarray(moments[0] + nodes.points @ factor.T)


def _stacked(pairs: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    return np.array([mean for mean, _ in pairs]), np.array([S for _, S in pairs])


def _result(
    problem: MixtureProblem,
    flows: list[Trajectory],
    wanted: Array,
    studies: list[_Seen],
    seconds: float,
) -> MixtureRun:
    reached = min(len(seen.followers) for seen in studies)
    if reached < 2:
        raise InvalidNumber(
            "the mixture leaves the range in which it can be followed before two of the times; "
            "shorten the horizon."
        )
    status = next((f.status for f in flows if f.status is not Status.SUCCESS), Status.SUCCESS)
    if reached < wanted.size:
        status = Status.OVERFLOW
    if len(studies) < problem.seeds:
        status = Status.INTERRUPTED
    along = directions(problem.start.dim)
    first, second = studies[0].followers, studies[1].followers
    floor = [
        sliced(first[i][0], second[i][0], first[i][1], along, second[i][1]) / studies[0].size[i]
        for i in range(reached)
    ]
    curves = np.stack([seen.curves[:, :reached] for seen in studies])
    parts, laws = len(problem.start.laws), studies[0].laws
    kept = np.linspace(0, problem.count - 1, min(KEPT, problem.count)).round().astype(int)
    tokens = [part[kept] for part in np.split(studies[0].tokens, parts)]
    return MixtureRun(
        problem=problem,
        status=status,
        times=wanted[:reached],
        apart=curves[:, 0],
        coupled=curves[:, 1],
        apart_moments=curves[:, 2],
        coupled_moments=curves[:, 3],
        component_shape=curves[:, 4],
        floor=np.array(floor),
        means=np.array([m for m, _ in laws]),
        covariances=np.array([S for _, S in laws]),
        tokens=np.concatenate(tokens),
        labels=np.repeat(np.arange(parts, dtype=float), kept.size),
        seconds=seconds,
    )
