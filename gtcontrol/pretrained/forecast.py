"""Forecast of the variance of tokens over depth: bounded, growing, or blowing up.

Normalised tokens have |LN(x) - b| <= √d max|w|, whatever x is.  So behind LayerNorm nothing blows
up: norms at the end of each block bound the tokens themselves, and norms before attention and
feed-forward net bound what a block adds, so that √tr S grows at most linearly with depth.  Residual
layers without norms, S -> (I + h M(S)) S (I + h M(S))ᵀ with M = A + Σ_h V_h S B_h, can grow doubly
exponentially; finitely many tokens can not, as what they attend to lies in their convex hull.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .. import _check
from .._check import Array
from ..errors import InvalidShape
from ..finite_attention.closure import attention_slope
from ..finite_tokens import FiniteTokens
from ..gaussian import Gaussian
from ..parameters import Parameters
from ..results.forecast import BLOWN_UP, Forecast
from ..schedule import Schedule
from .propagation.blocks import block_moments
from .propagation.chain import check_stack
from .propagation.law import TokenLaw, root, symmetric
from .stack import Stack

__all__ = ["Forecast", "forecast_layers", "forecast_stack"]


def forecast_stack(
    stack: Stack,
    law: Gaussian,
    depth: int | None = None,
    tokens: int | None = 512,
    *,
    measured: ArrayLike | None = None,
) -> Forecast:
    """Forecast the variance of Gaussian tokens through a stack, and on beyond its last layer.

    Parameters
    ----------
    stack : Stack
        Of width d.
    law : Gaussian
        Of the input.
    depth : int, optional
        Layers; those of the stack by default.  Beyond them the blocks are repeated in order, as
        models with shared weights do.
    tokens : int or None
        Tokens in a sequence; None for the mean field.
    measured : (k + 1,) array, optional
        Measured total variance of the input, then after each layer.

    Returns
    -------
    Forecast
    """
    check_stack(stack, law)
    n = stack.depth if depth is None else _check.integer("depth", depth, low=1)
    finite = None if tokens is None else FiniteTokens.named("tokens", tokens)
    now = TokenLaw.of(law, finite)
    traces, largest, logits = [], [], []
    for i in range(n + 1):
        traces.append(float(np.trace(now.covariance)))
        largest.append(float(np.linalg.eigvalsh(now.covariance)[-1]))
        if i < n:
            made = block_moments(stack.blocks[i % stack.depth], now, finite)
            logits.append(float(made.attention.logit_variance.max()))
            now = made.output
    placements = {b.placement for b in stack.blocks}
    placement = placements.pop() if len(placements) == 1 else "pre"
    return Forecast(
        model=stack.name,
        tokens=tokens,
        placement=placement if _normed(stack) else "none",
        trained=stack.depth,
        traces=np.array(traces),
        largest=np.array(largest),
        logit_variance=np.array(logits),
        measured=_measured(measured),
        bound=_bound(stack),
    )


def forecast_layers(
    parameters: Parameters | Schedule,
    law: Gaussian,
    layers: int,
    horizon: float,
    tokens: int | None = None,
    *,
    measured: ArrayLike | None = None,
) -> Forecast:
    """Forecast the variance through residual layers x + h (A x + b + attention) without norms.

    Parameters
    ----------
    parameters : Parameters or Schedule
        Of dimension d, of rates; layer i has those at time i h.
    law : Gaussian
        Of the input.
    layers : int
        The step is h = horizon/layers.
    horizon : float
    tokens : int or None
        Number of tokens; None, the default, for the mean field of infinitely many.
    measured : (k + 1,) array, optional
        Measured total variance of the input, then after each layer.

    Returns
    -------
    Forecast
        It ends where the variance has grown by a factor of 1e24.
    """
    if not isinstance(law, Gaussian):
        raise InvalidShape(f"`law` must be a Gaussian, not {type(law).__name__}.")
    if not isinstance(parameters, Parameters | Schedule):
        raise InvalidShape(
            f"`parameters` must be Parameters or a Schedule, not {type(parameters).__name__}."
        )
    if parameters.dim != law.dim:
        raise InvalidShape(f"the law has dimension {law.dim}, the parameters {parameters.dim}.")
    n = _check.integer("layers", layers, low=1)
    h = _check.number("horizon", horizon, low=0.0, strict=True) / n
    finite = None if tokens is None else FiniteTokens.named("tokens", tokens)
    mean, S = law.mean, law.covariance
    traces, largest, logits = [law.trace], [float(law.eigenvalues.max(initial=0.0))], []
    for i in range(n):  # ends far inside the range of double precision
        p = parameters if isinstance(parameters, Parameters) else parameters(i * h)
        mean, S, logit = _layer(p, mean, S, h, finite)
        traces.append(float(np.trace(S)))
        largest.append(float(np.linalg.eigvalsh(S)[-1]))
        logits.append(logit)
        if traces[-1] > BLOWN_UP**2 * traces[0]:
            break
    return Forecast(
        model="residual layers",
        tokens=tokens,
        placement="none",
        trained=n,
        traces=np.array(traces),
        largest=np.array(largest),
        logit_variance=np.array(logits),
        measured=_measured(measured),
        bound=math.inf,
    )


def _layer(
    p: Parameters, mean: Array, S: Array, h: float, tokens: FiniteTokens | None
) -> tuple[Array, Array, float]:
    """One residual layer, and E a² of its worst head."""
    d = len(mean)
    noise = np.zeros((d, d)) if p.noise is None else h * p.noise
    tilts = [B @ mean if beta is None else B @ mean + beta for _, B, beta in p.heads]
    if tokens is None:
        K = sum((V @ S @ B for V, B, _ in p.heads), np.zeros((d, d)))
        added = sum((V @ (mean + S @ q) for (V, _, _), q in zip(p.heads, tilts, strict=True)), p.b)
    else:
        of = attention_slope(p, Gaussian.trusted(mean, root(S)), tokens)
        K, added, noise = of.matrix, of.mean + p.b, noise + h**2 * of.noise
    logit = max(
        (
            float(q @ S @ q + np.sum((B @ S) * (S @ B)))
            for q, (_, B, _) in zip(tilts, p.heads, strict=True)
        ),
        default=0.0,
    )
    F = np.eye(d) + h * (p.A + K)
    return mean + h * (p.A @ mean + added), symmetric(F @ S @ F.T + noise), logit


def _normed(stack: Stack) -> bool:
    """Whether each block has both norms, but for an identity at the very start of the stack."""
    return all(
        b.norm_mlp is not None and (b.norm_attention is not None or i == 0)
        for i, b in enumerate(stack.blocks)
    )


def _bound(stack: Stack) -> float:
    """Return d max w² of the last norm of each block, the largest; inf without norms at the end."""
    norms = [b.norm_mlp if b.placement == "post" else None for b in stack.blocks]
    sizes = [math.inf if n is None else stack.width * float(np.max(n.weight**2)) for n in norms]
    return max(sizes)


def _measured(value: ArrayLike | None) -> Array | None:
    return None if value is None else _check.vector("measured", value)
