"""The one way in: `equilibria`."""

from __future__ import annotations

import numpy as np

from ... import _check
from ..._check import Array
from ..._threads import single_threaded
from ...errors import InvalidShape, OutOfScale, TooLarge
from ...parameters import Parameters
from ...results.equilibria import Equilibrium
from .attractors import integrate
from .classification import classify, semidefinite_factor
from .continuation import continue_from_scalar
from .newton import factor_newton, matrix_newton
from .planar import planar
from .quadratic import Quadratic
from .rank_one import rank_one
from .scalar_value import bernoulli
from .scaling import scaled

__all__ = ["MOST_DIMENSIONS", "MOST_SEARCHED", "equilibria"]

#: Up to this dimension starts are scattered over all ranks ...
MOST_SEARCHED = 8

#: ... and up to this one the linearisation, of order d (d + 1)/2, is still written down.
MOST_DIMENSIONS = 40

#: Two equilibria nearer than this, relative to their size, are the same.
SAME = 1e-6


@single_threaded
@np.errstate(all="ignore")
def equilibria(
    parameters: Parameters, *, starts: int = 200, seed: int = 0
) -> tuple[Equilibrium, ...]:
    """Find the laws that stand still under constant parameters, and what each attracts.

    The covariance equilibria solve M S + S Mᵀ + noise = 0 with M = A + Σ V_h S B_h.  Listed are
    0, those of rank one (from the eigenvectors of the pencil (A, V), one head), all for
    V_h = v_h I (invariant subspaces of A), all for d = 2 (two conics in the plane tr M = 0), and
    for d <= 8 what Newton's method finds from scattered covariances and factors of all ranks, from
    the ends of curves of equilibria that begin at V_h = v_h I, and from long integrations.  For
    8 < d <= 40 the list is partial: 0, rank one, V_h = v_h I, and the ends of integrations.

    Parameters
    ----------
    parameters : Parameters
        Constant parameters of dimension d.
    starts : int
        Number of scattered starts of Newton's method for each kind.
    seed : int
        Seed of the scattered starts.

    Returns
    -------
    tuple of Equilibrium
        Without repetitions: those that attract all covariances near them first, then by falling
        rank and trace.  Nothing here is proved, and for d > 2 none may be missing only by luck.

    Raises
    ------
    TooLarge
        If d > 40.
    OutOfScale
        If the sizes of the parameters are too far apart for double precision.

    Examples
    --------
    >>> import gtcontrol as gt
    >>> found = gt.equilibria(gt.Parameters(A=[[0.5]], B=[[-1.0]], V=[[1.0]]))
    >>> [(e.rank, round(float(e.covariance[0, 0]), 12), e.attracts) for e in found]
    [(1, 0.5, 'all covariances near it'), (0, 0.0, 'nothing')]
    """
    if not isinstance(parameters, Parameters):
        raise InvalidShape(
            f"`parameters` must be Parameters, not {type(parameters).__name__}; equilibria are "
            "those of constant parameters."
        )
    count = _check.integer("starts", starts, low=1)
    rng = np.random.default_rng(_check.integer("seed", seed, low=0))
    if parameters.dim > MOST_DIMENSIONS:
        raise TooLarge(
            f"`parameters` has dimension {parameters.dim}; equilibria are listed up to "
            f"{MOST_DIMENSIONS}. Follow the flow with `simulate` instead."
        )
    field, units = scaled(Quadratic.of(parameters))
    if not all(np.all(np.isfinite(x)) for x in (field.A, field.V, field.B, field.Q, units)):
        raise OutOfScale(
            "the sizes of A, V, B and the noise are too far apart for double precision in any unit "
            "of the tokens and of time; rescale them, or set what is negligible to 0."
        )
    # Starts of Newton's method may leave for infinity, and are dropped when they do.
    factors = _distinct(field, _candidates(field, count, rng))
    found = [classify(parameters, units[:, None] * L) for L in factors]
    kept = _without_continua(found)
    return tuple(sorted(kept, key=lambda e: (not e.stable, -e.rank, -np.trace(e.covariance))))


def _candidates(field: Quadratic, count: int, rng: np.random.Generator) -> list[Array]:
    """Approximate zeros of F, with repetitions, semidefinite or not."""
    d = field.dim
    found = [np.zeros((d, d))]  # with noise, a start for what little of it remains
    found += rank_one(field)
    complete = False
    v = field.V[:, 0, 0]
    if not field.noisy and np.array_equal(field.V, v[:, None, None] * np.eye(d)):
        K = sum(x * (B + B.T) for x, B in zip(v, field.B, strict=True))
        exact, complete = bernoulli(field.A, np.asarray(K))
        found += exact
    if complete:
        return found
    ends = [np.eye(d), *(rng.standard_normal((d, r)) for r in sorted({1, (d + 1) // 2, d}))]
    points = planar(field) if d == 2 and not field.noisy else np.zeros((0, d, d))
    found += list(matrix_newton(field, points)) if len(points) else integrate(field, ends)
    if d > MOST_SEARCHED:
        return found
    found += [c.end for c in continue_from_scalar(field) if c.end is not None]
    spread = 10.0 ** rng.uniform(-2.0, 2.0, count)
    L = rng.standard_normal((count, d, d)) * np.exp(rng.standard_normal((count, 1, d)))
    found += list(matrix_newton(field, spread[:, None, None] * (L @ np.swapaxes(L, 1, 2)) / d))
    if not field.noisy:
        for r in range(1, d):
            few = max(count // (2 * d), 10)
            size = 10.0 ** rng.uniform(-1.0, 1.0, (few, 1, 1))
            made = factor_newton(field, size * rng.standard_normal((few, d, r)))
            found += [factor @ factor.T for factor in made]
    return found


def _distinct(field: Quadratic, found: list[Array]) -> list[Array]:
    """Factors of the different semidefinite ones."""
    # Near 0 the absolute size counts, except that noise keeps equilibria away from 0.
    least = 0.0 if field.noisy else 0.1
    factors: list[Array] = []
    known: list[Array] = []
    for S in found:
        size = float(np.linalg.norm(S))
        if not np.isfinite(size) or any(_near(S, other, least) for other in known):
            continue
        L = semidefinite_factor(field, S, 1e-7)
        if L is None or any(_near(L @ L.T, other, least) for other in known):
            known.append(S)
            continue
        known.append(L @ L.T)
        factors.append(L)
    return factors


def _near(S: Array, T: Array, least: float) -> bool:
    return bool(np.linalg.norm(S - T) <= SAME * max(float(np.linalg.norm(S)), least))


def _without_continua(found: list[Equilibrium]) -> list[Equilibrium]:
    """Keep one member of each rank, the best conditioned, of those that are not isolated."""
    kept: list[Equilibrium] = []
    for e in sorted(found, key=_spread):
        if not e.isolated and any(not k.isolated and k.rank == e.rank for k in kept):
            continue
        kept.append(e)
    return kept


def _spread(e: Equilibrium) -> float:
    """Largest over smallest positive eigenvalue."""
    values = np.linalg.eigvalsh(e.covariance)[::-1][: e.rank]
    return float(values[0] / max(values[-1], 1e-300)) if e.rank else 1.0
