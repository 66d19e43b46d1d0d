"""How far predicted moments are from measured ones, and how far chance alone would put them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...gaussian import Gaussian, wasserstein
from ..weights import Floats
from .law import root, symmetric

__all__ = ["LEADING", "LawFit", "bures", "compare_laws", "sampling_floor", "sequences_floor"]

#: Leading eigenvalues that are compared.
LEADING = 50

#: Eigenvalues below this fraction of the largest one are not compared.
NEGLIGIBLE = 1e-10


@dataclass(frozen=True)
class LawFit:
    """Predicted against measured moments, relative to √tr S of the measured law.

    Attributes
    ----------
    covariance : float
        Bures distance of the covariances.
    mean : float
        |m - m'|.
    spectrum : float
        Mean |log λ - log λ'| over the leading eigenvalues.
    trace : float
        Predicted over measured total variance.
    floor : float
        Bures distance that drawing so many independent tokens causes by itself.
    """

    covariance: float
    mean: float
    spectrum: float
    trace: float
    floor: float

    @property
    def excess(self) -> float:
        """Bures distance beyond that of sampling: √(distance² - floor²), or 0."""
        return math.sqrt(max(self.covariance**2 - self.floor**2, 0.0))


def compare_laws(
    predicted: tuple[Array, Array], measured: tuple[Array, Array], count: int
) -> LawFit:
    """Compare two pairs of mean (d,) and covariance (d, d), the second from `count` tokens."""
    (m, S), (n, C) = predicted, measured
    total = float(np.trace(C))
    spectra = [np.linalg.eigvalsh(symmetric(x))[::-1][:LEADING] for x in (S, C)]
    kept = spectra[1] > NEGLIGIBLE * spectra[1][0]
    logs = [np.log(np.maximum(x[kept], NEGLIGIBLE * x[0])) for x in spectra]
    return LawFit(
        covariance=bures(S, C) / math.sqrt(total),
        mean=float(np.linalg.norm(m - n)) / math.sqrt(total),
        spectrum=float(np.mean(np.abs(logs[0] - logs[1]))),
        trace=float(np.trace(S)) / total,
        floor=sampling_floor(C, count),
    )


def bures(first: Array, second: Array) -> float:
    """Bures distance of two covariances (d, d) of any rank: W₂ of the centred Gaussians."""
    zero = np.zeros(len(first))
    one, other = (Gaussian.trusted(zero, root(S)) for S in (first, second))
    return wasserstein(one, other)


def sampling_floor(covariance: Array, count: int) -> float:
    """Bures distance of the covariance of `count` Gaussian tokens from their law, over √tr S.

    To second order BW²(S, S + E) = ½ Σ_ij E_ij²/(λ_i + λ_j) in the eigenbasis of S, and a sample
    covariance has E E_ij² = λ_i λ_j (1 + δ_ij)/n, hence

        E BW² = (Σ_ij λ_i λ_j/(λ_i + λ_j) + tr S/2)/(2 n).

    Tokens that share noise within sequences vary more than that.
    """
    values = np.maximum(np.linalg.eigvalsh(symmetric(covariance)), 0.0)
    total = float(values.sum())
    if total == 0:
        return 0.0
    sums = np.add.outer(values, values)
    pairs = float(np.sum(np.multiply.outer(values, values) / np.where(sums > 0, sums, 1.0)))
    return math.sqrt((pairs + total / 2) / (2 * count * total))


def sequences_floor(tokens: Array | Floats, mean: Array, covariance: Array) -> float:
    """Bures distance of a covariance from its law, over √tr S, by how much sequences differ.

    Whatever the tokens of a sequence share is in it.  With S_t the second moments of sequence t
    about the mean of all, S their average over T independent sequences has errors E with E E_ij² =
    Σ_t (S_t - S)_ij²/(T (T - 1)), and BW² ≈ ½ Σ_ij E_ij²/(λ_i + λ_j) in the eigenbasis of S.

    Parameters
    ----------
    tokens : (T, N, d) array
        At least two sequences.
    mean, covariance : (d,) and (d, d) arrays
        Of all tokens.
    """
    values, vectors = np.linalg.eigh(symmetric(covariance))
    values = np.maximum(values, 0.0)
    total, count = float(values.sum()), len(tokens)
    if total == 0:
        return 0.0
    squares = np.zeros_like(covariance)
    for sequence in tokens:
        rotated = (sequence.astype(np.float64) - mean) @ vectors
        squares += (rotated.T @ rotated / len(rotated) - np.diag(values)) ** 2
    sums = np.add.outer(values, values)
    kept = sums > NEGLIGIBLE * values[-1]
    ratios = squares[kept] / sums[kept]
    return math.sqrt(float(ratios.sum()) / (2 * count * (count - 1) * total))
