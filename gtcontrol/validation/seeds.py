"""The same cloud for several seeds, as statistics over draws need it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from .. import _check
from ..errors import InvalidNumber, InvalidShape
from ..feedforward import FeedForward
from ..gaussian import Gaussian
from ..mixture import Mixture
from ..parameters import Parameters
from ..progress import Progress, silent
from ..results.tokens import TokenRun
from ..schedule import Schedule
from ..status import Status
from .tokens import simulate_tokens

__all__ = ["simulate_token_seeds"]


def simulate_token_seeds(
    law: Gaussian | Mixture,
    parameters: Parameters | Schedule,
    horizon: float | None = None,
    *,
    count: int,
    seeds: int | Sequence[int] = 8,
    antithetic: bool = False,
    moment_matched: bool = False,
    layers: int | None = None,
    feedforward: FeedForward | None = None,
    mask_self: bool = False,
    causal: bool = False,
    backend: str = "auto",
    dtype: str = "float64",
    rtol: float = 1e-5,
    max_steps: int = 10_000,
    observe: int | ArrayLike = 11,
    keep: int = 0,
    spread: bool = False,
    progress: Progress = silent,
    name: str = "",
) -> tuple[TokenRun, ...]:
    """Draw N tokens once for each seed and move each draw by itself.

    Parameters
    ----------
    law : Gaussian or Mixture
        The law from which all tokens are drawn, of dimension d.
    parameters : Parameters or Schedule
    horizon : float, optional
    count : int
        Number of tokens N of each draw.
    seeds : int or sequence of int
        The seeds, or how many of them from 0 on.
    antithetic, moment_matched, layers, feedforward, mask_self, causal, backend, dtype, rtol, \
max_steps, spread, name
        As in :func:`gtcontrol.simulate_tokens`.
    observe : int or (k,) array
        Number of times, or the times, at which moments are kept.
    keep : int
        Number of tokens kept at these times.
    progress : callable, optional
        Called as ``progress(fraction, text)``.

    Returns
    -------
    tuple of TokenRun
        One for each seed, each as its seed alone gives it.  When interrupted, the last one is
        the one that was under way, with what it has; the later ones are missing.

    Raises
    ------
    InvalidShape, InvalidNumber
        If `law` is no law to draw from, or the seeds are none, repeated or negative; and what
        :func:`gtcontrol.simulate_tokens` raises.
    """
    if not isinstance(law, Gaussian | Mixture):
        raise InvalidShape(
            f"`law` must be a Gaussian or a Mixture to draw from, not {type(law).__name__}."
        )
    chosen = _seeds(seeds)
    runs: list[TokenRun] = []
    for i, seed in enumerate(chosen):
        run = simulate_tokens(
            law,
            parameters,
            horizon,
            count=count,
            rng=seed,
            antithetic=antithetic,
            moment_matched=moment_matched,
            layers=layers,
            feedforward=feedforward,
            mask_self=mask_self,
            causal=causal,
            backend=backend,
            dtype=dtype,
            rtol=rtol,
            max_steps=max_steps,
            observe=observe,
            keep=keep,
            spread=spread,
            progress=_part(progress, i, len(chosen)),
            name=name,
        )
        runs.append(run)
        if run.status is Status.INTERRUPTED:
            break
    return tuple(runs)


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    if isinstance(seeds, int | np.integer) and not isinstance(seeds, bool):
        return list(range(_check.integer("seeds", seeds, low=1)))
    if not isinstance(seeds, Sequence | np.ndarray):
        raise InvalidNumber("`seeds` must be a number of seeds, or a sequence of whole numbers.")
    chosen = [_check.integer("seeds", seed, low=0) for seed in seeds]
    if not chosen or len(set(chosen)) < len(chosen):
        raise InvalidNumber(f"`seeds` must be one or more different numbers; they are {chosen}.")
    return chosen


def _part(progress: Progress, index: int, count: int) -> Progress:
    """Progress of one run as a part of all of them."""
    return lambda fraction, text: progress(
        (index + fraction) / count, f"seed {index + 1} of {count}: {text}"
    )
