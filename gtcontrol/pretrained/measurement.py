"""Moments of the tokens before, inside and after one layer, as they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._check import Array
from .forward import BlockRecord
from .stack import Block, Stack
from .weights import Floats

__all__ = [
    "LayerMoments",
    "Moments",
    "covariance",
    "given",
    "measure_layer",
    "moments",
    "wanted",
]

#: Directions with less variance than this fraction of the largest are left out of regressions.
NEGLIGIBLE = 1e-10


def wanted(stack: Stack) -> tuple[str, ...]:
    """What has to be recorded of each block."""
    inside = ("norm", "mlp") if any(b.placement == "post" for b in stack.blocks) else ()
    return ("input", "attended", "attention", *inside, "output")


def given(array: Floats | None) -> Floats:
    """An array that was recorded."""
    if array is None:
        raise TypeError("a record of a layer lacks an array that was asked for.")
    return array


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of T sequences of N tokens, in double precision.

    Attributes
    ----------
    count : int
        T N.
    mean : (d,) array
    covariance : (d, d) array
        Over all tokens, normalised by T N.
    between : (d, d) array
        That of the means of the sequences: what the tokens of a sequence share.
    """

    count: int
    mean: Array
    covariance: Array
    between: Array

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
        """R² of the best affine map from u to a, adjusted for the number of its coefficients.

        R² = tr(Cov(a, u) Cov(u)⁺ Cov(u, a))/tr Cov(a); with n tokens that vary in r directions
        chance alone gives r/(n - 1), so 1 - (1 - R²)(n - 1)/(n - 1 - r) is returned.
        """
        values, vectors = np.linalg.eigh(self.attended.covariance)
        kept = values > NEGLIGIBLE * values[-1]
        projected = self.added_attended @ vectors[:, kept]
        plain = float(np.sum(projected**2 / values[kept])) / self.added.trace
        n, r = self.added.count, int(np.count_nonzero(kept))
        return 1 - (1 - plain) * (n - 1) / max(n - 1 - r, 1)

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


def measure_layer(record: BlockRecord, block: Block) -> LayerMoments:
    """Moments of one layer from what was recorded of it, see :func:`wanted`."""
    x, a = given(record.input), given(record.attention)
    before, added, after = moments(x), moments(a), moments(given(record.output))
    cross = covariance(a, x)
    if block.placement == "post" or block.norm_attention is None:
        return LayerMoments(before, before, added, after, cross, before.covariance, cross)
    u = given(record.attended)
    return LayerMoments(before, moments(u), added, after, cross, covariance(u, x), covariance(a, u))


def moments(tokens: Floats) -> Moments:
    """Moments of T sequences of N tokens, (T, N, d)."""
    means = tokens.mean(axis=1, dtype=np.float64)
    apart = means - means.mean(axis=0)
    between = apart.T @ apart / len(means)
    count = tokens.shape[0] * tokens.shape[1]
    return Moments(count, _mean(tokens), covariance(tokens, tokens), between)


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
