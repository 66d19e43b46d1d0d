"""Holding an exported network against the law that it is to reach: `check_export`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ... import _check
from ..._check import Array
from ..._threads import single_threaded
from ...errors import InvalidNumber, InvalidShape, OutOfScale
from ...gaussian import Gaussian, wasserstein
from ...problem import memory
from ...problem.definitions import ExportProblem
from ...progress import Progress, silent
from ...results.export import ExportCheck
from ...results.network import LayerWeights
from ...simulation.run import simulate
from ...status import Status
from .discretisation import require_finite
from .factors import factorise
from .run import layers_of, name_of, require_torch
from .source import Exportable, Source, depth_of, source_of, start_of

__all__ = ["check_export"]

Random = np.random.Generator | int | np.integer

#: Tokens that are kept for pictures.
KEPT = 400


def check_export(
    plan: Exportable,
    horizon: float | None = None,
    *,
    start: Gaussian | None = None,
    layers: Sequence[int] = (4, 8, 16, 32),
    count: int = 10_000,
    rng: Random = 0,
    exact: bool = False,
    mask_self: bool = False,
    dtype: str = "float64",
    baselines: int = 20,
    progress: Progress = silent,
    name: str = "",
) -> ExportCheck:
    """Export a plan with several numbers of layers, and see where each network carries tokens.

    The same tokens, drawn from the start, go through a network of each depth.  The moments of
    what comes out are compared with the target, beside the error that samples of as many tokens
    from the target itself have, and beside the error of the Gaussian law of the layers, which
    falls like 1/layers.

    Parameters
    ----------
    plan : Steering, Design, Schedule or Parameters
        Of dimension d, without process noise.
    horizon : float, optional
        End time; by default that of the plan or of the schedule.
    start : Gaussian, optional
        Law of the tokens at time 0; by default that of the plan.
    layers : sequence of int
        Numbers of layers; the network with most of them is kept in the result.
    count : int
        Number of tokens N.
    rng : numpy.random.Generator or int
        Source of randomness, or its seed.
    exact : bool
        Also try networks whose layers are corrected, and keep the one with most layers; see
        :func:`gtcontrol.to_torch`.
    mask_self : bool
        Let no token attend to itself.
    dtype : str
        "float64" or "float32".
    baselines : int
        Samples from the target.
    progress : callable, optional
        Called as ``progress(fraction, text)``.
    name : str, optional
        Name of the problem, kept in the result; by default that of the plan.

    Returns
    -------
    ExportCheck
        An interrupted check keeps the numbers of layers that are complete.

    Raises
    ------
    InvalidShape, InvalidNumber, IncompatibleSchedule
        If an argument does not fit the others.
    InvalidMethod
        If there is process noise, or `dtype` is not known.
    MissingPackage
        If torch is not installed.
    OutOfScale
        If a network has too few layers, so that tokens leave the range of its numbers; or if the
        flow does not reach the horizon.
    TooLarge
        If the weights or the tokens would not fit into memory.
    """
    began = time.perf_counter()
    require_torch()
    source = source_of(plan, horizon, start)
    law = start_of(source, "to draw tokens from it")
    if not law.rank:
        raise InvalidNumber("`start` has no variance: moments of equal tokens tell nothing.")
    target = _target(source, law)
    problem = ExportProblem(
        law,
        target,
        source.schedule,
        source.horizon,
        _depths(layers),
        _check.integer("count", count, low=2),
        None if isinstance(rng, np.random.Generator) else _check.integer("rng", rng, low=0),
        _check.boolean("exact", exact),
        _check.boolean("mask_self", mask_self),
        name_of(dtype),
        name or source.name,
    )
    draws = _check.integer("baselines", baselines, low=2)
    memory.require(
        f"{problem.count} tokens of dimension {law.dim}",
        20.0 * problem.count * law.dim,
        "take fewer tokens",
    )
    generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(int(rng))
    trial = _Trial(problem, source, generator, draws, progress)
    status = trial.run()
    return trial.result(status, time.perf_counter() - began)


def _target(source: Source, start: Gaussian) -> Gaussian:
    """Target of the plan, or where the flow carries the start."""
    if source.target is not None:
        return source.target
    path = simulate(start, source.schedule, source.horizon)
    if path.status is not Status.SUCCESS:
        end = min(path.blow_up_time, float(path.times[-1]))
        raise OutOfScale(
            f"the law of the start ends at t = {end:.6g} ({path.status.name}), before the horizon "
            f"{source.horizon:g}: there is nothing to reach; shorten the horizon."
        )
    return path.final


def _depths(layers: Sequence[int]) -> tuple[int, ...]:
    if isinstance(layers, int | np.integer | str) or not len(layers):
        raise InvalidShape("`layers` must be a sequence of numbers of layers, like (4, 8, 16).")
    return tuple(sorted({depth_of(n) for n in layers}))


@dataclass
class _Trial:
    """Networks of each depth, tried one after the other on the same tokens."""

    problem: ExportProblem
    source: Source
    rng: np.random.Generator
    draws: int
    progress: Progress
    errors: dict[str, list[float]] = field(default_factory=dict)
    done: int = 0
    kept: LayerWeights | None = None
    after: Array = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        p = self.problem
        self.size = float(np.sqrt(p.target.trace))
        self.tokens = p.start.sample(p.count, self.rng)
        self.baseline = self._baseline()
        self.own = self._own_law()
        kinds = ("law", "token", *(["own"] if self.own else []), *(["exact"] if p.exact else []))
        self.errors = {kind: [] for kind in kinds}
        self.total = sum(p.layers) * (2 if p.exact else 1)
        # The layers' laws are looked at first: too few layers must not be found out late.
        self.laws = [self._law(n) for n in p.layers]
        self.kept = self._weights(p.layers[-1], exact=p.exact)

    @single_threaded
    def _baseline(self) -> Array:
        target, count = self.problem.target, self.problem.count
        return np.array([self._miss(target.sample(count, self.rng)) for _ in range(self.draws)])

    def _own_law(self) -> Gaussian | None:
        """Where the flow carries the moments of the draw, if it gets there."""
        path = simulate(_moments(self.tokens), self.problem.schedule, self.problem.horizon)
        return path.final if path.status is Status.SUCCESS else None

    @single_threaded
    def _law(self, depth: int) -> float:
        made = layers_of(self.source, depth, exact=False)
        reached = require_finite(self.problem.start, made, self.problem.schedule)
        return wasserstein(reached, self.problem.target) / self.size

    @single_threaded
    def _weights(self, depth: int, *, exact: bool) -> LayerWeights:
        p = self.problem
        if self.kept is not None and (depth, exact) == (p.layers[-1], p.exact):
            return self.kept
        made = layers_of(self.source, depth, exact=exact)
        return factorise(made, mask_self=p.mask_self, dtype=p.dtype)

    def run(self) -> Status:
        """Try every depth; interrupted, keep those that are complete, at least one."""
        for i, depth in enumerate(self.problem.layers):
            try:
                made, after = self._try(depth)
            except KeyboardInterrupt:
                if not i:
                    raise
                return Status.INTERRUPTED
            made["law"], self.after = self.laws[i], after
            for kind, values in self.errors.items():
                values.append(made[kind])
        return Status.SUCCESS

    def _try(self, depth: int) -> tuple[dict[str, float], Array]:
        """Errors of the networks of one depth, and what the last of them returns."""
        after = self._forward(self._weights(depth, exact=False))
        made = {"token": self._miss(after)}
        if self.own is not None:
            made["own"] = wasserstein(_moments(after), self.own) / self.size
        if self.problem.exact:
            after = self._forward(self._weights(depth, exact=True))
            made["exact"] = self._miss(after)
        return made, after

    def _forward(self, weights: LayerWeights) -> Array:
        from .module import move  # which imports torch

        moved = move(weights, self.tokens, self._told(weights.layers))
        self.done += weights.layers
        if not np.all(np.isfinite(moved)):
            raise OutOfScale(
                f"with {weights.layers} layers tokens leave the range of {weights.dtype}: take "
                "more layers."
            )
        return moved

    def _told(self, depth: int) -> Progress:
        def tell(fraction: float, text: str) -> None:
            self.progress((self.done + fraction * depth) / self.total, text)

        return tell

    def _miss(self, tokens: Array) -> float:
        return wasserstein(_moments(tokens), self.problem.target) / self.size

    def result(self, status: Status, seconds: float) -> ExportCheck:
        """What was found."""
        if self.kept is None:
            raise TypeError("the network was not made.")
        some = np.linspace(0, len(self.tokens) - 1, min(KEPT, len(self.tokens))).astype(int)
        law = _moments(self.after)
        curves = {kind: np.array(values) for kind, values in self.errors.items()}
        return ExportCheck(
            problem=self.problem,
            status=status,
            baseline=self.baseline,
            mean=law.mean,
            covariance=law.covariance,
            before=self.tokens[some],
            after=self.after[some],
            weights=self.kept,
            seconds=seconds,
            law_errors=curves["law"],
            token_errors=curves["token"],
            own_errors=curves.get("own", np.empty(0)),
            exact_errors=curves.get("exact", np.empty(0)),
        )


def _moments(tokens: Array) -> Gaussian:
    """Gaussian with the mean and covariance (normalised by N) of tokens."""
    mean = tokens.mean(axis=0)
    deviations = tokens - mean
    return Gaussian.from_covariance(mean, deviations.T @ deviations / len(tokens))
