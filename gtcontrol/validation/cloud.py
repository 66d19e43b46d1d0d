"""A token cloud on its way: the flow of its N tokens, or residual layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import RK45

from .._check import Array
from ..attention import Average, Mask, attention_spread, queries_of, velocity
from ..errors import InvalidMethod, NotFinite
from ..feedforward import FeedForward
from ..parameters import Parameters, check_finite
from ..progress import Progress
from ..schedule import Piece, Schedule
from ..status import Status
from .bounds import largest_norm

__all__ = ["Cloud", "Motion", "Snapshot", "flow", "layers"]

#: Scores are products of two entries, and must stay within double precision.
LARGEST = 1e100

#: Accepted absolute error, as a fraction of the relative tolerance times the size of the cloud.
ABSOLUTE = 1e-2


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The cloud at one time: moments, largest norm, some tokens, and how weights are spread.

    `own_weight` and `effective_size` are averages over the tokens of the weight of their own key
    and of the effective number of keys, for the head where they are largest and smallest.
    """

    time: float
    mean: Array
    covariance: Array
    tokens: Array
    largest_norm: float
    own_weight: float | None
    effective_size: float | None


@dataclass(frozen=True, eq=False)
class Motion:
    """What moves tokens besides the schedule: how attention is averaged, and a layer."""

    average: Average
    mask: Mask = Mask.NONE
    feedforward: FeedForward | None = None

    def velocity(self, p: Parameters, tokens: Array) -> Array:
        """Velocity of all tokens, shape (N, d)."""
        return velocity(p, tokens, self.average, mask=self.mask, feedforward=self.feedforward)


@dataclass
class Cloud:
    """Tokens in coordinates of the schedule's basis, and what was seen of them.

    With a feed-forward layer, which acts in all directions, they keep all their coordinates.

    Parameters
    ----------
    schedule : Schedule
    motion : Motion
    start : (N, d) array
    horizon : float
    wanted : list of float
        Times at which the cloud is to be observed, increasing.
    kept : (n,) array of int
        Tokens that are kept in the snapshots.
    weighed : bool
        Whether snapshots tell how the weights of attention are spread.
    progress : callable
    """

    schedule: Schedule
    motion: Motion
    start: Array
    horizon: float
    wanted: list[float]
    kept: np.ndarray[Any, np.dtype[np.intp]]
    weighed: bool
    progress: Progress
    time: float = 0.0
    steps: int = 0
    evaluations: int = 0
    seen: list[Snapshot] = field(default_factory=list)
    trouble: str = ""

    def __post_init__(self) -> None:
        U = self.schedule.basis if self.motion.feedforward is None else None
        self.basis = U
        self.tokens = self.start if U is None else self.start @ U
        # What lies outside the subspace stays where it is.
        self.rest = None if U is None else self.start - self.tokens @ U.T
        self.observe(0.0, lambda t: self.tokens)

    def lift(self, tokens: Array) -> Array:
        """Tokens in all d coordinates, shape (N, d)."""
        if self.basis is None or self.rest is None:
            return tokens
        return np.asarray(tokens @ self.basis.T + self.rest)

    def law(self, t: float) -> Parameters:
        """Parameters at time t, in the coordinates of the tokens."""
        return self.schedule(t) if self.basis is None else self.schedule.inner(t)

    def observe(self, until: float, at: Callable[[float], Array]) -> None:
        """Take the snapshots wanted up to time `until` of the cloud ``at(t)``."""
        while self.wanted and self.wanted[0] <= until:
            t = self.wanted.pop(0)
            self.seen.append(self._snapshot(t, at(t)))

    def finish(self) -> None:
        """Take a last snapshot where the cloud ended, unless there is one."""
        if not self.seen or self.seen[-1].time < self.time:
            self.seen.append(self._snapshot(self.time, self.tokens))

    def velocity(self, p: Parameters, tokens: Array) -> Array:
        """Velocity of all tokens, counted and reported."""
        self.evaluations += 1
        made = self.motion.velocity(p, tokens)
        if not np.all(np.isfinite(made)):
            check_finite(p, self.time)
            # Later stages of the same step start from nan, and tell nothing.
            self.trouble = self._trouble(tokens) or self.trouble
        self.progress(
            min(self.time / self.horizon, 1.0),
            f"{tokens.shape[0]} tokens at t = {self.time:.4g}, evaluation {self.evaluations}",
        )
        return made

    def refuse_activation(self) -> None:
        """Raise if the activation made a velocity since the last step that is not finite.

        Trial steps of an integrator may go too far; only where the cloud itself cannot move on
        is this an error.
        """
        if self.trouble:
            raise NotFinite(self.trouble)

    def _trouble(self, tokens: Array) -> str:
        """Where the activation makes nan or infinity of finite numbers, in words."""
        layer = self.motion.feedforward
        if layer is None:
            return ""
        hidden = tokens @ layer.inner.T + layer.bias
        values = np.asarray(layer.function(hidden))
        bad = np.isfinite(hidden) & ~np.isfinite(values)
        if not bad.any():
            return ""
        where = tuple(np.argwhere(bad)[0])
        return (
            f"the activation `{layer.name}` is {values[where]} at {hidden[where]:.6g}, which "
            f"token {where[0]} reaches near t = {self.time:.4g}; it must be finite there."
        )

    def _snapshot(self, time: float, tokens: Array) -> Snapshot:
        full = self.lift(tokens)
        mean = full.mean(axis=0)
        deviations = full - mean
        covariance = deviations.T @ deviations / full.shape[0]
        own, sizes = self._spread(time, tokens) if self.weighed else (None, None)
        some = full[self.kept].copy()
        return Snapshot(time, mean, covariance, some, largest_norm(full), own, sizes)

    def _spread(self, time: float, tokens: Array) -> tuple[float, float]:
        spreads = [
            [x.mean() for x in attention_spread(queries_of(head, tokens), tokens, self.motion.mask)]
            for head in self.law(self.schedule.snap(time)).heads
        ]
        own, sizes = np.array(spreads).T
        return float(own.max()), float(sizes.min())


def flow(cloud: Cloud, rtol: float, max_steps: int) -> Status:
    """Integrate all tokens up to the horizon, piece by piece."""
    if cloud.schedule.noisy:
        raise InvalidMethod(
            "tokens with process noise do not follow a differential equation; use `layers`, "
            "each of which adds its share of noise."
        )
    step = None
    for piece in cloud.schedule.pieces(inner=cloud.basis is not None):
        end = min(piece.end, cloud.horizon)
        if piece.start >= end:
            break
        solver = _solver(cloud, piece, end, rtol, step)
        if not np.all(np.isfinite(solver.f)):
            cloud.refuse_activation()
            return Status.OVERFLOW
        status = _through(cloud, solver, max_steps)
        if status is not Status.SUCCESS:
            return status
        step = float(solver.h_abs)  # the size that the next step would have had
    return Status.SUCCESS


def _solver(cloud: Cloud, piece: Piece, end: float, rtol: float, step: float | None) -> Any:
    shape = cloud.tokens.shape

    def right_side(t: float, y: Array) -> Array:
        return cloud.velocity(piece.law(t), y.reshape(shape)).ravel()

    size = float(np.sqrt(np.mean(cloud.tokens**2)))
    made: Any = RK45  # its stubs want a right side that takes complex states, too
    return made(
        right_side,
        cloud.time,
        cloud.tokens.ravel(),
        end,
        rtol=rtol,
        atol=ABSOLUTE * rtol * (size if size > 0 else 1.0),
        first_step=None if step is None else min(step, end - cloud.time),
    )


def _through(cloud: Cloud, solver: Any, max_steps: int) -> Status:
    shape = cloud.tokens.shape
    while solver.status == "running":
        if cloud.steps >= max_steps:
            return Status.STEP_LIMIT
        solver.step()
        if not np.all(np.abs(solver.y) < LARGEST):
            cloud.refuse_activation()
            return Status.OVERFLOW
        if solver.status == "failed":
            cloud.refuse_activation()
            return Status.STEP_SIZE
        cloud.time, cloud.tokens = float(solver.t), solver.y.reshape(shape)
        cloud.steps += 1
        cloud.trouble = ""
        cloud.observe(cloud.time, _between(solver, shape))
    return Status.SUCCESS


def _between(solver: Any, shape: tuple[int, ...]) -> Callable[[float], Array]:
    dense = solver.dense_output()
    return lambda t: np.asarray(dense(t)).reshape(shape)


def layers(cloud: Cloud, count: int, rng: np.random.Generator | None) -> Status:
    """Apply residual layers x⁺ = x + h v(x); process noise adds √h Q^{1/2} ξ to each token."""
    h = cloud.horizon / count
    schedule = cloud.schedule
    for k in range(count):
        p = cloud.law(schedule.snap(k * h))
        moved = cloud.tokens + h * cloud.velocity(p, cloud.tokens)
        if p.noise is not None:
            if rng is None:
                raise InvalidMethod("`rng` is needed to draw the process noise of the layers.")
            values, vectors = np.linalg.eigh(p.noise)
            root = vectors * np.sqrt(h * np.maximum(values, 0.0))
            moved = moved + rng.standard_normal(moved.shape) @ root.T
        if not np.all(np.abs(moved) < LARGEST):
            cloud.refuse_activation()
            return Status.OVERFLOW
        cloud.time = cloud.horizon if k + 1 == count else (k + 1) * h
        cloud.tokens = moved
        cloud.steps += 1
        # Times wanted are those of layers, up to rounding.
        cloud.observe(cloud.time + 0.25 * h, lambda t: cloud.tokens)
    return Status.SUCCESS
