"""The blow-up time of S' = A S + S Aᵀ + S K S, with a proved enclosure."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .. import _check
from .._check import Array
from ..errors import InvalidShape
from .evidence import LADDER, Evidence, Reason, holds_before, holds_for_ever
from .flow import Flow
from .lyapunov import lasting_bound
from .march import Course, Ending, follow
from .noise import locate_with_noise
from .refinement import refine
from .status import Crossing, CrossingStatus
from .system import System

__all__ = ["blow_up", "locate"]

#: Steps of the search, by which its cost is bounded: fewer for large matrices.
MOST_STEPS = 4000


def blow_up(
    A: ArrayLike, K: ArrayLike, factor: ArrayLike, noise: ArrayLike | None = None
) -> Crossing:
    """Enclose the blow-up time of S' = A S + S Aᵀ + S K S (+ noise), S(0) = L Lᵀ.

    Parameters
    ----------
    A : (d, d) array
    K : (d, d) array
        Symmetric.
    factor : (d, r) array
        Factor L of the start.
    noise : (d, d) array, optional
        Positive semidefinite intensity that S' gains.

    Returns
    -------
    Crossing
    """
    A = _check.square("A", A)
    K = _check.symmetric("K", K, len(A))
    L = _check.array("factor", factor, 2)
    if L.shape[0] != len(A):
        raise InvalidShape(f"`factor` must have {len(A)} rows, as `A`; it has shape {L.shape}.")
    if noise is not None:
        return locate_with_noise(System.of_term(A, K), L, _check.symmetric("noise", noise, len(A)))
    return locate(System.of_term(A, K), L)


def locate(system: System, factor: Array) -> Crossing:
    """Enclose the blow-up time from a start, for a K that is given exactly by its heads.

    Parameters
    ----------
    system : System
    factor : (d, r) array
    """
    exponents = system.exponents
    none = Evidence(np.zeros(0), exponents)
    if not factor.shape[1]:
        return _never(Evidence(none.steps, exponents, reason=Reason.EMPTY), proved=True)
    if system.semidefinite(-1):
        return _never(Evidence(none.steps, exponents, reason=Reason.NEGATIVE), proved=True)
    still = Evidence(none.steps, exponents, reason=Reason.STILL)
    if holds_for_ever(system, factor, still):
        return _never(still, proved=True)
    down = np.ldexp(1.0, -exponents.astype(int))
    A, K = system.A * down[:, None] / down, system.K / down[:, None] / down
    rises = system.semidefinite(1)
    curvature = (0.0, 0.0) if rises else _curvature(A, K)
    limit = max(60, min(MOST_STEPS, int(60_000 / len(A))))
    for margin in (1e-9, 1e-13):
        bound = lasting_bound(A, K, margin)
        # The search is not trusted, and looks itself at what is not finite.
        with np.errstate(over="ignore", invalid="ignore"):
            course = follow(
                Flow(A, K), down[:, None] * factor, curvature, limit, bound, _half_turn(system)
            )
        if course.ending is not Ending.TOUCHING or bound is None:
            break
    if course.ending is Ending.CROSSING:
        return _enclosed(system, factor, course)
    if course.ending is Ending.CLEAR:
        P = None if bound is None else bound * down[:, None] * down
        return _lasting(system, factor, course, P)
    return _undecided(system, factor, course)


def _curvature(A: Array, K: Array) -> tuple[float, float]:
    N = A.T @ K
    nu = float(np.linalg.eigvalsh(-(N + N.T))[-1])
    mu = float(np.linalg.eigvalsh(0.5 * (A + A.T))[-1])
    return max(nu, 0.0) * (1 + 1e-9), max(mu, 0.0)


def _half_turn(system: System) -> float:
    """π/√w if A² = -w I and C does not grow over it (both judged in floats), otherwise inf."""
    square = system.A @ system.A
    w = -float(square[0, 0])
    if not w > 0 or np.max(np.abs(square + w * np.eye(len(square)))) > 1e-14 * w:
        return math.inf
    growth = system.K + system.A.T @ system.K @ system.A / w
    size = float(np.max(np.abs(system.K)))
    if np.linalg.eigvalsh(growth)[-1] > 1e-14 * size * len(square):
        return math.inf
    return math.pi / math.sqrt(w) * (1 + 1e-12)


def _never(evidence: Evidence, *, proved: bool) -> Crossing:
    return Crossing(CrossingStatus.NEVER, math.inf, math.inf, math.inf, proved, evidence)


def _lasting(system: System, factor: Array, course: Course, P: Array | None) -> Crossing:
    """Prove what the search took for no blow-up at all."""
    reason = Reason.PERIODIC if P is None else Reason.BOUNDED
    evidence = Evidence(np.array(course.steps), system.exponents, None, P, reason)
    return _never(evidence, proved=holds_for_ever(system, factor, evidence))


def _undecided(system: System, factor: Array, course: Course) -> Crossing:
    """Prove that there is no blow-up where the steps end; try the threshold case exactly."""
    evidence = Evidence(np.array(course.steps), system.exponents)
    threshold = lasting_bound(system.A, system.K, 0.0)
    if threshold is not None:
        exact = Evidence(np.zeros(0), system.exponents, None, threshold, Reason.BOUNDED)
        if holds_for_ever(system, factor, exact):
            return _never(exact, proved=True)
    lower = float(np.sum(course.steps)) * (1 - 1e-15)
    proved = holds_before(system, factor, evidence, lower)
    if course.ending is Ending.TOUCHING:
        end, middle = lower + course.beyond, lower + course.left
        nearest = _nearest(system, factor, middle)
        touching = Evidence(evidence.steps, evidence.exponents, nearest)
        return Crossing(CrossingStatus.TANGENT, lower, end, middle, proved, touching)
    return Crossing(CrossingStatus.NOT_BEFORE, lower, math.inf, math.nan, proved, evidence)


def _enclosed(system: System, factor: Array, course: Course) -> Crossing:
    """Find the crossing to the precision of balls, and prove an enclosure."""
    for bits in LADDER[:3]:
        found = refine(system, factor, course, bits)
        if found is not None:
            status, proved = CrossingStatus.BLOWS_UP, True
            return Crossing(
                status, found.lower, found.upper, found.estimate, proved, found.evidence
            )
    lower = float(np.sum(course.steps)) * (1 - 1e-15)
    evidence = Evidence(np.array(course.steps), system.exponents)
    if not holds_before(system, factor, evidence, lower):
        lower = 0.0
    estimate = lower + course.left
    return Crossing(CrossingStatus.BLOWS_UP, lower, math.inf, estimate, proved=False)


def _nearest(system: System, factor: Array, time: float) -> Array:
    """Eigenvector of the largest eigenvalue of C at a time."""
    G = Flow(system.A, system.K).transition(time)[1]
    return np.asarray(np.linalg.eigh(factor.T @ G @ factor)[1][:, -1])
