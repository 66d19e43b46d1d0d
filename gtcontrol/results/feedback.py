"""Feedback around a plan: how far a law is from the nominal one, and what is added to the plan.

A law N(m, S) of rank r is compared with the nominal N(m*, L* L*ᵀ) by

    x = (m - m*, L Q - L*),      Q orthogonal with |L Q - L*| least,

so that |x| is their 2-Wasserstein distance, exactly, and x does not depend on which factor of S
was taken.  With y = P(t) x, P the solution of the Riccati equation of the linearisation, the
regulator changes each parameter u by -1/w_u times the gradient of <y, rate> in u at the plan:

    A: y_m mᵀ + y_L Lᵀ,                        b: y_m,
    V: y_m (m + S τ)ᵀ + y_L (L Lᵀ B L)ᵀ,       B: S Vᵀ (y_m mᵀ + y_L Lᵀ),

with τ = B m + β; that is -R⁻¹ Bᵀ P x of the linear-quadratic regulator without forming the
matrix of the gains.  All functions take stacks of laws: leading axes of x, y, mean and factor.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .._check import Array
from ..parameters import Parameters
from ..problem.bounds import Bounds

__all__ = ["Controls", "corrections", "deviation", "joined", "saturate", "split_state"]

#: Parameters by letter; each with leading axes for a stack of laws.
Controls = dict[str, Array]


def deviation(mean: Array, factor: Array, nominal_mean: Array, nominal_factor: Array) -> Array:
    """Distance vector x of laws from the nominal one, shape (..., d + d r); |x| is W₂."""
    aligned = factor
    if factor.shape[-1]:
        W, _, Zt = np.linalg.svd(np.swapaxes(factor, -1, -2) @ nominal_factor)
        aligned = factor @ (W @ Zt)
    return joined(mean - nominal_mean, aligned - nominal_factor)


def joined(mean: Array, factor: Array) -> Array:
    """One vector (..., d + d r) from a mean (..., d) and a factor (..., d, r)."""
    return np.concatenate(
        [mean, factor.reshape(*factor.shape[:-2], factor.shape[-2] * factor.shape[-1])], axis=-1
    )


def split_state(x: Array, dim: int) -> tuple[Array, Array]:
    """Mean part (..., d) and factor part (..., d, r) of a vector."""
    rank = x.shape[-1] // dim - 1
    return x[..., :dim], x[..., dim:].reshape(*x.shape[:-1], dim, rank)


def corrections(
    p: Parameters, mean: Array, factor: Array, weights: Mapping[str, float], costate: Array
) -> Controls:
    """What the regulator adds to the plan for costates y (..., d + d r).

    Parameters
    ----------
    p, mean, factor : Parameters, (d,) array, (d, r) array
        The plan and its law at this time.
    weights : mapping from control letter to float
        Weight of the square of each correction in the cost; other parameters are left alone.
    costate : (..., d + d r) array
    """
    y_m, y_L = split_state(costate, mean.size)
    linear = y_m[..., :, None] * mean + y_L @ factor.T
    made: Controls = {}
    if "A" in weights:
        made["A"] = -linear / weights["A"]
    if "b" in weights:
        made["b"] = -y_m / weights["b"]
    values, scores = [], []
    for V, B, beta in p.heads:
        tilt = B @ mean if beta is None else B @ mean + beta
        acted = mean + factor @ (factor.T @ tilt)
        values.append(y_m[..., :, None] * acted + y_L @ (factor @ (factor.T @ B @ factor)).T)
        scores.append((factor @ (V @ factor).T) @ linear)
    for letter, gradients in (("V", values), ("B", scores)):
        if letter in weights:
            whole = gradients[0] if p.V.ndim == 2 else np.stack(gradients, axis=-3)
            made[letter] = -whole / weights[letter]
    return made


def saturate(
    p: Parameters, changes: Controls, bounds: Bounds, stack: tuple[int, ...]
) -> tuple[Controls, Array]:
    """Plan plus corrections, cut to the bounds, and which laws of the stack were cut.

    Entries are clipped first; a matrix whose norm is then too large is scaled down.  Parameters
    that are not corrected are those of the plan, whatever they are.

    Returns
    -------
    controls : mapping from letter to (..., *shape) array
    cut : (...) array of bool
    """
    made: Controls = {}
    cut = np.zeros(stack, dtype=bool)
    for letter, change in changes.items():
        value = getattr(p, letter) + change
        axes = tuple(range(len(stack), value.ndim))
        limit = bounds.entries.get(letter)
        if limit is not None:
            cut |= np.any(np.abs(value) > limit, axis=axes)
            value = np.clip(value, -limit, limit)
        limit = bounds.norms.get(letter)
        if limit is not None:
            size = np.sqrt(np.sum(value**2, axis=axes, keepdims=True))
            cut |= np.any(size > limit, axis=axes)
            value = value * (limit / np.maximum(size, limit))
        made[letter] = value
    return made, cut
