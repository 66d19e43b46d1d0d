"""Feedback around a plan: `track`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ... import _check
from ..._check import Array
from ..._threads import single_threaded
from ...errors import InvalidControls
from ...gaussian import Gaussian, wasserstein
from ...problem import memory
from ...problem.bounds import CONTROLS, parse_controls
from ...problem.definitions import TrackingProblem
from ...progress import Progress, silent
from ...results.feedback import deviation
from ...results.steering import Steering
from ...results.tracking import SamplePath, Tracking
from ...results.trajectory import Trajectory
from ...simulation.run import simulate
from ...status import Status
from .closed_loop import ClosedLoop, Ends
from .nominal import Nominal, nominal_of
from .regulator import Regulator, Weights, default_weights, regulate
from .samples import Perturbations, Run, level_of, part, tolerance

__all__ = ["track"]

#: The mesh is fine enough when halving it moves no sample's end by more than this, relative to
#: the size of its perturbation and its distance from the target ...
RESOLVED = 1e-4

#: ... for which it is halved at most so often.
HALVINGS = 4

#: Numbers that the nodes of a mesh hold for each entry of the Riccati matrix.
NODES = 2000

#: Relative accuracy of the replay, and how well it has to agree, as for the mesh.
REPLAY, AGREED = 1e-9, 1e-3

#: Times of the histories that are kept.
HISTORY = 101

QUANTILES = (0.1, 0.5, 0.9)


@single_threaded
def track(
    plan: Steering | Trajectory,
    *,
    controls: str | None = None,
    weights: Mapping[str, float] | None = None,
    state_weight: float | None = None,
    terminal_weight: float | None = None,
    perturbation: float = 0.05,
    samples: int = 50,
    seed: int = 0,
    progress: Progress = silent,
    name: str = "",
) -> Tracking:
    """Design feedback that brings perturbed starts back to a plan.

    The flow of (mean, factor) is linearised along the plan in the parameters that it may use,
    and the time-varying linear-quadratic regulator minimises

        ∫ Σ_u weights[u] |δu|² + state_weight |x|² dt + terminal_weight |x(T)|²,

    where |x| is the 2-Wasserstein distance of the law from that of the plan (exactly: x is the
    shift of the mean and the shortest change of the factor).  The Riccati equation is solved
    backwards, and u*(t) - K(t) x, cut to the bounds of the plan, is applied to the true flow of
    random perturbed starts: at size ε the mean is moved by ε √tr S₀ and the factor by ε |L₀|,
    each in a random direction.  Other sizes are tried to find the largest one that is tolerated.

    Parameters
    ----------
    plan : Steering or Trajectory
        A plan that arrives, or the simulation of any schedule, whose end is then the target.
    controls : str, optional
        Which of A, V, B, b the feedback may change; by default those of the plan.
    weights : mapping from control letter to float, optional
        Weights of the squares of the corrections.  By default a correction as large as the
        plan's own root mean square throughout (or 1/T for A and V, 1/ℓ² for B, ℓ/T for b, if
        larger) costs 1; ℓ² is the mean of the total variances of start and target.
    state_weight, terminal_weight : float, optional
        By default a distance ℓ throughout, and ℓ/10 at the end, cost 1.
    perturbation : float
        Relative size ε of the perturbation of the samples.
    samples : int
        Number of perturbed starts.
    seed : int
        Seed of their directions.
    progress : callable, optional
        Called as ``progress(fraction, text)``.
    name : str, optional
        Name of the problem, kept in the result.

    Returns
    -------
    Tracking
        The feedback (``.feedback(t, law)``, ``.schedule(start)``), and what it achieves.

    Raises
    ------
    InvalidControls, InvalidMethod, InvalidNumber, InvalidShape, OutOfScale, TooLarge
        If an argument does not fit, or the plan did not arrive.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> start, target = gt.Gaussian([0.0], [[1.0]]), gt.Gaussian([1.0], [[2.0]])
    >>> plan = gt.steer(start, target, method="transport-geodesic", controls="Ab")
    >>> kept = gt.track(plan, samples=10)
    >>> kept.status.name, kept.ratio > 10
    ('SUCCESS', True)
    """
    began = time.perf_counter()
    problem, nominal = pose(
        plan, controls, weights, state_weight, terminal_weight, perturbation, samples, seed, name
    )
    chosen = Weights(problem.control_weights, problem.state_weight, problem.terminal_weight)
    regulator = regulate(nominal, chosen, progress)  # which takes it from 0 to 0.2
    return _try(problem, plan, nominal, regulator, progress, began)


def pose(
    plan: Steering | Trajectory,
    controls: str | None,
    weights: Mapping[str, float] | None,
    state_weight: float | None,
    terminal_weight: float | None,
    perturbation: float,
    samples: int,
    seed: int,
    name: str,
) -> tuple[TrackingProblem, Nominal]:
    """Check the arguments of :func:`track`, and fill in the weights."""
    nominal = nominal_of(plan, None if controls is None else parse_controls(controls))
    n = float(nominal.dim * (1 + nominal.rank))
    memory.require(f"a regulator with {int(n)} states", NODES * n**2)
    chosen = default_weights(nominal, nominal.controls)
    if state_weight is not None:
        state_weight = _check.number("state_weight", state_weight, low=0.0)
        chosen = replace(chosen, state=state_weight)
    if terminal_weight is not None:
        terminal_weight = _check.number("terminal_weight", terminal_weight, low=0.0, strict=True)
        chosen = replace(chosen, terminal=terminal_weight)
    problem = TrackingProblem(
        start=nominal.trajectory.problem.start,
        target=nominal.target,
        horizon=nominal.horizon,
        control_weights={**chosen.control, **_given(weights, nominal.controls)},
        state_weight=chosen.state,
        terminal_weight=chosen.terminal,
        bounds=nominal.bounds,
        perturbation=_check.number("perturbation", perturbation, low=0.0, strict=True),
        samples=_check.integer("samples", samples, low=1),
        seed=_check.integer("seed", seed, low=0),
        name=name,
    )
    return problem, nominal


def _given(weights: Mapping[str, float] | None, controls: str) -> dict[str, float]:
    if weights is None:
        return {}
    if not isinstance(weights, Mapping):
        raise InvalidControls(
            f"`weights` must map control letters to numbers, e.g. {{'A': 1.0}}; it is "
            f"{type(weights).__name__}."
        )
    for letter in weights:
        if letter not in controls or len(letter) != 1:
            raise InvalidControls(
                f"`weights` holds {letter!r:.40}, which is none of the controls {controls}."
            )
    return {
        c: _check.number(f"weights.{c}", weights[c], low=0.0, strict=True)
        for c in CONTROLS
        if c in weights
    }


def _try(
    problem: TrackingProblem,
    plan: Steering | Trajectory,
    nominal: Nominal,
    regulator: Regulator,
    progress: Progress,
    began: float,
) -> Tracking:
    """Try the feedback on samples."""
    perturbations = Perturbations(nominal, problem.samples, problem.seed)
    loop, run, mesh_error = _resolved(problem, nominal, regulator, perturbations, progress)
    first = level_of(problem.perturbation, run, slice(None))
    sample = _median(run)
    made = Tracking(
        problem=problem,
        plan=plan,
        status=Status.SUCCESS,
        times=loop.times,
        values=loop.values,
        authority=regulator.authority,
        directions=regulator.directions,
        alone=run.alone_distances,
        closed=run.closed_distances,
        levels=(first,),
        history_times=loop.times[2 * _spread(len(loop.plan))],
        alone_history=_quantiles(run.alone, len(loop.plan)),
        closed_history=_quantiles(run.closed, len(loop.plan)),
        path=_path(nominal, run, sample),
        replay_error=0.0,
        mesh_error=mesh_error,
        steps=len(loop.plan),
        seconds=time.perf_counter() - began,
    )
    try:
        progress(0.45, "replay")
        replay_error = _replay_error(made, run, sample)
        made = replace(made, replay_error=replay_error, status=_status(made, replay_error))
        levels = tolerance(perturbations, loop, first, part(progress, 0.5, 1.0, "sizes"))
        made = replace(made, levels=levels)
    except KeyboardInterrupt:
        # The feedback is whole, but how large a perturbation may be is not known.
        made = replace(made, status=Status.INTERRUPTED)
    return replace(made, seconds=time.perf_counter() - began)


def _resolved(
    problem: TrackingProblem,
    nominal: Nominal,
    regulator: Regulator,
    perturbations: Perturbations,
    progress: Progress,
) -> tuple[ClosedLoop, Run, float]:
    """Move the samples on ever finer meshes until their ends stay where they are."""
    sizes = np.array([problem.perturbation])
    unit = problem.perturbation * perturbations.spread
    before: tuple[ClosedLoop, Run] | None = None
    error = np.inf
    for k in range(HALVINGS + 1):
        at = 0.2 + 0.25 * min(0.5 * k, 0.9)
        loop = ClosedLoop(nominal, *regulator.mesh(k), problem.control_weights)
        run = perturbations.run(loop, sizes, part(progress, at, at + 0.1, "samples"))
        if before is not None:
            error = max(
                _apart(before[1].alone, run.alone, unit + run.alone_distances),
                _apart(before[1].closed, run.closed, unit + run.closed_distances),
            )
            if error <= RESOLVED:
                return *before, error
        before = loop, run
    return loop, run, error


def _apart(coarse: Ends, fine: Ends, units: Array) -> float:
    """Largest W₂ distance between the ends of laws on two meshes; escapes must agree."""
    ended = np.isinf(coarse.escaped)
    if np.any(ended != np.isinf(fine.escaped)):
        return float(np.inf)
    first, second = coarse.laws[ended], fine.laws[ended]
    pairs = zip(first.means, first.factors, second.means, second.factors, units[ended], strict=True)
    return max((float(np.linalg.norm(deviation(*p))) / unit for *p, unit in pairs), default=0.0)


def _median(run: Run) -> int:
    """The sample that ends at the median distance without feedback, among those that end."""
    order = np.argsort(run.alone_distances)
    ended = order[np.isfinite(run.closed_distances[order])]
    middle = ended if ended.size else order
    return int(middle[middle.size // 2])


def _spread(steps: int) -> Array:
    return np.unique(np.linspace(0, steps, HISTORY).round().astype(int))


def _quantiles(ends: Ends, steps: int) -> Array:
    """Quantiles of the distance from the plan, never between a number and infinity."""
    return np.asarray(
        np.quantile(ends.history[_spread(steps)], QUANTILES, axis=1, method="closest_observation")
    )


def _path(nominal: Nominal, run: Run, sample: int) -> SamplePath:
    """The sample's laws in all coordinates."""
    made = []
    for ends in (run.alone, run.closed):
        made += list(_lifted(nominal, ends.path_means[:, sample], ends.path_factors[:, sample]))
    return SamplePath(run.alone.path_times, *made)


def _lifted(nominal: Nominal, means: Array, factors: Array) -> tuple[Array, Array]:
    U, start = nominal.basis, nominal.trajectory.problem.start
    if U is None:
        return means, factors
    rest = (start.mean - U @ (U.T @ start.mean), start.factor - U @ (U.T @ start.factor))
    return means @ U.T + rest[0], U @ factors + rest[1]


def _replay_error(made: Tracking, run: Run, sample: int) -> float:
    """Miss of the sample's end when an independent, adaptive integrator moves it."""
    if np.isinf(run.closed_distances[sample]):
        return float(np.inf)  # not a single sample gets to the end
    path = made.path
    start = Gaussian.trusted(path.closed_means[0], path.closed_factors[0])
    end = Gaussian.trusted(path.closed_means[-1], path.closed_factors[-1])
    replay = simulate(start, made.schedule(start), rtol=REPLAY)
    size = made.problem.perturbation * (float(np.linalg.norm(made.problem.start.factor)) or 1.0)
    if replay.status is not Status.SUCCESS:
        return float(np.inf)
    return wasserstein(replay.final, end) / size


def _status(made: Tracking, replay_error: float) -> Status:
    if made.level.closer <= 0.5:
        return Status.INEFFECTIVE
    resolved = made.mesh_error <= RESOLVED and replay_error <= AGREED
    return Status.SUCCESS if resolved else Status.UNRESOLVED
