"""What is followed through the blocks: the law of a token, and what a sequence shares of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...gaussian import Gaussian

__all__ = ["TokenLaw"]

#: Eigenvalues below this fraction of the largest one count as rounding.
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class TokenLaw:
    """Mean and covariance of tokens over sequences, and the part that all tokens of one share.

    Attention gives all tokens of a sequence nearly the same noise, that of the average over its
    keys.  A token is then m + s + y with s ~ N(0, shared) drawn once for the sequence, and y,
    with what is left of the covariance, once for the token; keys vary within a sequence by y alone.

    Parameters
    ----------
    mean : (d,) array
    covariance : (d, d) array
    shared : (d, d) array
    """

    mean: Array
    covariance: Array
    shared: Array

    @classmethod
    def of(cls, law: Gaussian) -> TokenLaw:
        """Independent tokens: nothing is shared."""
        return cls(law.mean, law.covariance, np.zeros((law.dim, law.dim)))

    @property
    def within(self) -> Array:
        """Covariance (d, d) of the tokens of one sequence around their own mean."""
        return self.covariance - self.shared

    def gaussian(self) -> Gaussian:
        """The law over sequences as a Gaussian."""
        return Gaussian.trusted(self.mean, root(self.covariance))


def root(covariance: Array) -> Array:
    """Factor L (d, r) with L Lᵀ = covariance, without the directions that are rounding."""
    values, vectors = np.linalg.eigh(symmetric(covariance))
    kept = values > ROUNDING * max(float(values[-1]), 0.0)
    return np.asarray((vectors[:, kept] * np.sqrt(values[kept]))[:, ::-1])


def symmetric(matrix: Array) -> Array:
    """(M + Mᵀ)/2."""
    return 0.5 * (matrix + matrix.T)
