"""The random field of softmax over N tokens, in terms u^α/√(α!) of multi-indices α."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from ..._check import Array

__all__ = ["Indices", "Terms", "exponents"]

Indices = NDArray[np.intp]


def exponents(r: int, degree: int, lowest: int = 1, *, even: bool = False) -> Indices:
    """All multi-indices α of r entries with lowest <= |α| <= degree, shape (n, r).

    With `even`, only those of even |α|.
    """
    made = [
        alpha
        for total in range(lowest, degree + 1)
        if not (even and total % 2)
        for alpha in _compositions(total, r)
    ]
    return np.array(made, dtype=np.intp).reshape(-1, r)


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    bars = itertools.combinations(range(total + parts - 1), parts - 1)
    ends = ((-1, *b, total + parts - 1) for b in bars)
    return [tuple(e[i + 1] - e[i] - 1 for i in range(parts)) for e in ends]


class Terms:
    """Expectations of the terms u^α/√(α!) under Gaussian laws of u that lie on p-planes.

    Parameters
    ----------
    alpha : (n, r) array of int
        The multi-indices.
    planes : int
        Largest rank p of the covariance of u.
    """

    def __init__(self, alpha: Indices, planes: int) -> None:
        self.alpha = alpha
        self.scale = np.array(
            [1 / math.sqrt(math.prod(map(math.factorial, a))) for a in alpha.tolist()]
        )
        degree = int(alpha.sum(axis=1).max())
        # Exact for products of two gradients, and for a gradient.
        self.nodes, self.weights = _grid(degree, planes)
        self.inner, self.inner_weights = _grid(degree // 2 + 1, planes)

    def on_plane(self, offset: Array, H: Array) -> tuple[Array, Array]:
        """Return the basis (r, p) of the plane W and the points u = offset + H W s, (q, r).

        Parameters
        ----------
        offset : (r,) array
        H : (r, r) array
            Symmetric, of rank p at most.
        """
        values, vectors = np.linalg.eigh(H)
        order = np.argsort(-np.abs(values))[: self.nodes.shape[1]]
        W = vectors[:, order]
        return W, offset + (self.nodes * values[order]) @ W.T

    def expected(self, u: Array) -> tuple[Array, Array]:
        """Return expected gradients (n, r) and Hessians (n, r, r) over points u (q, r)."""
        r = u.shape[1]
        factors = self._factors(u)
        gradient = np.stack([self.weights @ self._product(factors, i) for i in range(r)], axis=1)
        hessian = np.empty((len(self.alpha), r, r))
        for i in range(r):
            for j in range(i, r):
                hessian[:, i, j] = self.weights @ self._product(factors, i, j)
                hessian[:, j, i] = hessian[:, i, j]
        return gradient, hessian

    def mixing(self, W: Array, u: Array) -> tuple[Array, Array]:
        """Return P and G, each (q r, n): E ∇(He_α/√α!)(z)·∇(u^β/√β!) is (Pᵀ G)_αβ.

        Given s = Wᵀ z, the average of He_γ(z) is that of (W (s + i ζ))^γ over a standard normal
        ζ, as He_n(x) is the average of (x + i ζ)^n.
        """
        r, n = u.shape[1], len(self.alpha)
        factors = self._factors(u)
        root = self.weights[:, None]
        G = np.stack([root * self._product(factors, a) for a in range(r)], axis=1)
        points = (self.nodes[:, None, :] + 1j * self.inner[None, :, :]) @ W.T
        inner = self._factors(points.reshape(-1, r))
        shape = len(self.nodes), len(self.inner), n
        P = np.stack(
            [
                np.einsum("z,qzn->qn", self.inner_weights, self._product(inner, a).reshape(shape))
                for a in range(r)
            ],
            axis=1,
        ).real
        return P.reshape(-1, n), G.reshape(-1, n)

    def _factors(self, u: Array) -> tuple[Array, Array, Array]:
        """Factor of each coordinate with none, one or two derivatives, each (q, n, r)."""
        alpha = self.alpha
        powers = u[:, :, None] ** np.arange(int(alpha.max()) + 1)
        columns = np.arange(u.shape[1])[None, :]
        return (
            powers[:, columns, alpha],
            alpha * powers[:, columns, np.maximum(alpha - 1, 0)],
            alpha * (alpha - 1) * powers[:, columns, np.maximum(alpha - 2, 0)],
        )

    def _product(self, factors: tuple[Array, Array, Array], *derivatives: int) -> Array:
        """Values (q, n) of the terms, differentiated by the coordinates that are named."""
        product = self.scale
        for k in range(self.alpha.shape[1]):
            product = product * factors[derivatives.count(k)][:, :, k]
        return product


def _grid(points: int, dimensions: int) -> tuple[Array, Array]:
    """Nodes (q, p) and weights (q,) of Gauss-Hermite quadrature for a standard normal."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    grid = np.meshgrid(*[nodes] * dimensions, indexing="ij")
    product = np.ones(1)
    for _ in range(dimensions):
        product = np.outer(product, weights / weights.sum()).ravel()
    return np.stack([g.ravel() for g in grid], axis=1), product
