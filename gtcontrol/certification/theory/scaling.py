"""Units in which the data of a quadratic certificate are near one: exact powers of two.

With S = 2^s T⁻¹ S̃ T⁻¹ (T diagonal, of powers of two) and t = 2^-r τ the flow keeps its form,

    dS̃/dτ = 2^-r Ã S̃ + 2^(s-r) Σ_h Ṽ_h S̃ B̃_h S̃ + transpose + 2^(-r-s) T Q T,
    Ã = T A T⁻¹,   Ṽ = T V T⁻¹,   B̃ = T⁻¹ B T⁻¹,

and a certificate of the scaled data becomes one of the original data without any rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...parameters import Parameters
from .quadratic import heads_of, pairs

__all__ = ["Units", "Vertex", "scale"]


@dataclass(frozen=True, eq=False)
class Vertex:
    """Parameters in scaled units.

    Parameters
    ----------
    A : (d, d) array
    V, B : (H, d, d) arrays
    noise : (d, d) array
    """

    A: Array
    V: Array
    B: Array
    noise: Array


@dataclass(frozen=True, eq=False)
class Units:
    """Exponents of the units: S = 2^size · S̃ · 2^-(stretch_i + stretch_j), t = 2^-rate · τ.

    Parameters
    ----------
    rate, size : int
    stretch : (d,) array of int
    """

    rate: int
    size: int
    stretch: Array

    def vertex(self, parameters: Parameters) -> Vertex:
        """Parameters in these units."""
        k, r = self.stretch, self.rate
        turn = k[:, None] - k[None, :]
        flat = k[:, None] + k[None, :]
        V, B = heads_of(parameters)
        values = [_exponent(v) for v in V]
        scores = [_exponent(b) for b in B]
        # The size of each V goes to its B, so that no product leaves the range of floats.
        noise = np.zeros_like(parameters.A) if parameters.noise is None else parameters.noise
        return Vertex(
            np.ldexp(parameters.A, turn - r),
            np.stack([np.ldexp(v, turn - e) for v, e in zip(V, values, strict=True)]),
            np.stack(
                [
                    np.ldexp(np.ldexp(b, -f), e + f + self.size - r - flat)
                    for b, e, f in zip(B, values, scores, strict=True)
                ]
            ),
            np.ldexp(noise, flat - r - self.size),
        )

    def covariance(self, S: Array) -> Array:
        """Covariance in these units."""
        return np.asarray(np.ldexp(S, self._flat() - self.size))

    def weight(self, W: Array) -> Array:
        """Matrix W of the original units: tr(W S) = tr(W̃ S̃)."""
        return np.asarray(np.ldexp(W, self._flat() - self.size))

    def multiplier(self, Lam: Array) -> Array:
        """Matrix Λ of the original units: ⟨Λ, S⟩ per time."""
        return np.asarray(np.ldexp(Lam, self._flat() - self.size + self.rate))

    def slack(self, Z: Array) -> Array:
        """Matrix Z of the original units: ⟨Z, ∧²S⟩ per time."""
        i, j = pairs(self.stretch.size)
        area = self.stretch[i] + self.stretch[j]
        exponent = area[:, None] + area[None, :] - 2 * self.size + self.rate
        return np.asarray(np.ldexp(Z, exponent))

    def per_time(self, value: float) -> float:
        """Number per unit of time, in the original units."""
        return math.ldexp(value, self.rate)

    def floor(self) -> Array:
        """Identity of the original units, up to a factor, in the units of W."""
        shortest = 2 * int(self.stretch.min())
        return np.asarray(np.diag(np.ldexp(1.0, shortest - 2 * self.stretch)))

    def _flat(self) -> Array:
        return np.asarray(self.stretch[:, None] + self.stretch[None, :])


def scale(vertices: tuple[Parameters, ...], covariance: Array | None = None) -> Units:
    """Choose units for a family of parameters, and for a start if one is given.

    Without a start the unit of S is that at which feed-forward (or noise) and attention balance;
    with one it is the start's.  Coordinates are stretched so that the start, or else the score
    matrices, have a diagonal near one.
    """
    stretch = _stretch(vertices, covariance)
    plain = Units(0, 0, stretch)
    made = [plain.vertex(p) for p in vertices]
    linear = max(_log2(v.A) for v in made)
    attention = max(_log2(v.V) + _log2(v.B) for v in made)
    noise = max(_log2(v.noise) for v in made)
    if covariance is not None:
        size = _log2(plain.covariance(covariance))
        size = size if math.isfinite(size) else 0.0
        rate = max(linear, attention + size, noise - size)
    elif math.isfinite(attention):
        rate = max(linear, (attention + noise) / 2)
        rate = rate if math.isfinite(rate) else 0.0
        size = rate - attention
    else:
        rate = linear if math.isfinite(linear) else 0.0
        size = noise - rate if math.isfinite(noise) else 0.0
    rate = rate if math.isfinite(rate) else 0.0
    return Units(round(rate), round(size), stretch)


def _stretch(vertices: tuple[Parameters, ...], covariance: Array | None) -> Array:
    if covariance is not None:
        diagonal, power = np.diag(covariance), -0.5
    else:
        scores = [np.abs(np.diagonal(heads_of(p)[1], axis1=1, axis2=2)) for p in vertices]
        diagonal, power = np.max(np.concatenate(scores), axis=0), 0.5
    if not np.all(diagonal > 0):
        return np.zeros(diagonal.size, dtype=np.intp)
    logs = power * np.log2(diagonal)
    # Only differences matter; the common factor is the unit of S.
    return np.asarray(np.round(logs - np.mean(logs)).astype(np.intp))


def _log2(values: Array) -> float:
    largest = float(np.max(np.abs(values), initial=0.0))
    return math.log2(largest) if largest > 0 else -math.inf


def _exponent(values: Array) -> int:
    largest = float(np.max(np.abs(values), initial=0.0))
    return math.frexp(largest)[1] if largest > 0 else 0
