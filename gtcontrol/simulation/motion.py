"""The state of the flow as one vector: its rates of change, sizes and tolerances."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from .._check import Array
from ..errors import IncompatibleSchedule
from ..field import generator, rates
from ..moments.linearisation import absorbed
from ..parameters import Parameters, check_finite
from ..problem.definitions import SimulationProblem
from ..results.trajectory import factor_of, split
from ..schedule import Piece
from . import finite
from .limits import vanishes

__all__ = ["Motion"]

#: Accepted absolute error, as a fraction of the relative tolerance times the size at the start,
ABSOLUTE = 1e-3

#: ... but never below the rounding errors of the present size.
ROUNDING = 1e-16

#: First step, as a fraction of the time in which the state changes by its own size.
CAUTION = 0.01

#: Fraction of the horizon that sets the scale of a state that starts at zero.
FROM_ZERO = 1e-6

#: Rates of change beyond this number, or below its inverse, have a unit of time of their own.
FAST = 1e50

#: ``rate(parameters, mean, matrix)`` returns the derivatives of mean and matrix.
Rate = Callable[[Parameters, Array, Array], tuple[Array, Array]]


class Motion:
    """State (mean, factor), or (mean, covariance) with process noise, as one vector.

    Parameters
    ----------
    problem : SimulationProblem
        With a schedule that acts in a subspace, the state is expressed in its basis (k
        coordinates); noise is not confined to it, and is integrated in all d coordinates.
    """

    def __init__(self, problem: SimulationProblem) -> None:
        start, schedule = problem.start, problem.schedule
        self.horizon, self.rtol = problem.horizon, problem.rtol
        self.covariance_form = schedule.noisy
        self.tokens = problem.tokens
        self.rate = self._rate()
        mean, matrix = start.mean, start.covariance if self.covariance_form else start.factor
        self.feedforward, self.linearisation = problem.feedforward, problem.linearisation
        # A feed-forward layer acts outside the subspace of the schedule, too.
        inner = not self.covariance_form and self.feedforward is None
        self.basis = schedule.basis if inner else None
        self.rest: Array | None = None
        if self.basis is not None:
            whole = np.concatenate([mean[:, None], matrix], axis=1)
            self.rest = whole - self.basis @ (self.basis.T @ whole)
            mean, matrix = self.basis.T @ mean, self.basis.T @ matrix
        self.rest_sizes = 0.0 if self.rest is None else np.abs(self.rest[:, 1:]).max(axis=0)
        self.dim, self.columns = matrix.shape
        self.start = np.concatenate([mean, matrix.ravel()])
        self.start_scales = self.scales(self.start)

    def _rate(self) -> Rate:
        if self.tokens is None:
            return covariance_rate if self.covariance_form else factor_rate
        closed = finite.covariance_rate if self.covariance_form else finite.factor_rate
        return partial(closed, self.tokens)

    def parts(self, y: Array) -> tuple[Array, Array]:
        """Mean and matrix of a state."""
        return split(y, self.columns)

    def derivative(self, piece: Piece, t: float, y: Array) -> Array:
        """Rate of change of the state under one piece of the schedule."""
        p = piece.law(t)
        if p.noise is not None and not self.covariance_form:
            raise IncompatibleSchedule(
                f"process noise sets in at t = {t:.6g}, inside a piece of the schedule; give it "
                "from the start of a piece on (zero noise is fine)."
            )
        mean, matrix = self.parts(y)
        if self.feedforward is not None:
            root = factor_of(matrix) if self.covariance_form else matrix
            p = absorbed(p, self.feedforward, mean, root, self.linearisation)
        mean_rate, matrix_rate = self.rate(p, mean, matrix)
        made = np.concatenate([mean_rate, matrix_rate.ravel()])
        if not np.all(np.isfinite(made)):
            check_finite(p, t)
        return made

    def size(self, y: Array) -> float:
        """Trace of the covariance in a state."""
        _, matrix = self.parts(y)
        return float(np.trace(matrix)) if self.covariance_form else float(np.sum(matrix**2))

    def vanishes(self, y: Array) -> bool:
        """Whether a column of the factor has become too small for its eigenvalue."""
        if self.covariance_form:
            return False
        _, factor = self.parts(y)
        return vanishes(np.maximum(np.abs(factor).max(axis=0), self.rest_sizes))

    def time_left(self, piece: Piece, t: float, y: Array) -> float:
        """Time to blow-up if the attention term alone acted along the present direction.

        Finitely many tokens grow exponentially at most, as attention stays among them.
        """
        if self.tokens is not None:
            return math.inf
        p = piece.law(min(t, piece.end))
        _, matrix = self.parts(y)
        zero = np.zeros(self.dim)
        bare = Parameters.trusted(np.zeros_like(p.A), p.B, p.V, zero)
        _, rate = self.rate(bare, zero, matrix)
        size = float(np.max(np.abs(matrix), initial=0.0))
        if size == 0:
            return math.inf
        # A ratio of equal powers: of order one, so that the powers do not overflow.
        matrix, rate = matrix / size, rate / size
        if self.covariance_form:
            growth, norm = float(np.sum(matrix * rate)), float(np.sum(matrix**2))
        else:
            S_L = matrix @ (matrix.T @ matrix)
            growth, norm = 2.0 * float(np.sum(S_L * rate)), float(np.sum(S_L * matrix))
        return norm / growth if growth > 0 else math.inf

    def scales(self, y: Array) -> tuple[float, float]:
        """Sizes of mean and matrix; a mean counts as at least one standard deviation."""
        offset, spread = self._sizes(y)
        return max(offset, math.sqrt(spread) if self.covariance_form else spread), spread

    def tolerances(self, y: Array, slope: Array) -> Array:
        """Accepted absolute error of each entry.

        It is relative to the smaller of start and present, so that a law that shrinks keeps
        its relative accuracy; but entries that are zero up to the rounding errors of the
        present must not dictate the step.
        """
        made = []
        for now, start, rate in zip(
            self.scales(y), self.start_scales, self._sizes(slope), strict=True
        ):
            present = now if now > 0 else FROM_ZERO * self.horizon * rate
            smaller = min(present, start) if start > 0 else present
            made.append(max(ABSOLUTE * self.rtol * smaller, ROUNDING * present, 1e-300))
        return np.repeat(made, [self.dim, self.dim * self.columns])

    def first_step(self, t: float, y: Array, slope: Array, span: float) -> float:
        """A cautious first step; SciPy's own choice divides by what may overflow."""
        step = span
        for now, rate in zip(self.scales(y), self._sizes(slope), strict=True):
            if rate > 0:
                step = min(step, CAUTION * now / rate if now > 0 else FROM_ZERO * span)
        return min(max(step, 32 * math.ulp(t)), span)

    def unit(self, y: Array, slope: Array) -> float:
        """Unit of time, a power of two, in which squares of rates stay in range."""
        pairs = zip(self.scales(y), self._sizes(slope), strict=True)
        fastest = max((rate / now for now, rate in pairs if now > 0), default=0.0)
        if fastest == 0 or 1 / FAST <= fastest <= FAST:
            return 1.0
        return math.ldexp(1.0, -math.frexp(fastest)[1])

    def _sizes(self, y: Array) -> tuple[float, float]:
        mean, matrix = self.parts(y)
        return float(np.max(np.abs(mean))), float(np.max(np.abs(matrix), initial=0.0))


def factor_rate(p: Parameters, mean: Array, factor: Array) -> tuple[Array, Array]:
    """Derivatives of the mean (d,) and of the factor (d, r)."""
    made: tuple[Array, Array] = rates(mean, factor, p.A, p.heads, p.b)
    return made


def covariance_rate(p: Parameters, mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Derivatives of the mean (d,) and of the covariance (d, d), process noise included."""
    symmetric = 0.5 * (covariance + covariance.T)
    M = generator(symmetric, p.A, p.heads)
    mean_rate = M @ mean + p.b
    for V, _, beta in p.heads:
        mean_rate = mean_rate + V @ (mean if beta is None else mean + symmetric @ beta)
    rate = M @ symmetric
    rate = rate + rate.T
    return mean_rate, rate if p.noise is None else rate + p.noise
