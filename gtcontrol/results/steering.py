"""Result of a steering problem: the plan, its cost, and what checks it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import _check
from ..problem.definitions import SteeringProblem
from ..schedule import Schedule
from ..status import Status
from .base import Arrays, Result, exporting
from .packing import (
    pack_bounds,
    pack_cost,
    pack_gaussian,
    unpack_bounds,
    unpack_cost,
    unpack_gaussian,
)
from .plain import agree, plain, read_status, restore
from .schedules import pack_schedule, unpack_schedule
from .tokens import TokenCheck
from .trajectory import Trajectory

if TYPE_CHECKING:
    import torch

__all__ = ["SET_ASIDE", "Attempt", "Steering", "Violation"]

#: Outcome of a start that was given up early, because others promised to cost less.
SET_ASIDE = "set aside"

#: Points at which each step of the replay is searched for the smallest eigenvalue, unless the
#: factors of all steps together have more entries than the limit.
BETWEEN, BETWEEN_LIMIT = 8, 10_000_000


@dataclass(frozen=True)
class Attempt:
    """One start of the solver, and how it ended."""

    start: str
    solver: str
    intervals: int
    outcome: str
    converged: bool
    iterations: int
    cost: float
    seconds: float


@dataclass(frozen=True)
class Violation:
    """How far the best iterate misses one group of constraints."""

    constraint: str
    size: float
    where: str
    advice: str


@dataclass(frozen=True, eq=False)
class Steering(Result):
    """A plan: the time-varying Transformer parameters that carry start to target.

    Attributes
    ----------
    problem : SteeringProblem
    status : Status
        SUCCESS only if the plan, simulated by an independent integrator, arrives.
    schedule : Schedule
        The parameters A, V, B, b as a function of time.
    trajectory : Trajectory
        The replay of the schedule by the simulator.
    cost : float
        Cost of the schedule along its replay (the horizon, for minimum time).
    lower_bound : float
        A proved lower bound on the cost of every plan.
    lower_bound_reason : str
        Where the bound comes from.
    replay_error : float
        Relative miss of the replay: the larger of |S(T) - S₁|/|S₁| (Frobenius) and
        |m(T) - m₁| over the scale of the problem.
    terminal_error : float
        The same for the solver's own discrete trajectory (0 for closed forms).
    solver : str
        "closed form", "ipopt" or "fatrop".
    iterations : int
        Iterations that led to the plan, over all its meshes.
    intervals, refinements : int
        Mesh of the best attempt, and how often it was refined.
    seconds : float
        Wall time spent in all.
    attempts : tuple of Attempt
    violations : tuple of Violation
        Worst violated constraints, largest first, when the solve failed.
    tokens : TokenCheck or None
        Result of moving actual tokens, when asked for.
    """

    kind: ClassVar[str] = "steering"

    problem: SteeringProblem
    status: Status
    schedule: Schedule
    trajectory: Trajectory
    cost: float
    lower_bound: float
    lower_bound_reason: str
    replay_error: float
    terminal_error: float
    solver: str
    seconds: float
    iterations: int = 0
    intervals: int = 0
    refinements: int = 0
    attempts: tuple[Attempt, ...] = ()
    violations: tuple[Violation, ...] = ()
    tokens: TokenCheck | None = None

    @property
    def answered(self) -> bool:
        """Whether the plan was found and checked."""
        return self.status.answered

    @property
    def horizon(self) -> float:
        """Duration of the plan."""
        return self.schedule.horizon

    @property
    def gap(self) -> float:
        """Relative distance of the cost from its lower bound, cost/lower_bound - 1."""
        if self.lower_bound > 0:
            return self.cost / self.lower_bound - 1
        return 0.0 if self.cost == 0 else math.inf

    @property
    def smallest_eigenvalue(self) -> float:
        """Smallest positive eigenvalue of the covariance along the plan: the rank is kept."""
        path = self.trajectory
        values = path.eigenvalues
        if not values.size:
            return math.inf
        smallest = float(values[:, -1].min())
        n = path.times.size
        if path.interpolant is None or n * path.factors[0].size > BETWEEN_LIMIT:
            return smallest
        # Steps are long on smooth plans: the minimum may lie between two of them.
        steps = np.linspace(0, n - 1, BETWEEN * (n - 1) + 1)
        times = np.interp(steps, np.arange(n), path.times)
        return min(smallest, *(float(path.at(float(t)).eigenvalues[-1]) for t in times))

    def to_torch(
        self,
        *,
        layers: int,
        exact: bool = False,
        mask_self: bool = False,
        dtype: str | torch.dtype = "float64",
    ) -> torch.nn.Module:
        """Return the plan as residual softmax attention layers; see :func:`gtcontrol.to_torch`."""
        options = {"layers": layers, "exact": exact, "mask_self": mask_self, "dtype": dtype}
        made: torch.nn.Module = exporting().to_torch(self, **options)
        return made

    def explain(self) -> str:
        """Say how the solve ended and, if it failed, which constraints it misses most."""
        lines = [f"{self.status.name}: {self.status.value}"]
        if self.attempts:
            good = sum(a.converged for a in self.attempts)
            aside = sum(a.outcome == SET_ASIDE for a in self.attempts)
            early = f", {aside} were set aside early" if aside else ""
            lines.append(f"{good} of {len(self.attempts)} attempts of the solver converged{early}:")
            lines += [
                f"  {a.start} start, {a.intervals} intervals, {a.solver}: {a.outcome} after "
                f"{a.iterations} iterations, cost {a.cost:.6g}"
                for a in self.attempts
            ]
        lines.append(f"Replay by an independent integrator misses by {self.replay_error:.3g}.")
        if self.violations:
            lines.append("Constraints of the best attempt, worst first:")
            lines += [
                f"  {v.constraint} ({v.where}): missed by {v.size:.3g}. {v.advice}"
                for v in self.violations
            ]
        return "\n".join(lines)

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays of the plan."""
        p = self.problem
        values: dict[str, Any] = {
            "name": p.name,
            "status": self.status.name,
            "cost": self.cost,
            "lower_bound": self.lower_bound,
            "lower_bound_reason": self.lower_bound_reason,
            "gap": self.gap,
            "replay_error": self.replay_error,
            "terminal_error": self.terminal_error,
            "plan_horizon": self.horizon,
            "smallest_eigenvalue": self.smallest_eigenvalue,
            "solver": self.solver,
            "iterations": self.iterations,
            "intervals": self.intervals,
            "refinements": self.refinements,
            "seconds": self.seconds,
            "problem": {
                "horizon": p.horizon,
                "controls": p.controls,
                "cost": pack_cost(p.cost),
                "bounds": pack_bounds(p.bounds),
                "method": p.method,
                "dim": p.start.dim,
                "rank": p.start.rank,
            },
            "attempts": [asdict(a) for a in self.attempts],
            "violations": [asdict(v) for v in self.violations],
        }
        arrays = pack_gaussian("start", p.start) | pack_gaussian("target", p.target)
        arrays |= pack_schedule("schedule", self.schedule)
        inner, inner_arrays = self.trajectory.pack()
        values["trajectory"] = inner
        arrays |= {
            f"trajectory.{k}": v
            for k, v in inner_arrays.items()
            if not k.startswith("schedule.")  # the plan's own, saved once
        }
        if self.tokens is not None:
            values["tokens"], token_arrays = self.tokens.pack()
            arrays |= token_arrays
        return values, arrays

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> Steering:
        """Restore a plan."""
        saved = values["problem"]
        problem = SteeringProblem(
            start=unpack_gaussian("start", arrays),
            target=unpack_gaussian("target", arrays),
            cost=unpack_cost(saved["cost"]),
            bounds=unpack_bounds(saved["bounds"]),
            **plain(SteeringProblem, {**saved, "name": values["name"]}),
        )
        prefix = "trajectory."
        inner = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        inner |= {k: v for k, v in arrays.items() if k.startswith("schedule.")}
        _check.number("horizon", problem.horizon, low=0.0, strict=True)
        trajectory = Trajectory.unpack(values["trajectory"], inner)
        for name, law in (("start", problem.start), ("target", problem.target)):
            agree(f"the dimension of the {name}", law.dim, trajectory.problem.start.dim)
        return cls(
            problem=problem,
            status=read_status(values),
            schedule=unpack_schedule("schedule", arrays),
            trajectory=trajectory,
            attempts=tuple(restore(Attempt, a) for a in values["attempts"]),
            violations=tuple(restore(Violation, v) for v in values["violations"]),
            tokens=TokenCheck.unpack(values["tokens"], arrays) if "tokens" in values else None,
            **plain(cls, values),
        )
