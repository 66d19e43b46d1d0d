"""A comparison in words."""

from __future__ import annotations

import math

import numpy as np

from ...results.comparison import Comparison, HiddenMode, Row
from ...status import Definiteness, KalmanVerdict
from ..wording import count, duration, error, matrix, number
from . import snippets
from .base import Fact, Table, View
from .statements import law_fact

__all__ = ["view"]

#: Matrices with more entries than this are given by their norm.
LARGEST = 9

#: Rows of our own answers.
OURS = ("gtcontrol (algebra)", "gtcontrol (flow)")


def view(result: Comparison) -> View:
    """Put a comparison into words."""
    p = result.problem
    return View(
        title=p.name or f"Comparison with Kalman theory, dimension {p.dim}",
        verdict=result.verdict.name.replace("_", " "),
        good=result.answered,
        headline=result.reason,
        facts=tuple(_facts(result)),
        statement=tuple(_statement(result)),
        captions=_captions(result),
        notes=tuple(_notes(result)),
        noise=p.noise is not None,
        tables=tuple(_tables(result)),
        command=snippets.command(p.name),
        code=snippets.comparing(p),
    )


def _facts(result: Comparison) -> list[Fact]:
    facts = [Fact("verdict", f"{result.verdict.name}: {result.verdict.value}")]
    if result.limit is not None:
        facts.append(law_fact("limit", result.limit))
        facts.append(Fact("error estimate", f"{error(result.error_estimate)} of the limit"))
    facts.append(Fact("closed loop", _spectrum(result)))
    if result.verdict is KalmanVerdict.CONVERGES and math.isfinite(result.rate):
        facts.append(Fact("rate", f"{number(result.rate)} (error like exp(-rate · t))"))
    if math.isfinite(result.period):
        facts.append(Fact("period", number(result.period, 10)))
    if math.isfinite(result.upper):
        facts.append(Fact("blow-up time", _enclosure(result)))
    facts += [Fact("hidden mode", _hidden(mode)) for mode in result.hidden[:3]]
    # Our flow has a line of its own; our algebra has one where it found a limit.
    facts += [
        Fact(r.name, _short_row(r))
        for r in result.table
        if r.name not in OURS or (r.name == OURS[0] and r.answered)
    ]
    facts.append(Fact("flow", _flow(result)))
    facts.append(Fact("work", f"{duration(result.seconds)}; {result.versions}"))
    return facts


def _spectrum(result: Comparison) -> str:
    values = result.spectrum
    where = "A - S Cᵀ R⁻¹ C at the limit" if result.limit is not None else "A (there is no limit)"
    shown = ", ".join(_eigenvalue(complex(x)) for x in values[:6])
    return f"{shown}{', ...' if len(values) > 6 else ''}: eigenvalues of {where}"


def _eigenvalue(x: complex) -> str:
    size = max(abs(x), 1e-300)
    if abs(x.imag) <= 1e-13 * size:
        return number(x.real, 5)
    sign = "+" if x.imag > 0 else "-"
    return f"{number(x.real, 5)} {sign} {number(abs(x.imag), 5)}i"


def _enclosure(result: Comparison) -> str:
    middle = 0.5 * result.lower + 0.5 * result.upper
    width = (result.upper - result.lower) / middle
    return f"{number(middle, 15)} (proved; relative width {error(width)})"


def _hidden(mode: HiddenMode) -> str:
    value = _eigenvalue(complex(mode.real, mode.imaginary))
    direction = matrix(mode.direction[:, 0]) if mode.direction.shape[0] <= LARGEST else ""
    if mode.direction[:, 1].any() and direction:
        direction += f" ± i {matrix(mode.direction[:, 1])}"
    what = "no measurement sees it" if mode.property == "detectability" else "no noise drives it"
    place = "on the imaginary axis" if abs(mode.real) < 1e-12 else "unstable"
    return (
        f"λ = {value} ({place}): {what}, which breaks {mode.property}; "
        f"direction {direction or 'in the result'}"
    )


def _short_row(row: Row) -> str:
    if not row.answered:
        return f"{row.finding} ({_short(row.message)})" if row.message != row.why else row.why
    of = " of the limit of full-rank starts" if row.finding == "right for full rank" else ""
    digits = "" if math.isnan(row.digits) else f" {row.digits:.1f} digits{of},"
    return (
        f"{row.finding}:{digits} residual {error(row.residual)}, largest real part of the closed "
        f"loop {number(row.abscissa, 3)}; {row.root}"
    )


def _flow(result: Comparison) -> str:
    words = f"followed to t = {number(result.horizon, 4)}"
    if math.isnan(result.agreement):
        return f"{words}; the closed form leaves the range of floats there"
    return f"{words}, where integration and closed form agree to {result.agreement:.1f} digits"


def _statement(result: Comparison) -> list[Fact]:
    p = result.problem
    facts = [
        Fact("question", "where does the covariance tend, and what do Riccati solvers say?"),
        Fact("dimension", f"{p.dim} (states), {count(len(p.C), 'measurement')}"),
    ]
    given = {"A": p.A, "C": p.C, "R": p.R, "Q (noise)": p.noise}
    for name, value in given.items():
        if value is None or not value.size:
            continue
        small = value.size <= LARGEST
        facts.append(Fact(name, matrix(value) if small else f"norm {number(_norm(value), 4)}"))
    if p.start is None:
        facts.append(Fact("start", "any covariance of full rank"))
    else:
        facts.append(law_fact("start", p.start))
    return facts


def _norm(value: object) -> float:
    return float(np.linalg.norm(np.asarray(value)))


def _notes(result: Comparison) -> list[str]:
    noise = " + Q" if result.problem.noise is not None else ""
    first = (
        f"Here V = v I, so S′ = A S + S Aᵀ + S K S{noise} with K = v (B + Bᵀ). For "
        "K = -Cᵀ R⁻¹ C this is the error covariance of the Kalman-Bucy filter of dx = A x dt + dw, "
        "dy = C x dt + dv. The antisymmetric part of B and the mean play no part."
    )
    notes = [first]
    if not result.problem.filters:
        notes.append("K has a positive eigenvalue: no measurement has negative information.")
    return notes


def _tables(result: Comparison) -> list[Table]:
    rows = tuple(_row(result, row) for row in result.table)
    return [
        Table(
            "Who says what",
            (
                "answer by",
                "finding",
                "digits",
                "residual",
                "error",
                "signs, rank",
                "closed loop",
                "which root, and why",
            ),
            rows,
            "Digits: agreement with our limit (of what is right for full rank: with the limit of "
            "full-rank starts). Residual: relative to the terms of the equation; "
            "it is small at every root, so it proves nothing alone. Error: distance to the nearest "
            "root, by one step of Newton's method. Closed loop: largest real part.",
        )
    ]


def _row(result: Comparison, row: Row) -> tuple[str, ...]:
    if not row.answered:
        why = row.why if not row.message else f"{row.why} ({_short(row.message)})"
        return (row.name, row.finding, "", "", "", "", "", why)
    digits = "" if math.isnan(row.digits) else f"{row.digits:.1f}"
    why = f"{row.root}; {row.why}" if row.root else row.why
    return (
        row.name,
        row.finding,
        digits,
        _small(row.residual),
        _small(row.error),
        _signs(result, row),
        number(row.abscissa, 3),
        why,
    )


def _small(value: float) -> str:
    # A hyphen that does not break: the columns are narrow.
    return "" if math.isnan(value) else error(value).replace("-", "\N{NON-BREAKING HYPHEN}")


def _signs(result: Comparison, row: Row) -> str:
    d = result.problem.dim
    if row.definite == Definiteness.ZERO.name:
        return "zero"
    if row.rank < d and row.definite in (
        Definiteness.POSITIVE_DEFINITE.name,
        Definiteness.POSITIVE_SEMIDEFINITE.name,
    ):
        # Beyond the rank there is rounding, of any sign.
        return f"semidefinite, {row.rank} of {d}"
    return f"{Definiteness[row.definite].value}, {row.rank} of {d}"


def _short(text: str) -> str:
    return text if len(text) <= 110 else f"{text[:107]}..."


def _captions(result: Comparison) -> dict[str, str]:
    return {
        "flow": (
            "Eigenvalues of the covariance along the flow (lines), and those of what each solver "
            "returned (marks on the right; full ones are right for this question). A solver "
            "without marks gave no answer."
        ),
        "spectrum": (
            "Eigenvalues of the closed loop A - X Cᵀ R⁻¹ C for each answer X. A root is "
            "stabilising if all lie left of the imaginary axis; crosses are those of A."
        ),
    }
