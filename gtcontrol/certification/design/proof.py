"""The claim of a design, with numbers as strong as can be proved, and its check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from ...errors import ResultFileInvalid
from ...gaussian import Gaussian
from ...parameters import Parameters
from ...problem.definitions import CertificationProblem
from ...results.claims import Claim
from ...results.design import Design
from ...status import Status
from ..conclusion import alike, refutation, settle
from ..lmi.synthesis import MARGIN
from ..rules import rule
from ..rules.base import Refuted
from ..rules.designed_attractor import distances
from ..rules.designed_locally import region
from .closed_forms import Draft
from .confirmation import confirms
from .request import METHODS as WISHES, within

__all__ = ["certified", "guaranteed", "reasons", "statement"]

#: Shares of the rates that were aimed at, tried one after the other until one is proved.
SHARES = (1.0, 1 - 1e-9, 1 - 1e-7, 1 - 1e-5, 1 - 1e-3, 0.9)

#: Room that the claimed bounds leave, so that another order of summation proves them as well.
ROOM = 1.25

#: How parameters are found.
METHODS = ("closed-form", "lmi")

T = TypeVar("T")


def certified(draft: Draft, target: Gaussian) -> Claim:
    """Claim what a draft was made for, and ask its rule; it is numerical if it is not proved."""
    problem = CertificationProblem((draft.parameters,))
    claim = _global(draft, target) if draft.scalar else _local(draft, target)
    return settle(problem, claim)


def guaranteed(claim: Claim, p: Parameters) -> tuple[float, float]:
    """Rates of the covariance (in W₂) and of the mean that a claim is about."""
    numbers = claim.numbers
    if claim.rule == "designed-locally":
        return numbers["rate"], min(numbers["rate"], numbers["mean_rate"])
    v = -float(p.V[0, 0])
    rate, loss = numbers.get("rate", np.inf), numbers.get("loss", np.inf)
    return min(rate, loss), min(v, rate, 2 * loss)


def statement(claim: Claim, p: Parameters) -> str:
    """What a claim says, in words."""
    return rule(claim.rule).state(CertificationProblem((p,)), claim).text


def reasons(design: Design) -> Iterator[str]:
    """Say what does not follow from the claims of a design, without believing anything."""
    if not design.claims:
        yield "the design has no claim"
    yield from _unmet(design)
    for claim in design.claims:
        same = all(
            name in claim.arrays and np.array_equal(claim.arrays[name], wanted)
            for name, wanted in (
                ("mean", design.problem.target.mean),
                ("factor", design.problem.target.factor),
            )
        )
        if not same:
            yield "the claim is about another target than that of the problem"
            continue
        try:
            reason = refutation(design.question, claim)
            if claim.proved and reason is not None:
                raise Refuted(reason)
            if reason is None and not claim.proved:
                yield f"the claim ({claim.rule}) is marked as numerical, but its data prove it"
            elif not alike(claim.note, reason or ""):
                yield f"the note of the claim reads {claim.note[:60]!r}, not {reason or ''!r:.60}"
            rates = guaranteed(claim, design.parameters)
            words = statement(claim, design.parameters)
        except (Refuted, ResultFileInvalid) as reason:
            yield f"the claim ({claim.rule}) is not proved by its data: {reason}"
        except KeyError as missing:
            yield f"the claim ({claim.rule}) has no number {missing}"
        else:
            if words != design.statement:
                yield "`statement` is not what the claim says"
            for name, follows in zip(("rate", "mean_rate"), rates, strict=True):
                if getattr(design, name) > follows:
                    yield f"`{name}` is {getattr(design, name)!r}, but the claim gives {follows!r}"


def _unmet(design: Design) -> Iterator[str]:
    """What is said of the wishes or of the simulations that the design itself contradicts."""
    p, made = design.problem, design.parameters
    for name, known in (("method", METHODS), ("problem.method", WISHES)):
        said = design.method if name == "method" else p.method
        if said not in known:
            yield f"`{name}` is {said!r:.40}; expected one of {', '.join(known)}"
    for name in ("rate", "mean_rate"):
        asked, got = getattr(p, name), getattr(design, name)
        # A smaller share of what was aimed at is never claimed.
        if asked is not None and not 0 < asked * SHARES[-1] * (1 - 1e-9) <= got:
            yield f"`problem.{name}` asks for {asked!r}, but the design has {got!r}"
    if p.V is not None and not np.array_equal(p.V, made.V):
        yield "the V that was asked for is not the one that the design has"
    broken = within(p.bounds, made)
    if p.bounds.trace is not None or p.bounds.largest_eigenvalue is not None:
        yield "the problem bounds the covariance along a path, which a design does not have"
    if broken:
        yield f"the bounds of the problem are not kept: {broken}"
    seen, pace = design.confirmation, min(design.rate, design.mean_rate)
    if design.status is Status.SUCCESS and seen is not None and not confirms(seen, pace):
        yield "`status` is SUCCESS, but the simulations do not confirm the design"


def _strongest(bound: Callable[[float], T]) -> tuple[float, T | None]:
    """The largest share of the rates for which `bound` is proved, and what it is."""
    for share in SHARES:
        try:
            return share, bound(share)
        except Refuted:
            continue
    return 1.0, None


def _global(draft: Draft, target: Gaussian) -> Claim:
    p, d, r = draft.parameters, target.dim, target.rank
    share, found = _strongest(
        lambda s: distances(
            p, target.mean, target.factor, draft.complement, s * draft.rate, s * draft.loss
        )
    )
    numbers = {"rate": share * draft.rate} if r else {}
    if r < d:
        numbers["loss"] = share * draft.loss
    if found is None:
        numbers |= _estimates(p, target)
    else:
        numbers["covariance_distance"] = ROOM * found.covariance
        numbers["mean_distance"] = ROOM * found.mean
    arrays = {"mean": target.mean, "factor": target.factor, "complement": draft.complement}
    return Claim("designed-attractor", numbers=numbers, arrays=arrays)


def _local(draft: Draft, target: Gaussian) -> Claim:
    p = draft.parameters
    # The program leaves a margin, of which half is used to prove the rate that was asked for.
    tried = draft.rate * (1.0 + 0.5 * MARGIN)
    share, found = _strongest(
        lambda s: region(p, target.mean, target.factor, s * tried, s * draft.mean_rate)
    )
    numbers = {"contraction": share * tried, "mean_rate": share * draft.mean_rate}
    if found is None:
        numbers |= {"rate": draft.rate, "radius": 0.0} | _estimates(p, target)
    else:
        numbers["rate"] = min(found.rate * (1 - 1e-9), draft.rate)
        numbers["radius"] = found.radius * (1 - 1e-6)
        numbers["covariance_distance"] = ROOM * found.distances.covariance
        numbers["mean_distance"] = ROOM * found.distances.mean
    arrays = {"mean": target.mean, "factor": target.factor}
    return Claim("designed-locally", numbers=numbers, arrays=arrays)


def _estimates(p: Parameters, target: Gaussian) -> dict[str, float]:
    """Distances as the residuals suggest, where nothing is proved."""
    L, m, speed = target.factor, target.mean, float(np.linalg.norm(p.A, 2)) or 1.0
    M = p.A + p.V @ L @ (L.T @ p.B)
    move = M @ L @ L.T
    size = max(float(np.linalg.norm(L)), 1e-300)
    shift = float(np.linalg.norm(M @ m + p.V @ m + p.b))
    return {
        "covariance_distance": float(np.linalg.norm(move + move.T)) / (speed * size),
        "mean_distance": shift / speed,
    }
