"""Mixtures of Gaussians, which attention does not keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from . import _check
from ._check import Array
from .errors import InvalidMethod, InvalidNumber, InvalidShape
from .gaussian import Gaussian

__all__ = ["Mixture"]

#: Weights must sum to one up to this error.
SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Mixture:
    """Mixture of Gaussians: a token comes from component k with probability ``weights[k]``.

    Attention couples the components, so that the law does not stay the mixture of components
    that move by themselves; see :func:`gtcontrol.follow_mixture`.

    Parameters
    ----------
    weights : (K,) array
        Positive, with sum 1.
    laws : sequence of K Gaussians
        Components of equal dimension d, of any ranks.

    Raises
    ------
    InvalidShape, InvalidNumber
        If the numbers or dimensions do not fit, or the weights are no probabilities.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> left, right = gt.Gaussian([-2.0], [[1.0]]), gt.Gaussian([2.0], [[1.0]])
    >>> both = gt.Mixture([0.5, 0.5], [left, right])
    >>> both.covariance.tolist()
    [[5.0]]
    """

    weights: Array
    laws: tuple[Gaussian, ...]

    def __init__(self, weights: ArrayLike, laws: Sequence[Gaussian]) -> None:
        p = _check.array("weights", weights, 1)
        components = tuple(laws) if isinstance(laws, Sequence) else ()
        if not components or not all(isinstance(law, Gaussian) for law in components):
            raise InvalidShape("`laws` must be a sequence of Gaussians, one or more.")
        if p.shape != (len(components),):
            raise InvalidShape(
                f"`weights` must have shape ({len(components)},), one for each law; "
                f"it has {p.shape}."
            )
        dims = sorted({law.dim for law in components})
        if len(dims) > 1:
            raise InvalidShape(f"`laws` have different dimensions {dims}; they must agree.")
        if not np.all(p > 0):
            raise InvalidNumber(f"`weights` must be positive; the smallest is {p.min():g}.")
        total = float(p.sum())
        if abs(total - 1) > SUM_TOLERANCE:
            raise InvalidNumber(f"`weights` must sum to 1; their sum is {total:.10g}.")
        normalised = p / total
        normalised.setflags(write=False)
        object.__setattr__(self, "weights", normalised)
        object.__setattr__(self, "laws", components)

    @property
    def dim(self) -> int:
        """Dimension d of the tokens."""
        return self.laws[0].dim

    @property
    def mean(self) -> Array:
        """Mean of the mixture, shape (d,)."""
        return np.asarray(self.weights @ np.array([law.mean for law in self.laws]))

    @property
    def covariance(self) -> Array:
        """Covariance of the mixture, within the components and between them, shape (d, d)."""
        offsets = np.array([law.mean for law in self.laws]) - self.mean
        within = sum(p * law.covariance for p, law in zip(self.weights, self.laws, strict=True))
        return np.asarray(within + (offsets.T * self.weights) @ offsets)

    @property
    def gaussian(self) -> Gaussian:
        """The Gaussian with the same mean and covariance."""
        return Gaussian.from_covariance(self.mean, self.covariance)

    def sample(
        self,
        count: int,
        rng: np.random.Generator,
        *,
        antithetic: bool = False,
        moment_matched: bool = False,
    ) -> Array:
        """Draw tokens.

        Parameters
        ----------
        count : int
            Number of tokens.
        rng : numpy.random.Generator
            Source of randomness.
        antithetic : bool
            Draw pairs that are opposite within their component (``count`` must be even).
        moment_matched : bool
            Only for Gaussians; refused.

        Returns
        -------
        (count, d) array
        """
        n = _check.integer("count", count, low=1)
        if moment_matched:
            raise InvalidMethod("`moment_matched` draws are for Gaussians, not for mixtures.")
        if antithetic and n % 2:
            raise InvalidNumber(f"`count` must be even for antithetic sampling; it is {n}.")
        draws = n // 2 if antithetic else n
        labels = rng.choice(len(self.laws), size=draws, p=self.weights)
        centres, shifts = np.empty((draws, self.dim)), np.empty((draws, self.dim))
        for k, law in enumerate(self.laws):
            mine = labels == k
            centres[mine] = law.mean
            shifts[mine] = rng.standard_normal((int(mine.sum()), law.rank)) @ law.factor.T
        if antithetic:
            return np.concatenate([centres + shifts, centres - shifts])
        return centres + shifts

    def __repr__(self) -> str:
        return f"Mixture(dim={self.dim}, components={len(self.laws)})"
