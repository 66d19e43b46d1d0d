"""Steering without the bias b: the matrices alone move mean and covariance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._check import Array
from ...gaussian import align
from ...parameters import Parameters
from ...schedule import Schedule
from .decision import RANGE_TOLERANCE, decide
from .geodesic import geodesic_law
from .linear_maps import carry, spiral, stretch_between_ranges
from .nearest import frame, split_range
from .task import Refusal, Task
from .transport import TransportPath

__all__ = ["zero_bias"]


def zero_bias(task: Task) -> Schedule | Refusal:
    """Move mean and covariance with b = 0 by the enabled ones of A, V, B.

    With A and V: A moves the covariance, and V = G - A moves the mean along m' = G m, a
    logarithmic spiral.  With V and B: first V = -M, B = -S⁺ on the geodesic of covariances, which
    moves the covariance by M while M + V = 0 holds the mean; then B = 0 and V = G.  With A alone:
    one matrix that moves factor and mean together, as a product of exponentials.
    """
    task = task.widened()
    letters = task.problem.controls.replace("b", "")
    broken = decide(task.start, task.target, letters).broken
    if broken:
        return Refusal(f"with b = 0 the target is out of reach. {broken[0]}")
    if not task.enabled("V"):
        return (
            _by_one_matrix(task) if task.enabled("A") else task.constant(Parameters(dim=task.dim))
        )
    if task.same_covariance:
        along = spiral(task.start.mean, task.target.mean) / task.horizon
        return task.constant(Parameters(V=along))
    return _by_both(task) if task.enabled("A") else _by_attention(task)


def _by_both(task: Task) -> Schedule:
    generators = stretch_between_ranges(task.start.factor, task.target.factor)
    duration = task.horizon / len(generators)
    along = spiral(task.start.mean, task.target.mean) / task.horizon
    parameters = [Parameters(A=G / duration, V=along - G / duration) for G in generators]
    return task.pieces([duration] * len(generators), parameters)


def _by_attention(task: Task) -> Schedule:
    m0, m1 = task.start.mean, task.target.mean
    still = bool(np.array_equal(m0, m1))
    switch = task.horizon if still else 0.5 * task.horizon
    path = replace(TransportPath.between(task.start, task.target, switch), m1=m0)
    carry_covariance = geodesic_law(path, "VB")
    if still:
        return task.varying([0.0, switch], [carry_covariance])
    move_mean = Parameters(V=spiral(m0, m1) / (task.horizon - switch))
    return task.varying([0.0, switch, task.horizon], [carry_covariance, lambda t: move_mean])


def _by_one_matrix(task: Task) -> Schedule:
    """Controls A alone: Φ with Φ L₀ = L₁Q and Φ m₀ = m₁, for a target known to be reachable."""
    if np.any(task.start.mean):
        generators = carry(*_matched(task))
    else:
        generators = stretch_between_ranges(task.start.factor, task.target.factor)
    generators = generators or [np.zeros((task.dim, task.dim))]
    duration = task.horizon / len(generators)
    return task.pieces(
        [duration] * len(generators), [Parameters(A=G / duration) for G in generators]
    )


def _matched(task: Task) -> tuple[Array, Array]:
    """Independent columns X and Y such that Φ X = Y carries factor and mean at once."""
    L0, L1, m0 = task.start.factor, task.target.factor, task.start.mean
    a0, outside = split_range(L0, m0)
    if np.linalg.norm(outside) > RANGE_TOLERANCE * np.linalg.norm(m0):
        X = np.concatenate([L0, m0[:, None]], axis=1)
        Y = np.concatenate([align(L0, L1), task.target.mean[:, None]], axis=1)
        free = slice(0, L0.shape[1])
    else:
        a1, _ = split_range(L1, task.target.mean)
        X, Y = L0 @ frame(a0), L1 @ frame(a1)  # m₀ and m₁ lie along the first columns
        free = slice(1, L0.shape[1])
        Y[:, free] = align(X[:, free], Y[:, free])
    square = X.shape[0] == X.shape[1]
    if square and np.linalg.slogdet(X)[0] * np.linalg.slogdet(Y)[0] < 0:
        # Reflect the least costly direction that is free: Φ must have positive determinant.
        normal = np.linalg.eigh(X[:, free].T @ Y[:, free])[1][:, 0]
        Y[:, free] -= 2.0 * np.outer(Y[:, free] @ normal, normal)
    return X, Y
