"""Whether a covariance that hardly moves has settled, or passes by a saddle.

Near an equilibrium that repels, or attracts slowly, a covariance hardly moves for a long time.  So
a limit that is seen must attract by its linearisation, and be watched for a time that is long
against the slowest rate there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from .._check import Array
from ..field import generator
from ..gaussian import Gaussian
from ..parameters import Parameters
from ..results.equilibria import Complex
from .bracket.reduction import reached, reduced
from .equilibria.classification import exponents, frame
from .equilibria.quadratic import Quadratic
from .equilibria.run import MOST_DIMENSIONS

__all__ = ["Settling", "graded"]

#: The covariance has settled when it changes, in one unit of its own time, by less than this.
SETTLED = 1e-9

#: A covariance this far below the largest one has vanished, ...
VANISHED = 1e-12

#: ... and so has a standard deviation this far below the largest one.
SMALL = 1e-5

#: Real parts below this fraction of the largest exponent may be zero.
MARGINAL = 1e-7

#: Times of the slowest decay for which a limit must have been watched, ...
LONG = 10.0

#: ... and of the fastest growth, in which the smallest float becomes as large as the largest: what
#: has not left a saddle by then has no part in the growing directions.
FOREVER = 750.0


@dataclass
class Settling:
    """What is known of the end of a motion.

    Parameters
    ----------
    parameters : Parameters
        Of dimension d.
    factor : (d, r) array
        Of the start.
    """

    parameters: Parameters
    factor: Array

    def __post_init__(self) -> None:
        self.kept = reached(self.parameters, self.factor)
        self.inner, _ = reduced(self.parameters, self.factor)
        self.since = math.inf
        self.passing = False

    def seen(self, law: Gaussian, clock: float, largest: float) -> bool:
        """Whether the covariance has settled at a time, to be asked at ever later times.

        Parameters
        ----------
        law : Gaussian
        clock : float
            Time since the start.
        largest : float
            Largest trace so far.
        """
        self.passing = False
        if not _at_rest(self.parameters, law, largest):
            self.since = math.inf
            return False
        self.since = min(self.since, clock)
        found = self._exponents(law, largest).real
        tolerance = MARGINAL * float(np.max(np.abs(found), initial=0.0))
        growth = float(np.max(found, initial=0.0))
        if growth > tolerance:
            watched = growth * (clock - self.since) >= FOREVER
            settled = watched and law.rank == self.factor.shape[1]
        else:
            slowest = float(np.min(-found, where=-found > tolerance, initial=math.inf))
            settled = slowest * clock >= LONG
        self.passing = not settled
        return settled

    def _exponents(self, law: Gaussian, largest: float) -> Complex:
        """Exponents at the limit that seems near, as far as the covariance may feel them."""
        L = law.factor[self.kept]
        _, sizes = graded(L)
        k = int(np.count_nonzero(sizes > SMALL * sizes[0])) if sizes.size else 0
        if law.trace <= VANISHED * largest and self.inner.noise is None:
            k = 0
        # The dominant part of the covariance has rank k.
        left, values, _ = np.linalg.svd(L, full_matrices=False)
        R = frame(left[:, :k] * values[:k])
        field = Quadratic.of(self.inner)
        if len(L) <= MOST_DIMENSIONS:
            tangent, transversal = exponents(field, R, k)
        else:
            there = np.linalg.solve(R, field.generator(L @ L.T) @ R)
            tangent = np.zeros(0, dtype=np.complex128)
            transversal = np.linalg.eigvals(there[k:, k:])
        # Without noise a start of rank k keeps it, and feels the tangent ones alone.
        if field.noisy or self.factor.shape[1] == k:
            return tangent
        return np.concatenate([tangent, transversal])


def graded(factor: Array) -> tuple[Array, Array]:
    """Orthonormal directions, and the sizes of a factor along them, the largest first.

    Columns of very different size keep their relative accuracy.  Without noise the logarithm of a
    size changes at the rate uᵀM u, with u its direction.
    """
    if not factor.shape[1]:
        return factor, np.zeros(0)
    Q, T, _ = qr(factor, mode="economic", pivoting=True)
    return np.asarray(Q), np.abs(np.diag(T))


def _at_rest(p: Parameters, law: Gaussian, largest: float) -> bool:
    """Whether the covariance hardly changes and no small part of it grows, or it has vanished."""
    S = law.covariance
    size = float(np.linalg.norm(S))
    M = generator(S, p.A, p.heads)
    pace = max(float(np.linalg.norm(M)), float(np.linalg.norm(p.A)))
    change = M @ S + S @ M.T
    if p.noise is not None:
        change = change + p.noise
        return float(np.linalg.norm(change)) <= SETTLED * pace * size
    directions, sizes = graded(law.factor)
    rates = np.einsum("ij,ik,kj->j", directions, M, directions)
    if size <= VANISHED * largest:
        decays = np.linalg.eigvals(M).real  # where directions turn, some may grow for a while
        return bool(np.all(rates <= 0) or np.all(decays < -MARGINAL * np.max(np.abs(decays))))
    small = sizes <= SMALL * sizes[0]
    return bool(np.all(rates[small] <= SETTLED * pace)) and (
        float(np.linalg.norm(change)) <= SETTLED * pace * size
    )
