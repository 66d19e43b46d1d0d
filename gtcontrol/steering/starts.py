"""Where the solver starts: geodesics, reversed, bent and rotated ones, and earlier plans."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from ..problem.costs import MinimumTime
from ..problem.definitions import SteeringProblem
from ..results.steering import Steering
from .course import Course, Ends, State, Variation, from_plan, straight
from .instance import Instance, instance_of
from .reduction import Reduction
from .scaling import Units

__all__ = ["courses", "first_horizon"]

#: Default number of starts for programs of up to so many unknowns on the mesh asked for ...
STARTS = ((3000, 30), (8000, 6), (math.inf, 3))

#: ... and with attention, which has many more local minima.
ATTENTION_STARTS = ((1500, 72), (3000, 24), (math.inf, 8))

#: Size of rotations and of bends, and of the noise that leads off the saddle V = B = 0.
TURN, WIDE_TURN, DETOUR, NOISE = 0.6, 1.0, 0.3, 0.05

#: Paths and kinds of attention that take turns among the starts.
SHAPES = (
    ("geodesic", Variation()),
    ("rotated geodesic", Variation(turn=TURN)),
    ("reversed geodesic", Variation(flip=1, detour=DETOUR)),
    ("bent geodesic", Variation(detour=DETOUR)),
    ("bent and rotated geodesic", Variation(turn=TURN, detour=DETOUR)),
)
KINDS = (
    "opposed", "mixed signs", "switched signs", "at rest",
    "mixed signs", "opposed", "switched signs", "aligned",
)  # fmt: skip


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
    attention = {"V", "B"} <= set(instance.form.controls)
    size = instance.form.variables
    return next(n for most, n in (ATTENTION_STARTS if attention else STARTS) if size <= most)


def _course(i: int, ends: Ends, enabled: str, rng: np.random.Generator) -> Course:
    """Course number i: the geodesic first, then varied ones."""
    if {"V", "B"} <= set(enabled):
        name, variation = _with_attention(i, ends, "A" in enabled, rng)
    else:
        name, variation = _affine(i, ends)
    return straight(name, ends, enabled, rng, variation)


def _affine(i: int, ends: Ends) -> tuple[str, Variation]:
    """Rotated, reversed and bent geodesics in turn."""
    d, r = ends.first_factor.shape
    # In full rank the sign of det L is kept, so that directions reverse in pairs only.
    step = 1 if r < d else 2
    if i == 0:
        return "geodesic", Variation()
    kind = i % 6
    if kind in (2, 5) and ends.pinned is None and r >= step:
        flip = step * (1 + i // 6 % (r // step))
        turn = TURN if kind == 5 else 0.0
        return "reversed geodesic", Variation(flip=flip, detour=DETOUR, turn=turn)
    if kind == 3:
        return "bent geodesic", Variation(detour=DETOUR)
    return "rotated geodesic", Variation(turn=TURN if kind == 1 else WIDE_TURN)


def _with_attention(
    i: int, ends: Ends, mixed: bool, rng: np.random.Generator
) -> tuple[str, Variation]:
    """Paths near the geodesic, driven by attention of every sign.

    Measured without A: attention against the identity leads to the best minimum twice as often
    as attention along it, but only random signs, some of them changing on the way, find it for
    all pairs.  With A enabled all do about as well, and it may take half the motion.
    """
    d, r = ends.first_factor.shape
    name, variation = SHAPES[(i + i // len(KINDS)) % len(SHAPES)]
    if variation.flip and (ends.pinned is not None or r < 1 + (r == d)):
        name, variation = SHAPES[0]
    elif variation.flip and r == d:
        variation = dataclasses.replace(variation, flip=2)
    kind = KINDS[i % len(KINDS)]
    one = np.ones(d)
    first, second = rng.choice([-1.0, 1.0], (2, d))
    signs = {
        "opposed": (-one, -one),
        "aligned": (one, one),
        "mixed signs": (first, first),
        "switched signs": (first, second),
        "at rest": None,
    }[kind]
    share = 0.5 if mixed and i // 2 % 2 == 0 else 1.0
    return f"{name}, {kind}", dataclasses.replace(
        variation,
        share=share,
        noise=NOISE,
        rest=kind == "at rest",
        signs=signs,
        switch=rng.uniform(0.2, 0.8),
    )


def first_horizon(problem: SteeringProblem, reduction: Reduction, units: Units) -> float:
    """A horizon at which the transport geodesic respects the bounds, or nearly so."""
    if not isinstance(problem.cost, MinimumTime):
        raise TypeError("only for minimum time")
    unit = dataclasses.replace(units, time=1.0)
    instance = instance_of(problem, reduction, unit, 1)
    course = straight(
        "", instance.ends, instance.form.controls, np.random.default_rng(0), Variation()
    )
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
