"""Layers of a pretrained model: token laws over depth, and how each layer stands to theory."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._check import Array
from ..errors import ResultFileInvalid
from ..status import LayerVerdict
from .gaussianity import Gaussianity
from .plain import Arrays, read_array

__all__ = [
    "NEAR_LEADING",
    "NEAR_SLICED",
    "PREDICTED",
    "LawProfile",
    "LayerFacts",
    "beyond_chance",
    "near_gaussian",
]

#: √(value² - baseline²) of the sliced W₂ up to which a cloud is near Gaussian ...
NEAR_SLICED = 0.05

#: ... and the same over the leading principal directions.
NEAR_LEADING = 0.15

#: Relative error of mean and covariance up to which they count as predicted.
PREDICTED = 0.2


def beyond_chance(shape: Gaussianity) -> tuple[float, float]:
    """√(value² - baseline²), or 0, of the sliced distance and of that in leading directions."""
    return shape.distance, _beyond(shape["leading"].value, shape["leading"].baseline)


def near_gaussian(shape: Gaussianity) -> bool:
    """Whether the sliced distances are small; heavy tails (the spread) may still be seen."""
    sliced, leading = beyond_chance(shape)
    return sliced <= NEAR_SLICED and leading <= NEAR_LEADING


def _beyond(value: float, chance: float) -> float:
    """The part of a distance that chance does not make: √(value² - chance²), or 0."""
    return math.sqrt(max(value**2 - chance**2, 0.0))


@dataclass(frozen=True)
class LayerFacts:
    """One layer: what attention does to the variance, and how well theory predicts it.

    With x the residual stream before attention, S its covariance and a what attention adds,
    tr Cov(x + a) = (1 + drift + gain) tr S exactly, where drift = 2 tr Cov(a, x)/tr S and gain =
    tr Cov(a)/tr S.

    Errors of the laws after the layer are relative to √tr S of the measured law: of the mean
    |m - m'|, of the covariance the Bures distance.  ``step`` starts from the measured moments
    before the layer, ``chain`` from those of the input of the first layer, both with the closure
    for finitely many tokens; ``field`` is the chain in the mean field of infinitely many.

    Moments are predicted if both errors are at most 0.2. They are missed if that of the mean is
    larger, or if √(error² - floor²) > 0.2 for the covariance: what is left of it without the
    sampling error. In between it is undecided, and more sequences are needed.

    Parameters
    ----------
    layer : int
        From 1.
    drift, gain : float
        Measured.
    rate, effective_rate : float
        What theory gives for the drift: sum over the heads in the mean field, and corrected for
        finitely many tokens.
    pointwise : float
        R² of the affine map c + K x of theory (finitely many tokens) as a prediction of what
        attention adds to each token.
    affine : float
        R² of the best affine map.
    step_mean, step_covariance, chain_mean, chain_covariance, field_mean, field_covariance : float
    floor : float
        Error of the covariance that drawing so many tokens makes by itself: of Gaussian tokens,
        or, if larger, as the sequences tell by how much they differ.
    """

    layer: int
    drift: float
    gain: float
    rate: float
    effective_rate: float
    pointwise: float
    affine: float
    step_mean: float
    step_covariance: float
    chain_mean: float
    chain_covariance: float
    field_mean: float
    field_covariance: float
    floor: float

    @property
    def predicted(self) -> bool:
        """Whether the moments after the layer follow from those before it, within tolerance."""
        return max(self.step_mean, self.step_covariance) <= PREDICTED

    @property
    def missed(self) -> bool:
        """Whether they do not, and sampling is no excuse."""
        return self._missed(self.step_mean, self.step_covariance)

    @property
    def lost(self) -> bool:
        """Whether those of the input of the first layer miss them, and sampling is no excuse."""
        return self._missed(self.chain_mean, self.chain_covariance)

    def _missed(self, mean: float, covariance: float) -> bool:
        return mean > PREDICTED or _beyond(covariance, self.floor) > PREDICTED

    def sequences(self, now: int) -> float:
        """Number of sequences that decides, if `now` do not; the floor falls like 1/√T.

        With so many √(error² - floor²) stays what it is, and the error itself is at most 0.2.
        """
        room = PREDICTED**2 - _beyond(self.step_covariance, self.floor) ** 2
        return now * self.floor**2 / room if room > 0 else math.inf

    def verdict(self, shape: Gaussianity) -> LayerVerdict:
        """How the layer stands to theory, with the shape of the tokens after it."""
        near = near_gaussian(shape)
        if self.predicted:
            return LayerVerdict.HOLDS if near else LayerVerdict.MOMENTS
        if self.missed:
            return LayerVerdict.SHAPE if near else LayerVerdict.FAILS
        return LayerVerdict.UNDECIDED


@dataclass(frozen=True, eq=False)
class LawProfile:
    """Moments of the tokens over depth: of the input, then after each of n layers.

    Attributes
    ----------
    means : (n + 1, d) array
    traces : (n + 1,) array
        Total variance.
    ranks : (n + 1,) array
        Effective rank (tr S)²/tr S².
    spectra : (n + 1, k) array
        Leading eigenvalues of the covariance, largest first.
    """

    means: Array
    traces: Array
    ranks: Array
    spectra: Array

    @classmethod
    def of(cls, means: list[Array], covariances: list[Array], leading: int) -> LawProfile:
        """Build from means and covariances (d, d)."""
        spectra = [np.linalg.eigvalsh(S)[::-1] for S in covariances]
        traces = np.array([float(np.trace(S)) for S in covariances])
        squares = np.array([float(np.sum(S**2)) for S in covariances])
        return cls(
            means=np.array(means, dtype=np.float64),
            traces=traces,
            ranks=traces**2 / squares,
            spectra=np.array([np.maximum(values[:leading], 0.0) for values in spectra]),
        )

    def pack(self, name: str) -> Arrays:
        """Arrays under the prefix `name`."""
        return {f"{name}.{key}": getattr(self, key) for key in _ARRAYS}

    @classmethod
    def unpack(cls, name: str, arrays: Arrays, count: int, dim: int) -> LawProfile:
        """Restore the moments of `count` laws of dimension `dim`."""
        spectra = read_array(arrays, f"{name}.spectra", count, None)
        if not 1 <= spectra.shape[1] <= dim:
            raise ResultFileInvalid(
                f"`{name}.spectra` has {spectra.shape[1]} eigenvalues in dimension {dim}."
            )
        return cls(
            means=read_array(arrays, f"{name}.means", count, dim),
            traces=read_array(arrays, f"{name}.traces", count),
            ranks=read_array(arrays, f"{name}.ranks", count),
            spectra=spectra,
        )


_ARRAYS = ("means", "traces", "ranks", "spectra")
