"""How far N tokens are from the filter, to first order in 1/√N.

Tokens are x = m + L z with z fixed: L moves the draw along.  Softmax over them is the gradient of
the logarithm ψ(u) of the average of exp⟨u, z⟩ at u = Lᵀ(B x + β).  For a draw of N independent
normals with its own mean and covariance taken out,

    ψ(u) = |u|²/2 + N^(-1/2) Σ_{|α| >= 3} ξ_α u^α/√(α!) + O(1/N),   ξ_α independent standard normal,

as the averages of the Hermite polynomials He_α are N^(-1/2) √(α!) ξ_α, and the generating function
of these is exp(⟨u, z⟩ - |u|²/2).  So the field of attention is off by L ∇ of that sum, which
drives the linearised filter,

    δm' = F δm + δS Cᵀ R⁻¹ (y - C m) + L E ∇,     δS' = F δS + δS Fᵀ + D + Dᵀ,
    F = A - S W,   D = L E[∇ zᵀ] Lᵀ = L E[∇²] (Lᵀ B L) Lᵀ  (Stein),

with expectations over the law of u.  The terms |α| = 1, 2 are the sampling errors of the start.
Each α contributes the square of its response.

The sum over α converges if and only if the softmax errors that different queries share have a
variance, which is E exp⟨u, u'⟩ < ∞ for independent u, u': the largest eigenvalue of Lᵀ B L is below
1 in size, that is λ_max(S W) < 2 v.  Else errors decrease more slowly than 1/√N.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._check import Array
from ...gaussian import Gaussian
from ...problem.measurements import Measurements
from ...results.trajectory import Trajectory
from .hermite import Indices, Terms, exponents
from .parameters import Bridge

__all__ = ["Fluctuations", "fluctuations", "tilt"]

#: Degrees up to which the sum over α is tried, one after the other.
DEGREES = (6, 8, 10, 12, 14, 18, 22, 26)

#: Largest number of terms, and of intervals that the terms are followed through.
MOST_TERMS, MOST_INTERVALS = 2000, 400

#: Terms from this degree on are errors of the softmax, lower ones of the draw at the start.
LOWEST = 3

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
        made = _Response(
            bridge, trajectory, measurements, exponents(r, degree, antithetic, moment_matched)
        ).followed()
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


@dataclass(frozen=True, eq=False)
class _Responses:
    """Sizes of the responses |δm|, |δS| to each α at all times, shape (T + 1, n)."""

    means: Array
    covariances: Array
    degrees: Indices


class _Response:
    """The linearised filter, driven by all terms at the same time."""

    def __init__(
        self,
        bridge: Bridge,
        trajectory: Trajectory,
        measurements: Measurements,
        exponents: Indices,
    ) -> None:
        self.bridge, self.trajectory, self.measurements = bridge, trajectory, measurements
        self.exponents = exponents
        self.degrees = exponents.sum(axis=1)
        self.terms = Terms(exponents, min(len(bridge.model.C), trajectory.factors.shape[2]))

    def followed(self) -> _Responses:
        """Integrate over all intervals by the classical Runge-Kutta method."""
        times = self.measurements.times
        dm, dS = self._start()
        means, covariances = [dm], [dS]
        for k in range(len(self.measurements)):
            start, end = float(times[k]), float(times[k + 1])
            law = self.trajectory.at(start)
            pieces = max(1, math.ceil((end - start) * self._rate(law) / 0.4))
            h = (end - start) / pieces
            first = self._field(k, law)
            for i in range(pieces):
                middle = self._field(k, self.trajectory.at(start + (i + 0.5) * h))
                last = self._field(k, self.trajectory.at(min(start + (i + 1) * h, end)))
                dm, dS = _stepped((first, middle, last), dm, dS, h)
                first = last
            means.append(dm)
            covariances.append(dS)
        return _Responses(
            np.linalg.norm(np.array(means), axis=2),
            np.sqrt(np.sum(np.array(covariances) ** 2, axis=(2, 3))),
            self.degrees,
        )

    def _rate(self, law: Gaussian) -> float:
        gain = law.covariance @ self.bridge.information
        return float(np.linalg.norm(self.bridge.model.A, 2) + np.linalg.norm(gain, 2))

    def _start(self) -> tuple[Array, Array]:
        """Sampling errors of mean and covariance at the start: the terms |α| = 1, 2."""
        L = self.trajectory.factors[0]
        d, n = L.shape[0], len(self.exponents)
        dm, dS = np.zeros((n, d)), np.zeros((n, d, d))
        one, two = self.degrees == 1, self.degrees == 2
        dm[one] = self.exponents[one] @ L.T
        for i in np.flatnonzero(two):
            alpha = self.exponents[i]
            # z zᵀ - I averages to the symmetric matrix with √2 ξ or ξ on the entries of α.
            entries = np.flatnonzero(alpha)
            if entries.size == 1:
                moved = math.sqrt(2.0) * np.outer(L[:, entries[0]], L[:, entries[0]])
            else:
                moved = np.outer(L[:, entries[0]], L[:, entries[1]])
                moved = moved + moved.T
            dS[i] = moved
        return dm, dS

    def _field(self, k: int, law: Gaussian) -> tuple[Array, Array, Array, Array]:
        """F, the vector that multiplies δS, and the driving terms (n, d) and (n, d, d)."""
        bridge, L = self.bridge, law.factor
        S = L @ L.T
        F = bridge.model.A - S @ bridge.information
        y = self.measurements.values[k]
        pull = bridge.weighted @ (y - bridge.model.C @ law.mean)
        B = -0.5 * bridge.information / bridge.value
        H = L.T @ B @ L
        offset = np.zeros(L.shape[1]) if bridge.centred else L.T @ (B @ law.mean)
        gradient, hessian = self.terms.expected(offset, H)
        # Degrees 1 and 2 are errors of the start: the tokens' own moments contain them.
        own = self.degrees < LOWEST
        gradient[own], hessian[own] = 0.0, 0.0
        v = bridge.value
        drive = v * (gradient @ L.T)
        spread = v * np.einsum("ia,nab,bc,jc->nij", L, hessian, H, L, optimize=True)
        return F, pull, drive, spread + np.swapaxes(spread, 1, 2)


Field = tuple[Array, Array, Array, Array]


def _stepped(
    fields: tuple[Field, Field, Field], dm: Array, dS: Array, h: float
) -> tuple[Array, Array]:
    first, middle, last = fields
    a = _rate_of(first, dm, dS)
    b = _rate_of(middle, dm + 0.5 * h * a[0], dS + 0.5 * h * a[1])
    c = _rate_of(middle, dm + 0.5 * h * b[0], dS + 0.5 * h * b[1])
    d = _rate_of(last, dm + h * c[0], dS + h * c[1])
    return (
        dm + (h / 6) * (a[0] + 2 * b[0] + 2 * c[0] + d[0]),
        dS + (h / 6) * (a[1] + 2 * b[1] + 2 * c[1] + d[1]),
    )


def _rate_of(field: Field, dm: Array, dS: Array) -> tuple[Array, Array]:
    F, pull, drive, spread = field
    left = F @ dS
    return dm @ F.T + dS @ pull + drive, left + np.swapaxes(left, 1, 2) + spread
