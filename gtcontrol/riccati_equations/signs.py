"""Signs of the eigenvalues of a solution, its rank, and a factor that keeps them when rounded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from .._check import Array
from ..arithmetic import balls, sign_functions
from ..arithmetic.balls import Balls
from ..status import Definiteness

__all__ = ["Signs", "of_balls", "of_floats", "to_rounding"]

#: Eigenvalues below this multiple of n ε relative to the largest are not told apart from zero.
UNCLEAR = 100.0

EPS = 2.220446049250313e-16


@dataclass(frozen=True, eq=False)
class Signs:
    """What the eigenvalues of a solution are like.

    Attributes
    ----------
    definite : Definiteness
    rank : int
    lowest, highest : float
        Extreme eigenvalues.
    factor : (n, rank) array or None
        F with X = F F' to rounding; None unless X is positive semidefinite.
    """

    definite: Definiteness
    rank: int
    lowest: float
    highest: float
    factor: Array | None

    def lifted(self, basis: Array) -> Signs:
        """Signs of Z X Z' for a matrix Z (d, n) with orthonormal columns, n < d."""
        words = {
            Definiteness.POSITIVE_DEFINITE: Definiteness.POSITIVE_SEMIDEFINITE,
            Definiteness.NEGATIVE_DEFINITE: Definiteness.NEGATIVE_SEMIDEFINITE,
        }
        return Signs(
            words.get(self.definite, self.definite),
            self.rank,
            min(self.lowest, 0.0),
            max(self.highest, 0.0),
            None if self.factor is None else basis @ self.factor,
        )


def of_floats(X: Array, nullity: int) -> Signs | None:
    """Decide in double precision; None if some eigenvalues are too small for that.

    Parameters
    ----------
    X : (n, n) array
    nullity : int
        Dimension of the kernel that is known from the structure of the equation.
    """
    values, vectors = np.linalg.eigh(X)
    small = _unclear(values)
    if int(np.sum(small)) != nullity:
        return None
    return _decided(X, values, vectors, small)


def to_rounding(X: Array) -> Signs:
    """Take eigenvalues of rounding size for zero."""
    values, vectors = np.linalg.eigh(X)
    return _decided(X, values, vectors, _unclear(values))


def of_balls(X: Balls, tolerance: float) -> Signs | None:
    """Decide at the working precision; None if the eigenvalues do not converge.

    Parameters
    ----------
    X : (n, n) ball matrix
    tolerance : float
        Eigenvalues below this fraction of the largest are zero.
    """
    found = sign_functions.spectrum(X)
    if found is None:
        return None
    values = np.sort(found.real)
    size = float(np.max(np.abs(values)))
    if size == 0.0:
        return Signs(Definiteness.ZERO, 0, 0.0, 0.0, np.zeros((X.nrows(), 0)))
    small = np.abs(values) <= tolerance * size
    zeros = int(np.sum(small))
    seen = values[~small]
    below, above = bool(np.any(seen < 0)), bool(np.any(seen > 0))
    factor = None if below else _pivoted(X, len(seen))
    return Signs(_word(below, above, zeros), len(seen), *_ends(values, zeros, below, above), factor)


def _unclear(values: Array) -> NDArray[np.bool_]:
    return np.abs(values) <= UNCLEAR * EPS * len(values) * float(np.max(np.abs(values)))


def _decided(X: Array, values: Array, vectors: Array, small: NDArray[np.bool_]) -> Signs:
    seen = values[~small]
    if not seen.size:
        return Signs(Definiteness.ZERO, 0, 0.0, 0.0, np.zeros((len(X), 0)))
    zeros = int(np.sum(small))
    below, above = bool(np.any(seen < 0)), bool(np.any(seen > 0))
    factor = None
    if not below:
        made = None if zeros else _triangular(X)
        factor = vectors[:, ~small] * np.sqrt(seen) if made is None else made
    return Signs(_word(below, above, zeros), len(seen), *_ends(values, zeros, below, above), factor)


def _ends(values: Array, zeros: int, below: bool, above: bool) -> tuple[float, float]:
    lowest = 0.0 if zeros and not below else float(values[0])
    highest = 0.0 if zeros and not above else float(values[-1])
    return lowest, highest


def _word(below: bool, above: bool, zeros: int) -> Definiteness:
    if below and above:
        return Definiteness.INDEFINITE
    if below:
        return Definiteness.NEGATIVE_SEMIDEFINITE if zeros else Definiteness.NEGATIVE_DEFINITE
    return Definiteness.POSITIVE_SEMIDEFINITE if zeros else Definiteness.POSITIVE_DEFINITE


def _triangular(X: Array) -> Array | None:
    """Cholesky factor; rows and columns are scaled first, by powers of two."""
    scale = np.exp2(np.round(0.5 * np.log2(np.diag(X))))
    try:
        return np.asarray(np.linalg.cholesky(X / scale[:, None] / scale) * scale[:, None])
    except LinAlgError:
        return None


def _pivoted(X: Balls, rank: int) -> Array:
    """Cholesky factor with pivots by size, of `rank` columns."""
    n = X.nrows()
    rest = X.tolist()
    columns: list[list[float]] = []
    left = list(range(n))
    for _ in range(rank):
        p = max(left, key=lambda i: float(rest[i][i].mid()))
        root = rest[p][p].mid().sqrt()
        column = [(rest[i][p] / root).mid() if i in left else balls.ball(0.0) for i in range(n)]
        left.remove(p)
        for i in left:
            for j in left:
                rest[i][j] = (rest[i][j] - column[i] * column[j]).mid()
        columns.append([float(x) for x in column])
    return np.array(columns, dtype=np.float64).reshape(rank, n).T
