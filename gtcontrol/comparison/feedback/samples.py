"""Perturbed starts, how they end with and without feedback, and how large they may be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._check import Array
from ...progress import Progress
from ...results.feedback import deviation
from ...results.tracking import ENOUGH, TENFOLD, Level
from .closed_loop import ClosedLoop, Ends, Stack
from .nominal import Nominal

__all__ = ["Perturbations", "Run", "level_of", "part", "tolerance"]

#: Sizes tried first, as powers of two times the size asked for.
POWERS = (-1, 1, 2, 3, 4, 5)

#: Rounds that close in on the largest size tolerated, and sizes tried in each.
ROUNDS, WITHIN = 2, 3


def part(progress: Progress, low: float, high: float, what: str = "") -> Progress:
    """Progress of a part of the work, from `low` to `high`."""

    def report(fraction: float, text: str) -> None:
        progress(low + (high - low) * fraction, ", ".join(x for x in (what, text) if x))

    return report


@dataclass(frozen=True, eq=False)
class Run:
    """A stack of perturbed laws under the plan, and under its feedback."""

    alone: Ends
    closed: Ends
    alone_distances: Array
    closed_distances: Array

    @property
    def closer(self) -> NDArray[np.bool_]:
        """Which laws end closer to the target with feedback."""
        return self.closed_distances < self.alone_distances

    @property
    def ratios(self) -> Array:
        """How many times closer; 0 where feedback lets the law escape."""
        return ratios(self.alone_distances, self.closed_distances)


class Perturbations:
    """Random directions in which the start is displaced, the same for every size.

    At size ε the mean moves by ε √tr S₀ and the factor by ε |L₀|, each in a random direction
    (uniform on the sphere; for the factor, of X L₀ with X Gaussian, so that the rank is kept).
    If S₀ = 0 the mean moves by ε times the unit of length of the plan.
    """

    def __init__(self, nominal: Nominal, count: int, seed: int) -> None:
        self.nominal = nominal
        self.mean, self.factor = nominal.inner(nominal.trajectory.problem.start)
        rng = np.random.default_rng(seed)
        k = self.mean.size
        shift = rng.standard_normal((count, k))
        self.spread = float(np.linalg.norm(self.factor)) or nominal.length
        self.shifts = self.spread * shift / np.linalg.norm(shift, axis=1, keepdims=True)
        turn = rng.standard_normal((count, k, k)) @ self.factor
        size = np.linalg.norm(turn, axis=(1, 2), keepdims=True)
        self.turns = self.spread * turn / np.where(size > 0, size, 1.0)

    def starts(self, sizes: Array) -> Stack:
        """Perturbed starts of each size, one size after the other."""
        eps = np.asarray(sizes)[:, None, None]
        means = self.mean + eps * self.shifts
        factors = self.factor + eps[..., None] * self.turns
        count = means.shape[0] * means.shape[1]
        return Stack(
            means.reshape(count, *self.shifts.shape[1:]),
            factors.reshape(count, *self.turns.shape[1:]),
        )

    def run(self, loop: ClosedLoop, sizes: Array, progress: Progress) -> Run:
        """Move perturbed starts with and without feedback."""
        starts = self.starts(sizes)
        alone = loop.run(starts, part(progress, 0.0, 0.5, "plan alone"), feedback=False)
        closed = loop.run(starts, part(progress, 0.5, 1.0, "with feedback"), feedback=True)
        return Run(alone, closed, self.distances(alone), self.distances(closed))

    def distances(self, ends: Ends) -> Array:
        """W₂ distance of each law from the target at the end, inf for those that escaped."""
        target = self.nominal.inner(self.nominal.target)
        apart = deviation(ends.laws.means, ends.laws.factors, *target)
        outside = outside_of(self.nominal)
        distance = np.sqrt(np.sum(apart**2, axis=1) + outside**2)
        return np.where(np.isfinite(ends.escaped), np.inf, distance)


def outside_of(nominal: Nominal) -> float:
    """Distance of the plan's end from the target outside the subspace in which it acts."""
    if nominal.basis is None:
        return 0.0
    U, law = nominal.basis, nominal.target
    start = nominal.trajectory.problem.start
    mean = law.mean - start.mean
    parts = (mean - U @ (U.T @ mean), law.factor - U @ (U.T @ law.factor))
    return float(np.sqrt(sum(np.sum(x**2) for x in parts)))


def ratios(alone: Array, closed: Array) -> Array:
    """How many times smaller the second distances are."""
    made = np.zeros(alone.shape)
    ended = np.isfinite(closed)
    tiny = np.finfo(float).tiny
    made[ended] = np.minimum(alone[ended], 1e300) / np.maximum(closed[ended], tiny)
    return made


def tolerance(
    perturbations: Perturbations, loop: ClosedLoop, first: Level, progress: Progress
) -> tuple[Level, ...]:
    """Try sizes around that of `first`, then between the last good and the first bad one.

    Returns
    -------
    tuple of Level
        By increasing size, `first` among them.
    """
    levels = [first]
    total = 1 + ROUNDS
    sizes = first.size * 2.0 ** np.array(POWERS)
    for k in range(total):
        levels += _levels(perturbations, loop, sizes, part(progress, k / total, (k + 1) / total))
        levels.sort(key=lambda level: level.size)
        bad = [i for i, level in enumerate(levels) if level.closer < ENOUGH]
        if not bad or bad[0] == 0:
            break
        low, high = levels[bad[0] - 1].size, levels[bad[0]].size
        sizes = np.geomspace(low, high, WITHIN + 2)[1:-1]
    return tuple(levels)


def _levels(
    perturbations: Perturbations, loop: ClosedLoop, sizes: Array, progress: Progress
) -> list[Level]:
    run = perturbations.run(loop, sizes, progress)
    return [
        level_of(float(size), run, slice(i * n, (i + 1) * n))
        for n in [len(perturbations.shifts)]
        for i, size in enumerate(sizes)
    ]


def level_of(size: float, run: Run, part: slice) -> Level:
    """Summary of the laws of one size."""
    gone = np.isfinite(run.closed.escaped[part])
    return Level(
        size=size,
        closer=float(np.mean(run.closer[part])),
        tenfold=float(np.mean(run.ratios[part] >= TENFOLD)),
        ratio=float(np.median(run.ratios[part])),
        escaped=float(np.mean(gone)),
        escape_time=float(np.min(run.closed.escaped[part])),
        escaped_alone=float(np.mean(np.isfinite(run.alone.escaped[part]))),
        saturated=float(np.mean(run.closed.saturated[part])),
        exceeded=float(np.mean(run.closed.exceeded[part])),
    )
