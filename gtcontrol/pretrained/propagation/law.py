"""What is followed through the blocks: the law of a token, and what a sequence shares of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...finite_tokens import FiniteTokens
from ...gaussian import Gaussian

__all__ = ["TokenLaw"]

#: Eigenvalues below this fraction of the largest one count as rounding.
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class TokenLaw:
    """Mean and covariance of tokens over sequences, and of the means of the sequences.

    Attention gives all tokens of a sequence nearly the same noise, that of the average over its
    keys, and what moves the average of a sequence adds up from block to block.  So a token is m + s
    + y, where m + s is the mean of its own sequence: s has the covariance ``shared`` (for N
    independent tokens S/N), and what is left of the covariance is that of the keys of a sequence.

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
    def of(cls, law: Gaussian, tokens: FiniteTokens | None) -> TokenLaw:
        """Sequences of so many independent tokens; None stands for infinitely many."""
        S = law.covariance
        return cls(law.mean, S, S * (0.0 if tokens is None else 1.0 / tokens.count))

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
