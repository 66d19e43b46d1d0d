"""How far N tokens are from the filter, to first order in 1/√N.

Tokens are x = m_N + L z, where L, a factor of their covariance, moves the draw along.  Softmax over
them is the gradient of the logarithm ψ(u) of the average of exp⟨u, z⟩ at u = Lᵀ(B x + β).  With c_α
the averages of the Hermite polynomials He_α(z)/√(α!),

    ψ(u) = |u|²/2 + Σ_{|α| >= 3} c_α u^α/√(α!) + O(1/N),

as the generating function of the He_α is exp(⟨u, z⟩ - |u|²/2); mean and covariance of z are exact,
so degrees 1 and 2 are missing.  At the start the √N c_α are independent standard normal.  Attention
is off by L g, with g the gradient of the sum, which drives the linearised filter,

    δm' = F δm + δS Cᵀ R⁻¹ (y - C m) + v L E g,     δS' = F δS + δS Fᵀ + v (D + Dᵀ),
    F = A - S W,   D = L E[g zᵀ] Lᵀ = L E[∇g] (Lᵀ B L) Lᵀ  (Stein),

and which moves the draw itself, as it is no affine map,

    c_α' = v E ∇(He_α/√(α!))(z)·g(u).

Expectations are over the law.  The sampling errors of the start, degrees 1 and 2, enter as starts
of δm and δS.  Each α of the start contributes the square of its response.

The sum over α converges if and only if the softmax errors that different queries share have a
variance, which is E exp⟨u, u'⟩ < ∞ for independent u, u': the largest eigenvalue of Lᵀ B L is below
1 in size, that is λ_max(S W) < 2 v.  Else errors decrease more slowly than 1/√N.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...problem.measurements import Measurements
from ...results.trajectory import Trajectory
from .hermite import exponents
from .parameters import Bridge
from .response import LOWEST, Response

__all__ = ["Fluctuations", "fluctuations", "tilt"]

#: Degrees up to which the sum over α is tried, one after the other.
DEGREES = (6, 8, 10, 12, 14, 18, 22, 26)

#: Largest number of terms, and of intervals that the terms are followed through.
MOST_TERMS, MOST_INTERVALS = 1100, 400

#: A tilt this close to 1 counts as 1.
ROUNDING = 1e-9

#: The last two degrees may contribute this share of the squared errors.
TAIL = 0.02


@dataclass(frozen=True, eq=False)
class Fluctuations:
    """Root mean square errors times √N at all times, or why there are none.

    Attributes
    ----------
    mean : (T + 1,) array or None
        Of |m_N - m|.
    covariance : (T + 1,) array or None
        Of |S_N - S| (Frobenius).
    note : str
        What the prediction is worth, or why there is none.
    mean_share, covariance_share : float or None
        Share of the squared errors, averaged over time, that is of the softmax; the rest is of
        the draw at the start.
    """

    mean: Array | None
    covariance: Array | None
    note: str
    mean_share: float | None = None
    covariance_share: float | None = None


def tilt(bridge: Bridge, covariances: Array) -> float:
    """Largest λ_max(S W)/(2 |v|) on the way: first order holds below 1."""
    root = np.linalg.cholesky(bridge.model.R)
    seen = np.linalg.solve(root, bridge.model.C)
    values = [float(np.linalg.eigvalsh(seen @ S @ seen.T)[-1]) for S in covariances]
    return max(values) / (2 * abs(bridge.value))


def fluctuations(
    bridge: Bridge,
    trajectory: Trajectory,
    measurements: Measurements,
    *,
    antithetic: bool = False,
    moment_matched: bool = False,
) -> Fluctuations:
    """Predict the errors of N tokens.

    Parameters
    ----------
    bridge : Bridge
    trajectory : Trajectory
        The flow of the law, with the factors that the tokens follow.
    measurements : Measurements
    antithetic, moment_matched : bool
        How the tokens are drawn: antithetic draws have no odd α and twice the even variances;
        matched ones have no error at the start.
    """
    covariances = np.array([L @ L.T for L in trajectory.factors])
    size = tilt(bridge, covariances)
    if size >= 1 - ROUNDING:
        return Fluctuations(
            None,
            None,
            f"λ_max(S CᵀR⁻¹C)/(2v) reaches {size:.3g}: from 1 on, the softmax errors that all "
            "tokens share have infinite variance to first order, and errors fall more slowly than "
            f"N^(-1/2). A value v above {size * abs(bridge.value):.3g} avoids it.",
        )
    if len(measurements) > MOST_INTERVALS:
        return Fluctuations(
            None, None, f"more than {MOST_INTERVALS} intervals: no prediction was made."
        )
    r = trajectory.factors.shape[2]
    made, tried = None, 0
    for degree in DEGREES:
        if math.comb(r + degree, degree) > MOST_TERMS:
            break
        tried = degree
        random = exponents(r, degree, LOWEST if moment_matched else 1, even=antithetic)
        made = Response(bridge, trajectory, measurements, random, degree).followed()
        late = made.degrees >= degree - 1
        tail = max(_share(x[:, late], x) for x in (made.means, made.covariances))
        if tail <= TAIL:
            factor = math.sqrt(2.0) if antithetic else 1.0
            squares = made.means**2, made.covariances**2
            mean, covariance = (factor * np.sqrt(np.sum(x, axis=1)) for x in squares)
            late = made.degrees >= LOWEST
            shares = [_share(x[:, late], x) for x in (made.means, made.covariances)]
            note = f"first order in 1/√N, Hermite terms up to degree {degree}."
            return Fluctuations(mean, covariance, note, shares[0], shares[1])
    if made is None:
        return Fluctuations(None, None, f"rank {r} has too many Hermite terms.")
    return Fluctuations(
        None,
        None,
        f"the Hermite terms up to degree {tried} do not converge, as λ_max(S CᵀR⁻¹C)/(2v) "
        f"reaches {size:.3g} and queries are far from the keys.",
    )


def _share(part: Array, whole: Array) -> float:
    """Share of squares, summed over all times."""
    total = float(np.sum(whole**2))
    return float(np.sum(part**2)) / total if total > 0 else 0.0
