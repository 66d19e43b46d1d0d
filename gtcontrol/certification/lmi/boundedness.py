"""Boundedness and decay from every start: joint inequalities for W, the slack and the bound."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import linalg

from ..._check import Array
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..theory.pieces import may_dissipate
from ..theory.quadratic import smat, svec
from .candidates import GUESS_MARGIN, MARGINS, SLACK, Setting, is_proved, setting_of
from .links import sharpen
from .model import JointModel, Point
from .pinned import PinnedModel

__all__ = ["bounds", "decays"]

#: A claim, and the point that it was made from.
Found = tuple[Claim, Point]

#: Weights of α against θ at which the search for the least √(αθ) begins.
STARTS = (0.3, 1.0, 3.0)

#: Improvements of the weight at each beginning.
IMPROVEMENTS = 6

#: Largest dimension in which every beginning is followed; beyond, a smaller program guides.
FEW = 4

#: Largest dimension in which the smaller program is solved more than once.
MEDIUM = 6

#: Gain below which an improvement ends the search.
LEAST_GAIN = 1e-4

#: Rates tried for decay, as fractions of twice the spectral abscissa of A.
RATES = (0.9, 0.5, 0.1)


def bounds(problem: CertificationProblem, *, single: bool = False) -> Iterator[Claim]:
    """Search for an ultimate bound on tr S: one claim, or none.

    y' <= α + a y - y²/θ gives lim sup y <= γ = aθ/2 + √(a²θ²/4 + αθ).  With a = 0 its square αθ is
    the least of (α μ + θ/μ)²/4 over μ, so that alternating between μ and the inequality descends.
    With a >= 0 nothing is gained; a < 0 helps under noise if A is stable.  In the set y <= γ
    sharper inequalities hold, of which a chain follows.

    Parameters
    ----------
    problem : CertificationProblem
    single : bool
        Search for starts of rank one only, where the slack may have any sign.
    """
    setting = setting_of(problem, with_start=False)
    if single and not setting.single:
        return
    best: Found | None = None
    for point in _guesses(setting, _abscissa(problem, setting)) if setting.noisy else ():
        guess = _bound_claim(setting, point, single=single)
        if guess is not None and is_proved(problem, guess):
            best = guess, point
    for linear in _drifts(problem, setting):
        for damped in (True, False) if linear < 0 else (True,):
            found = _bound(setting, linear, damped=damped, single=single)
            if found is not None and (best is None or _size(found[0]) < _size(best[0])):
                best = found
    if best is not None:
        yield sharpen(setting, *best)


def decays(problem: CertificationProblem, *, single: bool = False) -> Iterator[Claim]:
    """Search for decay to zero from every start: one claim, or none.

    Parameters
    ----------
    problem : CertificationProblem
    single : bool
        Search for starts of rank one only.
    """
    setting = setting_of(problem, with_start=False)
    abscissa = _abscissa(problem, setting)
    if setting.noisy or abscissa > 0 or (single and not setting.single):
        return
    for point in _guesses(setting, abscissa):
        claim = _decay_claim(setting, point, single=single)
        if is_proved(problem, claim):
            yield claim
            return
    still = not any(np.any(p.A) for p in problem.vertices)
    if (abscissa == 0 and not still) or not may_dissipate(problem.vertices):
        return
    for share in (0.0,) if still else RATES:
        model = PinnedModel(
            setting.order,
            setting.pieces,
            linear=2 * abscissa * share,
            floor=setting.units.floor(),
            free_slack=single,
            damped=still,
        )
        for margin in MARGINS:
            _, found = model.solve(margin)
            if found is None:
                break
            claim = _decay_claim(setting, found, single=single)
            if is_proved(problem, claim):
                yield claim
                return


def _bound(setting: Setting, linear: float, *, damped: bool, single: bool) -> Found | None:
    """Smallest bound for a given a."""

    def model(*, slack: bool) -> JointModel:
        return JointModel(
            setting.order,
            setting.pieces,
            sign=-1,
            linear=linear,
            floor=setting.units.floor(),
            free_slack=single,
            damped=damped,
            slack=slack,
        )

    full, improvements = model(slack=True), IMPROVEMENTS
    balances: tuple[float, ...] = STARTS
    if setting.order > FEW:
        # The chain that follows makes up for a balance that is not the best.
        guide = _guide(model(slack=False), 1) if setting.order <= MEDIUM else None
        balances, improvements = (guide or 1.0,), 0
    # In large dimension a second failure is the last: more margin seldom helps, and costs minutes.
    for margin in MARGINS if setting.order <= MEDIUM else MARGINS[:2]:
        best: Found | None = None
        points = 0
        for balance in balances:
            for point in _descent(full, balance, margin, improvements):
                points += 1
                claim = _bound_claim(setting, point, single=single)
                if claim is None or (best is not None and _size(claim) >= _size(best[0])):
                    break
                if is_proved(setting.problem, claim):
                    best = claim, point
            if not points:
                return None  # infeasible, whatever the balance
        if best is not None:
            return best
    return None


def _guide(model: JointModel, improvements: int) -> float | None:
    """Balance at which a smaller program without slack has the least bound, if it has any."""
    points = list(_descent(model, 1.0, MARGINS[0], improvements))
    return _balance(points[-1]) if points and points[-1].quadratic != 0 else None


def _descent(
    model: JointModel, balance: float, margin: float, improvements: int
) -> Iterator[Point]:
    """Points of smaller and smaller αθ: alternate between the inequality and the balance."""
    product = math.inf
    for _ in range(1 + improvements):
        _, point = model.solve(balance, margin)
        if point is None:
            return
        yield point
        if point.quadratic == 0:
            return
        before, product = product, -point.constant / point.quadratic
        if product > before * (1 - LEAST_GAIN):
            return
        balance = _balance(point)


def _balance(point: Point) -> float:
    """Weight of α at which α and θ contribute alike, within reason."""
    ratio = -1 / point.quadratic / max(point.constant, 1e-12)
    return min(max(math.sqrt(ratio), 1e-4), 1e4)


def _bound_claim(setting: Setting, point: Point, *, single: bool) -> Claim | None:
    numbers = setting.coefficients(point, -1)
    numbers["gamma"] = 1.0
    claim = setting.claim("ultimate-bound", point, numbers, single=single)
    W = claim.arrays["W"]
    k, a, e = (numbers[name] for name in ("quadratic", "linear", "constant"))
    gamma = (a + math.sqrt(a * a - 4 * k * e)) / (-2 * k) if k < 0 else -e / a
    least = _least(W)
    if not (least > 0 and 0 < gamma < math.inf):
        return None
    gamma *= 1 + SLACK
    numbers |= {"gamma": gamma, "bound": gamma / least * (1 + SLACK)}
    start = setting.problem.start
    if start is not None:
        level = float(np.sum((W @ start.factor) * start.factor))
        numbers["peak"] = max(level, gamma) / least * (1 + 4 * SLACK)
    return setting.claim("ultimate-bound", point, numbers, single=single)


def _decay_claim(setting: Setting, point: Point, *, single: bool) -> Claim:
    numbers = setting.coefficients(point, -1)
    return setting.claim("decay", point, numbers, single=single)


def _guesses(setting: Setting, abscissa: float) -> Iterator[Point]:
    """Points that need no solver: W = I and the solution of a Lyapunov equation, no slack."""
    if abscissa >= 0:
        return
    d, q = setting.order, setting.order * (setting.order - 1) // 2
    vertex = setting.units.vertex(setting.problem.parameters)
    with np.errstate(all="ignore"):
        lyapunov = linalg.solve_continuous_lyapunov(vertex.A.T, -np.eye(d))
    if not np.all(np.isfinite(lyapunov)):
        return
    Z = np.zeros((len(setting.pieces), q, q))
    for W in (np.eye(d), lyapunov / np.max(np.abs(lyapunov))):
        if _least(W) <= 0:
            continue
        drifts = [smat(piece.drift @ svec(W), d) for piece in setting.pieces]
        rate = max(float(linalg.eigh(drift, W, eigvals_only=True)[-1]) for drift in drifts)
        rate += GUESS_MARGIN
        if rate < 0:
            inflow = max(float(piece.noise @ svec(W)) for piece in setting.pieces)
            yield Point(W, None, Z, 0.0, rate, inflow * (1 + GUESS_MARGIN))


def _drifts(problem: CertificationProblem, setting: Setting) -> tuple[float, ...]:
    """Values of the coefficient a that are tried."""
    abscissa = _abscissa(problem, setting)
    if not may_dissipate(problem.vertices):
        return ()
    if not setting.noisy or abscissa >= 0:
        return (0.0,)
    return (0.0, *(2 * abscissa * share for share in RATES))


def _abscissa(problem: CertificationProblem, setting: Setting) -> float:
    """Largest real part of an eigenvalue of any A, in scaled units."""
    scaled = [setting.units.vertex(p).A for p in problem.vertices]
    return max(float(np.max(np.linalg.eigvals(A).real)) for A in scaled)


def _size(claim: Claim) -> float:
    return claim.numbers["bound"]


def _least(W: Array) -> float:
    return float(np.linalg.eigvalsh(W)[0])
