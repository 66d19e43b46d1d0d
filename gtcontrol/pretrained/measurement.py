"""Moments of the tokens before, inside and after one layer, as they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._check import Array
from .forward import BlockRecord
from .weights import Floats

__all__ = ["RECORDS", "LayerMoments", "Moments", "covariance", "measure_layer", "moments"]

#: What has to be recorded of a block.
RECORDS = ("input", "attended", "attention", "residual", "output")


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean (d,) and covariance (d, d) of tokens, in double precision."""

    mean: Array
    covariance: Array

    @property
    def trace(self) -> float:
        """Total variance."""
        return float(np.trace(self.covariance))


@dataclass(frozen=True, eq=False)
class LayerMoments:
    """Moments of one layer: x before it, u that attention sees, a that it adds, and x after it.

    Attributes
    ----------
    before, attended, added, after : Moments
        Of x, u, a, and of the tokens after the layer; u is x if norms come last.
    added_before : (d, d) array
        Cov(a, x).
    attended_before : (d, d) array
        Cov(u, x).
    added_attended : (d, d) array
        Cov(a, u).
    """

    before: Moments
    attended: Moments
    added: Moments
    after: Moments
    added_before: Array
    attended_before: Array
    added_attended: Array

    @property
    def drift(self) -> float:
        """Growth of the total variance to first order in attention, 2 tr Cov(a, x)/tr S."""
        return 2 * float(np.trace(self.added_before)) / self.before.trace

    @property
    def gain(self) -> float:
        """Growth of the total variance to second order, tr Cov(a)/tr S."""
        return self.added.trace / self.before.trace

    @property
    def affine(self) -> float:
        """R² of the best affine map from u to a: tr(Cov(a, u) Cov(u)⁺ Cov(u, a))/tr Cov(a)."""
        values, vectors = np.linalg.eigh(self.attended.covariance)
        kept = values > NEGLIGIBLE * values[-1]
        projected = self.added_attended @ vectors[:, kept]
        return float(np.sum(projected**2 / values[kept])) / self.added.trace

    def explained(self, K: Array, c: Array) -> float:
        """R² of the map a ≈ c + K u over all tokens; negative if the mean of a is better.

        E|a - c - Ku|² = |E a - c - K E u|² + tr Cov(a) - 2 tr(K Cov(u, a)) + tr(K Cov(u) Kᵀ).
        """
        shift = self.added.mean - c - K @ self.attended.mean
        error = (
            float(shift @ shift)
            + self.added.trace
            - 2 * float(np.sum(K * self.added_attended))
            + float(np.sum((K @ self.attended.covariance) * K))
        )
        return 1 - error / self.added.trace


#: Directions with less variance than this fraction of the largest are left out of regressions.
NEGLIGIBLE = 1e-10


def measure_layer(record: BlockRecord) -> LayerMoments:
    """Moments of one layer from what was recorded of it (:data:`RECORDS`)."""
    x, u, a, after = record.input, record.attended, record.attention, record.output
    if x is None or u is None or a is None or after is None:
        raise TypeError(f"of layer {record.layer} there must be {', '.join(RECORDS)}.")
    before, added = moments(x), moments(a)
    cross = covariance(a, x)
    if u is x:  # norms come last
        return LayerMoments(before, before, added, moments(after), cross, before.covariance, cross)
    return LayerMoments(
        before, moments(u), added, moments(after), cross, covariance(u, x), covariance(a, u)
    )


def moments(tokens: Floats) -> Moments:
    """Mean and covariance over all tokens (T, N, d), normalised by T N."""
    return Moments(_mean(tokens), covariance(tokens, tokens))


def covariance(first: Floats, second: Floats) -> Array:
    """Cov(first, second) over all tokens (T, N, d), in double precision, sequence by sequence."""
    count = first.shape[0] * first.shape[1]
    one, other = _mean(first), _mean(second)
    total = np.zeros((one.size, other.size))
    for x, y in zip(first, second, strict=True):
        left = x.astype(np.float64) - one
        right = left if first is second else y.astype(np.float64) - other
        total += left.T @ right
    return np.asarray(total / count)


def _mean(tokens: Floats) -> Array:
    return np.asarray(tokens.mean(axis=(0, 1), dtype=np.float64))
