"""Feedback around a plan in words."""

from __future__ import annotations

import numpy as np

from ..._check import Array
from ...results.feedback import split_state
from ...results.steering import Steering
from ...results.tracking import ENOUGH, Level, Tracking
from ...status import Status
from ..wording import count, duration, error, matrix, number, percent
from . import snippets
from .base import Fact, Table, View
from .line import laws_of, on_a_line, spread_words
from .statements import bounds_fact, controls_fact, law_fact

__all__ = ["view"]

#: Directions with less authority than this fraction of the largest are beyond correction.
NO_AUTHORITY = 1e-6

#: Changes of law in higher dimensions are described, not written out; so many at most.
LARGEST, ROWS = 2, 6


def view(result: Tracking) -> View:
    """Put feedback into words."""
    p = result.problem
    return View(
        title=p.name or f"Feedback around a plan, dimension {p.start.dim}, rank {p.start.rank}",
        verdict=result.status.name,
        good=result.answered,
        headline=_headline(result),
        facts=tuple(_facts(result)),
        statement=tuple(_statement(result)),
        captions=_captions(result),
        tables=tuple(_tables(result)),
        command=snippets.command(p.name),
        code=snippets.tracking(p, result.plan),
    )


def _headline(result: Tracking) -> str:
    p, level = result.problem, result.level
    words = (
        f"Perturbed by {percent(p.perturbation)}, the median of "
        f"{count(p.samples, 'start')} ends {_times(level.ratio)} closer to the target with "
        f"feedback than under the plan alone. {_tolerated(result)}"
    )
    if result.status is Status.SUCCESS:
        return words
    return f"{result.status.value} {words}"


def _times(ratio: float) -> str:
    return f"{number(ratio, 3)} times"


def _tolerated(result: Tracking) -> str:
    if result.status is Status.INTERRUPTED:
        return "How large a perturbation may be was not found out."
    share = percent(ENOUGH)
    failing = result.failing
    if failing is None:
        return f"All sizes that were tried, up to {percent(result.tolerated)}, are tolerated."
    if result.tolerated == 0:
        return f"Not even {percent(failing.size)} is tolerated: {_failure(failing)}."
    return (
        f"Up to {percent(result.tolerated)} at least {share} of the starts end closer; at "
        f"{percent(failing.size)} {_failure(failing)}."
    )


def _failure(level: Level) -> str:
    """How feedback fails at a size."""
    if level.escaped:
        also = (
            f" ({percent(level.escaped_alone)} under the plan alone)" if level.escaped_alone else ""
        )
        return (
            f"{percent(level.escaped)} leave every bound{also}, the first at "
            f"t = {number(level.escape_time, 3)}"
        )
    cut = f", as controls are cut {percent(level.saturated)} of the time" if level.saturated else ""
    return f"{percent(1 - level.closer)} end no closer than under the plan alone{cut}"


def _facts(result: Tracking) -> list[Fact]:
    p, level = result.problem, result.level
    facts = [
        Fact("status", f"{result.status.name}: {result.status.value}"),
        Fact("improvement", f"{_times(level.ratio)} closer (median of {p.samples})"),
        Fact(
            "ten times closer",
            f"{percent(level.tenfold)} of the starts; closer at all: {percent(level.closer)}",
        ),
        Fact("tolerated", _tolerated(result)),
        Fact(
            "tolerated tenfold",
            f"{percent(result.tolerated_tenfold)}: up to there {percent(ENOUGH)} end ten times "
            "closer"
            if result.tolerated_tenfold
            else "none of the sizes tried",
        ),
    ]
    if p.bounds.entries or p.bounds.norms:
        facts.append(
            Fact("saturation", f"controls are cut to their bounds {percent(level.saturated)} "
                 "of the time")
        )  # fmt: skip
    if p.bounds.trace is not None or p.bounds.largest_eigenvalue is not None:
        facts.append(
            Fact("covariance bounds", f"{percent(level.exceeded)} of the starts break them: "
                 "feedback does not know them")
        )  # fmt: skip
    facts.append(Fact("authority", _authority(result)))
    if isinstance(result.plan, Steering):
        facts.append(Fact("plan", f"cost {number(result.plan.cost)}, by {result.plan.solver}"))
    facts += [
        Fact(
            "replay error",
            f"{error(result.replay_error)} (of the perturbation; one start, another integrator)",
        ),
        Fact(
            "mesh error",
            f"{error(result.mesh_error)} (of perturbation and miss; all starts, mesh halved)",
        ),
        Fact("work", f"{count(result.steps, 'step')}, {duration(result.seconds)}"),
    ]
    return facts


def _authority(result: Tracking) -> str:
    values = result.authority
    lost = int(np.count_nonzero(values <= NO_AUTHORITY * values[0])) if values.size else 0
    if lost:
        return (
            f"none in {count(lost, 'direction')} of {values.size}, in which nothing can be "
            "corrected: see the table"
        )
    return (
        f"corrections of cost 1 move the end by {number(values[-1], 3)} (weakest direction) to "
        f"{number(values[0], 3)} units of length"
    )


def _statement(result: Tracking) -> list[Fact]:
    p = result.problem
    weights = ", ".join(f"{c} {number(w, 4)}" for c, w in p.control_weights.items())
    return [
        Fact("question", "bring perturbed starts back to the plan"),
        Fact("dimension", f"{p.start.dim} (tokens), rank {p.start.rank} (covariance)"),
        Fact("horizon", number(p.horizon)),
        controls_fact(p.controls, "not changed by feedback"),
        Fact(
            "regulator",
            f"weights of the squared corrections: {weights}; of the squared distance to the plan: "
            f"{number(p.state_weight, 4)}, and {number(p.terminal_weight, 4)} at the end",
        ),
        bounds_fact(p.bounds),
        Fact(
            "perturbation",
            f"{percent(p.perturbation)} of the standard deviation (mean) and of the factor, in "
            f"{count(p.samples, 'random direction')}, seed {p.seed}",
        ),
        law_fact("start", p.start),
        law_fact("target", p.target),
    ]


def _captions(result: Tracking) -> dict[str, str]:
    line = on_a_line([result.problem.start, *laws_of(result.nominal)], result.problem.target)
    return {
        "distances": (
            "Each line is one perturbed start: its distance to the target at the end under the "
            "plan alone (left) and with feedback (right)."
        ),
        "deviation": (
            "How far the starts are from the plan on their way: medians, and the range of the "
            "middle 80 %."
        ),
        "sample": (
            "One start, with an average miss: on the plan (grey), under the plan alone (orange) "
            f"and with feedback (blue), which should end in the target (red): {spread_words(line)}."
        ),
        "gains": (
            "How strongly each parameter answers to a deviation of length 1; gains rise "
            "towards the end, when there is no time left."
        ),
        "tolerated": (
            "Larger perturbations: the share of the starts that feedback brings closer, and ten "
            "times closer; a size is tolerated down to the dotted line."
        ),
    }


def _tables(result: Tracking) -> list[Table]:
    sizes = tuple(
        (
            percent(x.size),
            percent(x.closer),
            percent(x.tenfold),
            number(x.ratio, 3),
            percent(x.escaped),
            percent(x.escaped_alone),
            percent(x.saturated),
        )
        for x in result.levels
    )
    header = ("size", "closer", "ten times closer", "median ratio", "escape", "escape alone", "cut")
    return [
        Table("Perturbations of all sizes", header, sizes,
              "Escape: share that leaves every bound before the end; cut: share of the time in "
              "which a control is cut to its bound."),
        _distances(result),
        _directions(result),
    ]  # fmt: skip


def _distances(result: Tracking) -> Table:
    rows = []
    for label, share in (("best", 0.0), ("median", 0.5), ("90 % quantile", 0.9), ("worst", 1.0)):
        values = [
            float(np.quantile(x, share, method="closest_observation"))
            for x in (result.alone, result.closed)
        ]
        rows.append((label, *(number(v, 3) for v in values)))
    return Table("W₂ distance to the target at the end", ("", "plan alone", "feedback"),
                 tuple(rows))  # fmt: skip


def _directions(result: Tracking) -> Table:
    law = result.nominal.final
    basis = result.nominal.problem.schedule.basis
    factor = law.factor if basis is None else basis.T @ law.factor
    order = np.arange(result.authority.size)[::-1][:ROWS]
    rows = tuple(
        (number(float(result.authority[i]), 3), *_change(result.directions[i], factor))
        for i in order
    )
    note = "Weakest first. Authority: how far corrections of cost 1 can move the end, in units of "
    note += "length; the change of the law is that of a unit step in the direction."
    return Table(
        "What the controls can correct", ("authority", "change of the mean", "of the covariance"),
        rows, note,
    )  # fmt: skip


def _change(direction: Array, factor: Array) -> tuple[str, str]:
    mean, turn = split_state(direction, factor.shape[0])
    covariance = turn @ factor.T
    covariance = covariance + covariance.T
    if factor.shape[0] <= LARGEST:
        return matrix(mean, 3), matrix(covariance, 3)
    return (
        f"norm {number(float(np.linalg.norm(mean)), 3)}",
        f"norm {number(float(np.linalg.norm(covariance)), 3)}",
    )
