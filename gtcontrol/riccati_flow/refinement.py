"""From a crossing found in floats to an enclosure of the blow-up time that is proved in balls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._check import Array
from ..arithmetic import balls
from ..arithmetic.definiteness import definite
from .enclosures import Curvature, EnclosedFlow, State, balanced, clear, negative
from .evidence import Evidence, after
from .march import Course, step_before
from .system import System

__all__ = ["Enclosed", "refine"]

#: Half the relative width of the enclosure of a blow-up time.
WIDTH = 3e-13

#: The lower end is near enough at this multiple of the half width.  A last step from farther away
#: is at least a third of what is left, so that no step is refused for being small.
CLOSE = 1.5

#: Steps between the end of the search in floats and the lower end, each of which leaves a small
#: part of what the one before it left.
MOST_STEPS = 12


@dataclass(frozen=True, eq=False)
class Enclosed:
    """Proved enclosure of a blow-up time, its estimate, and the evidence."""

    lower: float
    upper: float
    estimate: float
    evidence: Evidence


@dataclass(frozen=True, eq=False)
class _Root:
    """Where xᵀ(I - C)x vanishes: its distance, x, its slope, and |Y x|² before."""

    left: float
    x: Array
    slope: float
    weight: float


def refine(system: System, factor: Array, course: Course, bits: int) -> Enclosed | None:
    """Prove an enclosure of relative width 2 · :data:`WIDTH`; None if this precision does not.

    Parameters
    ----------
    system : System
    factor : (d, r) array
    course : Course
        Steps without blow-up, and the distance to the crossing after them.
    bits : int
        Precision of the balls.
    """
    with balls.precision(bits):
        A, K = system.ball_pair()
        A, K, L = balanced(A, K, balls.balls(factor), system.exponents)
        flow = EnclosedFlow(A, K, bits)
        curvature = None if system.semidefinite(1) else Curvature.of(A, K)
        state, steps = State.initial(L), list(course.steps)
        for h in steps:
            moved = _step(flow, state, curvature, h)
            if moved is None:
                return None
            state = moved
        left = course.left
        for _ in range(MOST_STEPS):
            root = _root(flow, state, left)
            if root is None:
                return None
            estimate = float(state.time) + root.left
            if root.left <= CLOSE * WIDTH * estimate:
                return _closed(system, state, flow, root, steps, estimate)
            theta = 0.0
            if curvature is not None:
                theta = step_before(root.left, curvature.nu, curvature.mu, root.weight, root.slope)
            h = root.left - max(theta * root.left, WIDTH * estimate)
            moved = _step(flow, state, curvature, h) if h > 0.25 * root.left else None
            if moved is None:
                return None
            state, left = moved, root.left - h
            steps.append(h)
        return None


def _step(flow: EnclosedFlow, state: State, curvature: Curvature | None, h: float) -> State | None:
    """Return the state a step later, or None if it is not proved that the step is clear."""
    moved = state.moved(flow, h)
    return moved if curvature is None or clear(state, moved, curvature, h) else None


def _root(flow: EnclosedFlow, state: State, left: float) -> _Root | None:
    """Newton's method for the smallest eigenvalue of I - C, from a good guess."""
    before = balls.middle(state.Y)
    for _ in range(8):
        ahead = state.moved(flow, left)
        C, Y = balls.middle(ahead.C), balls.middle(ahead.Y)
        if not (np.all(np.isfinite(C)) and np.all(np.isfinite(Y))):
            return None
        x = np.linalg.eigh(0.5 * (C + C.T))[1][:, -1]
        exact = balls.balls(x)
        gap = float((exact.transpose() * ahead.gap() * exact)[0, 0])
        moved = Y @ x
        slope = float(moved @ balls.middle(flow.K) @ moved)
        if not slope > 0:
            return None
        change = gap / slope
        left += change
        if not left > 0:
            return None
        if abs(change) < 0.05 * WIDTH * (float(state.time) + left):
            return _Root(left, x, slope, float(np.sum((before @ x) ** 2)))
    return None


def _closed(
    system: System,
    state: State,
    flow: EnclosedFlow,
    root: _Root,
    steps: list[float],
    estimate: float,
) -> Enclosed | None:
    """Prove both ends."""
    upper = estimate * (1 + WIDTH)
    last = after(state, upper)
    if last <= 0 or not definite(state.gap()):
        return None
    end = state.moved(flow, last)
    if not bool(end.time <= balls.ball(upper)) or not negative(end.gap(), root.x):
        return None
    evidence = Evidence(np.array(steps), system.exponents, root.x)
    return Enclosed(balls.below(state.time), upper, estimate, evidence)
