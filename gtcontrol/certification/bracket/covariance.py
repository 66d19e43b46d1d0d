"""The equation of the covariance in balls, in coordinates of choice.

S' = M S + S M' + Q with M = A + Σ_h V_h S B_h, in the coordinates x -> T x:
S -> T S T', A -> T A T^-1, V -> T V T^-1, B -> T^-T B T^-1, Q -> T Q T'.  Norms depend on the
coordinates; bounds are sharp when the covariance has no direction much smaller than the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._check import Array
from ...arithmetic import balls, taylor
from ...arithmetic.norms import eigenvalue_bound
from ...parameters import Parameters

__all__ = ["CovarianceFlow", "SingularCoordinates"]

# FLINT has no stubs.
Ball = Any
Balls = Any


class SingularCoordinates(Exception):
    """A matrix of coordinates has no proved inverse at the precision that is set."""


class CovarianceFlow:
    """The quadratic equation of the covariance, at the precision that is set when it is made.

    Parameters
    ----------
    parameters : Parameters
    coordinates : (d, d) array
        Invertible matrix T, meant exactly.

    Attributes
    ----------
    A : ball matrix
    heads : tuple of (V, B), ball matrices
    noise : ball matrix or None
    linear, quadratic : balls
        Bounds on A S + S A', and on Σ V S B S + its transpose (see `QuadraticFlow`).
    """

    def __init__(self, parameters: Parameters, coordinates: Array) -> None:
        T = balls.balls(coordinates)
        inverse = balls.inverse(T)
        if inverse is None:
            raise SingularCoordinates("the coordinates are not proved to be independent")
        self._coordinates: Balls = T
        self._inverse: Balls = inverse
        self.A: Balls = T * balls.balls(parameters.A) * inverse
        self.heads: tuple[tuple[Balls, Balls], ...] = tuple(
            (T * balls.balls(V) * inverse, inverse.transpose() * balls.balls(B) * inverse)
            for V, B, _ in parameters.heads
            if np.any(V) and np.any(B)
        )
        noise = parameters.noise
        self.noise: Balls | None = (
            None
            if noise is None or not np.any(noise)
            else _symmetrised(T * balls.balls(noise) * T.transpose())
        )
        self.linear: Ball = 2 * taylor.spectral_norm(self.A)
        self.quadratic: Ball = 2 * sum(
            (taylor.spectral_norm(V) * taylor.spectral_norm(B) for V, B in self.heads),
            balls.ball(0.0),
        )

    def covariance(self, factor: Array) -> Balls:
        """Covariance of a factor of floats, in these coordinates."""
        L = self._coordinates * balls.balls(factor)
        return _symmetrised(L * L.transpose())

    def original(self, covariance: Balls) -> Balls:
        """Covariance in the coordinates of the parameters."""
        return self._inverse * covariance * self._inverse.transpose()

    def attention(self, covariance: Balls) -> Balls:
        """Σ_h V_h S B_h, the part of the generator that comes from attention."""
        total = 0 * self.A
        for V, B in self.heads:
            total = total + V * covariance * B
        return total

    def form(self, first: Balls, second: Balls) -> Balls:
        """Symmetric bilinear form of the quadratic part: its diagonal is Σ V S B S + transpose."""
        half = self.attention(first) * second + self.attention(second) * first
        return (half + half.transpose()) * balls.ball(0.5)

    def drift(self, covariance: Balls) -> Balls:
        """Linear part A S + S A'."""
        half = self.A * covariance
        return half + half.transpose()

    def coefficients(self, centre: Balls, order: int) -> list[Balls]:
        """Taylor coefficients of the covariance: (k + 1) S_{k+1} = Σ_j M_j S_{k-j} + transpose."""
        series, generators = [centre], [self.A + self.attention(centre)]
        for k in range(order):
            half = generators[0] * series[k]
            for j in range(1, k + 1):
                half = half + generators[j] * series[k - j]
            rate = half + half.transpose()
            if k == 0 and self.noise is not None:
                rate = rate + self.noise
            series.append(rate / (k + 1))
            generators.append(self.attention(series[-1]))
        return series

    def logarithmic_norm(self, coefficient: Balls, first: bool) -> Ball:
        """Logarithmic norm of D -> M D + D M' + Σ V D B S + its transpose, on symmetric D.

        It is the largest eigenvalue of the symmetric part of this map, as a matrix in the basis of
        the E_ij + E_ji, i <= j, divided by their norms.
        """
        M = self.attention(coefficient)
        if first:
            M = M + self.A
        unit = balls.identity(M.nrows())
        terms = [(M.tolist(), unit.tolist())]
        terms += [(V.tolist(), (B * coefficient).tolist()) for V, B in self.heads]
        rows = _symmetric_map(terms)
        size = range(len(rows))
        doubled = balls.table([[rows[a][b] + rows[b][a] for b in size] for a in size])
        return balls.ball(0.5 * eigenvalue_bound(doubled))


def _symmetrised(matrix: Balls) -> Balls:
    """Balls of a symmetric matrix whose midpoints are symmetric too.

    Then all Taylor coefficients have symmetric midpoints, and errors are symmetric matrices.
    """
    return (matrix + matrix.transpose()) * balls.ball(0.5)


def _symmetric_map(terms: list[tuple[Any, Any]]) -> list[list[Ball]]:
    """Matrix of D -> Σ P D Q + its transpose on symmetric D, in the orthonormal basis.

    Parameters
    ----------
    terms : list of (P, Q)
        Rows of balls.
    """
    order = len(terms[0][0])
    pairs = [(i, j) for i in range(order) for j in range(i + 1)]
    root = balls.ball(2.0).sqrt()

    def entry(i: int, j: int, k: int, n: int) -> Ball:
        """<E_ij, P E_kn Q> in the unscaled basis."""
        return sum(
            P[i][k] * Q[n][j] + P[i][n] * Q[k][j] + P[j][k] * Q[n][i] + P[j][n] * Q[k][i]
            for P, Q in terms
        )

    rows = []
    for i, j in pairs:
        # E_ii appears twice in the symmetrised sums.
        left = root / 2 if i == j else balls.ball(1.0)
        row = []
        for k, n in pairs:
            right = root / 2 if k == n else balls.ball(1.0)
            row.append(left * right * entry(i, j, k, n))
        rows.append(row)
    return rows
