"""The blow-up time of a start from above: joint inequalities for W, the slack and the growth.

For a given a, W and y' >= κ y² + a y - α are sought together; then, for fixed W, the coefficients
(κ, a, e), in which the inequality is linear and T = ∫ dy/f(y) convex, as 1/f is a convex function
of f for every y: a step with line search towards the minimiser of the linear part of T (Frank and
Wolfe 1956) never makes it larger.  Both are done in turns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..._check import Array
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..theory.comparison import passage_time
from .candidates import MARGINS, Setting, is_proved, setting_of
from .combinations import blend
from .fixed import FixedModel
from .model import JointModel, Point
from .times import coefficients, comparison, height, level, moments, thoroughness, time_to_infinity

__all__ = ["upper_bounds"]

#: Weights of α against θ that are tried: d <= 4, d <= 6, beyond.
BALANCES = ((0.1, 0.5, 2.0, 8.0), (0.5, 2.0), (1.0,))

#: Linear steps for fixed W: d <= 4, d <= 6, beyond.
STEPS = (5, 3, 1)

#: Turns between fixed a and fixed W: d <= 4, d <= 6, beyond.
ROUNDS = (3, 1, 0)

#: Coefficients a, in scaled units, that are tried if the start lies below all thresholds else.
RESCUES = (0.5, 0.25, 1.0, 0.125)

#: Largest dimension in which they are tried.
MEDIUM = 6

#: Gain below which a turn is the last.
LEAST_GAIN = 1e-3


def upper_bounds(problem: CertificationProblem) -> Iterator[Claim]:
    """Search for a bound on the blow-up time from above: the best claim, or none.

    Without noise nothing grows from S = 0; with noise every start may blow up.
    """
    setting = setting_of(problem, with_start=True)
    if setting.start is None or not (np.any(setting.start) or setting.noisy):
        return
    best: Claim | None = None
    drifts = _drifts(setting)
    for number, linear in enumerate((*drifts, *(RESCUES if setting.order <= MEDIUM else ()))):
        if number >= len(drifts) and best is not None:
            break
        for margin in MARGINS:
            point = _joint(setting, linear, margin)
            if point is None or time_to_infinity(setting, point) == math.inf:
                break
            claim = _upper_claim(setting, point)
            # What is improved from a point that has no proof has hardly ever one.
            if claim is None or not is_proved(problem, claim):
                continue
            better = _upper_claim(setting, _alternated(setting, point, margin))
            if better is not None and is_proved(problem, better):
                claim = min(claim, better, key=lambda made: made.numbers["upper"])
            if best is None or claim.numbers["upper"] < best.numbers["upper"]:
                best = claim
            break
    if best is not None:
        yield best


def _joint(setting: Setting, linear: float, margin: float) -> Point | None:
    """Best point of the joint inequality over the weights of α and θ."""
    model = JointModel(
        setting.order,
        setting.pieces,
        sign=1,
        linear=linear,
        start=_normaliser(setting),
        free_slack=setting.single,
    )
    best: Point | None = None
    for balance in BALANCES[thoroughness(setting.order)]:
        _, point = model.solve(balance, margin)
        if point is None:
            break
        if best is None or time_to_infinity(setting, point) < time_to_infinity(setting, best):
            best = point
    if best is not None and time_to_infinity(setting, best) < math.inf:
        # The weights at which this point would be stationary for T itself.
        squares, _, ones = moments(coefficients(best), height(setting, best.W))
        theta = 1 / best.quadratic
        _, point = model.solve(math.sqrt(ones * theta**2 / squares), margin)
        if point is not None and time_to_infinity(setting, point) < time_to_infinity(setting, best):
            best = point
    return best


def _alternated(setting: Setting, point: Point, margin: float) -> Point:
    """Improve the coefficients for fixed W, and all else for fixed a, in turns."""
    best = _improved(setting, point, margin)
    for _ in range(ROUNDS[thoroughness(setting.order)]):
        again = _joint(setting, best.linear, margin)
        if again is None:
            break
        turned = _improved(setting, again, margin)
        if not time_to_infinity(setting, turned) < time_to_infinity(setting, best) * (
            1 - LEAST_GAIN
        ):
            break
        best = turned
    return best


def _improved(setting: Setting, point: Point, margin: float) -> Point:
    """Better coefficients for the W of a point."""
    if time_to_infinity(setting, point) == math.inf:
        return point
    model = FixedModel(setting.order, setting.pieces, sign=1, W=point.W, free_slack=setting.single)
    best = point
    for _ in range(STEPS[thoroughness(setting.order)]):
        _, corner = model.solve(moments(coefficients(best), height(setting, best.W)), margin)
        if corner is None:
            break
        shares = [blend(best, corner, share) for share in np.linspace(0.0, 1.0, 33)[1:]]
        chosen = min(shares, key=lambda shared: time_to_infinity(setting, shared))
        if time_to_infinity(setting, chosen) >= time_to_infinity(setting, best) * (1 - 1e-6):
            break
        best = chosen
    return best


def _upper_claim(setting: Setting, point: Point) -> Claim | None:
    numbers = setting.coefficients(point, 1)
    claim = setting.claim("blow-up-upper", point, numbers, single=setting.single)
    _, high = passage_time(comparison(numbers), level(setting, claim))
    if not math.isfinite(high):
        return None
    return replace(claim, numbers={**claim.numbers, "upper": high})


def _normaliser(setting: Setting) -> Array:
    """Matrix N with tr(W N) = 1: the start, or I/d if that is zero."""
    if setting.start is not None and np.any(setting.start):
        return setting.start
    return np.eye(setting.order) / setting.order


def _drifts(setting: Setting) -> tuple[float, ...]:
    """Values of the coefficient a with which the search begins: growth along A, and its mean."""
    matrices = [setting.units.vertex(p).A for p in setting.problem.vertices]
    fastest = min(float(np.linalg.eigvalsh(A + A.T)[-1]) for A in matrices)
    if setting.order > 4:
        return (fastest,)
    return tuple(sorted({fastest, min(2 * float(np.trace(A)) / setting.order for A in matrices)}))
