"""Where the solver starts: geodesics, reversed, bent and rotated ones, and earlier plans."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from ..problem.costs import MinimumTime
from ..problem.definitions import SteeringProblem
from ..results.steering import Steering
from .course import Course, Ends, State, from_plan, straight
from .instance import Instance, instance_of
from .reduction import Reduction
from .scaling import Units

__all__ = ["courses", "first_horizon"]

#: Default number of starts for programs of up to so many unknowns on the first mesh ...
STARTS = ((700, 12), (1500, 8), (3000, 4))

#: ... and for larger ones.
FEWEST_STARTS = 2

#: With attention there are more local minima, and so many times the starts.
ATTENTION_FACTOR = 2


def courses(
    instance: Instance, count: int | None, seed: int, initial: Steering | None
) -> Iterator[Course]:
    """Courses in the order in which they are tried; an earlier plan replaces all others."""
    enabled, ends = instance.form.controls, instance.ends
    if initial is not None:
        yield from_plan(initial, instance.units, instance.reduction.basis, enabled, ends)
        return
    rng = np.random.default_rng(seed)
    for i in range(_default_count(instance) if count is None else count):
        yield _course(i, ends, enabled, rng)


def _default_count(instance: Instance) -> int:
    size = instance.form.variables
    count = next((count for largest, count in STARTS if size <= largest), FEWEST_STARTS)
    return count * (ATTENTION_FACTOR if {"V", "B"} <= set(instance.form.controls) else 1)


def _course(i: int, ends: Ends, enabled: str, rng: np.random.Generator) -> Course:
    """Course number i: the geodesic, then rotated, reversed and bent ones in turn.

    With attention, reversed directions converge slowly and win seldom, so they are rarer.
    """
    d, r = ends.first_factor.shape
    attention = {"V", "B"} <= set(enabled)
    mixed = attention and "A" in enabled
    share = 0.5 if mixed and i % 2 == 0 else 0.0
    noise = 0.0 if not attention or (i == 0 and not mixed) else (0.05 if share else 0.1)
    turn = flip = detour = 0.0
    shape = i if not attention else i // 2
    # In full rank the sign of det L is kept, so that directions reverse in pairs only.
    step = 1 if r < d else 2
    reverse = shape % 6 == 3 if attention else shape % 3 == 2
    if shape == 0:
        name = "geodesic"
    elif reverse and ends.pinned is None and r >= step:
        name, detour = "reversed geodesic", 0.3
        flip = step * (1 + shape // 3 % (r // step))
    elif shape % 2 == 1:
        name, turn = "rotated geodesic", 0.6
    else:
        name, detour = "bent geodesic", 0.3
    name += (", split" if share else "") + (", perturbed" if noise else "")
    return straight(
        name,
        ends,
        enabled,
        rng,
        turn=turn,
        flip=int(flip),
        detour=detour,
        share=share,
        noise=noise,
    )


def first_horizon(problem: SteeringProblem, reduction: Reduction, units: Units) -> float:
    """A horizon at which the transport geodesic respects the bounds, or nearly so."""
    if not isinstance(problem.cost, MinimumTime):
        raise TypeError("only for minimum time")
    unit = dataclasses.replace(units, time=1.0)
    instance = instance_of(problem, reduction, unit, 1)
    course = straight("", instance.ends, instance.form.controls, np.random.default_rng(0))
    needed = 0.0
    for tau in np.linspace(0, 1, 41):
        state = course.at(float(tau))
        needed = max(needed, _horizon_at(state, instance))
    return 1.02 * needed or 1.0


def _horizon_at(state: State, instance: Instance) -> float:
    def ratio(letter: str) -> float:
        u = state.controls[letter]
        size = float(np.max(np.abs(u)))
        if letter in instance.norms:
            return float(np.linalg.norm(u)) / instance.norms[letter]
        return size / instance.entries.get(letter, np.inf)

    speeds = [ratio(c) for c in state.controls if c in "Ab"]
    if "V" in state.controls:
        # V and B may share the load: only their product counts for the covariance
        both = ratio("V") * max(ratio("B"), 1.0) if "B" in state.controls else ratio("V")
        speeds.append(both)
    return max(speeds, default=0.0)
