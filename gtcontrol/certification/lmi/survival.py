"""The blow-up time of a start from below, or a proof that there is no blow-up.

For a fixed W coefficients of y' <= f(y) = κ y² + a y + e are sought, in which the inequality is
linear.  T = ∫ dy/f(y) is a convex function of them, as 1/f is one of f for every y: repeated
maximisation of its linear part never makes T smaller.  From the best W found so, W and e are moved
together for a fixed a, where the inequality is convexified, and the coefficients again, in turns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy import linalg

from ..._check import Array
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..theory.comparison import passage_time
from ..theory.quadratic import smat, svec
from .candidates import GUESS_MARGIN, MARGINS, SLACK, Setting, is_proved, setting_of
from .combinations import blend, rescaled
from .convexified import ConvexifiedModel
from .fixed import FixedModel, LevelModel
from .model import Point
from .times import (
    Coefficients,
    coefficients,
    comparison,
    height,
    level,
    moments,
    thoroughness,
    time_to_infinity,
)

__all__ = ["lower_bounds"]

#: Linear steps for fixed W: d <= 4, d <= 6, beyond.
STEPS = (5, 3, 1)

#: Turns between W and the coefficients: d <= 4, d <= 6, beyond.
TURNS = (8, 2, 0)

#: Gain below which a turn is the last.
LEAST_GAIN = 3e-3

#: A claim, and the point that it was made from; None for one with nothing to gain.
Found = tuple[Claim, Point | None]

#: Eigenvalues of the start below this fraction of the largest one are raised for its inverse.
THINNEST = 1e-2

#: Levels, as multiples of y₀, at which y is tried to be held.
CEILINGS = (1.0, 2.0, 8.0)


def lower_bounds(problem: CertificationProblem) -> Iterator[Claim]:
    """Search for a bound on the blow-up time from below, or for a proof that there is none.

    One claim: the best of those for powers of S₀ from W = I to W near S₀⁻¹.
    """
    setting = setting_of(problem, with_start=True)
    if setting.start is None:
        return
    best: Found | None = None
    for W in _weights(setting):
        found = _lower(setting, W)
        if found is not None and (best is None or _later(found[0], best[0])):
            best = found
        if best is not None and best[0].numbers["lower"] == math.inf:
            break
    if best is not None:
        yield _turned(setting, best)


def _turned(setting: Setting, found: Found) -> Claim:
    """Move W, and the coefficients for fixed W, in turns."""
    claim, point = found
    for _ in range(TURNS[thoroughness(setting.order)]):
        moved = None if point is None else _moved(setting, point)
        if moved is None:
            break
        if time_to_infinity(setting, moved) == math.inf:
            y = height(setting, moved.W)
            held = _bounded_claim(setting, moved, max(y, _resting(coefficients(moved))))
            return held if held is not None and is_proved(setting.problem, held) else claim
        model = FixedModel(
            setting.order, setting.pieces, sign=-1, W=moved.W, free_slack=setting.single
        )
        again = _latest(setting, model, moved, MARGINS[0])
        if again is None or not _later(again[0], claim):
            break
        last = again[0].numbers["lower"] < claim.numbers["lower"] * (1 + LEAST_GAIN)
        claim, point = again
        if last:
            break
    return claim


def _moved(setting: Setting, point: Point) -> Point | None:
    """Better W and e for the a of a point, if there are any."""
    if setting.start is None or point.quadratic <= 0:
        return None
    now = rescaled(point, point.quadratic)
    y, f = height(setting, now.W), coefficients(now)
    rate = _value(f, y)
    if y <= 0 or rate <= 0:
        return None
    model = ConvexifiedModel(
        setting.order,
        setting.pieces,
        W=now.W,
        linear=now.linear,
        start=setting.start,
        free_slack=setting.single,
    )
    # The margin shrinks with y when all is scaled back.
    margin = MARGINS[1] * max(1.0, point.quadratic)
    corner = model.solve((1 / rate, moments(f, y)[2]), margin)
    if corner is None:
        return None
    before = time_to_infinity(setting, now)
    shares = [blend(now, corner, share) for share in np.linspace(0.0, 1.0, 17)[1:]]
    times = [time_to_infinity(setting, shared) for shared in shares]
    if not max(times) > before:
        return None
    best = shares[int(np.argmax(times))]
    return rescaled(best, 1 / height(setting, best.W))


def _resting(f: Coefficients) -> float:
    """The smaller root of f, with some room above it."""
    root = math.sqrt(max(f[1] ** 2 - 4 * f[0] * f[2], 0.0))
    return (-f[1] - (1 - 1e-6) * root) / (2 * f[0])


def _lower(setting: Setting, W: Array) -> Found | None:
    """Best claim for a fixed W with tr(W S₀) = 1."""
    held = _held(setting, W)
    if held is not None:
        return held, None
    model = FixedModel(setting.order, setting.pieces, sign=-1, W=W, free_slack=setting.single)
    for margin in MARGINS:
        best: Found | None = None
        found_point = False
        for ceiling in CEILINGS:
            _, point = model.solve((ceiling**2, ceiling, 1.0), margin)
            if point is None:
                break
            found_point = True
            if _value(coefficients(point), ceiling) <= 0:
                claim = _bounded_claim(setting, point, ceiling)
                if claim is not None and is_proved(setting.problem, claim):
                    return claim, None
            found = _latest(setting, model, point, margin)
            if found is not None and (best is None or _later(found[0], best[0])):
                best = found
        if best is not None or not found_point:
            return best
    return None


def _held(setting: Setting, W: Array) -> Claim | None:
    """Claim, for a fixed W, that there is no blow-up since y' <= a y + κ y² + e does not grow.

    Without attention κ = 0; without noise e = 0, and y decays if a + κ y₀ < 0.
    """
    drifts = [smat(piece.drift @ svec(W), setting.order) for piece in setting.pieces]
    linear = max(float(linalg.eigh(drift, W, eigvals_only=True)[-1]) for drift in drifts)
    linear += GUESS_MARGIN * max(abs(linear), 1e-3)
    if not any(np.any(piece.form) for piece in setting.pieces):
        inflow = max(float(piece.noise @ svec(W)) for piece in setting.pieces)
        none = np.zeros((len(setting.pieces), *_slack_shape(setting.order)))
        points = iter([Point(W, None, none, 0.0, linear, inflow * (1 + GUESS_MARGIN))])
    elif setting.noisy or (linear >= 0 and height(setting, W) > 0):
        return None
    else:
        model = LevelModel(setting.order, setting.pieces, W=W, free_slack=setting.single)
        points = _levels(model, linear)
    for point in points:
        claim = _decaying_claim(setting, point) or _lower_claim(setting, point)
        if claim is None or claim.numbers["lower"] < math.inf:
            return None
        if is_proved(setting.problem, claim):
            return claim
    return None


def _levels(model: LevelModel, linear: float) -> Iterator[Point]:
    """Points of growing margin."""
    for margin in MARGINS:
        _, point = model.solve(linear, margin)
        if point is None:
            return
        yield point


def _latest(setting: Setting, model: FixedModel, point: Point, margin: float) -> Found | None:
    """Raise T from a first point on, by its linear part; the last claim that is proved."""
    best: Found | None = None
    for _ in range(1 + STEPS[thoroughness(setting.order)]):
        claim = _lower_claim(setting, point)
        if claim is None or (best is not None and not _later(claim, best[0])):
            break
        if not is_proved(setting.problem, claim):
            break
        best = claim, point
        _, moved = model.solve(moments(coefficients(point), height(setting, point.W)), margin)
        if moved is None:
            break
        point = moved
    return best


def _lower_claim(setting: Setting, point: Point) -> Claim | None:
    numbers = setting.coefficients(point, -1)
    claim = setting.claim("blow-up-lower", point, numbers, single=setting.single)
    if numbers["quadratic"] <= 0:
        return replace(claim, numbers={**claim.numbers, "lower": math.inf})
    low, _ = passage_time(comparison(numbers), level(setting, claim))
    return replace(claim, numbers={**claim.numbers, "lower": low}) if low > 0 else None


def _bounded_claim(setting: Setting, point: Point, ceiling: float) -> Claim | None:
    """Claim that y never exceeds a ceiling."""
    numbers = setting.coefficients(point, -1)
    claim = setting.claim("blow-up-lower", point, numbers, single=setting.single)
    top = max(ceiling, float(level(setting, claim)) * (1 + SLACK))
    least = float(np.linalg.eigvalsh(claim.arrays["W"])[0])
    if least <= 0:
        return None
    numbers |= {"lower": math.inf, "ceiling": top, "peak": top / least * (1 + SLACK)}
    return replace(claim, numbers={**claim.numbers, **numbers})


def _decaying_claim(setting: Setting, point: Point) -> Claim | None:
    """Claim that y never exceeds its start, and decays."""
    numbers = setting.coefficients(point, -1)
    claim = setting.claim("blow-up-lower", point, numbers, single=setting.single)
    top = float(level(setting, claim)) * (1 + SLACK)
    if numbers["constant"] != 0 or numbers["linear"] + numbers["quadratic"] * top >= 0 < top:
        return None
    least = float(np.linalg.eigvalsh(claim.arrays["W"])[0])
    if least <= 0:
        return None
    more = {"lower": math.inf, "ceiling": top, "peak": top / least * (1 + SLACK), "decays": 1.0}
    return replace(claim, numbers={**claim.numbers, **more})


def _weights(setting: Setting) -> Iterator[Array]:
    """Matrices W with tr(W S₀) = 1 (or tr W = 1 if S₀ = 0), in scaled units."""
    S = setting.start if setting.start is not None else np.zeros((setting.order, setting.order))
    values, vectors = np.linalg.eigh(S)
    largest = float(values[-1])
    if largest <= 0:
        yield np.eye(setting.order) / setting.order
        return
    yield from _lyapunov_weights(setting, S)
    spread = np.maximum(values, THINNEST * largest) / largest
    for power in (0.0, -0.25, -0.5, -1.0):
        W = (vectors * spread**power) @ vectors.T
        yield W / float(np.sum(W * S))
        if np.ptp(spread) < 1e-9:
            return


def _lyapunov_weights(setting: Setting, S: Array) -> Iterator[Array]:
    """W with W A + AᵀW = -R, R = I and R = S₀⁻¹ as far as it exists, if A is stable."""
    A = setting.units.vertex(setting.problem.parameters).A
    if float(np.max(np.linalg.eigvals(A).real)) >= 0:
        return
    values, vectors = np.linalg.eigh(S)
    spread = np.maximum(values, THINNEST * values[-1]) / values[-1]
    for power in (0.0, -1.0):
        W = linalg.solve_continuous_lyapunov(A.T, -(vectors * spread**power) @ vectors.T)
        W = 0.5 * (W + W.T)
        if np.all(np.isfinite(W)) and float(np.linalg.eigvalsh(W)[0]) > 0:
            yield W / float(np.sum(W * S))


def _value(f: Coefficients, level: float) -> float:
    return (f[0] * level + f[1]) * level + f[2]


def _slack_shape(order: int) -> tuple[int, int]:
    """Shape of Z."""
    count = order * (order - 1) // 2
    return count, count


def _later(claim: Claim, other: Claim) -> bool:
    return claim.numbers["lower"] > other.numbers["lower"] * (1 + 1e-6)
