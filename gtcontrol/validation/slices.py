"""Sliced Wasserstein distance between two laws on weighted nodes."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from .._check import Array

__all__ = ["BINS", "directions", "sliced"]

#: Bins of equal probability over which quantile functions are averaged.
BINS = 64

#: Directions in dimension two, and beyond.
PLANAR, SPATIAL = 32, 64


def directions(dim: int) -> Array:
    """Unit vectors spread evenly over half a sphere, shape (n, dim); always the same ones."""
    if dim == 1:
        return np.ones((1, 1))
    if dim == 2:
        angles = (np.arange(PLANAR) + 0.5) * np.pi / PLANAR
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    made = ndtri(qmc.Sobol(dim, scramble=True, rng=0).random(SPATIAL))
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True))


def sliced(
    first: Array, second: Array, weights: Array, along: Array, others: Array | None = None
) -> float:
    """Sliced W₂ between two laws on weighted nodes.

    Each is projected on the directions; on a line W₂ is the L² distance of the quantile
    functions.  These are averaged over bins of equal probability first: where nodes are moved
    by less than their spacing, the distance of the bare nodes would hold what averages out
    in the continuum.

    Parameters
    ----------
    first, second : (N, d) arrays
    weights : (N,) array
    along : (n, d) array
        Unit vectors.
    others : (N,) array, optional
        Weights of the second nodes, if they differ.

    Returns
    -------
    float
        Root of the mean of W₂² over the directions.
    """
    one = _quantiles(first @ along.T, weights)
    other = _quantiles(second @ along.T, weights if others is None else others)
    return float(np.sqrt(np.mean((one - other) ** 2)))


def _quantiles(values: Array, weights: Array) -> Array:
    """Averages of the quantile function over each bin, (BINS, n), for values (N, n)."""
    order = np.argsort(values, axis=0, kind="stable")
    edges = np.linspace(0.0, 1.0, BINS + 1)
    made = np.empty((BINS, values.shape[1]))
    for j in range(values.shape[1]):
        w = weights[order[:, j]]
        shares = np.concatenate([[0.0], np.cumsum(w)])
        integral = np.concatenate([[0.0], np.cumsum(w * values[order[:, j], j])])
        made[:, j] = np.diff(np.interp(edges * shares[-1], shares, integral)) * BINS
    return made
