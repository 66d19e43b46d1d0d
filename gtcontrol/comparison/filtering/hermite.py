"""The random field of softmax over N tokens, in terms u^α/√(α!) of multi-indices α."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from ..._check import Array

__all__ = ["Indices", "Terms", "exponents"]

Indices = NDArray[np.intp]


def exponents(r: int, degree: int, antithetic: bool, moment_matched: bool) -> Indices:
    """All multi-indices α of r entries that matter, up to a degree, shape (n, r)."""
    lowest = 3 if moment_matched else 1
    made = [
        alpha
        for total in range(lowest, degree + 1)
        if not (antithetic and total % 2)
        for alpha in _compositions(total, r)
    ]
    return np.array(made, dtype=np.intp).reshape(-1, r)


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    bars = itertools.combinations(range(total + parts - 1), parts - 1)
    ends = ((-1, *b, total + parts - 1) for b in bars)
    return [tuple(e[i + 1] - e[i] - 1 for i in range(parts)) for e in ends]


class Terms:
    """Expectations of the terms under Gaussian laws of u that lie on p-dimensional planes.

    Parameters
    ----------
    alpha : (n, r) array of int
        The multi-indices.
    planes : int
        Largest rank p of the covariance of u.
    """

    def __init__(self, alpha: Indices, planes: int) -> None:
        self.alpha = alpha
        self.degrees = alpha.sum(axis=1)
        self.scale = np.array(
            [1 / math.sqrt(math.prod(map(math.factorial, a))) for a in alpha.tolist()]
        )
        # Exact for polynomials of the degrees that occur.
        nodes, weights = np.polynomial.hermite_e.hermegauss(int(self.degrees.max()) // 2 + 1)
        grid = np.meshgrid(*[nodes] * planes, indexing="ij")
        self.nodes = np.stack([g.ravel() for g in grid], axis=1)
        product = np.ones(1)
        for _ in range(planes):
            product = np.outer(product, weights / weights.sum()).ravel()
        self.weights = product

    def expected(self, offset: Array, H: Array) -> tuple[Array, Array]:
        """Return expected gradients (n, r) and Hessians (n, r, r) at u = offset + H z.

        Parameters
        ----------
        offset : (r,) array
        H : (r, r) array
            Symmetric, of rank p; z is standard normal.
        """
        values, vectors = np.linalg.eigh(H)
        order = np.argsort(-np.abs(values))[: self.nodes.shape[1]]
        u = offset + (self.nodes * values[order]) @ vectors[:, order].T
        alpha, r = self.alpha, len(offset)
        powers = u[:, :, None] ** np.arange(int(alpha.max()) + 1)  # (nodes, r, degrees)
        # Factor of each coordinate, with none, one or two derivatives: (nodes, n, r) each.
        columns = np.arange(r)[None, :]
        factors = (
            powers[:, columns, alpha],
            alpha * powers[:, columns, np.maximum(alpha - 1, 0)],
            alpha * (alpha - 1) * powers[:, columns, np.maximum(alpha - 2, 0)],
        )

        def expectation(*derivatives: int) -> Array:
            product = np.ones(factors[0].shape[:2])
            for k in range(r):
                product = product * factors[derivatives.count(k)][:, :, k]
            return np.asarray(self.scale * (self.weights @ product))

        gradient = np.stack([expectation(i) for i in range(r)], axis=1)
        hessian = np.empty((len(alpha), r, r))
        for i in range(r):
            for j in range(i, r):
                hessian[:, i, j] = hessian[:, j, i] = expectation(i, j)
        return gradient, hessian
