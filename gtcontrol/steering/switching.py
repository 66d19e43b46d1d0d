"""Move the instants at which attention switches.

Optimal attention may change its signs in an instant.  Controls that are constant on each
interval can jump only at an edge of the mesh, and each edge near the best instant is a local
minimum: Newton's method never moves the jump.  So it is tried one interval earlier and later.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from .._check import Array
from .race import Candidate, Search, Settings, solve_once

__all__ = ["jumps", "moved", "settle_switches"]

#: A change of the controls this many times the median one is a jump ...
JUMP = 5.0

#: ... of which the largest few are moved.
MOST_JUMPS = 3

#: A move must lower the cost by this fraction.
GAIN = 1e-6

#: Bound on the iterations of one trial: from next to the minimum a few suffice.
ITERATIONS = 30


def settle_switches(candidate: Candidate, search: Search, settings: Settings) -> Candidate:
    """Move each jump of the controls as long as that lowers the cost.

    Raises
    ------
    KeyboardInterrupt
        If the user interrupted; what was found is in the search.
    """
    form = candidate.instance.form
    if form.points != 1 or not {"V", "B"} <= set(form.controls):
        return candidate
    limit = min(ITERATIONS, settings.max_iterations)
    quick = dataclasses.replace(settings, max_iterations=limit)
    for jump in jumps(candidate.instance.control_rows(candidate.solution.unknowns)):
        for step in (-1, 1):
            edge, before = jump, candidate
            while 1 <= edge + step <= form.intervals - 1:
                trial = _trial(candidate, edge, step, quick, search)
                if trial is None or not _cheaper(trial, candidate):
                    break
                edge, candidate = edge + step, trial
            if candidate is not before:
                break
    return candidate


def _trial(
    candidate: Candidate, edge: int, step: int, settings: Settings, search: Search
) -> Candidate | None:
    instance, unknowns = candidate.instance, candidate.solution.unknowns
    rows = moved(instance.control_rows(unknowns), edge, step)
    trial = solve_once(
        instance,
        candidate.attempt.start,
        candidate.solution.widths,
        instance.with_control_rows(unknowns, rows),
        settings,
        search,
        candidate.iterations,
    )
    return search.record(dataclasses.replace(trial, before=candidate.before))


def _cheaper(trial: Candidate, candidate: Candidate) -> bool:
    cost = candidate.attempt.cost
    return trial.attempt.cost < cost - GAIN * abs(cost)


def jumps(rows: Array) -> list[int]:
    """Edges k between the intervals k - 1 and k where the controls jump, largest first."""
    if len(rows) < 3:
        return []
    changes = np.linalg.norm(np.diff(rows, axis=0), axis=1)
    large = np.flatnonzero(changes > JUMP * np.median(changes))
    return [int(k) + 1 for k in large[np.argsort(-changes[large])][:MOST_JUMPS]]


def moved(rows: Array, edge: int, step: int) -> Array:
    """Controls whose jump at an edge happens one interval earlier (-1) or later (+1)."""
    new = rows.copy()
    if step < 0:
        new[edge - 1] = rows[edge]
    else:
        new[edge] = rows[edge - 1]
    return new
