"""Controllers without attention: constant and piecewise constant A and b."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

from ..._check import Array
from ...gaussian import align
from ...parameters import Parameters
from ...schedule import Schedule
from .factorise import BIAS_TOLERANCE
from .linear_maps import log_spd_map, principal_cosine, stretch_between_ranges
from .task import Refusal, Task

__all__ = ["constant_affine", "two_piece_affine"]

#: Ranges whose largest principal angle has a smaller cosine count as meeting at 90°.
RIGHT_ANGLE = 1e-4

_NEEDS_A = Refusal("the covariance has to move by A, which is not enabled.")


def constant_affine(task: Task) -> Schedule | Refusal:
    """A = log(T)/horizon, T the symmetric positive definite map with T S₀ T = S₁, and b.

    Source: Alcalde, Ji, Zuazua (2026) for r = d; for r < d the map exists iff no principal
    angle between the ranges is 90°.
    """
    A = np.zeros((task.dim, task.dim))
    if not task.same_covariance:
        if not task.enabled("A"):
            return _NEEDS_A
        L0, L1 = task.start.factor, task.target.factor
        cosine = principal_cosine(L0, L1)
        if cosine < RIGHT_ANGLE:
            return Refusal(
                "the ranges of the covariances meet at a principal angle of 90°, or too near it "
                f"(cosine {cosine:.2g}), where no positive definite map joins them."
            )
        A = log_spd_map(L0, align(L0, L1)) / task.horizon
    b = _admit_bias(task, A, task.start.mean, task.horizon)
    return b if isinstance(b, Refusal) else task.constant(Parameters(A=A, b=b))


def two_piece_affine(task: Task) -> Schedule | Refusal:
    """Rotate the range through the principal angles, then constant affine inside range L₁.

    Always applies, also to orthogonal ranges.  Between equal ranges there is nothing to rotate,
    and one piece is enough.
    """
    generators = [np.zeros((task.dim, task.dim))]
    if not task.same_covariance:
        if not task.enabled("A"):
            return _NEEDS_A
        generators = stretch_between_ranges(task.start.factor, task.target.factor)
    duration = task.horizon / len(generators)
    mean = task.start.mean
    for G in generators[:-1]:
        mean = np.asarray(expm(G)) @ mean
    last = generators[-1] / duration
    b = _admit_bias(task, last, mean, duration)
    if isinstance(b, Refusal):
        return b
    laws = [Parameters(A=G / duration) for G in generators[:-1]] + [Parameters(A=last, b=b)]
    return task.pieces([duration] * len(laws), laws)


def _admit_bias(task: Task, A: Array, mean: Array, duration: float) -> Array | Refusal:
    """Constant b that carries the mean to the target, or why it is missing."""
    b = _constant_bias(A, mean, task.target.mean, duration)
    if task.enabled("b"):
        return b
    size, drift = float(np.linalg.norm(b)), float(np.linalg.norm(A, 2) * np.linalg.norm(mean))
    if size <= BIAS_TOLERANCE * drift:
        return np.zeros_like(b)
    return Refusal(f"the mean needs a bias b of norm {size:.3g}, and b is not enabled.")


def _constant_bias(A: Array, first: Array, last: Array, duration: float) -> Array:
    """Constant b with m' = A m + b from `first` to `last`, A symmetric.

    b = (∫₀ᵀ e^{As} ds)⁻¹ (m₁ - e^{AT} m₀), in the eigenbasis of A.
    """
    rates, vectors = np.linalg.eigh(A)
    growth = rates * duration
    safe = np.where(growth == 0, 1.0, growth)
    weights = duration * np.where(growth == 0, 1.0, np.expm1(growth) / safe)
    shift = vectors.T @ (last - first) - np.expm1(growth) * (vectors.T @ first)
    return np.asarray(vectors @ (shift / weights))
