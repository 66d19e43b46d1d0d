"""Attention among the controls, kinetic weight 1: success, replay, and the baseline."""

from __future__ import annotations

import numpy as np

import gtcontrol as gt

from .duel import Duel, duels_table, fight
from .figures import Figure, share
from .instances import attempt, instances

DEFAULT_COUNT = 100

COST = gt.ControlEnergy(kinetic=1.0)


def measure_all(count: int) -> list[Figure]:
    """Controls A, V, B, b."""
    return _measure("AVBb", count)


def measure_attention_only(count: int) -> list[Figure]:
    """Controls V, B, b."""
    return _measure("VBb", count)


def _measure(controls: str, count: int) -> list[Figure]:
    good, worst, iterations, duels = 0, 0.0, [], []
    for i in instances(count, range(1, 5), seed=6):
        plan = attempt(i, controls, COST)
        if plan is None:
            continue
        arrived = plan.status is gt.Status.SUCCESS and plan.replay_error <= 1e-5
        good += arrived
        if arrived:
            worst = max(worst, plan.replay_error)
        else:
            print(
                f"    instance {i.index} (d = {i.d}, r = {i.r}): {plan.status.name}, "
                f"replay error {plan.replay_error:.2g}, {plan.intervals} intervals"
            )
        iterations += [a.iterations for a in plan.attempts if a.converged]
        if i.d in (2, 3):
            duels.append(fight(i, plan, controls, COST))
    print(duels_table(duels))
    print(f"    median iterations {np.median(iterations):.0f}, largest replay error {worst:.1e}")
    return [
        Figure(
            "random instances, d <= 4: replay <= 1e-5",
            share(good, count),
            ">= 98 %",
            good >= 0.98 * count,
        ),
        *_speed(duels),
        _costs(duels),
    ]


def _speed(duels: list[Duel]) -> list[Figure]:
    figures = []
    for d in (2, 3):
        ratios = [duel.ratio for duel in duels if duel.both and duel.instance.d == d]
        median = float(np.median(ratios)) if ratios else float("nan")
        spread = f"{min(ratios):.1f} to {max(ratios):.0f}" if ratios else "none"
        figures.append(
            Figure(
                f"speed per start, d = {d} (both solve {len(ratios)})",
                f"{median:.1f} times ({spread})",
                ">= 8 times the baseline",
                median >= 8.0,
            )
        )
    return figures


def _costs(duels: list[Duel]) -> Figure:
    both = [duel for duel in duels if duel.both]
    for duel in both:
        if duel.worse:
            i = duel.instance
            print(
                f"    worse: instance {i.index} (d = {i.d}, r = {i.r}), ours {duel.ours.cost:.6g}, "
                f"baseline {duel.theirs.cost:.6g} (its replay error {duel.theirs.replay_error:.1e})"
            )
    worse = sum(duel.worse for duel in both)
    return Figure(
        "plans that cost more than the baseline's", share(worse, len(both)), "0", worse == 0
    )
