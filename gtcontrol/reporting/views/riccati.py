"""The solution of a Riccati equation in words."""

from __future__ import annotations

import math

from ...results.riccati import RiccatiSolution
from ...status import RiccatiStatus
from ..wording import error, matrix, number
from .base import Fact, View

__all__ = ["view"]

#: Matrices up to this order are written out.
LARGEST = 4

_VERDICTS = {
    RiccatiStatus.SUCCESS: "SOLVED",
    RiccatiStatus.MARGINAL: "MARGINAL",
    RiccatiStatus.NO_STABILIZING_SOLUTION: "NO STABILISING SOLUTION",
    RiccatiStatus.ILL_CONDITIONED: "NOT CONFIRMED",
}


def view(result: RiccatiSolution) -> View:
    """Put the solution into words."""
    e = result.equation
    time = "discrete" if e.discrete else "continuous"
    return View(
        title=result.problem.name or f"Riccati equation, {e.dim} states",
        verdict=_VERDICTS[result.status],
        good=result.status in (RiccatiStatus.SUCCESS, RiccatiStatus.MARGINAL),
        headline=f"{result.status.value} {result.reason}",
        facts=tuple(_facts(result)),
        statement=(
            Fact("equation", _equation(result)),
            Fact("wanted", "the symmetric X whose closed loop A − B · gain is stable"),
            Fact("time", time),
            Fact("states, inputs", f"{e.dim}, {e.inputs}"),
        ),
        captions={"spectrum": _caption(result)},
    )


def _facts(result: RiccatiSolution) -> list[Fact]:
    facts = [Fact("status", _VERDICTS[result.status].lower())]
    if result.X is not None and result.definite is not None:
        ends = f"{number(result.lowest)} to {number(result.highest)}"
        facts += [
            Fact("signs of X", f"{result.definite.value}, rank {result.rank}; eigenvalues {ends}"),
            Fact("residual", f"{error(result.residual)} of the terms of the equation"),
            Fact("error", f"{error(result.error_estimate)} of X (estimated)"),
            Fact("precision", f"{result.precision} bits"),
        ]
        if math.isfinite(result.condition):
            words = f"relative changes of the data are magnified up to {error(result.condition)}"
            facts.append(Fact("condition", f"{words} times"))
        if result.equation.dim <= LARGEST:
            facts.append(Fact("X", matrix(result.X, 8)))
    name = "closed loop" if result.X is not None else "eigenvalues of A"
    shown = ", ".join(_value(v) for v in result.spectrum[:LARGEST])
    more = ", ..." if len(result.spectrum) > LARGEST else ""
    return [*facts, Fact(name, f"{shown}{more}")]


def _value(value: complex) -> str:
    if value.imag == 0:
        return number(value.real)
    sign = "+" if value.imag > 0 else "−"
    return f"{number(value.real)} {sign} {number(abs(value.imag))}i"


def _equation(result: RiccatiSolution) -> str:
    e = result.equation
    S = " + S" if e.cross.any() else ""
    Q = " + Q" if e.Q.any() else ""
    if e.discrete:
        W = f"(A′XB{S})"
        return f"A′XA − X{Q} − {W} (R + B′XB)⁻¹ {W}′ = 0"
    W = f"(XB{S})" if S else "XB"
    return f"A′X + XA{Q} − {W} R⁻¹ {W}′ = 0" if S else f"A′X + XA{Q} − XBR⁻¹B′X = 0"


def _caption(result: RiccatiSolution) -> str:
    line = "unit circle" if result.equation.discrete else "imaginary axis"
    side = "inside" if result.equation.discrete else "left of"
    if result.X is None:
        return f"Eigenvalues of A; those that are not {side} the {line} need feedback."
    return (
        f"Eigenvalues of A (open loop) and of A − B · gain (closed loop): stable {side} the {line}."
    )
