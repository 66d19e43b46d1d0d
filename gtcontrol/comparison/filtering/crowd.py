"""Clouds of all numbers of tokens, each drawn several times."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..._check import Array
from ...problem.definitions import FilterProblem
from ...progress import Progress
from ...results.filter_errors import TokenFilter
from ...status import Status
from .cloud import Cloud, move
from .parameters import Bridge

__all__ = ["AFTER_FLOW", "AFTER_PEER", "Crowd"]

#: Shares of the progress that python-control, and then the flow, have reached.
AFTER_PEER, AFTER_FLOW = 0.05, 0.1


@dataclass
class Crowd:
    """All realisations of all numbers of tokens."""

    problem: FilterProblem
    bridge: Bridge
    steps: list[int]
    progress: Progress
    clouds: list[TokenFilter] = field(default_factory=list)
    resolution: float = 0.0
    status: Status = Status.SUCCESS

    def __post_init__(self) -> None:
        # Work is counted in tokens times realisations; one more goes into halved steps.
        self.total = self.problem.seeds * sum(self.problem.counts) + 2 * self.problem.counts[0]
        self.done = 0.0

    def run(self, generator: np.random.Generator) -> Status:
        """Move all of them; those that are complete are kept when interrupted."""
        p = self.problem
        draws = iter(generator.spawn(len(p.counts) * p.seeds))
        for count in p.counts:
            finished: list[Cloud] = []
            try:
                for seed in range(p.seeds):
                    start = self._draw(count, next(draws))
                    finished.append(self._moved(start, f"{count} tokens, draw {seed + 1}"))
                    if not self.clouds and not seed:
                        self._resolve(start, finished[0])
            except KeyboardInterrupt:
                self.status = Status.INTERRUPTED
            self._keep(count, finished)
            if self.status is Status.INTERRUPTED:
                break
        return self.status

    def _draw(self, count: int, rng: np.random.Generator) -> Array:
        p = self.problem
        return p.start.sample(count, rng, antithetic=p.antithetic, moment_matched=p.moment_matched)

    def _moved(self, tokens: Array, text: str, finer: int = 1) -> Cloud:
        y, count = self.problem.measurements, len(tokens)
        before = self.done

        def tell(intervals: int) -> None:
            self.done = before + count * finer * intervals / len(y)
            share = min(self.done / self.total, 1.0)
            self.progress(AFTER_FLOW + (1 - AFTER_FLOW) * share, text)

        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return move(self.bridge, tokens, y, [finer * n for n in self.steps], tell)

    def _resolve(self, start: Array, cloud: Cloud) -> None:
        """Halve the steps of one run: what changes is the error of its integration."""
        if cloud.status is not Status.SUCCESS:
            return
        finer = self._moved(start, f"{len(start)} tokens with half the steps", 2)
        if finer.status is not Status.SUCCESS:
            return
        spread = np.sqrt(np.trace(finer.covariances, axis1=1, axis2=2))
        apart = np.linalg.norm(finer.means - cloud.means, axis=1) / np.where(spread > 0, spread, 1)
        sizes = np.linalg.norm(finer.covariances, axis=(1, 2))
        other = np.linalg.norm(finer.covariances - cloud.covariances, axis=(1, 2))
        ratio = other / np.where(sizes > 0, sizes, 1)
        self.resolution = float(max(apart.max(), ratio.max()))

    def _keep(self, count: int, finished: list[Cloud]) -> None:
        d, times = self.problem.model.dim, len(self.problem.measurements) + 1
        good = [c for c in finished if c.status is Status.SUCCESS]
        bad = [c for c in finished if c.status is not Status.SUCCESS]
        if bad and self.status is Status.SUCCESS:
            self.status = bad[0].status
        self.clouds.append(
            TokenFilter(
                count,
                np.array([c.means for c in good]).reshape(-1, times, d),
                np.array([c.covariances for c in good]).reshape(-1, times, d, d),
                len(bad),
            )
        )
