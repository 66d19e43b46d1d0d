"""Where the covariance of a filter tends: from a start of any rank, with or without noise.

S' = A S + S Aᵀ + S K S + Q with K = -Cᵀ R⁻¹ C <= 0.  From S = 0 the covariance rises to a steady
state S₋ on the subspace that the noise drives, if all modes there are detectable.  From another
start S₀ = L Lᵀ the excess X = S(t; S₀) - S(t; 0) obeys the equation without noise, with the closed
loop M = A + S₋ K in the place of A once S(t; 0) has settled, and keeps the rank of L.  Under M
every vector of range(L) grows at the pace of its fastest mode, so a group of modes of equal real
part takes part with as many dimensions as range(L) has vectors that lead in it.  Where groups
take part as a whole or not at all, their unstable modes span an invariant subspace U, M U = U Λ,
and

    S∞ = S₋ + U Y⁻¹ Uᵀ,    Λᵀ Y + Y Λ = Uᵀ Cᵀ R⁻¹ C U,

which exists if (C U, Λ) is observable.  (Without noise this is the closed form of the flow for
t → ∞.  For full-rank starts: Callier and Willems, "Criterion for the convergence of the solution
of the Riccati differential equation", IEEE Trans. Autom. Control 1981.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..._check import Array
from ...riccati_equations.judgement import judge
from ...riccati_flow.spectrum import Spectrum, invariant_basis
from ...status import KalmanVerdict
from .axis import driven_mode, settled
from .equation import Equation
from .modes import Hidden, first_within, groups, hidden, hull
from .roots import stabilising_root
from .shares import Group, band, directions, rate_of, shares

__all__ = ["Limit", "long_run"]

EPS = 2.220446049250313e-16


@dataclass(frozen=True, eq=False)
class Limit:
    """What the covariance does in the long run.

    Attributes
    ----------
    verdict : KalmanVerdict
    covariance : (d, d) array or None
        The limit.
    error : float
        Estimate of its relative error.
    rate : float
        Exponential rate of the approach, or of the growth of what is unbounded.
    period : float
        Of the motion that is left; nan if there is none.
    mode : Hidden or None
        The unseen mode that decides, in all coordinates.
    cause : str
        What decides: "driven" (noise drives the unseen mode), "chained" (it is driven by the
        error of a seen mode on the axis), "split" (the rank of the start splits modes of equal
        growth), "turning" (unseen modes turn), or empty.
    base : (d, d) array or None
        Steady state without what modes on the imaginary axis add.
    partial : bool
        Whether faster modes than those that take part have none, so that an arbitrarily small
        change of the start leads elsewhere.
    rank : int or None
        Rank of the limit, from the modes that take part; None where only numbers tell.
    delay : float
        Time after which a start shows that has only a small part in a mode.
    """

    verdict: KalmanVerdict
    covariance: Array | None = None
    error: float = np.nan
    rate: float = 0.0
    period: float = np.nan
    mode: Hidden | None = None
    cause: str = ""
    base: Array | None = None
    partial: bool = False
    delay: float = 0.0
    rank: int | None = None


def long_run(equation: Equation, factor: Array | None) -> Limit:
    """Say where S(t) tends from S₀ = L Lᵀ, or from full-rank data.

    Parameters
    ----------
    equation : Equation
        With R positive definite.
    factor : (d, r) array or None
    """
    driven = hull(equation.A, equation.Q)
    unseen = _persistent(equation)
    mode = first_within(unseen, driven)
    if mode is not None:
        return _unbounded(mode, "driven")
    try:
        least, error = stabilising_root(equation.on(driven))
    except np.linalg.LinAlgError as failure:
        return Limit(KalmanVerdict.UNDECIDED, cause=str(failure))
    base = driven @ least @ driven.T
    M = equation.closed_loop(base)
    reached = np.eye(equation.dim)
    if factor is not None:
        reached = hull(M, np.concatenate([driven, factor], axis=1))
    inner = reached.T @ M @ reached
    settling = np.linalg.eigvals(driven.T @ M @ driven).real
    rate = float(-2 * settling.max()) if settling.size else np.inf
    for whole in (False, True):  # as one block, for eigenvalues that rounding does not tell apart
        spectrum = groups(inner, whole=whole)
        excess = _Excess(
            equation, base, error, driven.shape[1], M, reached, factor, spectrum, unseen, rate
        )
        try:
            return excess.limit()
        except np.linalg.LinAlgError as failure:
            said = str(failure)
    return Limit(KalmanVerdict.UNDECIDED, cause=said)


def _persistent(equation: Equation) -> tuple[Hidden, ...]:
    """Unseen modes that do not decay."""
    spectrum = groups(equation.A)
    count = spectrum.unstable + spectrum.axis
    if not count:
        return ()
    above = float(spectrum.values[count - 1].real)
    return hidden(equation.A, equation.C, above - 1e-10 * spectrum.size)


def _unbounded(mode: Hidden, cause: str) -> Limit:
    rate = 0.0 if cause == "chained" else 2 * max(mode.value.real, 0.0)
    return Limit(KalmanVerdict.UNBOUNDED, rate=rate, mode=mode, cause=cause)


@dataclass(frozen=True, eq=False)
class _Excess:
    """The excess over what rises from zero: M on the subspace `reached`, and its spectrum."""

    equation: Equation
    base: Array
    base_error: float
    driven: int
    M: Array
    reached: Array
    factor: Array | None
    spectrum: Spectrum
    unseen: tuple[Hidden, ...]
    settling: float

    def limit(self) -> Limit:
        """Say what the covariance does."""
        W, spectrum = self.reached, self.spectrum
        M = W.T @ self.M @ W
        L = None if self.factor is None else W.T @ self.factor
        found = shares(M, spectrum, L)
        active = [g for g in found if g.side > 0 and g.taken]
        parts: list[Array] = []
        cause = ""
        for g in active:
            whole = band(M, spectrum, g)
            chosen: Array | None = whole
            if g.taken < g.size and L is not None:
                chosen, cause = directions(M, spectrum, g, L), "split"
            if chosen is None:
                return self._turning(whole, g)
            parts.append(chosen)
        U = self._joined(parts, active, M)
        mode = first_within(self.unseen, W @ U)
        if mode is not None:
            return _unbounded(mode, "")
        on_axis = next((g for g in found if g.side == 0 and g.taken), None)
        base, error = self._steady(U, on_axis is not None)
        partial = self._misses(active, self.equation.dim if L is None else L.shape[1])
        count = self.driven + U.shape[1]
        if on_axis is not None:
            missing = U.shape[1] < spectrum.unstable
            made = self._on_axis(base, error, W @ band(M, spectrum, on_axis), missing=missing)
            rank = count if made.verdict is KalmanVerdict.MARGINAL else None
            return replace(made, partial=partial, rank=rank)
        rate = min(rate_of(found), self.settling)
        share = min((g.share for g in active), default=1.0)
        chained = any(g.taken < g.size and not _scalar(M, spectrum, g) for g in active)
        verdict = KalmanVerdict.MARGINAL if chained else KalmanVerdict.CONVERGES
        delay = -2 * np.log(share) / rate if 0 < rate < np.inf else 0.0
        made = Limit(verdict, base, error, 0.0 if chained else rate, cause=cause, base=base)
        return replace(made, partial=partial, delay=float(delay), rank=count)

    def _misses(self, active: list[Group], rank: int) -> bool:
        """Whether a start of this rank could take part in faster modes than those it does."""
        fastest = self.whole.values.real[: min(rank, self.whole.unstable)]
        growth = sum(g.taken * g.pace for g in active)
        return bool(growth < float(fastest.sum()) - 1e-7 * self.whole.size * len(fastest))

    @cached_property
    def whole(self) -> Spectrum:
        """Spectrum of M in all coordinates."""
        return groups(self.M)

    def _joined(self, parts: list[Array], active: list[Group], M: Array) -> Array:
        """Orthonormal basis of what takes part."""
        k = sum(part.shape[1] for part in parts)
        if active and active[-1].last == k:  # the first k modes, which one Schur form orders
            return invariant_basis(M, self.spectrum, k)[0]
        return np.asarray(np.linalg.qr(np.concatenate([np.zeros((len(M), 0)), *parts], axis=1))[0])

    def _steady(self, U: Array, on_axis: bool) -> tuple[Array, float]:
        """S₋ + U Y⁻¹ Uᵀ, and an estimate of its relative error."""
        if not U.shape[1]:
            return self.base, self.base_error
        whole = self.whole
        if U.shape[1] == whole.unstable and not whole.axis and not on_axis:
            return stabilising_root(self.equation)
        V = self.reached @ U
        e = self.equation
        quiet = Equation(V.T @ self.M @ V, e.C @ V, e.R, V.T @ e.K @ V, np.zeros((V.shape[1],) * 2))
        inner, error = stabilising_root(quiet)
        S = np.asarray(self.base + V @ inner @ V.T)
        return S, max(error, self._error(S))

    def _error(self, S: Array) -> float:
        """Distance to the nearest root, relative to S."""
        if not S.any():
            return 0.0
        error = judge(self.equation.algebraic, S).error_estimate
        return error if np.isfinite(error) else self._distance(S)

    def _distance(self, S: Array) -> float:
        """One step of Newton's method that leaves alone what modes on the axis may change."""
        e = self.equation
        F = e.closed_loop(S)
        values, vectors = np.linalg.eig(F)
        half = e.A @ S
        rest = half + half.T + S @ e.K @ S + e.Q
        inner = np.linalg.solve(vectors, np.linalg.solve(vectors, rest).T).T
        sums = values[:, None] + values
        # A defective eigenvalue on the axis is spread by a root of the rounding.
        free = np.abs(sums) <= 1e-6 * np.max(np.abs(values), initial=1e-300)
        change = vectors @ np.where(free, 0.0, -inner / np.where(free, 1.0, sums)) @ vectors.T
        size = float(np.linalg.norm(S))
        spread = float(np.linalg.norm(rest)) + EPS * float(np.linalg.norm(half))
        worst = spread / float(np.min(np.abs(sums)[~free], initial=np.inf))
        return max(float(np.linalg.norm(change)), worst) / size

    def _turning(self, whole: Array, group: Group) -> Limit:
        """Modes of equal growth of which only some take part, and which turn."""
        mode = first_within(self.unseen, self.reached @ whole)
        if mode is not None:
            return _unbounded(mode, "")
        pair = self.spectrum.values[group.first : group.last]
        period = float(np.pi / abs(pair[0].imag)) if group.size == 2 else np.nan
        return Limit(KalmanVerdict.PERIODIC, period=period, cause="split")

    def _on_axis(self, base: Array, error: float, basis: Array, *, missing: bool) -> Limit:
        """Modes on the imaginary axis, which span `basis` (d, m), take part."""
        unseen = tuple(h for mode in self.unseen if (h := mode.within(basis)) is not None)
        if not unseen:
            return Limit(KalmanVerdict.MARGINAL, base, error, base=base)
        mode = driven_mode(self.reached.T @ self.M @ self.reached, self._inside(unseen))
        if mode is not None:
            whole = next(h for h in unseen if h.value == mode.value)
            return _unbounded(whole, "chained")
        mode = unseen[0]
        turns = abs(mode.value.imag) > 0
        open_end = Limit(
            KalmanVerdict.CONTINUUM,
            mode=mode,
            base=base,
            period=float(np.pi / abs(mode.value.imag)) if turns else np.nan,
            cause="turning" if turns else "",
        )
        if self.factor is None or missing:
            return open_end
        kept = sum(h.space.shape[1] * (2 if abs(h.value.imag) > 0 else 1) for h in unseen)
        W = self.reached
        inner = W.T @ self.equation.closed_loop(base) @ W
        excess = W.T @ (self.factor @ self.factor.T - base) @ W
        K, seen = W.T @ self.equation.K @ W, kept < basis.shape[1]
        D, late, still = settled(inner, K, excess, groups(inner), seen=seen)
        if not still:
            return open_end
        return replace(
            open_end, covariance=base + W @ D @ W.T, error=max(error, late), period=np.nan
        )

    def _inside(self, found: tuple[Hidden, ...]) -> tuple[Hidden, ...]:
        """Hidden modes in the coordinates of what is reached."""
        return tuple(Hidden(h.value, self.reached.T @ h.space, h.defect) for h in found)


def _scalar(M: Array, spectrum: Spectrum, group: Group) -> bool:
    """Whether M is a multiple of the identity on a group, so that directions do not turn."""
    U = band(M, spectrum, group)
    shift = U.T @ M @ U - group.pace * np.eye(group.size)
    return float(np.linalg.norm(shift, 2)) <= 1e-7 * spectrum.size
