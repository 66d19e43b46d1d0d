"""The strongest of several claims, and what they say together."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import Contradiction
from ..parameters import Parameters
from ..problem.definitions import CertificationProblem
from ..results.claims import Claim
from ..status import Verdict
from .rules import rule, statement as said_by
from .rules.base import Refuted, Scope, Statement
from .rules.integration import AccurateIntegration
from .rules.turning_limit import TurningLimit
from .undecided import explain

__all__ = ["Conclusion", "alike", "conclude", "refutation", "settle"]

#: Numbers in the words of a refutation.
_NUMBERS = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)")

#: Verdicts that answer the question whole, the best first.
_WHOLE = (
    Verdict.BLOWS_UP,
    Verdict.CONVERGES,
    Verdict.UNBOUNDED,
    Verdict.BOUNDED,
    Verdict.MARGINAL,
)

#: Verdicts that exclude a blow-up.
_NEVER = (Verdict.CONVERGES, Verdict.UNBOUNDED, Verdict.BOUNDED)

#: What a verdict about some starts says of the one that is given.
_OPEN = "Where the covariance of the start that is given goes is not decided."

#: Verdicts about some starts only.
_PART = (Verdict.BLOW_UP_DATA_EXIST, Verdict.LOCALLY_STABLE)

#: Scopes, the one that says most first.
_SCOPES = (Scope.EVERY_START, Scope.THIS_START, Scope.FULL_RANK, Scope.SOME_STARTS)

#: Rules that say more than that a covariance is bounded.
_TELLING = (AccurateIntegration.name, TurningLimit.name)


@dataclass(frozen=True)
class Conclusion:
    """What a certificate says, as far as it follows from its claims."""

    verdict: Verdict
    statement: str
    proved: bool
    claims: tuple[Claim, ...]
    lower: float
    upper: float
    bound: float


def settle(problem: CertificationProblem, claim: Claim) -> Claim:
    """Ask the claim's rule whether its data prove it."""
    reason = refutation(problem, claim)
    return claim.settled(proved=reason is None, note=reason or "")


def refutation(problem: CertificationProblem, claim: Claim) -> str | None:
    """Why the data of a claim do not prove it; None if they do.

    Raises
    ------
    ResultFileInvalid
        If there is no such rule.
    """
    theorem = rule(claim.rule)
    try:
        theorem.check(problem, claim)
    except Refuted as reason:
        return str(reason)
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        return f"its numbers leave the range of floats ({error})"
    return None


def alike(note: str, reason: str) -> bool:
    """Whether a note is the reason of a refutation; its numbers may differ by rounding."""
    return _NUMBERS.sub("#", note) == _NUMBERS.sub("#", reason)


def conclude(problem: CertificationProblem, claims: Sequence[Claim]) -> Conclusion:
    """Rank the claims, and put the strongest one and what it leaves open into words.

    Raises
    ------
    Contradiction
        If two proved claims exclude each other.
    """
    everything = [(claim, said_by(problem, claim)) for claim in claims]
    everything.sort(key=lambda pair: _rank(pair[0], pair[1], problem))
    # A claim that its own rule refutes is no evidence: integrations alone are.
    said = [
        pair for pair in everything if pair[0].proved or pair[0].rule == AccurateIntegration.name
    ]
    proved = [s for claim, s in said if claim.proved and not _about_others(problem, s)]
    _refuse_contradiction(proved)
    lower, upper = _blow_up(proved)
    all_starts = (Scope.THIS_START, Scope.EVERY_START)
    bound = min((s.bound for s in proved if s.scope in all_starts), default=math.inf)
    kept = {id(claim) for claim, _ in said}
    ordered = tuple(claim for claim, _ in said) + tuple(
        claim for claim, _ in everything if id(claim) not in kept
    )
    said = [pair for pair in said if not _about_others(problem, pair[1])]
    if said and _answers(problem, said[0][1]):
        first, statement = said[0]
        open_yet = [_OPEN] if problem.start is not None and statement.verdict in _PART else []
        text = " ".join([statement.text, *open_yet, *_besides(_needed(said, lower))])
        return Conclusion(statement.verdict, text, first.proved, ordered, lower, upper, bound)
    # What is known besides decides nothing, but may be of use.
    known = [_labelled(claim, s) for claim, s in _needed(said, lower) if _tells(claim, s)]
    text = " ".join([*known, explain(problem, claims)])
    return Conclusion(Verdict.UNDECIDED, text, False, ordered, lower, upper, bound)


def _needed(said: Sequence[tuple[Claim, Statement]], lower: float) -> list[tuple[Claim, Statement]]:
    """Statements by certainty, that of the first one first, so that each label covers what follows.

    Lower bounds on the blow-up time that others improve are left out.
    """
    kept = [pair for pair in said if not (_open(pair[1]) and 0 < pair[1].lower < lower)]
    return sorted(kept, key=lambda pair: pair[0].proved != kept[0][0].proved)


def _open(s: Statement) -> bool:
    return s.verdict is Verdict.UNDECIDED


def _labelled(claim: Claim, s: Statement) -> str:
    return f"Proved: {s.text}" if claim.proved else f"Numerically: {s.text}"


def _tells(claim: Claim, s: Statement) -> bool:
    """Whether a statement that decides nothing is worth its place: why no proof exists is not."""
    return not (claim.proved and s.verdict is Verdict.UNDECIDED and s.scope is Scope.EVERY_START)


def _answers(problem: CertificationProblem, s: Statement) -> bool:
    """Whether the verdict of a statement is one of the certificate."""
    if s.verdict is Verdict.UNDECIDED:
        return False
    return _covers(problem, s) or s.verdict in _PART


def _about_others(problem: CertificationProblem, s: Statement) -> bool:
    """Whether a statement about all starts other than 0 meets the start 0, which stays there."""
    start = problem.start
    if start is None or start.rank or any(_noisy(p) for p in problem.vertices):
        return False
    return s.scope is not Scope.THIS_START and s.verdict in (Verdict.BLOWS_UP, Verdict.UNBOUNDED)


def _noisy(p: Parameters) -> bool:
    return p.noise is not None and bool(p.noise.any())


def _covers(problem: CertificationProblem, s: Statement) -> bool:
    """Whether a statement is about every start that the question is about.

    Without a start, those of full rank stand for all: the others form a set without interior.
    """
    if s.scope is Scope.FULL_RANK:
        return problem.start is None or problem.start.rank == problem.dim
    return s.scope is not Scope.SOME_STARTS


def _rank(claim: Claim, s: Statement, problem: CertificationProblem) -> tuple[float, ...]:
    """Key by which claims are sorted: what answers the question, then what is proved."""
    whole = _covers(problem, s) and s.verdict in _WHOLE
    if whole:
        # With a start, evidence about it serves better than a proof about other starts.
        tier = 0.0 if claim.proved else (1.0 if problem.start is not None else 2.0)
        order: float = _WHOLE.index(s.verdict)
    elif s.verdict in _PART:
        tier, order = (1.5 if claim.proved else 3.0), _PART.index(s.verdict)
    elif s.verdict in _WHOLE:  # about other starts
        tier, order = 6.0, _WHOLE.index(s.verdict)
    else:
        tier, order = (4.0 if claim.proved else 5.0), 0.0
    width = s.upper - s.lower if s.verdict is Verdict.BLOWS_UP else s.bound
    return tier, order, _SCOPES.index(s.scope), width if math.isfinite(width) else math.inf


def _refuse_contradiction(proved: Sequence[Statement]) -> None:
    whole = [s for s in proved if s.scope in (Scope.THIS_START, Scope.EVERY_START)]
    finite = [s for s in whole if s.verdict is Verdict.BLOWS_UP]
    never = [s for s in whole if s.verdict in _NEVER]
    some = [s for s in proved if s.verdict is Verdict.BLOW_UP_DATA_EXIST]
    everywhere = [s for s in never if s.scope is Scope.EVERY_START]
    bounded = [s for s in whole if s.verdict in (Verdict.CONVERGES, Verdict.BOUNDED)]
    growing = [s for s in whole if s.verdict is Verdict.UNBOUNDED]
    lower, upper = _blow_up(proved)
    pair = (finite and never and (finite[0], never[0])) or (
        (some and everywhere and (some[0], everywhere[0]))
        or (growing and bounded and (growing[0], bounded[0]))
    )
    if pair:
        raise Contradiction(
            f"two proved claims contradict each other, a defect of gtcontrol: "
            f"{pair[0].text!r} and {pair[1].text!r}"
        )
    if lower > upper:
        raise Contradiction(
            "two proved claims contradict each other, a defect of gtcontrol: blow-up not before "
            f"{lower!r} and not after {upper!r}"
        )


def _blow_up(proved: Sequence[Statement]) -> tuple[float, float]:
    """Enclosure of the blow-up time of the start that all proved statements give together."""
    about = [s for s in proved if s.scope in (Scope.THIS_START, Scope.EVERY_START)]
    if any(s.verdict in _NEVER for s in about):
        return math.inf, math.inf
    return (
        max((s.lower for s in about), default=0.0),
        min((s.upper for s in about), default=math.inf),
    )


def _besides(said: Sequence[tuple[Claim, Statement]]) -> list[str]:
    """What other claims add to the first one: the strongest of each verdict, all equilibria."""
    first, main = said[0]
    added: list[str] = []
    shown = [(first, main)]
    for claim, s in said[1:]:
        if _adds(main, s, claim) and not any(_repeats(claim, s, *other) for other in shown):
            label = "Proved: " if claim.proved else "Numerically: "
            added.append(s.text if claim.proved == first.proved else label + s.text)
            shown.append((claim, s))
    return added


def _adds(main: Statement, other: Statement, claim: Claim) -> bool:
    """Whether another statement tells something that the main one leaves open."""
    if main.verdict in (Verdict.BLOWS_UP, Verdict.CONVERGES, Verdict.UNBOUNDED):
        return False
    if main.verdict is Verdict.BOUNDED:
        if other.verdict is Verdict.UNDECIDED:  # such as an equilibrium that repels
            return claim.proved and other.scope is Scope.SOME_STARTS
        return other.verdict is not Verdict.BLOW_UP_DATA_EXIST
    if main.verdict in _PART:
        repels = other.verdict is Verdict.UNDECIDED and other.scope is Scope.SOME_STARTS
        followed = other.verdict is Verdict.UNDECIDED and other.scope is Scope.THIS_START
        return other.verdict in _PART or followed or (repels and claim.proved)
    return other.verdict in _PART or other.verdict is Verdict.UNDECIDED


def _repeats(claim: Claim, s: Statement, other: Claim, t: Statement) -> bool:
    """Whether a statement has nothing to add to another one that is shown."""
    telling = claim.rule in _TELLING or other.rule in _TELLING
    if s.verdict is not t.verdict or (telling and claim.rule != other.rule):
        return False
    place, there = claim.arrays.get("frame"), other.arrays.get("frame")
    if s.verdict is not Verdict.LOCALLY_STABLE or place is None or there is None:
        return True
    return place.shape == there.shape and bool((place == there).all())
