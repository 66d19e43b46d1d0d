"""From a point that a solver proposes, in scaled units, to claims in the units of the problem.

Entries are rounded to multiples of 2^-30 of the scaled units, so that exact fractions stay short,
and scaled by powers of two, which rounds nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._check import Array
from ...arithmetic.fractions import rounded
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ..rules import RULES
from ..rules.base import Refuted
from ..theory.pieces import index_pairs
from ..theory.scaling import Units, scale
from .model import Piece, Point, pieces_of

__all__ = ["GUESS_MARGIN", "MARGINS", "Setting", "is_proved", "setting_of"]

#: Margins inside the cones, in scaled units, tried one after the other until the proof succeeds.
MARGINS = (1e-7, 1e-6, 1e-5, 1e-4)

#: Bits after the point to which matrices are rounded in scaled units.
BITS = 30

#: Amount by which a rate computed in floats is weakened, in scaled units.
GUESS_MARGIN = 1e-6

#: Relative amount by which numbers that follow from others are enlarged against rounding.
SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Setting:
    """A problem in scaled units.

    Parameters
    ----------
    problem : CertificationProblem
    units : Units
    pieces : list of Piece
    start : (d, d) array or None
        Covariance of the start, in scaled units.
    single : bool
        Whether the start has rank one and keeps it.
    """

    problem: CertificationProblem
    units: Units
    pieces: list[Piece]
    start: Array | None
    single: bool

    @property
    def order(self) -> int:
        """Dimension d."""
        return self.problem.dim

    @property
    def noisy(self) -> bool:
        """Whether there is noise."""
        return any(bool(np.any(piece.noise)) for piece in self.pieces)

    def claim(self, rule: str, point: Point, numbers: dict[str, float], *, single: bool) -> Claim:
        """Claim of a rule, with the rounded data of a point.

        `numbers` must hold the coefficients of f in the units of the problem.
        """
        arrays = {
            "W": self.units.weight(rounded(_symmetric(point.W), BITS)),
            "Z": np.stack([self.units.slack(rounded(_symmetric(Z), BITS)) for Z in point.Z]),
        }
        if point.Lam is not None:
            scaled = [self.units.multiplier(rounded(_symmetric(L), BITS)) for L in point.Lam]
            arrays["Lam"] = np.stack(scaled)
        numbers = {**numbers, "rank": 1.0} if single else numbers
        return Claim(rule, numbers=numbers, arrays=arrays)

    def coefficients(self, point: Point, sign: int) -> dict[str, float]:
        """Coefficients of f in the units of the problem, rounded to the weaker side."""
        made = {}
        for name in ("quadratic", "linear", "constant"):
            value = getattr(point, name)
            # σ (y' - f) >= 0 becomes weaker if f moves by -σ.
            moved = value if name == "linear" else value - sign * (abs(value) * SLACK)
            made[name] = self.units.per_time(_short(moved, -sign))
        return made


def setting_of(problem: CertificationProblem, *, with_start: bool) -> Setting:
    """Problem in scaled units: those of its start, or those of its parameters."""
    start = problem.start if with_start else None
    covariance = None if start is None else start.covariance
    units = scale(problem.vertices, covariance)
    vertices = [units.vertex(p) for p in problem.vertices]
    pieces = pieces_of(vertices, index_pairs(problem.vertices))
    scaled = None if covariance is None else units.covariance(covariance)
    noisy = any(bool(np.any(v.noise)) for v in vertices)
    single = problem.start is not None and problem.start.rank == 1 and not noisy
    return Setting(problem, units, pieces, scaled, single)


def is_proved(problem: CertificationProblem, claim: Claim) -> bool:
    """Whether the rule of a claim accepts it."""
    try:
        RULES[claim.rule].check(problem, claim)
    except Refuted:
        return False
    return True


def _symmetric(matrix: Array) -> Array:
    return 0.5 * (matrix + matrix.T)


def _short(value: float, direction: int) -> float:
    """Nearby float of 40 bits, not below (`direction` +1) or not above (-1) `value`."""
    if value == 0 or not math.isfinite(value):
        return value
    mantissa, exponent = math.frexp(value)
    scaled: Any = math.ceil if direction > 0 else math.floor
    return math.ldexp(scaled(math.ldexp(mantissa, 40)), exponent - 40)
