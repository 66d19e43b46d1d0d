"""Arguments of a run of tokens, checked and put into form."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import _check
from .._check import Array
from ..errors import InvalidMethod, InvalidNumber, InvalidShape
from ..feedforward import FeedForward
from ..gaussian import Gaussian
from ..mixture import Mixture
from ..problem import memory
from ..problem.definitions import TokenProblem
from ..schedule import Schedule

__all__ = [
    "Random",
    "drawn",
    "generator_of",
    "layer_of",
    "observation_times",
    "require_memory",
    "shape_of",
]

#: Vectors of N tokens that the integrator holds at the same time.
STAGES = 16

Random = np.random.Generator | int | np.integer


def shape_of(tokens: ArrayLike | Gaussian | Mixture, count: int | None) -> tuple[int, int]:
    """Number N and dimension d of the tokens."""
    if isinstance(tokens, Gaussian | Mixture):
        if count is None:
            raise InvalidNumber("`count` is needed to draw tokens from a law.")
        return _check.integer("count", count, low=2), tokens.dim
    shape = np.shape(tokens)
    if len(shape) != 2:
        raise InvalidShape(f"`tokens` must have shape (N, d); it has {shape}.")
    if count is not None and count != shape[0]:
        raise InvalidNumber(f"`count` is {count}, but {shape[0]} tokens were given.")
    if shape[0] < 2 or shape[1] < 1:
        raise InvalidNumber(
            f"`tokens` must hold at least 2 tokens of at least 1 dimension; its shape is {shape}."
        )
    return shape[0], shape[1]


def generator_of(rng: Random | None) -> np.random.Generator | None:
    """Source of randomness, if there is one."""
    if rng is None or isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(_check.integer("rng", rng, low=0))


def drawn(
    tokens: ArrayLike | Gaussian | Mixture, problem: TokenProblem, rng: np.random.Generator | None
) -> Array:
    """The tokens at time 0, given or drawn, shape (N, d)."""
    if not isinstance(tokens, Gaussian | Mixture):
        for name in ("antithetic", "moment_matched"):
            if getattr(problem, name):
                raise InvalidMethod(
                    f"`{name}` says how tokens are drawn from a law, but the tokens were given; "
                    "leave it out."
                )
        return _check.array("tokens", tokens, 2)
    if rng is None:
        raise InvalidNumber("`rng` is needed to draw tokens: pass a numpy Generator or a seed.")
    return tokens.sample(
        problem.count,
        rng,
        antithetic=problem.antithetic,
        moment_matched=problem.moment_matched,
    )


def observation_times(observe: int | ArrayLike, end: float, layers: int | None) -> list[float]:
    """Times of observation, increasing."""
    if isinstance(observe, int | np.integer):
        times = np.linspace(0.0, end, _check.integer("observe", observe, low=2))
    else:
        times = np.unique(_check.vector("observe", observe))
        if times.size and not (times[0] >= 0 and times[-1] <= end * (1 + 1e-12)):
            raise InvalidNumber(
                f"`observe` must lie in [0, {end:g}]; it reaches from {times[0]:g} to "
                f"{times[-1]:g}."
            )
        times = np.minimum(times, end)
    if layers is not None:
        nearest = np.unique(np.round(times * (layers / end)))
        times = np.where(nearest == layers, end, nearest * (end / layers))
    return [float(t) for t in times]


def require_memory(
    shape: tuple[int, int],
    schedule: Schedule,
    times: int,
    kept: int,
    layer: FeedForward | None,
) -> None:
    """Refuse a run whose tokens would not fit into memory."""
    n, d = shape
    inner = d if schedule.basis is None else schedule.basis.shape[1]
    hidden = 0 if layer is None else 4 * layer.hidden
    numbers = n * (STAGES * inner + 4 * d + hidden) + times * d * (d + kept + 1)
    memory.require(
        f"moving {n} tokens of dimension {d}", float(numbers), "take fewer tokens or dimensions"
    )


def layer_of(value: FeedForward | None, dim: int) -> FeedForward | None:
    """The feed-forward layer, checked to act on tokens of dimension `dim`."""
    if value is not None and not isinstance(value, FeedForward):
        raise InvalidShape(f"`feedforward` must be a FeedForward, not {type(value).__name__}.")
    if value is not None:
        value.require_dim(dim)
    return value
