"""Feedback around plans: how much closer perturbed starts end, and what size is tolerated."""

from __future__ import annotations

from dataclasses import replace

import gtcontrol as gt
from gtcontrol.cli import kinds
from gtcontrol.problem import zoo
from gtcontrol.progress import silent

from .figures import Figure, timed

__all__ = ["DEFAULT_COUNT", "measure"]

#: Perturbed starts of each plan.
DEFAULT_COUNT = 50

#: Relative size of their perturbation, and how many times closer the median has to end.
SIZE, CLOSER = 0.05, 10.0

#: Plans of the zoo.  In minimum time every control is at its bound, which leaves feedback no room,
#: so that plan has no target but not to get worse.
PLANS = {
    "steer-planar": CLOSER,
    "steer-rank-deficient": CLOSER,
    "steer-attention-only": CLOSER,
    "steer-bounded": CLOSER,
    "steer-minimum-time": 1.0,
}


def measure(count: int) -> list[Figure]:
    """Median improvement of `count` starts around each plan."""
    figures = []
    for name, target in PLANS.items():
        path = zoo.path(name)
        plan = replace(kinds.prepare(kinds.read(path), path), tokens=None).run(silent)
        kept, spent = timed(lambda plan=plan: gt.track(plan, perturbation=SIZE, samples=count))
        figures.append(
            Figure(
                f"{name}: {100 * SIZE:g} % perturbation",
                f"{kept.ratio:.3g}x closer, tolerates {kept.tolerated:.3g}, "
                f"{spent.processor:.2g} s cpu",
                f"median at least {target:g}x",
                kept.status is gt.Status.SUCCESS and kept.ratio >= target,
            )
        )
    return figures
