"""Energy of A and b against the Pontryagin oracle, the hard cases, and a large embedding."""

from __future__ import annotations

import numpy as np

import gtcontrol as gt
from tests.oracles import pontryagin

from .duel import Duel, duels_table, fight
from .figures import Figure, share, timed
from .instances import Instance, attempt, instances, orthogonal_ranges, random_law, swapped_axes

DEFAULT_COUNT = 200

COST = gt.ControlEnergy(kinetic=0.0)

#: Share of the instances with d = 2, 3 that the baseline solves too, for information.
DUELS = 20


def measure(count: int) -> list[Figure]:
    """Random instances d <= 4, every second round of ranks without means."""
    solved, below, missing = 0, 0, 0
    gaps: list[float] = []
    iterations: list[int] = []
    duels: list[Duel] = []
    for i in instances(count, range(1, 5), seed=4, centred_every=2):
        plan = attempt(i, "Ab", COST)
        if plan is None:
            continue
        solved += plan.status is gt.Status.SUCCESS
        iterations += [a.iterations for a in plan.attempts if a.converged]
        truth = _truth(i)
        if truth is None:
            missing += 1
        else:
            gap = plan.cost / truth - 1
            gaps.append(gap)
            below += gap < -1e-6
            if gap > 1e-6:
                costs = ", ".join(f"{a.cost:.6g}" for a in plan.attempts)
                print(f"    instance {i.index} (d = {i.d}, r = {i.r}): {costs}; oracle {truth:.6g}")
        if i.d in (2, 3) and len(duels) < DUELS:
            duels.append(fight(i, plan, "Ab", COST))
    print(duels_table(duels))
    print(
        f"    oracle solved {count - missing} of {count}; our plan is below it {below} times; "
        f"median |gap| {np.median(np.abs(gaps)):.1e}, median iterations {np.median(iterations):.0f}"
    )
    reached = sum(gap <= 1e-6 for gap in gaps)
    return [
        Figure("random instances, d <= 4: solved", share(solved, count), "100 %", solved == count),
        Figure(
            f"J/J_Pontryagin - 1 (largest {max(gaps):.1e})",
            share(reached, len(gaps)) + " <= 1e-6",
            "100 % <= 1e-6",
            reached == len(gaps),
        ),
        _hard("orthogonal ranges", orthogonal_ranges(), 6.3234),
        _hard("swapped axes", swapped_axes(), 3.4351),
    ]


def measure_embedding(count: int) -> list[Figure]:
    """d = 768, r = 4: solved in the span of the end points, and compared with the oracle there."""
    figures = []
    for k in range(count):
        rng = np.random.default_rng([5, k])
        start, target = (random_law(rng, 768, 4) for _ in range(2))
        plan, seconds = timed(lambda: gt.steer(start, target, controls="Ab", cost=COST))  # noqa: B023
        columns = [start.factor, target.factor, start.mean[:, None], target.mean[:, None]]
        basis, _ = np.linalg.qr(np.concatenate(columns, axis=1))
        first, last = [gt.Gaussian(basis.T @ g.mean, basis.T @ g.factor) for g in (start, target)]
        gap = plan.cost / _oracle(first, last, paths=4) - 1
        figures.append(
            Figure(
                f"d = 768, r = 4 ({plan.status.name}, J/J_Pontryagin - 1 = {gap:.0e})",
                seconds.text(),
                "< 10 s",
                seconds.wall < 10.0 and plan.status is gt.Status.SUCCESS,
            )
        )
    return figures


def _truth(i: Instance) -> float | None:
    """Value of the oracle, or None if it fails."""
    try:
        if not np.any(i.start.mean) and not np.any(i.target.mean):
            return pontryagin.energy(i.start.factor, i.target.factor).cost
        return _oracle(i.start, i.target)
    except pontryagin.ShootingError:
        return None


def _oracle(start: gt.Gaussian, target: gt.Gaussian, paths: int = 16) -> float:
    ends = (start.mean, start.factor, target.mean, target.factor)
    return pontryagin.energy_with_mean(*ends, paths=paths).cost


def _hard(name: str, i: Instance, known: float) -> Figure:
    plan = gt.steer(i.start, i.target, controls="Ab", cost=COST)
    met = plan.status is gt.Status.SUCCESS and plan.cost <= known + 5e-5
    return Figure(f"{name}, several starts", f"{plan.cost:.6f}", f"{known}", met)
