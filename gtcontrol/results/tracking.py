"""Result of designing feedback around a plan: the feedback itself, and what it achieves."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .. import _check
from .._check import Array
from ..errors import ResultFileInvalid
from ..gaussian import Gaussian
from ..parameters import Parameters
from ..problem.bounds import CONTROLS
from ..problem.definitions import TrackingProblem
from ..schedule import Schedule
from ..status import Status
from .base import Arrays, Result
from .follower import Follower
from .packing import pack_bounds, pack_gaussian, unpack_bounds, unpack_gaussian
from .plain import agree, pack_plain, plain, read_array, read_status, read_times, restore
from .steering import Steering
from .trajectory import Trajectory

__all__ = ["ENOUGH", "TENFOLD", "Level", "SamplePath", "Tracking"]

#: A size is tolerated if at least this share of the samples ends closer with feedback.
ENOUGH = 0.9

#: The improvement that is counted besides.
TENFOLD = 10.0


@dataclass(frozen=True)
class Level:
    """What became of samples perturbed by one size.

    Attributes
    ----------
    size : float
        Relative size ε of the perturbation.
    closer, tenfold : float
        Share of the samples that end closer, or ten times closer, to the target with feedback.
    ratio : float
        Median over the samples of the distance without feedback over that with it.
    escaped, escaped_alone : float
        Share that leaves every bound before the end, with and without feedback.
    escape_time : float
        When the first of them does so with feedback, inf if none.
    saturated : float
        Share of the time in which a control was cut to its bound.
    exceeded : float
        Share of the samples that break a bound on the covariance, which is not enforced.
    """

    size: float
    closer: float
    tenfold: float
    ratio: float
    escaped: float
    escape_time: float
    escaped_alone: float
    saturated: float
    exceeded: float


@dataclass(frozen=True, eq=False)
class SamplePath:
    """One perturbed start on its way, alone and with feedback.

    Attributes
    ----------
    times : (k,) array
    alone_means, closed_means : (k, d) arrays
    alone_factors, closed_factors : (k, d, r) arrays
    """

    times: Array
    alone_means: Array
    alone_factors: Array
    closed_means: Array
    closed_factors: Array


@dataclass(frozen=True, eq=False, repr=False)
class Tracking(Result):
    """Feedback around a plan: a time-varying linear-quadratic regulator, tried on samples.

    Attributes
    ----------
    problem : TrackingProblem
    plan : Steering or Trajectory
        The plan that is followed.
    status : Status
        SUCCESS if the feedback brings the samples closer, and their motion was checked.
    times : (k,) array
        Times at which the Riccati matrix is stored, increasing from 0 to the horizon.
    values : (k, n, n) array
        Riccati matrix P, n = d (1 + r) in the coordinates in which the plan acts; the expected
        cost of a deviation x is xᵀ P x.
    authority : (q,) array
        Largest first: how far corrections of total cost 1 can move the law at the end, in units
        of length and q orthogonal directions.
    directions : (q, n) array
        These directions, as changes of mean and factor at the end of the plan.
    alone, closed : (samples,) arrays
        W₂ distance to the target at the end, without and with feedback; inf after an escape.
    levels : tuple of Level
        The samples perturbed by other sizes, by increasing size.
    history_times : (h,) array
    alone_history, closed_history : (3, h) arrays
        10 %, 50 % and 90 % quantiles over the samples of the W₂ distance to the plan.
    path : SamplePath
        The sample whose distance without feedback is the median.
    replay_error : float
        The end of this sample by an independent integrator, against that on the mesh: W₂ over
        the size of its perturbation.
    mesh_error : float
        Largest change of the samples' ends when the mesh is halved, over the size of the
        perturbation plus the distance from the target.
    steps : int
        Steps of the mesh.
    seconds : float
        Wall time spent.
    """

    kind: ClassVar[str] = "tracking"

    problem: TrackingProblem
    plan: Steering | Trajectory
    status: Status
    times: Array
    values: Array
    authority: Array
    directions: Array
    alone: Array
    closed: Array
    levels: tuple[Level, ...]
    history_times: Array
    alone_history: Array
    closed_history: Array
    path: SamplePath
    replay_error: float
    mesh_error: float
    steps: int
    seconds: float

    @property
    def answered(self) -> bool:
        """Whether feedback was found that helps."""
        return self.status.answered

    @property
    def nominal(self) -> Trajectory:
        """The flow of the plan from its own start."""
        return self.plan.trajectory if isinstance(self.plan, Steering) else self.plan

    @property
    def level(self) -> Level:
        """The samples perturbed by the size that was asked for."""
        return next(x for x in self.levels if x.size == self.problem.perturbation)

    @property
    def ratio(self) -> float:
        """How many times closer the median sample ends with feedback."""
        return self.level.ratio

    @property
    def tolerated(self) -> float:
        """Largest size tried up to which at least 90 % of the samples end closer; 0 if none."""
        return self._largest("closer")

    @property
    def tolerated_tenfold(self) -> float:
        """Largest size tried up to which at least 90 % end ten times closer; 0 if none."""
        return self._largest("tenfold")

    @property
    def failing(self) -> Level | None:
        """The smallest size tried that is not tolerated."""
        return next((x for x in self.levels if x.closer < ENOUGH), None)

    def _largest(self, share: str) -> float:
        found = 0.0
        for level in self.levels:
            if getattr(level, share) < ENOUGH:
                break
            found = level.size
        return found

    def __repr__(self) -> str:
        words = [
            self.status.name,
            f"dim={self.nominal.final.dim}",
            f"samples={len(self.closed)}",
            f"{self.ratio:.3g} times closer",
        ]
        return f"Tracking({', '.join(words)})"

    def gain(self, t: float) -> dict[str, Array]:
        """Gains K at time t: each control changes by -K x.

        x = (m - m*, L Q - L*), of length n = k (1 + r), is the deviation of a law from that of
        the plan, in the k coordinates in which the plan acts, Q such that it is least.

        Returns
        -------
        dict from letter to (*shape, n) array
        """
        return self._follower.gain(t)

    def gain_norms(self, times: Array) -> dict[str, Array]:
        """Largest correction of each control (Frobenius) for a deviation of length 1, in time."""
        found: dict[str, list[float]] = {c: [] for c in self.problem.controls}
        for t in times:
            for letter, K in self.gain(float(t)).items():
                found[letter].append(float(np.linalg.norm(K.reshape(-1, K.shape[-1]), 2)))
        return {letter: np.array(norms) for letter, norms in found.items()}

    def feedback(self, t: float, law: Gaussian) -> Parameters:
        """Parameters to apply at time t when the law of the tokens is `law`.

        They are the plan plus the correction, cut to the plan's bounds; t lies in
        [0, horizon], and the law has the dimension and the rank of the plan.
        """
        return self._follower.parameters(t, law)

    def cost_to_go(self, t: float, law: Gaussian) -> float:
        """Remaining cost xᵀ P(t) x of bringing `law` back to the plan, by the linearisation."""
        return self._follower.cost_to_go(t, law)

    def schedule(self, start: Gaussian) -> Schedule:
        """Parameters in time that the feedback applies to a start.

        ``gt.simulate(start, tracking.schedule(start))`` is the closed loop.

        Raises
        ------
        InvalidShape, RankMismatch
            If the start has another dimension or rank than the plan.
        OutOfScale
            If the closed loop leaves every bound before the horizon.
        """
        return self._follower.schedule(start)

    @cached_property
    def _follower(self) -> Follower:
        p = self.problem
        return Follower(self.nominal, self.times, self.values, p.control_weights, p.bounds)

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays of the feedback."""
        p = self.problem
        inner, inner_arrays = self.plan.pack()
        values: dict[str, Any] = {
            **pack_plain(p),
            **pack_plain(self),
            "status": self.status.name,
            "ratio": self.ratio,
            "tolerated": self.tolerated,
            "tolerated_tenfold": self.tolerated_tenfold,
            "bounds": pack_bounds(p.bounds),
            "control_weights": dict(p.control_weights),
            "levels": [asdict(level) for level in self.levels],
            "plan": {"kind": self.plan.kind, **inner},
        }
        arrays = {f"plan.{key}": value for key, value in inner_arrays.items()}
        arrays |= pack_gaussian("start", p.start) | pack_gaussian("target", p.target)
        arrays |= {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {name: _without_inf(getattr(self, name)) for name in _DISTANCES}
        arrays |= {f"path.{name}": getattr(self.path, name) for name in _PATH}
        return values, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> Tracking:
        """Restore a feedback."""
        problem = TrackingProblem(
            start=unpack_gaussian("start", arrays),
            target=unpack_gaussian("target", arrays),
            control_weights=_unpack_weights(values["control_weights"]),
            bounds=unpack_bounds(values["bounds"]),
            **plain(TrackingProblem, values),
        )
        plan = _unpack_plan(values["plan"], arrays)
        nominal = plan.trajectory if isinstance(plan, Steering) else plan
        d, r = problem.start.dim, problem.start.rank
        agree("the dimension of the plan", nominal.problem.start.dim, d)
        agree("the rank of the plan", nominal.problem.start.rank, r)
        basis = nominal.problem.schedule.basis
        n = (d if basis is None else basis.shape[1]) * (1 + r)
        times = read_times(arrays, "times", problem.horizon)
        authority = read_array(arrays, "authority", None)
        path_times = read_times(arrays, "path.times", problem.horizon)
        history = read_times(arrays, "history_times", problem.horizon)
        levels = tuple(restore(Level, level) for level in values["levels"])
        if not any(level.size == problem.perturbation for level in levels):
            raise ResultFileInvalid("none of `levels` has the size `perturbation`.")
        return cls(
            problem=problem,
            plan=plan,
            status=read_status(values),
            times=times,
            values=read_array(arrays, "values", times.size, n, n),
            authority=authority,
            directions=read_array(arrays, "directions", authority.size, n),
            alone=_with_inf(read_array(arrays, "alone", problem.samples)),
            closed=_with_inf(read_array(arrays, "closed", problem.samples)),
            levels=levels,
            history_times=history,
            alone_history=_with_inf(read_array(arrays, "alone_history", 3, history.size)),
            closed_history=_with_inf(read_array(arrays, "closed_history", 3, history.size)),
            path=SamplePath(
                path_times,
                read_array(arrays, "path.alone_means", path_times.size, d),
                read_array(arrays, "path.alone_factors", path_times.size, d, r),
                read_array(arrays, "path.closed_means", path_times.size, d),
                read_array(arrays, "path.closed_factors", path_times.size, d, r),
            ),
            **plain(cls, values),
        )


_ARRAYS = ("times", "values", "authority", "directions", "history_times")
_DISTANCES = ("alone", "closed", "alone_history", "closed_history")
_PATH = ("times", "alone_means", "alone_factors", "closed_means", "closed_factors")

#: How an infinite distance is saved, as saved arrays are finite.
_ESCAPED = -1.0


def _without_inf(distances: Array) -> Array:
    return np.where(np.isfinite(distances), distances, _ESCAPED)


def _with_inf(distances: Array) -> Array:
    return np.where(distances == _ESCAPED, np.inf, distances)


def _unpack_weights(values: Any) -> dict[str, float]:
    if not isinstance(values, dict) or not values or not set(values) <= set(CONTROLS):
        raise ResultFileInvalid("`control_weights` must hold numbers by control letter.")
    return {c: _check.number(c, values[c], low=0.0, strict=True) for c in CONTROLS if c in values}


def _unpack_plan(values: Any, arrays: Arrays) -> Steering | Trajectory:
    kinds: dict[str, type[Steering | Trajectory]] = {
        made.kind: made for made in (Steering, Trajectory)
    }
    if not isinstance(values, dict) or values.get("kind") not in kinds:
        raise ResultFileInvalid("`plan` is neither a steering plan nor a simulation.")
    prefix = "plan."
    inner = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
    return kinds[values["kind"]].unpack(values, inner)
