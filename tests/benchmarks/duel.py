"""Package against baseline on the same instances: times per start, and costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

import gtcontrol as gt

from .baseline import Baseline, Cost, baseline
from .figures import share, table
from .instances import Instance

#: A cost is worse when it exceeds the baseline's by this, relatively, beyond what the
#: baseline's own miss of the target may have saved it.
WORSE = 1e-4


@dataclass(frozen=True)
class Duel:
    """One instance, solved by both."""

    instance: Instance
    ours: gt.Steering
    theirs: Baseline

    @property
    def both(self) -> bool:
        """Whether both succeeded."""
        return self.ours.status is gt.Status.SUCCESS and self.theirs.ok

    @property
    def start_seconds(self) -> float:
        """Seconds of the solver per start: polishing and failed starts are shared by all."""
        mesh = self.ours.attempts[0].intervals
        starts = sum(a.intervals == mesh for a in self.ours.attempts)
        return self.solver_seconds / starts

    @property
    def solver_seconds(self) -> float:
        """Seconds of the solver over all our starts and refinements."""
        return sum(a.seconds for a in self.ours.attempts)

    @property
    def ratio(self) -> float:
        """Their solve time over ours, per start; building is excluded on both sides."""
        return self.theirs.solve_seconds / self.start_seconds

    @property
    def worse(self) -> bool:
        """Whether our plan costs more."""
        return self.ours.cost > self.theirs.cost * (1 + WORSE + self.theirs.replay_error)


def fight(instance: Instance, ours: gt.Steering, controls: str, cost: Cost) -> Duel:
    """Let the baseline solve an instance that the package has solved."""
    return Duel(instance, ours, baseline(instance.start, instance.target, 1.0, controls, cost))


def duels_table(duels: Iterable[Duel]) -> str:
    """One row for each (d, r), medians over the instances where both succeeded."""
    by_shape: dict[tuple[int, int], list[Duel]] = {}
    for duel in duels:
        by_shape.setdefault((duel.instance.d, duel.instance.r), []).append(duel)
    header = ["d,r", "ours ok", "base ok", "ours it", "base it", "ours/start", "ours/all", "base"]
    header += ["ratio", "ours rest", "base build", "base replay", "worse"]
    return table(header, [_row(shape, group) for shape, group in sorted(by_shape.items())])


def _row(shape: tuple[int, int], group: list[Duel]) -> list[str]:
    ours = sum(d.ours.status is gt.Status.SUCCESS for d in group)
    theirs = sum(d.theirs.ok for d in group)
    row = [f"{shape[0]},{shape[1]}", f"{ours}/{len(group)}", f"{theirs}/{len(group)}"]
    both = [d for d in group if d.both]
    if not both:
        return row + ["-"] * 10

    def median(values: Iterable[float], form: str) -> str:
        return format(float(np.median(list(values))), form)

    return [
        *row,
        median((a.iterations for d in both for a in d.ours.attempts if a.converged), ".0f"),
        median((d.theirs.iterations for d in both), ".0f"),
        median((1e3 * d.start_seconds for d in both), ".1f") + " ms",
        median((1e3 * d.solver_seconds for d in both), ".1f") + " ms",
        median((1e3 * d.theirs.solve_seconds for d in both), ".1f") + " ms",
        median((d.ratio for d in both), ".1f"),
        median((d.ours.seconds - d.solver_seconds for d in both), ".2f") + " s",
        median((d.theirs.build_seconds for d in both), ".2f") + " s",
        median((d.theirs.replay_error for d in both), ".0e"),
        share(sum(d.worse for d in both), len(both)),
    ]
