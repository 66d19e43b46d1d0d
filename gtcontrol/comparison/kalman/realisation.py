"""Process noise without noise: a time-varying A(t) that moves the covariance like noise does.

Tokens that move by ½ Q S(t)⁻¹ (x - m(t)) spread as if they were pushed at random: with
A(t) = A + ½ Q S⁻¹ the covariance gains ½ Q S⁻¹ S + S (½ Q S⁻¹)ᵀ = Q.  (The score of a Gaussian is
-S⁻¹(x - m), so this is the deterministic flow of the Fokker-Planck equation; Song et al., "Score-
based generative modeling through stochastic differential equations", 2021.)  S must be invertible
on the range of Q, at all times; as A carries noise on, on all that A makes of that range.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import _check
from ..._check import Array
from ...errors import IncompatibleSchedule, InvalidMethod, InvalidShape, RankMismatch
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...results.trajectory import Trajectory
from ...riccati_flow.solution import transport
from ...riccati_flow.terms import quadratic_term, scalar_values
from ...schedule import Schedule
from ...simulation.run import simulate
from ...status import Status
from .modes import hull

__all__ = ["realise_noise"]

#: A direction is in the range of the start if it leaves it by less than this.
INSIDE = 1e-9


def realise_noise(parameters: Parameters, start: Gaussian, horizon: float) -> Schedule:
    """Move a law as process noise does, by parameters without noise.

    A(t) = A + ½ Q S(t)⁻¹ and b(t) = b - ½ Q S(t)⁻¹ m(t) move mean and covariance as the
    parameters with their noise Q do, and every token deterministically.  If V is a multiple of
    the identity, S(t) is the closed form of the Riccati equation, otherwise an integration.

    Parameters
    ----------
    parameters : Parameters
        Constant parameters with process noise.
    start : Gaussian
        Start whose range holds that of the noise, and all that the flow makes of it.
    horizon : float
        End of the schedule.

    Returns
    -------
    Schedule
        A function of time; its ``noisy`` is false.

    Raises
    ------
    InvalidMethod
        If there is no noise to realise, or the covariance blows up before the horizon.
    RankMismatch
        If noise would raise the rank, which no Transformer without noise does.

    Examples
    --------
    >>> import numpy as np, gtcontrol as gt
    >>> noisy = gt.Parameters(A=[[-1.0]], noise=[[2.0]])
    >>> start = gt.Gaussian([0.0], [[0.5]])
    >>> schedule = gt.realise_noise(noisy, start, 1.0)
    >>> gt.simulate(start, schedule).final.covariance.round(9).tolist()
    [[0.898498538]]
    """
    if not isinstance(parameters, Parameters):
        raise InvalidShape(f"`parameters` must be Parameters, not {type(parameters).__name__}.")
    if not isinstance(start, Gaussian):
        raise InvalidShape(f"`start` must be a Gaussian, not {type(start).__name__}.")
    end = _check.number("horizon", horizon, low=0.0, strict=True)
    if start.dim != parameters.dim:
        raise IncompatibleSchedule(
            f"`start` has dimension {start.dim}, but the parameters have {parameters.dim}."
        )
    if parameters.noise is None or not parameters.noise.any():
        raise InvalidMethod("`parameters` have no process noise, so there is nothing to realise.")
    path = simulate(start, parameters, end)
    if path.status is not Status.SUCCESS:
        raise InvalidMethod(
            f"the covariance cannot be followed to t = {end:g}: {path.status.value} "
            f"It was followed to t = {float(path.times[-1]):.6g}."
        )
    _refuse_rank(parameters, start, path)
    return Schedule.from_function(_law(parameters, start, path), end)


def _refuse_rank(p: Parameters, start: Gaussian, path: Trajectory) -> None:
    """Refuse noise in directions where the law without noise has no variance.

    Raises
    ------
    RankMismatch
        If there are such directions, now or later.
    """
    noise = p.noise if p.noise is not None else np.zeros((p.dim, p.dim))
    spread = (
        hull(p.A, noise) if scalar_values(p.heads) is not None else hull(np.zeros_like(p.A), noise)
    )
    if start.rank == p.dim:
        return
    basis = start.range_basis
    outside = spread - basis @ (basis.T @ spread)
    left, sigma, _ = np.linalg.svd(outside, full_matrices=False)
    if sigma.size and sigma[0] > INSIDE:
        way = ", ".join(f"{x + 0.0:.4g}" for x in left[:6, 0])
        raise RankMismatch(
            f"`start` has rank {start.rank} in dimension {p.dim}, and noise acts in the direction "
            f"({way}{', ...' if p.dim > 6 else ''}) outside its range, or is carried there: that "
            "raises the rank, which no Transformer without noise does. Start with variance there."
        )
    later = path.final.eigenvalues
    if scalar_values(p.heads) is None and later.size > start.rank:
        lost = float(later[start.rank] / later[0])
        if lost > INSIDE:
            raise RankMismatch(
                f"noise raises the rank from {start.rank}: at t = {float(path.times[-1]):.6g} "
                f"eigenvalue {start.rank + 1} of the covariance is {lost:.3g} of the largest. No "
                "Transformer without noise does that; start with variance in every direction."
            )


def _law(p: Parameters, start: Gaussian, path: Trajectory) -> Callable[[float], Parameters]:
    closed = _closed(p, start)
    noise = np.zeros((p.dim, p.dim)) if p.noise is None else p.noise
    rank = start.rank

    def law(t: float) -> Parameters:
        seen = path.at(t)
        S = seen.covariance if closed is None else closed(t)
        pull = 0.5 * noise @ _inverse(S, rank)
        return Parameters.trusted(p.A + pull, p.B, p.V, p.b - pull @ seen.mean, None, p.beta)

    return law


def _closed(p: Parameters, start: Gaussian) -> Callable[[float], Array] | None:
    """S(t) by the closed form where there is one."""
    if scalar_values(p.heads) is None or p.noise is None:
        return None
    K, noise = quadratic_term(p.heads), p.noise
    return lambda t: transport(p.A, K, start.factor, noise, t)


def _inverse(S: Array, rank: int) -> Array:
    """Inverse of S on its range, of the rank given."""
    values, vectors = np.linalg.eigh(S)
    kept = slice(len(S) - rank, None)
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)
