"""All clouds of a validation, one after the other, each beside the law of its own moments."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._check import Array
from ..errors import InvalidNumber
from ..gaussian import Gaussian
from ..problem.definitions import ValidationProblem
from ..progress import Progress
from ..results.courses import CloudCourse, Shape
from ..results.tokens import TokenRun
from ..status import Status
from .laws import follow
from .shape import gaussianity
from .stamps import measure_attention
from .tokens import FINEST, SINGLE_RTOL, simulate_tokens

__all__ = ["FINEST_CROWD", "Crowd"]

#: Smallest tolerance, so that there is a finer one.
FINEST_CROWD = 1e-11

#: How much finer the tolerance is by which the error of the integration is measured.
FINER = 1e-2

#: Directions and Gaussian clouds of the tests of shape over time.
DIRECTIONS, BASELINES = 64, 12


@dataclass
class Crowd:
    """Clouds drawn and moved, and what was seen of them.

    Parameters
    ----------
    problem : ValidationProblem
    times : (T,) array
        Times of observation, from 0 to the horizon.
    rng : numpy.random.Generator
    shapes : int
        Times at which the shape of one cloud is tested.
    progress : callable
    """

    problem: ValidationProblem
    times: Array
    rng: np.random.Generator
    shapes: int
    progress: Progress
    done: float = 0.0
    resolution: float = 0.0
    clouds: list[CloudCourse] = field(default_factory=list)
    tested: list[Shape] = field(default_factory=list)
    untested: str = ""

    def run(self) -> Status:
        """Move all clouds, those of few tokens first; the first ending that is no success.

        An interruption ends the run; the clouds that are complete are kept.
        """
        p = self.problem
        generators = iter(self.rng.spawn(len(p.counts) * p.seeds + 1))
        shaping = next(generators)
        ending = Status.SUCCESS
        try:
            for count in p.counts:
                for draw in range(p.seeds):
                    status = self._add(count, draw, next(generators), shaping)
                    if ending is Status.SUCCESS:
                        ending = status
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        return ending

    def _add(
        self, count: int, draw: int, rng: np.random.Generator, shaping: np.random.Generator
    ) -> Status:
        """Draw and move one cloud."""
        p = self.problem
        tokens = p.start.sample(
            count, rng, antithetic=p.antithetic, moment_matched=p.moment_matched
        )
        run = self._move(tokens, p.rtol, rng)
        seen = self._course(count, run)
        if not self.clouds and p.layers is None:
            finest = FINEST if p.dtype == "float64" else SINGLE_RTOL
            finer = self._move(tokens, max(FINER * p.rtol, finest), rng)
            self.resolution = _difference(run, finer, len(seen.matched))
        if count == p.counts[-1] and draw == 0 and self.shapes:
            self._test(run, len(seen), shaping)
        self.clouds.append(seen)
        self.done += float(count) ** 2
        return run.status

    def _move(self, tokens: Array, rtol: float, rng: np.random.Generator) -> TokenRun:
        p = self.problem
        share = float(tokens.shape[0]) ** 2
        total = p.seeds * sum(float(n) ** 2 for n in p.counts)

        def report(fraction: float, text: str) -> None:
            self.progress(min((self.done + share * fraction) / total, 1.0), text)

        run = simulate_tokens(
            tokens,
            p.schedule,
            p.horizon,
            rng=rng,
            layers=p.layers,
            mask_self=p.mask_self,
            feedforward=p.feedforward,
            rtol=rtol,
            max_steps=p.max_steps,
            backend=p.backend,
            dtype=p.dtype,
            observe=self.times,
            keep=tokens.shape[0],
            progress=report,
        )
        if run.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return run

    def _course(self, count: int, run: TokenRun) -> CloudCourse:
        p = self.problem
        # A cloud that ended early was seen a last time between two times of observation.
        k = self.times.size if run.status is Status.SUCCESS else _common(run.times, self.times)
        mean, covariance = run.means[0], run.covariances[0]
        matched = follow(Gaussian.from_covariance(mean, covariance), p, self.times, p.layers)
        attention = [
            measure_attention(p.schedule(float(t)), cloud, mask_self=p.mask_self)
            for t, cloud in zip(self.times[:k], run.clouds[:k], strict=True)
        ]
        return CloudCourse(
            count=count,
            status=run.status,
            means=run.means[:k],
            covariances=run.covariances[:k],
            largest=run.largest_norm[:k],
            logit_variances=np.array([a.logit_variance for a in attention]),
            self_weights=np.array([a.self_weight for a in attention]),
            effective=np.array([a.effective for a in attention]),
            bound=None if run.norm_bound is None else run.norm_bound[:k],
            matched=matched,
        )

    def _test(self, run: TokenRun, reached: int, rng: np.random.Generator) -> None:
        """Test the shape of a cloud at equally spaced times of observation, while it can be."""
        p = self.problem
        picked = np.linspace(0, self.times.size - 1, self.shapes).round().astype(np.intp)
        for i in np.unique(picked):
            if i >= reached:
                break
            self.progress(
                min(self.done / (p.seeds * sum(float(n) ** 2 for n in p.counts)), 1.0),
                f"shape of {run.problem.count} tokens at t = {self.times[i]:.4g}",
            )
            try:
                told = gaussianity(
                    run.clouds[i],
                    directions=DIRECTIONS,
                    rng=rng,
                    baselines=BASELINES,
                    antithetic=p.antithetic,
                )
            except InvalidNumber as refused:  # too few tokens for their rank, or all are equal
                self.untested = f"at t = {self.times[i]:.4g} {refused}".replace("`cloud`", "it", 1)
                break
            self.tested.append(Shape(float(self.times[i]), run.problem.count, told))


def _common(first: Array, second: Array) -> int:
    """How many entries at the beginning of two arrays agree."""
    k = min(first.size, second.size)
    apart = np.flatnonzero(np.abs(first[:k] - second[:k]) > 1e-12 * max(float(second[-1]), 1e-300))
    return int(apart[0]) if apart.size else k


def _difference(run: TokenRun, finer: TokenRun, most: int) -> float:
    """Largest relative difference of covariances while the law of the cloud goes on."""
    k = min(run.times.size, finer.times.size, most)
    # Scaled before norms are taken, whose squares could underflow or overflow.
    units = np.trace(finer.covariances[:k], axis1=1, axis2=2)[:, None, None]
    exact = finer.covariances[:k] / units
    apart = np.linalg.norm(run.covariances[:k] / units - exact, axis=(1, 2))
    return float(np.max(apart / np.linalg.norm(exact, axis=(1, 2)), initial=0.0))
