"""Limits of S' = A S + S Aᵀ + S K S with K <= 0: algebraic Bernoulli equations.

The kernel of an equilibrium S is invariant under Aᵀ, so its range U is invariant under A:
A U = U Λ, S = U X⁻¹ Uᵀ, and X solves the *linear* equation Λᵀ X + X Λ = -Uᵀ K U.  Data of rank r
whose projection on the r dominant modes is invertible are drawn to the equilibrium on the
subspace U of the dominant modes that are unstable; of rank r <= k (k unstable modes) nothing is
lost, and the rate is min(2 Re λ_r, Re λ_r - Re λ_{r+1}); above, the limit has rank k, and the rate
is 2 min(Re λ_k, -Re λ_{k+1}).  The subspace comes from an ordered Schur form and X from a reduced
Lyapunov equation; solvers of Riccati equations fail or mislead where A has imaginary eigenvalues.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_continuous_lyapunov

from .. import _check
from .._check import Array
from ..errors import InvalidMethod, InvalidNumber
from .spectrum import GAP, Spectrum, invariant_basis, spectrum_of

__all__ = ["Attractor", "AttractorKind", "attractor", "on_subspace", "undetected"]

#: A mode v with |K v| below this fraction of ‖K‖ counts as unobserved.
UNOBSERVED = 1e-12

#: Eigenvalues of a defective cluster are perturbed by up to this fraction of ‖A‖.
DEFECTIVE = 1e-6

EPS = 2.220446049250313e-16


class AttractorKind(Enum):
    """What generic data of a given rank tend to."""

    LIMIT = "They converge to `covariance` at the rate `rate`."
    MARGINAL = (
        "They converge to `covariance`, but only like a power of t: an eigenvalue of A on the "
        "imaginary axis, or a defective one that the rank splits, which arbitrarily small changes "
        "of the data move."
    )
    CONTINUUM = (
        "Modes on the imaginary axis are not observed by K: there is a continuum of equilibria or "
        "of motions on top of `covariance`, and the start decides which one is approached, or, "
        "where modes that are observed drive them, how fast they grow, like a power of t."
    )
    PERIODIC = "There is no limit: a complex pair is split by the rank, so that S turns for ever."
    DEPENDS_ON_START = "Modes of equal growth compete: the limit depends on the start."
    UNBOUNDED = "An unstable mode is not observed by K: the covariance grows without bound."


@dataclass(frozen=True, eq=False)
class Attractor:
    """What data of rank `data_rank` tend to when K <= 0.

    Attributes
    ----------
    kind : AttractorKind
    data_rank : int
        Rank r of the data.
    factor : (d, p) array or None
        Factor of the limit, of full column rank p; None if there is no limit.
    rate : float
        Exponential rate of the approach; 0 if it is slower than exponential.
    period : float
        Period of the limit motion; nan if there is none.
    spectrum : complex array (d,)
        Eigenvalues of A + S K at the limit (sums of pairs are those of the linearisation); of A
        if there is no limit.
    error : float
        Estimate of the relative error of the covariance.
    residual : float
        |A S + S Aᵀ + S K S| relative to its terms.
    """

    kind: AttractorKind
    data_rank: int
    factor: Array | None
    rate: float
    period: float
    spectrum: NDArray[np.complex128]
    error: float
    residual: float

    @property
    def covariance(self) -> Array | None:
        """Limit S (d, d), or None."""
        return None if self.factor is None else np.asarray(self.factor @ self.factor.T)

    @property
    def rank(self) -> int | None:
        """Rank of the limit, or None."""
        return None if self.factor is None else self.factor.shape[1]

    @property
    def loses_rank(self) -> bool:
        """Whether the limit has a smaller rank than the data."""
        return self.rank is not None and self.rank < self.data_rank


def attractor(A: ArrayLike, K: ArrayLike, rank: int | None = None) -> Attractor:
    """Find what generic data of rank `rank` tend to, for K <= 0.

    Parameters
    ----------
    A : (d, d) array
    K : (d, d) array
        Symmetric, negative semidefinite.
    rank : int, optional
        Rank of the data; by default d.

    Raises
    ------
    InvalidMethod
        If K has a positive eigenvalue: whether there is a limit then depends on the start.
    """
    A = _check.square("A", A)
    K = _check.symmetric("K", K, len(A))
    d = len(A)
    r = d if rank is None else _check.integer("rank", rank, low=0)
    if r > d:
        raise InvalidNumber(f"`rank` must be at most the dimension {d}; it is {r}.")
    weight = float(np.linalg.norm(K, 2))
    top = float(np.linalg.eigvalsh(K)[-1])
    if top > 1e-12 * weight:
        raise InvalidMethod(
            f"`K` has the positive eigenvalue {top:.3g}: a limit for all generic data exists only "
            "if K is negative semidefinite. Ask for the blow-up time from a start instead."
        )
    spectrum = spectrum_of(A)
    k, p = spectrum.unstable, min(r, spectrum.unstable)
    if 0 < r < k and spectrum.gap(r) <= GAP * spectrum.size:
        return _without_gap(A, K, spectrum, r)
    if p and undetected(A, K, spectrum, 0, p):
        return _none(AttractorKind.UNBOUNDED, spectrum, r)
    U, Lam = invariant_basis(A, spectrum, p)
    made = on_subspace(U, Lam, K)
    if made is None:
        return _none(AttractorKind.UNBOUNDED, spectrum, r)
    factor, error = made
    kind, rate = _approach(A, K, spectrum, r)
    S = factor @ factor.T
    values = np.linalg.eigvals(A + S @ K).astype(np.complex128)
    return Attractor(kind, r, factor, rate, np.nan, values, error, residual(A, K, S))


def _approach(A: Array, K: Array, spectrum: Spectrum, r: int) -> tuple[AttractorKind, float]:
    """Kind and rate of the approach to the equilibrium on the unstable modes among r."""
    k, values = spectrum.unstable, spectrum.values.real
    if r == 0:
        return AttractorKind.LIMIT, np.inf
    if r <= k:
        return AttractorKind.LIMIT, min(2 * float(values[r - 1]), spectrum.gap(r))
    if spectrum.axis:
        hidden = undetected(A, K, spectrum, k, k + spectrum.axis)
        return (AttractorKind.CONTINUUM if hidden else AttractorKind.MARGINAL), 0.0
    slow = -float(values[k])
    return AttractorKind.LIMIT, 2 * (slow if k == 0 else min(float(values[k - 1]), slow))


def _without_gap(A: Array, K: Array, spectrum: Spectrum, r: int) -> Attractor:
    """Answer where the modes r and r + 1 grow alike.

    Generic data in one Jordan block turn algebraically into its first generalised eigenvectors.
    """
    U = _chain(A, spectrum, r)
    if U is not None:
        made_on = on_subspace(U, U.T @ A @ U, K)
        if made_on is None:
            return _none(AttractorKind.UNBOUNDED, spectrum, r)
        factor, error = made_on
        S = factor @ factor.T
        values = np.linalg.eigvals(A + S @ K).astype(np.complex128)
        kind, rest = AttractorKind.MARGINAL, residual(A, K, S)
        return Attractor(kind, r, factor, 0.0, np.nan, values, error, rest)
    near = np.abs(spectrum.values.real - spectrum.values[r - 1].real) <= GAP * spectrum.size
    turning = abs(spectrum.values[r - 1].imag)
    if int(np.sum(near)) == 2 and turning > GAP * spectrum.size:
        made = _none(AttractorKind.PERIODIC, spectrum, r)
        period = float(np.pi / turning)
        return Attractor(made.kind, r, None, 0.0, period, made.spectrum, np.nan, np.nan)
    return _none(AttractorKind.DEPENDS_ON_START, spectrum, r)


def _chain(A: Array, spectrum: Spectrum, r: int) -> Array | None:
    """Basis (d, r) of the dominant modes if the rank splits one Jordan block, otherwise None."""
    reals = spectrum.values.real
    near = np.abs(spectrum.values - spectrum.values[r - 1]) <= DEFECTIVE * spectrum.size
    level = np.abs(reals - reals[r - 1]) <= DEFECTIVE * spectrum.size
    if not np.array_equal(near, level) or abs(spectrum.values[near].sum().imag) > 0:
        return None
    above = int(np.sum(reals > reals[near].max()))
    size = spectrum.size
    shift = (A - float(np.mean(reals[near])) * np.eye(len(A))) / size
    if np.linalg.svd(shift, compute_uv=False)[-2:-1].min(initial=1.0) <= DEFECTIVE:
        return None
    power = np.linalg.matrix_power(shift, r - above)
    kernel = np.linalg.svd(power)[2][len(A) - (r - above) :].T
    U = invariant_basis(A, spectrum, above)[0]
    return np.asarray(np.linalg.qr(np.concatenate([U, kernel], axis=1))[0])


def _none(kind: AttractorKind, spectrum: Spectrum, r: int) -> Attractor:
    return Attractor(kind, r, None, 0.0, np.nan, spectrum.values, np.nan, np.nan)


def undetected(A: Array, K: Array, spectrum: Spectrum, first: int, last: int) -> bool:
    """Whether K does not see one of the modes `first` to `last` (excluded) of A.

    A mode is unseen if [A - λ; K] has a kernel (Popov, Belevitch, Hautus).
    """
    if last <= first:
        return False
    weight = float(np.linalg.norm(K, 2))
    if weight == 0:
        return True
    size = max(spectrum.size, 1e-300)
    values, vectors = np.linalg.eig(A)
    wanted = spectrum.values[first:last]
    for value, v in zip(values, vectors.T, strict=True):
        if np.min(np.abs(wanted - value)) > 1e-9 * size:
            continue
        alone = np.sum(np.abs(values - value) <= 1e-6 * size) == 1
        if alone:
            if float(np.linalg.norm(K @ v)) <= UNOBSERVED * weight:
                return True
            continue
        test = np.concatenate([(A - value * np.eye(len(A))) / size, K / weight])
        # A cluster is only known up to a root of the rounding.
        if float(np.linalg.svd(test, compute_uv=False)[-1]) <= 1e-7:
            return True
    return False


def on_subspace(U: Array, Lam: Array, K: Array) -> tuple[Array, float] | None:
    """Equilibrium on an invariant subspace, and an estimate of its relative error.

    Parameters
    ----------
    U : (d, p) array
        Orthonormal basis, A U = U Λ.
    Lam : (p, p) array
        Λ, with no two eigenvalues that sum to zero.
    K : (d, d) array

    Returns
    -------
    factor, error
        Factor (d, p) of S = U X⁻¹ Uᵀ; None if X is not positive definite.
    """
    if not U.shape[1]:
        return U, 0.0
    inner = U.T @ K @ U
    X = solve_continuous_lyapunov(Lam.T, -inner)
    X = 0.5 * (X + X.T)
    # One step of iterative refinement, which also measures the error of X.
    rest = Lam.T @ X + X @ Lam + inner
    change = solve_continuous_lyapunov(Lam.T, -0.5 * (rest + rest.T))
    X = X + 0.5 * (change + change.T)
    values, vectors = np.linalg.eigh(X)
    if values[0] <= 0 or not np.all(np.isfinite(values)):
        return None
    moved = float(np.linalg.norm(change, 2)) + EPS * len(X) * float(values[-1])
    return U @ (vectors / np.sqrt(values)), moved / float(values[0])


def residual(A: Array, K: Array, S: Array) -> float:
    """|A S + S Aᵀ + S K S| relative to the size of its terms."""
    first = A @ S
    second = S @ K @ S
    size = 2 * float(np.linalg.norm(first)) + float(np.linalg.norm(second))
    return float(np.linalg.norm(first + first.T + second)) / size if size > 0 else 0.0
