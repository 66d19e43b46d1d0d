"""The equation of the covariance in balls, in scaled coordinates.

S' = M S + S M' + Q with M = A + Σ_h V_h S B_h, in the coordinates x -> D x with D diagonal:
S -> D S D, A -> D A D^-1, V -> D V D^-1, B -> D^-1 B D^-1, Q -> D Q D.  Norms depend on the
coordinates; bounds are sharp when the entries of the covariance are of one size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._check import Array
from ...arithmetic import balls, taylor
from ...parameters import Parameters

__all__ = ["CovarianceFlow"]

# FLINT has no stubs.
Ball = Any
Balls = Any


class CovarianceFlow:
    """The quadratic equation of the covariance, at the precision that is set when it is made.

    Parameters
    ----------
    parameters : Parameters
    units : (d,) array
        Positive diagonal of D.

    Attributes
    ----------
    A : ball matrix
    heads : tuple of (V, B), ball matrices
    noise : ball matrix or None
    linear, quadratic : balls
        Bounds on A S + S A', and on Σ V S B S + its transpose (see `QuadraticFlow`).
    """

    def __init__(self, parameters: Parameters, units: Array) -> None:
        self.units = units
        scale = balls.balls(np.diag(units))
        inverse = scale.inv()
        self._inverse: Balls = inverse
        self.A: Balls = scale * balls.balls(parameters.A) * inverse
        self.heads: tuple[tuple[Balls, Balls], ...] = tuple(
            (scale * balls.balls(V) * inverse, inverse * balls.balls(B) * inverse)
            for V, B, _ in parameters.heads
            if np.any(V) and np.any(B)
        )
        noise = parameters.noise
        self.noise: Balls | None = (
            None if noise is None or not np.any(noise) else scale * balls.balls(noise) * scale
        )
        self.values = [taylor.spectral_norm(V) for V, _ in self.heads]
        self.linear: Ball = 2 * taylor.spectral_norm(self.A)
        self.quadratic: Ball = 2 * sum(
            (
                size * taylor.spectral_norm(B)
                for size, (_, B) in zip(self.values, self.heads, strict=True)
            ),
            balls.ball(0.0),
        )

    def covariance(self, factor: Array) -> Balls:
        """Covariance L L' of a factor of floats, in scaled coordinates."""
        L = balls.balls(self.units[:, None] * factor)
        return L * L.transpose()

    def original(self, covariance: Balls) -> Balls:
        """Covariance in the coordinates of the parameters."""
        return self._inverse * covariance * self._inverse

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
        """Bound on the logarithmic norm of D -> M D + D M' + Σ V D B S + its transpose.

        That of D -> M D + D M' is at most twice the largest eigenvalue of the symmetric part of
        M; the rest is bounded by its norm.
        """
        M = self.attention(coefficient)
        if first:
            M = M + self.A
        bound = balls.ball(balls.largest_eigenvalue_bound(M + M.transpose()))
        for size, (_, B) in zip(self.values, self.heads, strict=True):
            bound = bound + 2 * size * taylor.norm(B * coefficient)
        return bound
