"""The stabilising solution: floats first, structure where they fail, extended precision at last."""

from __future__ import annotations

import numpy as np

from .._check import Array
from ..arithmetic import balls
from ..arithmetic.dyadic import dyadic, positive_semidefinite
from ..status import Definiteness, RiccatiStatus
from . import extended, marginal, signs
from .closed_loop import Complex, ordered
from .equation import Balanced, RiccatiEquation, balanced
from .hamiltonian import on_boundary
from .modes import peeled, unreached, worded
from .outcome import Outcome, without_solution
from .pairs import Pair
from .refinement import EPS, Refined, refined
from .residual import Data
from .signs import Signs
from .starts import first

__all__ = ["solve"]

#: Estimated relative error above which the work is repeated in extended precision.
ENOUGH = 2.0**-56

#: Share of the distance to instability that the rounding of the closed loop may take.
CLEAR = 0.1

#: Ratio of extreme eigenvalues below which the smaller one is computed in extended precision, and
#: the largest order for that.
SPREAD, MOST_EXACT = 1e-6, 32

#: Largest order for which extended precision is tried against hope.
SMALL = 12

#: Largest estimated error with which floats still count as an answer, where nothing else does.
USABLE = 1e-6

_NO_GRAPH = (
    "As many eigenvalues as there are states are stable, but their invariant subspace is not the "
    "graph of a matrix: X would be infinite in some direction (the weights are indefinite)."
)


def solve(equation: RiccatiEquation, lift: Array | None = None) -> Outcome:
    """Find the stabilising solution, or say which mode prevents it.

    Parameters
    ----------
    equation : RiccatiEquation
    lift : (d, n) array, optional
        Takes the directions that are named to the coordinates of the user.
    """
    scaled = balanced(equation)
    start = first(scaled.equation)
    made = None if start is None else refined(scaled, start)
    clear = made is not None and _clearly_stable(made)
    if made is not None and not clear and equation.dim > extended.LARGEST_ORDER:
        clear = _stable_by_weights(scaled, made)
    if made is not None and clear and made.left <= ENOUGH:
        decided = _signs(scaled, made)
        if decided is not None:
            return _from_floats(scaled, made, decided)
    if made is None or made.left > ENOUGH:
        lift = np.eye(equation.dim) if lift is None else lift
        for look in (_unstabilisable, marginal.unreached, marginal.unseen):
            broken = look(scaled, lift, solve)
            if broken is not None:
                return broken
    # With eigenvalues of the Hamiltonian on the boundary it is in vain, and long if it is large.
    hopeless = equation.dim > SMALL and made is None and on_boundary(scaled.equation)
    wide = None if hopeless else extended.solved(scaled)
    outcome = None if wide is None else _from_extended(scaled, wide)
    if outcome is not None:
        return outcome
    return _unconfirmed(scaled, made, clear=clear)


def _clearly_stable(made: Refined) -> bool:
    loop = made.loop
    lever = float(np.linalg.norm(loop.matrix))
    lever = 1.0 + lever**2 if loop.discrete else lever
    return loop.inverse_norm * 4 * EPS * lever <= CLEAR


def _stable_by_weights(scaled: Balanced, made: Refined) -> bool:
    """Whether X itself proves the closed loop F stable, however large F is.

    With the cross term eliminated from A and Q, the equation reads F' X + X F = -(Q + G' R G), or
    F' X F - X = -(Q + G' R G).  If X > 0, Q >= 0 and R > 0, an eigenvector v of F on the boundary
    of stability or beyond has Q v = 0 and G v = 0, so that it is one of A, on the boundary, and
    unseen by the weights.
    """
    equation = scaled.equation
    A, Q = equation.without_cross
    if not (np.isfinite(made.loop.inverse_norm) and np.linalg.eigvalsh(equation.R)[0] > 0):
        return False
    if signs.to_rounding(made.X.high).definite is not Definiteness.POSITIVE_DEFINITE:
        return False
    lowest, zero = float(np.linalg.eigvalsh(Q)[0]), equation.dim * EPS * float(np.linalg.norm(Q))
    if equation.cross.any():
        # Q with the cross term eliminated is rounded, and its sign has to be beyond that.
        return lowest > 100 * zero
    if lowest > zero:
        return True
    if not positive_semidefinite(dyadic(equation.Q)):
        return False
    return not peeled(A.T, Q, (0,), discrete=equation.discrete)[0].shape[1]


def _signs(scaled: Balanced, made: Refined) -> Signs | None:
    """Signs of X; None if floats do not decide and extended precision may."""
    X, n = scaled.back(made.X.high), scaled.equation.dim
    decided = signs.of_floats(X, 0)
    if decided is not None:
        small = min(abs(decided.lowest), abs(decided.highest))
        if small < SPREAD * max(abs(decided.lowest), abs(decided.highest)) and n <= MOST_EXACT:
            # The pair knows more digits of the small eigenvalue than the floats do.
            with balls.precision(192):
                low = balls.balls(scaled.back(made.X.low))
                sharper = signs.of_balls(balls.balls(X) + low, max(64 * made.left, 2.0**-90))
            return sharper or decided
        return decided
    decided = signs.of_floats(X, _nullity(scaled.equation))
    if decided is None and n > extended.LARGEST_ORDER:
        return signs.to_rounding(X)
    return decided


def _nullity(equation: RiccatiEquation) -> int:
    """Dimension of the stable modes that the weights do not see: there X vanishes."""
    A, Q = equation.without_cross
    return int(peeled(A.T, Q, (-1,), discrete=equation.discrete)[0].shape[1])


def _from_floats(scaled: Balanced, made: Refined, decided: Signs) -> Outcome:
    X, low = scaled.back(made.X.high), made.X.low
    size = float(np.linalg.norm(X))
    rounding = float(np.linalg.norm(scaled.back(low)))
    loop, F = made.loop, made.loop.matrix
    moved = F.T @ low @ F - low if loop.discrete else F.T @ low + low @ F
    return Outcome(
        RiccatiStatus.SUCCESS,
        _speed(loop.spectrum, discrete=loop.discrete),
        X + 0.0,
        decided,
        float(np.linalg.norm(moved)) / made.size if made.size > 0 else 0.0,
        rounding / size + made.left if size > 0 else 0.0,
        loop.spectrum,
        made.gain / scaled.scale,
        53,
        made.condition,
        np.zeros((len(X), 0)),
    )


def _from_extended(scaled: Balanced, wide: extended.Extended) -> Outcome | None:
    """Outcome of a solution in extended precision; None if its closed loop is not stable."""
    equation, nullity = scaled.equation, _nullity(scaled.equation)
    with balls.precision(wide.bits):
        found = extended.closed_loop(equation, wide.X)
        if found is None:
            return None
        F, gain, values = found
        values = ordered(values, discrete=equation.discrete)
        key = 1.0 - np.abs(values) if equation.discrete else -values.real
        if not np.min(key) > 0:
            return None
        undone = balls.diagonal(1.0 / scaled.scale)
        X = undone * wide.X * undone
        pair = extended.pair_of(X)
        decided = signs.of_floats(pair.high, nullity) if nullity else None
        if decided is None:
            # The last doubling of the precision has removed all but a root of the rounding.
            zero = max(wide.left * 2.0 ** (-0.4 * wide.bits), 2.0**-400)
            decided = signs.of_balls(X, zero)
        if decided is None:
            return None
        inverse = extended.inverse_norm(F, discrete=equation.discrete)
    inner = pair.high * scaled.scale[:, None] * scaled.scale
    # What is left of entries that vanish is far below any error that is claimed.
    inner[np.abs(inner) <= wide.left**2 * float(np.max(np.abs(inner)))] = 0.0
    made = scaled.back(inner)
    rest = Data(equation).remainder(Pair.of(inner))
    size, norm = float(np.linalg.norm(pair.high)), float(np.linalg.norm(inner))
    terms = np.inf if rest is None else rest.size
    return Outcome(
        RiccatiStatus.SUCCESS,
        _speed(values, discrete=equation.discrete),
        made + 0.0,
        decided,
        np.inf if rest is None else rest.relative,
        float(np.linalg.norm(pair.low)) / size + wide.left if size > 0 else 0.0,
        values,
        gain / scaled.scale,
        wide.bits,
        inverse * terms / norm if norm > 0 else inverse * terms,
        np.zeros((equation.dim, 0)),
    )


def _speed(spectrum: Complex, *, discrete: bool) -> str:
    """How fast the slowest mode of a stable closed loop decays, in words."""
    slowest = complex(spectrum[0])
    if discrete:
        if abs(slowest) > 1.0 - 1e-5:
            return (
                "Every closed-loop eigenvalue is inside the unit circle, the largest within "
                f"{1.0 - abs(slowest):.3g} of it."
            )
        return (
            "Every closed-loop eigenvalue is inside the unit circle, the largest at "
            f"{abs(slowest):.6g}."
        )
    return (
        f"Every closed-loop mode decays, the slowest with the time constant "
        f"{-1.0 / slowest.real:.6g}."
    )


def _unstabilisable(scaled: Balanced, lift: Array, _: marginal.Solver) -> Outcome | None:
    """Outcome if the inputs do not reach an unstable mode."""
    equation = scaled.equation
    found = unreached(equation.A, equation.B, discrete=equation.discrete)
    modes = [mode for mode in found if mode.side > 0]
    if not modes:
        return None
    named = "; ".join(worded(mode, lift / scaled.scale) for mode in modes)
    plural = "mode" if len(modes) == 1 and modes[0].value.imag == 0 else "modes"
    return without_solution(
        RiccatiStatus.NO_STABILIZING_SOLUTION,
        f"The inputs do not reach the unstable {plural} {named}: no feedback stabilises it.",
        np.linalg.eigvals(equation.A).astype(np.complex128),
    )


def _unconfirmed(scaled: Balanced, made: Refined | None, *, clear: bool) -> Outcome:
    """Outcome where extended precision gives no stabilising solution, or is not allowed."""
    equation = scaled.equation
    values = np.linalg.eigvals(equation.A).astype(np.complex128)
    if made is None or not clear:
        found = on_boundary(equation)
        if found:
            if np.linalg.eigvalsh(equation.R)[0] <= 0:
                found += (
                    " A solution whose closed loop keeps eigenvalues there may exist; it is not "
                    "looked for, as R is not positive definite."
                )
            none = without_solution(RiccatiStatus.NO_STABILIZING_SOLUTION, found, values)
            return marginal.double(scaled, found) or none
        if extended.is_unbounded(scaled):
            return without_solution(RiccatiStatus.NO_STABILIZING_SOLUTION, _NO_GRAPH, values)
    if made is None:
        return without_solution(RiccatiStatus.ILL_CONDITIONED, _limits(equation), values)
    outcome = _from_floats(scaled, made, signs.to_rounding(scaled.back(made.X.high)))
    if clear and made.left <= USABLE:
        return outcome
    return outcome.doubted(_limits(equation))


def _limits(equation: RiccatiEquation) -> str:
    n, most = equation.dim, extended.LARGEST_ORDER
    if n > most:
        return (
            f"Double precision does not suffice, and extended precision is limited to {most} "
            f"states; there are {n}."
        )
    return (
        "No two precisions up to the largest that is allowed agree on a solution with a stable "
        "closed loop."
    )
