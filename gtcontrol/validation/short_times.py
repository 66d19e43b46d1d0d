"""How close the law of tokens under a nonlinear feed-forward layer stays to Gaussian flows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .. import _check
from .._check import Array
from .._threads import single_threaded
from ..errors import InvalidMethod, InvalidNumber, InvalidShape
from ..feedforward import FeedForward, check_feedforward
from ..gaussian import Gaussian, align, wasserstein
from ..parameters import Parameters
from ..problem import memory
from ..problem.definitions import ClosenessProblem
from ..progress import Progress, silent
from ..results.closeness import Closeness
from ..results.trajectory import Trajectory, factor_of
from ..schedule import Schedule, resolve
from ..simulation.run import simulate
from ..status import Status
from .mean_field import WeightedLaw, march, velocity
from .nodes import Nodes, normal_nodes, number_of_nodes
from .slices import directions, sliced

__all__ = ["closeness", "finished", "rate_of", "resolved", "told", "wanted_times"]

#: Times are the horizon divided by powers of two, so many of them.
TIMES = 5

#: Nodes that are kept for pictures.
KEPT = 400


Study = TypeVar("Study")


@single_threaded
def closeness(
    start: Gaussian,
    parameters: Parameters | Schedule,
    feedforward: FeedForward,
    horizon: float | None = None,
    *,
    times: ArrayLike | None = None,
    count: int = 2048,
    seeds: int = 3,
    progress: Progress = silent,
    name: str = "",
) -> Closeness:
    """Measure how far the true law moves away from Gaussian flows, and with which order in t.

    An activation that is not affine does not keep laws Gaussian.  Over a short time t the law
    stays within O(t) of the Gaussian flow; the moments of the statistically linearised flow,
    whose rates are exact for a Gaussian, stay within O(t²), those of the flow that is
    linearised at the mean within O(t) only.  (From a singular start the law bends out of its
    range: the covariance is off by O(t²) there, but W₂, which sees its root, by O(t).)

    The true law is the mean field of infinitely many tokens, carried by weighted nodes whose
    errors vanish at t = 0 (see ``gtcontrol.validation.nodes``), so that orders show at
    short times already; what the nodes leave is seen from one set to the next.

    Parameters
    ----------
    start : Gaussian
        Law at time 0, dimension d, rank r >= 1.
    parameters : Parameters or Schedule
        Affine part and attention, of dimension d.
    feedforward : FeedForward
        The nonlinear layer.
    horizon : float, optional
        Last time; by default the horizon of the schedule.
    times : (k,) array, optional
        Increasing times in (0, horizon], at least two; by default horizon/2ⁱ, i = 4, ..., 0.
    count : int
        Number of nodes, rounded up to a power of two.
    seeds : int
        Sets of nodes.
    progress : callable, optional
        Called as ``progress(fraction, text)``.
    name : str, optional
        Name of the problem, kept in the result.

    Returns
    -------
    Closeness
        Up to the blow-up of a Gaussian flow, if one lies before the horizon; it then says so.
        After Ctrl-C, of the sets of nodes that were finished (status INTERRUPTED).

    Raises
    ------
    InvalidShape, InvalidNumber, InvalidMethod, IncompatibleSchedule
        If the arguments do not fit, if there is process noise, or if the nodes are too few.
    KeyboardInterrupt
        If it was interrupted before the first set of nodes was finished.
    """
    began = time.perf_counter()
    if not isinstance(start, Gaussian):
        raise InvalidShape(f"`start` must be a Gaussian, not {type(start).__name__}.")
    layer = check_feedforward(feedforward, start.dim)
    if layer is None:
        raise InvalidShape("`feedforward` is needed: without it the law stays Gaussian, exactly.")
    if not start.rank:
        raise InvalidNumber("`start` has rank 0: one token, which stays one.")
    schedule, end = resolved(parameters, horizon, start.dim)
    wanted = wanted_times(times, end)
    nodes = number_of_nodes(_check.integer("count", count, low=2), start.dim, layer)
    memory.require(f"{nodes} nodes", 40.0 * nodes * start.dim, "take fewer nodes")
    problem = ClosenessProblem(
        start, schedule, end, layer, nodes, _check.integer("seeds", seeds, low=1), name
    )
    flows = tuple(
        simulate(start, schedule, end, feedforward=layer, linearisation=kind)
        for kind in ("statistical", "jacobian")
    )
    if any(flow.status is Status.INTERRUPTED for flow in flows):
        raise KeyboardInterrupt
    last = min(float(flow.times[-1]) for flow in flows)
    wanted = wanted[wanted <= last * (1 + 1e-12)]
    if wanted.size < 2:
        raise InvalidNumber(
            f"the Gaussian flow ends at t = {last:.6g} ({flows[0].status.name}), before two of the "
            "times; shorten the horizon."
        )
    runs = finished(
        lambda seed: _measure(
            problem,
            flows,
            wanted,
            normal_nodes(nodes, seed, start, layer),
            told(progress, seed, problem.seeds, end),
        ),
        problem.seeds,
    )
    status = min((flow.status for flow in flows), key=lambda s: s.name == "SUCCESS")
    laws, tokens = runs[0][1], runs[0][2]
    curves = np.stack([run[0] for run in runs])
    return Closeness(
        problem=problem,
        status=status if len(runs) == problem.seeds else Status.INTERRUPTED,
        times=wanted,
        shape=curves[:, 0],
        law=curves[:, 1],
        moments=curves[:, 2],
        naive=curves[:, 3],
        means=np.array([law.mean for law in laws]),
        covariances=np.array([law.covariance for law in laws]),
        tokens=tokens[np.linspace(0, nodes - 1, min(KEPT, nodes)).round().astype(int)],
        seconds=time.perf_counter() - began,
    )


def rate_of(p: Parameters, layer: FeedForward | None, law: Gaussian) -> float:
    """Largest rate at which tokens of a law approach or leave each other, roughly."""
    rate = float(np.linalg.norm(p.A, 2))
    if layer is not None:
        rate += float(np.linalg.norm(np.abs(layer.outer) @ np.abs(layer.inner), 2))
    S = law.covariance
    for V, B, _ in p.heads:
        rate += float(np.linalg.norm(V, 2) * (1 + np.linalg.norm(S @ B, 2)))
    return rate


Tell = Callable[[float], None]


def _measure(
    problem: ClosenessProblem,
    flows: tuple[Trajectory, ...],
    times: Array,
    nodes: Nodes,
    tell: Tell,
) -> tuple[Array, list[Gaussian], Array]:
    """Distances (4, k) for one set of nodes, and at the last time the laws and the nodes."""
    layer, start = problem.feedforward, problem.start
    flow = flows[0]

    def rates(t: float, tokens: Array) -> Array:
        law = flow.at(t)
        near = WeightedLaw(
            np.ones(1), law.mean[None], law.covariance[None], nodes.moved(law), nodes.weights
        )
        return velocity(problem.schedule(t), layer, tokens, nodes.weights, near)

    along = directions(start.dim)
    fastest = max(rate_of(problem.schedule(float(t)), layer, flow.at(float(t))) for t in times)
    curves, laws = [], [start]
    tokens = nodes.moved(start)
    for t, moved in march(rates, tokens, times, fastest):
        tell(t)
        mean, covariance = nodes.moments(moved)
        true = Gaussian.from_covariance(mean, covariance)
        laws = [true, *(f.at(t) for f in flows)]
        unit = np.sqrt(true.trace)
        slice_unit = unit / np.sqrt(start.dim)
        curves.append(
            [
                sliced(moved, _matched(true, moved, nodes), nodes.weights, along) / slice_unit,
                sliced(moved, nodes.moved(laws[1]), nodes.weights, along) / slice_unit,
                wasserstein(true, laws[1]) / unit,
                wasserstein(true, laws[2]) / unit,
            ]
        )
        tokens = moved
    return np.array(curves).T, laws, tokens


def _matched(true: Gaussian, tokens: Array, nodes: Nodes) -> Array:
    """Nodes of the Gaussian with the moments of the tokens, coupled to them as well as can be."""
    regression = (tokens.T * nodes.weights) @ nodes.points
    factor = align(regression, factor_of(true.covariance))
    return np.asarray(true.mean + nodes.points @ factor.T)


def finished(study: Callable[[int], Study], seeds: int, least: int = 1) -> list[Study]:
    """Studies of all sets of nodes; after an interruption those that were finished.

    Raises
    ------
    KeyboardInterrupt
        If they are fewer than `least`.
    """
    made: list[Study] = []
    try:
        while len(made) < seeds:
            made.append(study(len(made)))
    except KeyboardInterrupt:
        if len(made) < least:
            raise
    return made


def resolved(
    parameters: Parameters | Schedule, horizon: float | None, dim: int
) -> tuple[Schedule, float]:
    """The schedule and its horizon, refused with process noise."""
    schedule, end = resolve(parameters, horizon, dim)
    if schedule.noisy:
        raise InvalidMethod(
            "with process noise tokens follow no differential equation; leave `noise` out."
        )
    return schedule, end


def wanted_times(times: ArrayLike | None, end: float) -> Array:
    """Times to measure at, checked; halvings of the horizon by default."""
    if times is None:
        return np.array([end / 2**i for i in range(TIMES - 1, -1, -1)])
    made = _check.vector("times", times)
    if made.size < 2 or made[0] <= 0 or not np.all(np.diff(made) > 0):
        raise InvalidNumber(
            "`times` must hold at least two positive, increasing times; "
            f"it holds {made.size}, from {made.min(initial=np.inf):g}."
        )
    if made[-1] > end * (1 + 1e-12):
        raise InvalidNumber(f"`times` reach {made[-1]:g}, beyond the horizon {end:g}.")
    return np.minimum(made, end)


def told(progress: Progress, seed: int, seeds: int, end: float) -> Tell:
    """Progress within one of several sets of nodes."""

    def tell(t: float) -> None:
        progress((seed + min(t / end, 1.0)) / seeds, f"nodes {seed + 1} of {seeds}, t = {t:.4g}")

    return tell
