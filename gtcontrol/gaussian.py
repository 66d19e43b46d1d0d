"""Gaussian laws as (mean, factor): the rank of the covariance is a shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import ArrayLike

from . import _check
from ._check import Array
from .errors import (
    IndefiniteCovariance,
    InvalidNumber,
    InvalidShape,
    OutOfScale,
    RankDeficientFactor,
)

__all__ = ["Gaussian", "align", "norm", "squared_wasserstein", "wasserstein"]

#: Eigenvalues of a covariance below this fraction of the largest one count as zero.
RANK_TOLERANCE = 1e-10

#: A negative eigenvalue beyond this fraction of the largest one makes a matrix indefinite.
DEFINITENESS_TOLERANCE = 1e-10

#: A factor must have smallest singular value above this fraction of the largest one.
FACTOR_TOLERANCE = 1e-14

#: Squares of entries between this size and its inverse stay in the range of double precision.
LARGEST = 1e140


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Gaussian:
    """Gaussian law N(m, L Lᵀ) on tokens of dimension d, with covariance of rank r.

    The flow conserves the rank, so the rank is stored as a shape: the factor L has
    exactly r independent columns.  L and L Q, with Q orthogonal, are the same law.
    A Dirac mass has r = 0.

    Parameters
    ----------
    mean : (d,) array
        Mean m of the tokens.
    factor : (d, r) array
        Factor L of the covariance, of full column rank r <= d.

    Raises
    ------
    InvalidShape, NotFinite
        If the arrays do not fit or hold nan or infinity.
    RankDeficientFactor
        If the columns of the factor are linearly dependent.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> law = gt.Gaussian.from_covariance([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]])
    >>> law.dim, law.rank
    (2, 2)
    """

    mean: Array
    factor: Array

    def __init__(self, mean: ArrayLike, factor: ArrayLike) -> None:
        m = _check.vector("mean", mean)
        if m.size == 0:
            raise InvalidShape("`mean` is empty; tokens need at least one dimension.")
        L = _check.array("factor", factor, 2)
        if L.shape[0] != m.size:
            raise InvalidShape(
                f"`factor` must have shape ({m.size}, r), as `mean` has {m.size} entries; "
                f"it has {L.shape}."
            )
        if L.shape[1] > m.size:
            raise RankDeficientFactor(
                f"`factor` has {L.shape[1]} columns in dimension {m.size}, so they are dependent; "
                "use `Gaussian.from_covariance(mean, factor @ factor.T)`."
            )
        if L.shape[1]:
            # Columns are scaled first: their sizes say nothing about independence.
            sizes = np.max(np.abs(L), axis=0)
            shortest = float(sizes.min())
            sigma = np.linalg.svd(L / np.where(sizes > 0, sizes, 1.0), compute_uv=False)
            if shortest == 0 or sigma[-1] <= FACTOR_TOLERANCE * sigma[0]:
                ratio = 0.0 if shortest == 0 else sigma[-1] / sigma[0]
                raise RankDeficientFactor(
                    f"`factor` must have independent columns; its {L.shape[1]} columns have "
                    f"relative smallest singular value {ratio:.3g}. "
                    "Use `Gaussian.from_covariance(mean, factor @ factor.T)` to find the rank."
                )
        object.__setattr__(self, "mean", m)
        object.__setattr__(self, "factor", L)

    @classmethod
    def trusted(cls, mean: Array, factor: Array) -> Gaussian:
        """Wrap arrays that the flow has computed, without checking them again.

        The flow conserves the rank exactly even where rounding hides it, so laws along a
        trajectory are not held to the tolerance of the constructor.
        """
        law = object.__new__(cls)
        object.__setattr__(law, "mean", mean)
        object.__setattr__(law, "factor", factor)
        return law

    @classmethod
    def from_covariance(
        cls,
        mean: ArrayLike,
        covariance: ArrayLike,
        rank: int | None = None,
        *,
        tolerance: float = RANK_TOLERANCE,
    ) -> Gaussian:
        """Build a Gaussian from its covariance matrix.

        Parameters
        ----------
        mean : (d,) array
            Mean of the tokens.
        covariance : (d, d) array
            Symmetric positive semidefinite matrix.
        rank : int, optional
            The rank that the covariance must have.  By default the number of eigenvalues
            above ``tolerance`` times the largest one.
        tolerance : float
            Relative size below which an eigenvalue counts as zero.

        Raises
        ------
        NotSymmetric, IndefiniteCovariance
            If the matrix is no covariance; the message gives the defect.
        RankDeficientFactor
            If the numerical rank differs from ``rank``.
        """
        m = _check.vector("mean", mean)
        S = _check.symmetric("covariance", covariance, m.size)
        tolerance = _check.number("tolerance", tolerance, low=0.0)
        unit = _unit(S)
        values, vectors = np.linalg.eigh(S / unit)
        values, vectors = values[::-1], vectors[:, ::-1]
        largest = float(np.max(np.abs(values), initial=0.0))
        if values.size and values[-1] < -max(tolerance, DEFINITENESS_TOLERANCE) * largest:
            raise IndefiniteCovariance(
                f"`covariance` must be positive semidefinite; its smallest eigenvalue is "
                f"{_written(float(values[-1]), unit)} (largest {_written(float(values[0]), unit)})."
            )
        found = int(np.count_nonzero(values > tolerance * largest))
        if rank is not None:
            wanted = _check.integer("rank", rank, low=0)
            if wanted > m.size:
                raise RankDeficientFactor(
                    f"`rank` is {wanted}, but `covariance` has order {m.size}."
                )
            if wanted != found:
                raise RankDeficientFactor(
                    f"`covariance` has rank {found} at relative tolerance {tolerance:g}, not "
                    f"{wanted}; lower `tolerance`, or use `.truncate(rank)` to give up variance."
                )
        columns = vectors[:, :found] * (math.sqrt(unit) * np.sqrt(values[:found]))
        return cls(m, columns)

    @property
    def dim(self) -> int:
        """Dimension d of the tokens."""
        return int(self.mean.size)

    @property
    def rank(self) -> int:
        """Rank r of the covariance: the number of columns of the factor."""
        return int(self.factor.shape[1])

    @property
    def covariance(self) -> Array:
        """Covariance L Lᵀ, shape (d, d)."""
        return self.factor @ self.factor.T

    @property
    def eigenvalues(self) -> Array:
        """The r positive eigenvalues of the covariance, largest first, shape (r,).

        One beyond double precision is infinite.
        """
        with np.errstate(over="ignore"):
            return np.asarray(np.linalg.svd(self.factor, compute_uv=False)) ** 2

    @property
    def trace(self) -> float:
        """Total variance: the trace of the covariance, infinite beyond double precision."""
        with np.errstate(over="ignore"):
            return float(np.sum(self.factor**2))

    @property
    def range_basis(self) -> Array:
        """Orthonormal basis of the range of the covariance, shape (d, r)."""
        return np.asarray(np.linalg.svd(self.factor, full_matrices=False)[0])

    def truncate(self, rank: int) -> Gaussian:
        """Return the nearest law of rank ``rank`` in W₂: the leading principal components.

        The distance paid is :meth:`truncation_distance`.
        """
        wanted = _check.integer("rank", rank, low=0)
        if wanted > self.rank:
            raise InvalidNumber(f"`rank` must be at most {self.rank}; it is {wanted}.")
        U, sigma, _ = np.linalg.svd(self.factor, full_matrices=False)
        return Gaussian(self.mean, U[:, :wanted] * sigma[:wanted])

    def truncation_distance(self, rank: int) -> float:
        """W₂ distance to the nearest law of rank ``rank``: root of the discarded variance."""
        wanted = _check.integer("rank", rank, low=0)
        return norm(np.asarray(np.linalg.svd(self.factor, compute_uv=False))[wanted:])

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
            Draw pairs m ± L z (``count`` must be even); odd moments are then exact.
        moment_matched : bool
            Whiten the draw so that the empirical mean and covariance (normalised by
            ``count``) equal m and L Lᵀ (``count`` must exceed the rank).

        Returns
        -------
        (count, d) array
        """
        n = _check.integer("count", count, low=1)
        self.require_draws(n, antithetic=antithetic, moment_matched=moment_matched)
        if antithetic:
            half = rng.standard_normal((n // 2, self.rank))
            z = np.concatenate([half, -half])
        else:
            z = rng.standard_normal((n, self.rank))
        if moment_matched and self.rank:
            z = z - z.mean(axis=0)
            triangle = np.linalg.qr(z, mode="r") / np.sqrt(n)
            z = np.linalg.solve(triangle.T, z.T).T
        return self.mean + z @ self.factor.T

    def require_draws(
        self, count: int, *, antithetic: bool = False, moment_matched: bool = False
    ) -> None:
        """Refuse numbers of tokens that :meth:`sample` cannot draw so; InvalidNumber."""
        if antithetic and count % 2:
            raise InvalidNumber(f"`count` must be even for antithetic sampling; it is {count}.")
        least = self.rank * (2 if antithetic else 1)
        if moment_matched and count <= least:
            raise InvalidNumber(
                f"`count` must exceed {least} for moment matching in rank {self.rank}; it is "
                f"{count}."
            )

    def __repr__(self) -> str:
        return f"Gaussian(dim={self.dim}, rank={self.rank}, trace={self.trace:.6g})"


def align(reference: Array, factor: Array) -> Array:
    """Return ``factor @ Q`` with Q orthogonal, nearest to ``reference`` (Procrustes).

    Then ``reference.T @ align(reference, factor)`` is symmetric positive semidefinite, and
    the straight line between the two never loses rank: with a, b the smallest positive
    eigenvalues of the two covariances, σ_min² >= ab/(a + b) along it.

    Parameters
    ----------
    reference, factor : (d, r) arrays
        Two factors of equal shape; they are scaled first, so their sizes do not matter.
    """
    size, other = norm(factor), norm(reference)
    if size == 0 or other == 0:
        return factor
    scaled = (factor / size).T @ (reference / other)
    W, _, Zt = np.linalg.svd(scaled)
    return np.asarray(factor @ (W @ Zt))


def squared_wasserstein(p: Gaussian, q: Gaussian) -> float:
    """Squared 2-Wasserstein distance; see :func:`wasserstein`."""
    unit, distance = _distance(p, q)
    return _in_range("the squared distance", distance**2, unit, unit)


def wasserstein(p: Gaussian, q: Gaussian) -> float:
    """2-Wasserstein distance between two Gaussians of any ranks.

    With factors, W₂² = |m₁ - m₂|² + |L₁|² + |L₂|² - 2‖L₁ᵀL₂‖_* (nuclear norm), which
    needs no square root of a matrix and holds for singular covariances.

    Parameters
    ----------
    p, q : Gaussian
        Laws of equal dimension.

    Returns
    -------
    float
        W₂, in the units of the tokens.

    Raises
    ------
    InvalidShape
        If an argument is no Gaussian, or the dimensions differ.
    OutOfScale
        If the distance itself leaves the range of double precision.
    """
    unit, distance = _distance(p, q)
    return _in_range("the distance", distance, unit)


def norm(values: Array) -> float:
    """Euclidean norm of all entries, whose squares neither overflow nor underflow."""
    unit = _unit(values)
    return unit * float(np.linalg.norm(values / unit))


def _distance(p: Gaussian, q: Gaussian) -> tuple[float, float]:
    """A unit of length, and the distance in this unit, whose square is in range."""
    for name, law in (("p", p), ("q", q)):
        if not isinstance(law, Gaussian):
            raise InvalidShape(f"`{name}` must be a Gaussian, not {type(law).__name__}.")
    if p.dim != q.dim:
        raise InvalidShape(f"the laws have dimensions {p.dim} and {q.dim}; they must agree.")
    length = _unit(p.mean, q.mean)
    shift = norm(p.mean / length - q.mean / length)
    unit, width = _unit(p.factor, q.factor), max(p.rank, q.rank)
    first, second = (
        np.concatenate([g.factor / unit, np.zeros((g.dim, width - g.rank))], axis=1) for g in (p, q)
    )
    if p.rank and q.rank:
        # |L₁ - L₂Q|² at the Procrustes Q equals |L₁|² + |L₂|² - 2‖L₁ᵀL₂‖_*, without the
        # cancellation of that sum for nearby laws.
        second = align(first, second)
    parts = [(u, x) for u, x in ((length, shift), (unit, norm(first - second))) if x > 0]
    largest = max((u for u, _ in parts), default=1.0)
    return largest, math.hypot(*(x * (u / largest) for u, x in parts))


def _unit(*arrays: Array) -> float:
    """Unit in which squares of entries stay in range; 1 where they do so anyway.

    It is a power of four, so that neither it nor its square root rounds anything.
    """
    largest = max(float(np.max(np.abs(x), initial=0.0)) for x in arrays)
    if largest == 0 or 1 / LARGEST <= largest <= LARGEST:
        return 1.0
    return math.ldexp(1.0, max(math.frexp(largest)[1] // 2 * 2 - 2, -1074))


def _in_range(what: str, value: float, *units: float) -> float:
    """Return `value` times `units`, refused with the true number if that overflows."""
    made = math.prod((value, *units))
    if math.isinf(made):
        raise OutOfScale(
            f"{what} between the laws is {_written(value, *units)}, beyond double precision; "
            "rescale the tokens."
        )
    return made


def _written(value: float, *units: float) -> str:
    """Write a number in the units given, even if their product overflows."""
    made = math.prod((value, *units))
    return f"{made if math.isfinite(made) else math.prod(map(Decimal, (value, *units))):.6g}"
