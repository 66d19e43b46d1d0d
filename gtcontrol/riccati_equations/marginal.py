"""Modes on the boundary of stability that the inputs do not reach or the weights do not see.

Unseen: let N span the modes of A (with the cross term eliminated) on the boundary that Q does not
see.  Then X vanishes on N, and on a complement it solves the equation of the quotient, in which
the modes of N are gone; they stay in the closed loop.  If R > 0 this X is the largest of all
solutions (Lancaster and Rodman, "Algebraic Riccati Equations", theorem 7.9.3).

Unreached: let W span the left modes on the boundary that B does not reach.  In coordinates with
W last, X₁₁ solves the equation of the rest, X₁₂ a Sylvester equation, and X₂₂ a linear equation on
the boundary, which has no solution or a continuum of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .._check import Array
from ..status import RiccatiStatus
from . import extended, signs
from .boundary import Split, on_boundary
from .closed_loop import ordered
from .equation import Balanced, RiccatiEquation
from .modes import Mode, peeled, worded
from .outcome import Outcome, without_solution
from .pairs import Pair
from .refinement import EPS
from .residual import Data, Remainder

__all__ = ["unreached", "unseen"]

#: Solves an equation; the matrix takes directions to the coordinates of the user.
Solver = Callable[[RiccatiEquation, Array], Outcome]

#: A composed X with a larger relative residual is no solution.
SOLVED = 1e-9

#: Corrections of a composed solution.
STEPS = 3


def unseen(scaled: Balanced, lift: Array, solve: Solver) -> Outcome | None:
    """Solve where weights do not see modes on the boundary; None if they see all of them."""
    equation = scaled.equation
    A, Q = equation.without_cross
    N, modes = peeled(A.T, Q, (0,), discrete=equation.discrete)
    k = N.shape[1]
    if not k:
        return None
    line = _line(equation)
    named = "; ".join(worded(mode, lift * scaled.scale) for mode in modes)
    what = (
        f"the weights do not see the {_mode(modes)} on the {line}, {named}: there X vanishes, "
        "and the closed loop keeps the mode"
    )
    if k == equation.dim:
        X = Pair.of(np.zeros_like(A))
        return _composed(scaled, X, None, what + _limit(equation))
    basis = np.linalg.qr(N, mode="complete")[0]
    Z2 = basis[:, k:]
    sub = solve(_restricted(equation, Z2), lift * scaled.scale @ Z2)
    if sub.X is None:
        return replace(sub, spectrum=np.linalg.eigvals(equation.A).astype(np.complex128))
    split = Split(basis, k, solve_first=False, solve_last=True, discrete=equation.discrete)
    known = split if sub.status is RiccatiStatus.SUCCESS else None
    X = Pair.of(Z2 @ sub.X @ Z2.T)
    made = _composed(scaled, X, known, what + _limit(equation))
    size = float(np.linalg.norm(sub.X))
    if made is None or size == 0.0:
        return made
    # Eigenvalues are those of the quotient, except that coordinates may be scaled.
    lifted = None if sub.signs is None else sub.signs.lifted(Z2 / scaled.scale[:, None])
    plain = bool(np.all(scaled.scale == 1.0))
    if lifted is not None and made.signs is not None and not plain:
        lifted = replace(lifted, lowest=made.signs.lowest, highest=made.signs.highest)
    return replace(made, error=made.error + _off(equation, modes) / size, signs=lifted)


def unreached(scaled: Balanced, lift: Array, solve: Solver) -> Outcome | None:
    """Solve where inputs do not reach modes on the boundary; None if they reach all of them."""
    equation = scaled.equation
    W, modes = peeled(equation.A, equation.B, (0,), discrete=equation.discrete)
    k = W.shape[1]
    if not k:
        return None
    n, line = equation.dim, _line(equation)
    named = "; ".join(worded(mode, lift / scaled.scale) for mode in modes)
    what = f"the inputs do not reach the {_mode(modes)} on the {line}, {named}"
    basis = np.roll(np.linalg.qr(W, mode="complete")[0], -k, axis=1)
    Z1, Z2 = basis[:, : n - k], basis[:, n - k :]
    X = Pair.of(np.zeros((n, n)))
    regular, also = True, ""
    if k < n:
        sub = solve(_restricted(equation, Z1), lift * scaled.scale @ Z1)
        if sub.X is None:
            return replace(sub, spectrum=np.linalg.eigvals(equation.A).astype(np.complex128))
        X = Pair.of(Z1 @ sub.X @ Z1.T)
        regular = sub.status is RiccatiStatus.SUCCESS
        also = "" if regular else f". Besides, {_clause(sub.reason)}"
    split = Split(basis, n - k, solve_first=regular, solve_last=False, discrete=equation.discrete)
    X, rest = _corrected(equation, X, split)
    if rest is None:
        return None
    inner, size = Z2.T @ equation.A @ Z2, float(np.linalg.norm(equation.A))
    least = _least(X.high, Z1, Z2)
    right = Z2.T @ rest.value @ Z2
    moved = (
        inner.T @ least @ inner - least if equation.discrete else inner.T @ least + least @ inner
    )
    free = on_boundary(inner, right + moved, size, rest.size, discrete=equation.discrete)
    status = RiccatiStatus.NO_STABILIZING_SOLUTION
    values = np.linalg.eigvals(equation.A).astype(np.complex128)
    if free is None:
        reason = f"{what}, but the weights see it: its cost grows without bound"
        return without_solution(status, _sentence(reason), values)
    X = X.moved(Z2 @ (least + free.X) @ Z2.T)
    reason = (
        f"{what}, so that X is one of a continuum: X + W C W' solves as well, for W spanning the "
        f"{_mode(modes)} and C in a space of dimension {free.freedom} (any C that its motion "
        "leaves alone); the start decides which one a flow approaches"
    ) + also
    made = _composed(scaled, X, split, reason)
    if made is None or made.residual > SOLVED:
        reason = f"{what}, and no X balances what the weights make of it{also}"
        return without_solution(status, _sentence(reason), values)
    return replace(made, kernel=W / scaled.scale[:, None])


def _least(X: Array, Z1: Array, Z2: Array) -> Array:
    """X₁₂' X₁₁⁺ X₁₂, with which X has no more rank than X₁₁, in any coordinates."""
    if not Z1.shape[1]:
        return np.zeros((Z2.shape[1], Z2.shape[1]))
    first, mixed = Z1.T @ X @ Z1, Z1.T @ X @ Z2
    made = mixed.T @ np.linalg.pinv(first, rcond=1e-12, hermitian=True) @ mixed
    return np.asarray(0.5 * (made + made.T))


def double(scaled: Balanced, found: str) -> Outcome | None:
    """Largest solution where eigenvalues of the Hamiltonian meet in pairs on the boundary.

    None unless R is positive definite and such a solution exists (each eigenvalue on the boundary
    then has even multiplicity).

    Parameters
    ----------
    scaled : Balanced
    found : str
        What is known of these eigenvalues, in words.
    """
    if not np.linalg.eigvalsh(scaled.equation.R)[0] > 0:
        return None
    wide = extended.on_boundary(scaled)
    if wide is None:
        return None
    X = extended.pair_of(wide.X)
    rest = Data(scaled.equation).remainder(X)
    if rest is None or rest.relative > SOLVED:
        return None
    reason = (
        f"{found.removesuffix('.')}; they meet in pairs, so that there still is a largest "
        "solution, whose closed loop keeps one of each pair"
    )
    made = _composed(scaled, X, None, reason)
    if made is None or made.X is None:
        return None
    low = scaled.back(X.low)
    size = float(np.linalg.norm(made.X))
    error = float(np.linalg.norm(low)) / size + wide.left if size > 0 else 0.0
    return replace(made, error=error, precision=wide.bits)


def _restricted(equation: RiccatiEquation, Z: Array) -> RiccatiEquation:
    """Equation of a quotient or of a subspace with orthonormal basis Z."""
    Q = Z.T @ equation.Q @ Z
    return RiccatiEquation.trusted(
        Z.T @ equation.A @ Z,
        Z.T @ equation.B,
        0.5 * (Q + Q.T),
        equation.R,
        Z.T @ equation.cross,
        discrete=equation.discrete,
    )


def _corrected(equation: RiccatiEquation, X: Pair, split: Split) -> tuple[Pair, Remainder | None]:
    """Newton steps but for the block on the boundary, and what is left."""
    data = Data(equation)
    rest = data.remainder(X)
    for _ in range(STEPS):
        if rest is None:
            return X, None
        change = split.correction(equation.A - equation.B @ rest.gain, rest.value)
        if change is None:
            return X, rest
        X = X.moved(change)
        rest = data.remainder(X)
    return X, rest


def _composed(scaled: Balanced, X: Pair, split: Split | None, reason: str) -> Outcome | None:
    """Outcome of a solution with boundary modes in the closed loop."""
    equation = scaled.equation
    rest = Data(equation).remainder(X)
    if split is not None:
        X, rest = _corrected(equation, X, split)
    if rest is None:
        return None
    F = equation.A - equation.B @ rest.gain
    back = scaled.back
    norm = float(np.linalg.norm(back(X.high)))
    last = None if split is None else split.correction(F, rest.value)
    left = 1e2 * EPS * equation.dim * norm
    if last is not None:
        left = float(np.linalg.norm(back(last)))
    error = (float(np.linalg.norm(back(X.low))) + left) / norm if norm > 0 else left
    final = Data(equation).remainder(Pair.of(X.high))
    values = np.linalg.eigvals(F).astype(np.complex128)
    return Outcome(
        RiccatiStatus.MARGINAL,
        _sentence(reason),
        back(X.high) + 0.0,
        signs.to_rounding(back(X.high)),
        rest.relative if final is None else final.relative,
        error,
        ordered(values, discrete=equation.discrete),
        rest.gain / scaled.scale,
        53,
        np.inf,
        np.zeros((equation.dim, 0)),
    )


def _off(equation: RiccatiEquation, modes: list[Mode]) -> float:
    """Size of X on modes that are on the boundary only to within rounding.

    On a mode v with growth γ the equation is 2 γ x = g x², with g = v* G v.
    """
    G, total = equation.quadratic, 0.0
    for mode in modes:
        v = mode.direction
        g = abs(float(np.vdot(v, G @ v).real))
        growth = abs(mode.value) ** 2 - 1.0 if equation.discrete else 2.0 * mode.value.real
        total += max(growth, 0.0) / g if g > 0 else 0.0
    return total


def _limit(equation: RiccatiEquation) -> str:
    weights = np.linalg.eigvalsh(equation.R)[0] > 0
    _, Q = equation.without_cross
    lowest = np.linalg.eigvalsh(Q)[0] >= -1e2 * EPS * float(np.linalg.norm(Q))
    if weights and lowest:
        return (
            "; X is the largest solution, and the limit of the Riccati flow from definite starts, "
            "approached like a power of time instead of exponentially"
        )
    return "; X is the largest solution" if weights else ""


def _line(equation: RiccatiEquation) -> str:
    return "unit circle" if equation.discrete else "imaginary axis"


def _mode(modes: list[Mode]) -> str:
    single = len(modes) == 1 and modes[0].value.imag == 0
    return "mode" if single else "modes"


def _clause(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:].removesuffix(".")


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:] + "."
