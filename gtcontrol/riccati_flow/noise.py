"""Blow-up with process noise: S' = A S + S Aᵀ + S K S + Q, Q >= 0.

S = Y X⁻¹ with the linear flow [X; Y]' = [[-Aᵀ, -K], [Q, A]] [X; Y], X(0) = I, Y(0) = S₀, up to the
first time at which X is singular (while S exists, X' = -(Aᵀ + K S)X, so X is invertible).

Lower end.  y = λ_max(S) obeys y' <= q + 2μy + κy² with q, μ, κ >= 0 bounding the eigenvalues of Q,
(A + Aᵀ)/2 and K.  If (q + 2μM + κM²) h <= M - y for some M > y, then S <= M I on the whole step h.

Upper end.  S stays positive semidefinite while it exists.  Hence uᵀ Xᵀ Y u < 0, which is xᵀ S x at
x = X u, is impossible unless S has blown up before.

Never.  If A P + P Aᵀ + P K P + Q <= 0 and S₀ <= P, then S(t) <= P for ever, because the flow keeps
the order of covariances (the difference D = P - S has D' >= M D + D Mᵀ, M = A + (P + S)K/2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import schur

from .._check import Array
from ..arithmetic import balls
from ..arithmetic.balls import Balls
from ..arithmetic.definiteness import definite
from ..arithmetic.norms import eigenvalue_bound
from .evidence import LADDER, Evidence, Reason, after_time
from .status import Crossing, CrossingStatus
from .system import System

__all__ = ["locate_with_noise", "noisy_before", "noisy_for_ever", "noisy_until"]

#: Half the relative width of the enclosure.
WIDTH = 3e-13

#: Steps after which the search gives up.
MOST_STEPS = 3000


@dataclass
class _Hamiltonian:
    """Transitions of the linear flow in balls, and the bounds q, μ, κ."""

    matrix: Balls
    q: float
    mu: float
    kappa: float
    _made: dict[float, Balls] = field(default_factory=dict)

    @classmethod
    def of(cls, system: System, noise: Array) -> _Hamiltonian:
        """Bound Q, (A + Aᵀ)/2 and K with proof."""
        A, K = system.ball_pair()
        Q = balls.balls(noise)
        matrix = balls.stacked([[-A.transpose(), -K], [Q, A]])
        symmetric = (A + A.transpose()) / balls.ball(2)
        bounds = [max(eigenvalue_bound(x), 0.0) for x in (Q, symmetric, K)]
        return cls(matrix, bounds[0], bounds[1], bounds[2])

    def moved(self, pair: Balls, h: float) -> Balls:
        """Return [X; Y] a step later."""
        found = self._made.get(h)
        if found is None:
            found = (self.matrix * balls.ball(h)).exp()
            self._made[h] = found
        return found * pair

    def ceiling(self, y: float) -> float:
        """Return the M > y that allows the longest step."""
        if self.kappa == 0:
            return 2 * y + 1.0
        return y + math.sqrt(y * y + (2 * self.mu * y + self.q) / self.kappa)

    def longest(self, y: float) -> float:
        """Return the longest step that the bound allows, rounded to a power of two."""
        M = self.ceiling(y)
        speed = self.q + self.mu * 2 * M + self.kappa * M * M
        h = 0.999 * (M - y) / speed if speed > 0 else 1.0
        return math.ldexp(1.0, math.frexp(h)[1] - 1) if 0 < h < math.inf else 0.0

    def allows(self, y: float, h: float) -> bool:
        """Whether a bounded step h from λ_max(S) <= y is proved."""
        M = balls.ball(self.ceiling(y))
        speed = balls.ball(self.q) + M * balls.ball(2 * self.mu) + M * M * balls.ball(self.kappa)
        return bool(speed * balls.ball(h) <= M - balls.ball(y)) and bool(balls.ball(y) < M)


@dataclass(frozen=True)
class _Moment:
    """Time (a ball), the pair [X; Y], and S = Y X⁻¹ made symmetric."""

    time: balls.Ball
    pair: Balls
    S: Balls

    @property
    def height(self) -> float:
        """Upper bound on λ_max(S)."""
        return max(eigenvalue_bound(self.S), 0.0)


def _moment(time: balls.Ball, pair: Balls) -> _Moment | None:
    d = pair.ncols()
    X, Y = balls.rows(pair, 0, d), balls.rows(pair, d, 2 * d)
    try:
        S = Y * X.inv()
    except ZeroDivisionError:  # X is not proved to be invertible
        return None
    return _Moment(time, pair, (S + S.transpose()) / balls.ball(2))


def _start(factor: Array) -> _Moment:
    L = balls.balls(factor)
    d = factor.shape[0]
    S = L * L.transpose() if factor.shape[1] else balls.zeros(d, d)
    return _Moment(balls.ball(0.0), balls.stacked([[balls.identity(d)], [S]]), S)


def _followed(flow: _Hamiltonian, factor: Array, steps: list[float]) -> _Moment | None:
    """Follow steps; None if it is not proved that S stays bounded on them."""
    moment = _start(factor)
    for h in steps:
        if not flow.allows(moment.height, h):
            return None
        ahead = _moment(moment.time + balls.ball(h), flow.moved(moment.pair, h))
        if ahead is None:
            return None
        moment = ahead
    return moment


def _passed(moment: _Moment, flow: _Hamiltonian, direction: Array, upper: float) -> bool:
    """Whether uᵀ Xᵀ Y u < 0 is proved at a time not after `upper`."""
    last = after_time(moment.time, upper)
    if last <= 0:
        return False
    pair = flow.moved(moment.pair, last)
    d = pair.ncols()
    u = balls.balls(direction)
    x, y = balls.rows(pair, 0, d) * u, balls.rows(pair, d, 2 * d) * u
    return bool((x.transpose() * y)[0, 0] < 0)


def noisy_before(
    system: System, noise: Array, factor: Array, evidence: Evidence, time: float
) -> bool:
    """Whether it is proved that there is no blow-up on [0, time]."""
    for bits in LADDER:
        with balls.precision(bits):
            moment = _followed(_Hamiltonian.of(system, noise), factor, evidence.steps.tolist())
            if moment is not None and bool(moment.time >= balls.ball(time)):
                return True
    return False


def noisy_until(
    system: System, noise: Array, factor: Array, evidence: Evidence, lower: float, upper: float
) -> bool:
    """Whether it is proved that the blow-up is after `lower` and not after `upper`."""
    if evidence.direction is None:
        return False
    for bits in LADDER:
        with balls.precision(bits):
            flow = _Hamiltonian.of(system, noise)
            moment = _followed(flow, factor, evidence.steps.tolist())
            if moment is not None and bool(moment.time >= balls.ball(lower)):
                return _passed(moment, flow, evidence.direction, upper)
    return False


def noisy_for_ever(system: System, noise: Array, factor: Array, evidence: Evidence) -> bool:
    """Whether it is proved that there is no blow-up at any time."""
    if evidence.reason is Reason.NEGATIVE:
        return system.semidefinite(-1)
    P = evidence.bound
    if evidence.reason is not Reason.BOUNDED or P is None or not np.array_equal(P, P.T):
        return False
    with balls.precision(LADDER[0]):
        A, K = system.ball_pair()
        exact, L = balls.balls(P), balls.balls(factor)
        S = L * L.transpose() if factor.shape[1] else balls.zeros(*P.shape)
        left = A * exact
        rate = left + left.transpose() + exact * K * exact + balls.balls(noise)
        return definite(-rate) and definite(exact - S)


def locate_with_noise(system: System, factor: Array, noise: Array) -> Crossing:
    """Enclose the blow-up time of S' = A S + S Aᵀ + S K S + Q.

    Parameters
    ----------
    system : System
    factor : (d, r) array
    noise : (d, d) array
        Intensity Q, symmetric positive semidefinite.
    """
    none = np.zeros(0), np.zeros(len(system.A))
    candidates = [Evidence(*none, reason=Reason.NEGATIVE)]
    candidates += [
        Evidence(*none, bound=P, reason=Reason.BOUNDED) for P in _ceilings(system, noise, factor)
    ]
    for evidence in candidates:
        if noisy_for_ever(system, noise, factor, evidence):
            return Crossing(CrossingStatus.NEVER, math.inf, math.inf, math.inf, True, evidence)
    with balls.precision(LADDER[0]):
        made = _search(system, factor, noise)
    for bits in LADDER[1:3]:
        if made.status is CrossingStatus.BLOWS_UP or made.evidence is None:
            break
        if len(made.evidence.steps) == MOST_STEPS:  # more bits make no longer steps
            break
        with balls.precision(bits):
            made = _search(system, factor, noise)
    return made


def _search(system: System, factor: Array, noise: Array) -> Crossing:
    flow = _Hamiltonian.of(system, noise)
    moment, steps = _start(factor), list[float]()
    exponents = np.zeros(len(system.A))
    for _ in range(MOST_STEPS):
        y = moment.height
        left, u = _distance(flow, system, moment)
        now = float(moment.time)
        if left < WIDTH * (now + left):
            upper = (now + left) * (1 + WIDTH)
            evidence = Evidence(np.array(steps), exponents, u)
            if _passed(moment, flow, u, upper):
                status, lower = CrossingStatus.BLOWS_UP, balls.below(moment.time)
                return Crossing(status, lower, upper, now + left, True, evidence)
            break
        h = flow.longest(y)
        if not flow.allows(y, h) or now + h == now:
            break
        ahead = _moment(moment.time + balls.ball(h), flow.moved(moment.pair, h))
        if ahead is None:
            break
        moment = ahead
        steps.append(h)
    evidence = Evidence(np.array(steps), exponents)
    lower = balls.below(moment.time)
    return Crossing(CrossingStatus.NOT_BEFORE, lower, math.inf, math.nan, True, evidence)


def _distance(flow: _Hamiltonian, system: System, moment: _Moment) -> tuple[float, Array]:
    """Estimate the distance to the blow-up, and u with X u = 0 there; inf if it is far.

    1/λ_max(S) falls with the slope xᵀ K x where it is near zero.
    """
    values, vectors = np.linalg.eigh(balls.middle(moment.S))
    x = vectors[:, -1]
    slope = float(x @ system.K @ x)
    top = float(values[-1])
    size = max(flow.mu, math.sqrt(flow.q * flow.kappa), 1e-300)
    if not (top > 0 and slope > 0) or top * slope < 1e3 * size:
        return math.inf, x
    left = 1 / (top * slope)
    d = len(x)
    for _ in range(6):
        ahead = flow.matrix * balls.ball(left)
        pair = ahead.exp() * moment.pair
        X, Y = (balls.middle(balls.rows(pair, i * d, (i + 1) * d)) for i in (0, 1))
        sizes, right = np.linalg.svd(X)[1:]
        u = right[-1]
        y = Y @ u
        # x = X u vanishes; xᵀ y changes at the rate -yᵀ K y.
        change = float((X @ u) @ y) / float(y @ system.K @ y)
        if not left + change > 0:
            return math.inf, x
        left += change
        if abs(change) < 0.02 * WIDTH * (float(moment.time) + left):
            break
        if sizes[-1] == 0:
            break
    return left, u


def _ceilings(system: System, noise: Array, factor: Array) -> list[Array]:
    """Candidates P between the two solutions of A P + P Aᵀ + P K P + Q = 0 that order the flow."""
    A, K = system.A, system.K
    d = len(A)
    size = float(np.linalg.norm(A, 2))
    if size == 0 or np.max(np.linalg.eigvals(A).real) >= 0:
        return []
    Q = noise + 1e-9 * max(float(np.linalg.norm(noise, 2)), 1e-12) * np.eye(d)
    H = np.block([[-A.T, -K], [Q, A]])
    ends = []
    for side in ("lhp", "rhp"):
        Z, count = schur(H, output="real", sort=side)[1:]
        if int(count) != d or np.linalg.cond(Z[:d, :d]) > 1e12:
            return []
        P = np.linalg.solve(Z[:d, :d].T, Z[d:, :d].T)
        ends.append(0.5 * (P + P.T))
    first, second = sorted(ends, key=lambda P: float(np.trace(P)))
    made = [first + share * (second - first) for share in (0.5, 0.9, 0.99, 0.999, 0.1)]
    return [P for P in made if np.linalg.eigvalsh(P - factor @ factor.T)[0] > 0]
