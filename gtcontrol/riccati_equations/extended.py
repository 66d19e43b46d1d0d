"""The stabilising solution in extended precision: sign function of the Hamiltonian matrix.

Every step is repeated with twice the bits until two precisions agree, so that conditioning is
measured rather than bounded.  The symplectic pencil M - λ L of a discrete equation is turned into
a Hamiltonian matrix with the same deflating subspaces by (M + L)⁻¹ (M - L).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._check import Array
from ..arithmetic import balls, sign_functions
from ..arithmetic.balls import Balls
from .closed_loop import Complex
from .equation import Balanced, RiccatiEquation
from .pairs import Pair

__all__ = [
    "LARGEST_ORDER",
    "Extended",
    "closed_loop",
    "inverse_norm",
    "on_boundary",
    "pair_of",
    "solved",
]

#: Larger orders are left to double precision.
LARGEST_ORDER = 48

#: Two precisions agree if they differ by less than this, relatively.
AGREEMENT = 2.0**-70

#: Bits of the first attempt, and of the last one for orders up to 16 and above.
FIRST_BITS, MOST_BITS, MOST_BITS_LARGE = 192, 3072, 768

#: Without any solution up to this precision there is none.
HOPELESS_BITS = 256

#: Steps of the sign function for each attempt, and near the boundary of stability: fewer than
#: bits, because rounding doubles in each step while an eigenvalue stays on the boundary.
MOST_STEPS, MOST_STEPS_NEAR = 100, 600

#: Bits, and binary orders of two perturbations of Q, for solutions on the boundary of stability.
NEAR_BITS, NEAR_ORDERS = 1024, (-300, -420)

#: Relative difference up to which they agree.
NEAR = 2.0**-40

#: Largest order for these.
LARGEST_NEAR = 12


@dataclass(frozen=True, eq=False)
class Extended:
    """A solution in extended precision, in balanced coordinates.

    Attributes
    ----------
    X : (n, n) ball matrix
        Without radii.
    bits : int
    left : float
        Estimated relative error, in the original coordinates.
    """

    X: Balls
    bits: int
    left: float


def solved(scaled: Balanced) -> Extended | None:
    """Solve with growing precision; None if no two precisions agree, or the order is too large."""
    if scaled.equation.dim > LARGEST_ORDER:
        return None
    last: Balls | None = None
    for bits in _precisions(scaled.equation.dim):
        with balls.precision(bits):
            X = _solution(scaled.equation, MOST_STEPS)
            if X is None and (last is not None or bits > HOPELESS_BITS):
                return None
            if X is not None and last is not None:
                left = _difference(scaled, X, last)
                if left <= AGREEMENT:
                    return Extended(X, bits, left)
        last = X
    return None


def on_boundary(scaled: Balanced) -> Extended | None:
    """Largest solution where closed-loop modes reach the boundary: the limit of Q + ε I for ε → 0.

    For R > 0 these solutions fall with ε, and they have a limit if and only if there is a solution
    at ε = 0.  None if the order is too large, or two small ε do not agree.
    """
    if scaled.equation.dim > LARGEST_NEAR:
        return None
    size = max(float(np.linalg.norm(scaled.equation.Q)), float(np.linalg.norm(scaled.equation.A)))
    found: list[Balls] = []
    with balls.precision(NEAR_BITS):
        for order in NEAR_ORDERS:
            added = balls.identity(scaled.equation.dim) * balls.ball(size * 2.0**order)
            X = _solution(scaled.equation, MOST_STEPS_NEAR, added)
            if X is None:
                return None
            found.append(X)
        left = _difference(scaled, found[1], found[0])
    # The error is a root of ε, so that the last solution is far nearer than the two are apart.
    return Extended(found[1], NEAR_BITS, left) if left <= NEAR else None


def is_unbounded(scaled: Balanced) -> bool:
    """Whether the stable subspace of the Hamiltonian is no graph, so that X would be infinite.

    To the working precision: the X that belongs to it is then of the size of 1 / rounding.
    """
    if scaled.equation.dim > LARGEST_ORDER:
        return False
    with balls.precision(2 * FIRST_BITS):
        H = _hamiltonian(scaled.equation, None)
        signed = None if H is None else sign_functions.sign(H, MOST_STEPS)
        if signed is None or round(float(signed.trace().mid())) != 0:
            return False
        X = sign_functions.graph(signed)
        return X is None or not sign_functions.size(X) < 2.0**FIRST_BITS


def pair_of(X: Balls) -> Pair:
    """Two floats for each entry."""
    with balls.precision(max(256, balls.working_bits())):
        high = balls.middle(X)
        low = balls.middle(X - balls.balls(high))
    return Pair(high, low)


def closed_loop(equation: RiccatiEquation, X: Balls) -> tuple[Balls, Array, Complex] | None:
    """Closed loop, gain and spectrum at X, computed at the working precision.

    Returns
    -------
    matrix : (n, n) ball matrix
    gain : (m, n) array
    spectrum : (n,) complex array
        None in place of all three if R + B' X B is singular.
    """
    A, B, R, S = (balls.balls(M) for M in (equation.A, equation.B, equation.R, equation.cross))
    cross, weight = B.transpose() * X + S.transpose(), R
    if equation.discrete:
        cross = B.transpose() * X * A + S.transpose()
        weight = R + B.transpose() * X * B
    inverse = sign_functions.approximate_inverse(weight)
    if inverse is None:
        return None
    gain = (inverse * cross).mid()
    F = (A - B * gain).mid()
    values = sign_functions.spectrum(F)
    return None if values is None else (F, balls.middle(gain), values)


def inverse_norm(F: Balls, *, discrete: bool) -> float:
    """Norm of the inverse of D ↦ F' D + D F (F' D F - D) for a stable F; inf if it is not found.

    It is that of the solution Y for the right side -I, which is an off-diagonal block of a sign
    function: that of [[N', C], [0, -N]] is [[-I, 2 Y], [0, I]] if N' Y + Y N + C = 0.
    """
    n = F.nrows()
    eye, N, C = balls.identity(n), F, balls.identity(n)
    if discrete:
        inverse = sign_functions.approximate_inverse(F + eye)
        if inverse is None:
            return float(np.inf)
        N, C = (F - eye) * inverse, inverse.transpose() * inverse * balls.ball(2.0)
    whole = balls.stacked([[N.transpose(), C], [balls.zeros(n, n), -N]])
    signed = sign_functions.sign(whole, MOST_STEPS)
    if signed is None:
        return float(np.inf)
    Y = balls.columns(balls.rows(signed, 0, n), n, 2 * n) * balls.ball(0.5)
    return float(np.linalg.norm(balls.middle(Y), 2))


def _precisions(order: int) -> Iterator[int]:
    bits, most = FIRST_BITS, MOST_BITS if order <= 16 else MOST_BITS_LARGE
    while bits <= most:
        yield bits
        bits *= 2


def _solution(equation: RiccatiEquation, steps: int, more: Balls | None = None) -> Balls | None:
    """Stabilising solution at the working precision; None if there is none to that precision.

    `more` is added to Q.
    """
    H = _hamiltonian(equation, more)
    signed = None if H is None else sign_functions.sign(H, steps)
    if signed is None or round(float(signed.trace().mid())) != 0:
        return None
    X = sign_functions.graph(signed)
    # A subspace that is no graph shows as entries of the size of the inverse of the rounding.
    if X is None or not np.isfinite(sign_functions.size(X)):
        return None
    return ((X + X.transpose()) * balls.ball(0.5)).mid()


def _hamiltonian(equation: RiccatiEquation, more: Balls | None) -> Balls | None:
    n = equation.dim
    A, B, Q = (balls.balls(M) for M in (equation.A, equation.B, equation.Q))
    Q = Q if more is None else Q + more
    inverse = sign_functions.approximate_inverse(balls.balls(equation.R))
    if inverse is None:
        return None
    G = B * inverse * B.transpose()
    if equation.cross.any():
        S = balls.balls(equation.cross)
        moved = inverse * S.transpose()
        A, Q = A - B * moved, Q - S * moved
    if not equation.discrete:
        return balls.stacked([[A, -G], [-Q, -A.transpose()]]).mid()
    eye, zero = balls.identity(n), balls.zeros(n, n)
    M = balls.stacked([[A, zero], [-Q, eye]])
    L = balls.stacked([[eye, G], [zero, A.transpose()]])
    total = sign_functions.approximate_inverse(M + L)
    return None if total is None else (total * (M - L)).mid()


def _difference(scaled: Balanced, X: Balls, other: Balls) -> float:
    """Difference of two solutions relative to the first, in either coordinates."""
    apart = pair_of((X - other).mid()).high
    whole = balls.middle(X)
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = [
            (float(np.linalg.norm(f(apart))), float(np.linalg.norm(f(whole))))
            for f in (np.asarray, scaled.back)
        ]
    if not np.all(np.isfinite(sizes)):
        return np.inf
    return max(a / b if b > 0 else (np.inf if a > 0 else 0.0) for a, b in sizes)
