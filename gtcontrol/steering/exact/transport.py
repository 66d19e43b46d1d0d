"""The optimal transport geodesic between two Gaussians of equal rank, as a path of factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...errors import RankMismatch
from ...gaussian import Gaussian, align

__all__ = ["TransportPath"]


@dataclass(frozen=True, eq=False)
class TransportPath:
    """Straight line of means and aligned factors; the least kinetic energy of all paths.

    With L₁ rotated by the Procrustes Q the straight line L_t = (1 - t/T) L₀ + (t/T) L₁Q keeps
    full column rank, σ_min(L_t)² >= ab/(a + b) with a, b the smallest positive eigenvalues of
    the two covariances, also between orthogonal ranges.  Its kinetic energy
    ∫ |L'|² + |m'|² dt is W₂²/T, the lower bound of Benamou and Brenier.

    Attributes
    ----------
    L0, L1 : (d, r) arrays
        Factor of the start, and factor of the target aligned with it.
    m0, m1 : (d,) arrays
        Means of start and target.
    horizon : float
        Duration T.
    """

    L0: Array
    L1: Array
    m0: Array
    m1: Array
    horizon: float

    @classmethod
    def between(cls, start: Gaussian, target: Gaussian, horizon: float) -> TransportPath:
        """Join two laws of equal dimension and rank.

        Raises
        ------
        RankMismatch
            If the ranks differ.
        """
        if start.rank != target.rank:
            raise RankMismatch(
                f"a transport path joins laws of equal rank; `start` has rank {start.rank}, "
                f"`target` has rank {target.rank}."
            )
        aligned = align(start.factor, target.factor)
        return cls(start.factor, aligned, start.mean, target.mean, float(horizon))

    def factor(self, t: float) -> Array:
        """Factor L_t at time t, shape (d, r)."""
        s = t / self.horizon
        return (1.0 - s) * self.L0 + s * self.L1

    def mean(self, t: float) -> Array:
        """Mean m_t at time t, shape (d,)."""
        s = t / self.horizon
        return (1.0 - s) * self.m0 + s * self.m1

    @property
    def factor_rate(self) -> Array:
        """L', constant in time, shape (d, r)."""
        return (self.L1 - self.L0) / self.horizon

    @property
    def mean_rate(self) -> Array:
        """m', constant in time, shape (d,)."""
        return (self.m1 - self.m0) / self.horizon

    @property
    def kinetic_energy(self) -> float:
        """Kinetic energy of the path, W₂²/T."""
        squares = np.sum((self.L1 - self.L0) ** 2) + np.sum((self.m1 - self.m0) ** 2)
        return float(squares / self.horizon)
