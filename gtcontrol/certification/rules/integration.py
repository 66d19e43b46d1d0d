"""What accurate integrations showed: evidence, never proof."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from ...problem.definitions import CertificationProblem
from ...results.certificate import OUTCOMES, Integration
from ...results.claims import Claim
from ...simulation.limits import LARGEST
from ...status import Verdict
from .base import Refuted, Rule, Scope, Statement, number

__all__ = ["AccurateIntegration", "claim_of"]

#: Limits that agree to this, relatively, are the same.
SAME = 1e-5

#: Eigenvalues of a limit below this part of the largest one count as zero.
VANISHED = 1e-6


def claim_of(problem: CertificationProblem, seen: tuple[Integration, ...]) -> Claim | None:
    """Put integrations into one claim; None if there are none."""
    if not seen:
        return None
    numbers: dict[str, float] = {f"count {name}": 0.0 for name in OUTCOMES}
    for one in seen:
        numbers[f"count {one.outcome}"] += 1.0
    arrays = {}
    first = seen[0]
    numbers["time"] = first.time
    if all(one.outcome == "limit" and one.covariances.size for one in seen):
        limits = [one.covariances[-1] for one in seen]
        size = max(float(np.linalg.norm(x)) for x in limits)
        largest = max(float(one.traces.max()) for one in seen)
        if size <= 1e-9 * largest:
            arrays["limit"] = np.zeros_like(limits[0])
        elif max(float(np.linalg.norm(x - limits[0])) for x in limits) <= SAME * size:
            arrays["limit"] = limits[0]
    rest = all(one.outcome in ("limit", "unsettled") and one.covariances.size for one in seen)
    if rest and not arrays and problem.start is None and len(problem.vertices) == 1:
        arrays["ends"] = np.stack([one.covariances[-1] for one in seen])
    return Claim("integration", numbers=numbers, arrays=arrays)


class AccurateIntegration(Rule):
    """Accurate integration in floating point."""

    name: ClassVar[str] = "integration"
    theorem: ClassVar[str] = "accurate integration in floats: evidence, no proof"

    def check(self, problem: CertificationProblem, claim: Claim) -> None:
        """Refuse: an integration proves nothing."""
        raise Refuted("an integration in floating point is evidence, not proof")

    def state(self, problem: CertificationProblem, claim: Claim) -> Statement:
        """Say what was seen."""
        many = {name: _count(claim, name) for name in OUTCOMES}
        if not any(many.values()):
            raise Refuted("the claim counts no integration")
        if len(problem.vertices) > 1:
            return _from_family(many)
        if problem.start is not None:
            return _from_start(problem, claim, next(k for k in OUTCOMES if many[k]))
        return _from_many(problem, claim, many)


def _count(claim: Claim, outcome: str) -> int:
    value = number(claim, f"count {outcome}")
    if not 0 <= value < math.inf or value != int(value):
        raise Refuted(f"the number of integrations that end in {outcome!r} is {value!r}")
    return int(value)


def _from_start(problem: CertificationProblem, claim: Claim, outcome: str) -> Statement:
    time = number(claim, "time")
    scope = Scope.THIS_START
    if outcome == "blow-up":
        return Statement(
            Verdict.BLOWS_UP,
            scope,
            f"The covariance of this start blows up at about T* = {time:.6g}.",
        )
    if outcome == "limit" and "limit" in claim.arrays:
        return Statement(
            Verdict.CONVERGES, scope, f"From this start the covariance tends to {_law(claim)}."
        )
    if outcome in ("limit", "cycle"):
        how = "settles"
        if outcome == "cycle":
            how = f"goes round a periodic orbit of period {time:.6g}"
        return Statement(
            Verdict.BOUNDED, scope, f"From this start the covariance stays bounded; it {how}."
        )
    if outcome == "growth":
        return Statement(
            Verdict.UNBOUNDED,
            scope,
            f"From this start the covariance grows without finite-time blow-up as far as the "
            f"integration goes: to t = {time:.6g}, where it exceeds {_largest(problem)}.",
        )
    if outcome == "unsettled":
        return Statement(
            Verdict.BOUNDED,
            scope,
            f"From this start the covariance stays bounded up to t = {time:.6g}, without a trend "
            "but without a limit.",
        )
    return Statement(
        Verdict.UNDECIDED,
        scope,
        f"From this start the covariance was followed up to t = {time:.6g}, where it had not "
        "settled.",
    )


def _from_family(many: dict[str, int]) -> Statement:
    """Vertices that are held constant prove nothing about a family, but may refute it."""
    total = sum(many.values())
    if many["blow-up"]:
        return Statement(
            Verdict.BLOW_UP_DATA_EXIST,
            Scope.SOME_STARTS,
            f"{_of(many['blow-up'], total)} under a vertex held constant blow up in finite time.",
        )
    text = f"None of {total} integrations under a vertex held constant blows up"
    if many["growth"]:
        text += f", but {many['growth']} grow without bound"
    return Statement(Verdict.UNDECIDED, Scope.SOME_STARTS, f"{text}; switching was not integrated.")


def _of(part: int, total: int) -> str:
    return f"{part} of {total} integrations" if total > 1 else "The integration"


def _from_many(problem: CertificationProblem, claim: Claim, many: dict[str, int]) -> Statement:
    total = sum(many.values())
    if many["blow-up"]:
        return Statement(
            Verdict.BLOW_UP_DATA_EXIST,
            Scope.SOME_STARTS,
            f"{_of(many['blow-up'], total)} from random starts blow up in finite time.",
        )
    if many["growth"]:
        return Statement(
            Verdict.UNBOUNDED,
            Scope.SOME_STARTS,
            f"{_of(many['growth'], total)} from random starts grow beyond {_largest(problem)}, "
            "where integration ends, without finite-time blow-up.",
        )
    if "limit" in claim.arrays:
        return Statement(
            Verdict.CONVERGES,
            Scope.EVERY_START,
            f"All {total} integrations from random starts tend to {_law(claim)}.",
        )
    if many["open"]:
        return Statement(
            Verdict.UNDECIDED,
            Scope.SOME_STARTS,
            f"None of {total} integrations from random starts blows up as far as they went; "
            f"{many['open']} ended on the way.",
        )
    settled = f"{many['limit'] or 'none'} of {total} settle{'s' if many['limit'] < 2 else ''}"
    if many["cycle"]:
        settled += f", {many['cycle']} go round a periodic orbit"
    if "ends" in claim.arrays:
        settled += f"; they end at {_places(claim)}"
    return Statement(
        Verdict.BOUNDED,
        Scope.EVERY_START,
        f"All {total} integrations from random starts stay bounded: {settled}.",
    )


def _places(claim: Claim) -> str:
    """Where each integration ended; a small eigenvalue shows that rank is being lost."""
    ends = claim.arrays["ends"]
    if ends.ndim != 3 or not ends.size or ends.shape[1] != ends.shape[2]:
        raise Refuted("the ends of the integrations are no covariances")
    values = np.linalg.eigvalsh(ends)
    parts = [
        f"trace {float(np.sum(one)):.5g}, smallest eigenvalue {max(float(one[0]), 0.0):.2g}"
        for one in values
    ]
    return "; ".join(parts)


def _largest(problem: CertificationProblem) -> str:
    """Size of covariances at which integration ends; without noise it follows their factors."""
    noisy = any(p.noise is not None and p.noise.any() for p in problem.vertices)
    return f"{LARGEST if noisy else LARGEST**2:.0e}".replace("e+", "e")


def _law(claim: Claim) -> str:
    limit = claim.arrays["limit"]
    values = np.linalg.eigvalsh(limit)
    largest = float(values[-1])
    if largest <= 0:
        return "zero"
    rank = int(np.count_nonzero(values > VANISHED * largest))
    text = f"a covariance of rank {rank} and trace {float(np.trace(limit)):.8g}"
    if limit.shape[0] <= 3 and math.isfinite(largest):
        rows = "; ".join(", ".join(f"{x + 0.0:.6g}" for x in row) for row in _clean(limit, largest))
        text += f", [{rows}]"
    return text


def _clean(limit: np.ndarray, largest: float) -> np.ndarray:
    return np.where(np.abs(limit) > 1e-9 * largest, limit, 0.0)
