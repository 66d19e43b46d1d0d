"""Moments of tokens through one block: attention and feed-forward net around a residual stream.

What a part adds to the stream is f = mean + F (x - m) + rest, with F the regression slope on the
stream and the rest uncorrelated with it; then

    Cov(x + f) = Cov(x) + F Cov(x) + Cov(x) Fᵀ + Cov(f).

If the part sees u = LayerNorm(x), its slope on the stream is that on u times the mean Jacobian J.

The mean of a sequence moves by the same slopes, and by the mean over its N tokens of what they
leave.  For attention this is told from what N independent keys do: with V = Σ_h V_h and the
covariance S of such keys, the average over the sequence has V S Vᵀ (N - 1)/N² of the noise and V/N
of the slope.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._check import Array
from ...finite_tokens import FiniteTokens
from ..stack import Block
from ..weights import Norm
from .attention import AttentionMoments, attention_moments
from .law import TokenLaw, symmetric
from .layernorm import normalise
from .mlp import mlp_moments

__all__ = ["BlockMoments", "block_moments"]


class BlockMoments(NamedTuple):
    """Laws inside a block, and what attention does in it.

    Attributes
    ----------
    seen : TokenLaw
        Of what attention sees: the normalised tokens, or the tokens.
    cross, cross_shared : (d, d) arrays
        Cov(u, x) of what attention sees with the stream, and that of their means over a sequence.
    attention : AttentionMoments
        With LayerScale.
    residual : TokenLaw
        Of the stream with attention added, before any norm.
    output : TokenLaw
        Of the stream after the block.
    """

    seen: TokenLaw
    cross: Array
    cross_shared: Array
    attention: AttentionMoments
    residual: TokenLaw
    output: TokenLaw


def block_moments(block: Block, law: TokenLaw, tokens: FiniteTokens | None) -> BlockMoments:
    """Moments of tokens of this law through a block.

    Parameters
    ----------
    block : Block
        Of width d; rotary positions are left out, as all tokens are alike.
    law : TokenLaw
        Of dimension d.
    tokens : FiniteTokens or None
        None for the mean field of infinitely many.
    """
    block, before = block.folded(), block.placement == "pre"
    share = 0.0 if tokens is None else 1.0 / tokens.count
    seen, J = _normalised(block.norm_attention if before else None, law, share)
    of = attention_moments(block.attention, seen.mean, seen.within / (1.0 - share), tokens)
    residual = _attended(law, seen, J, of, share)
    stream = residual if before else _normalised(block.norm_attention, residual, share)[0]
    inner, J2 = _normalised(block.norm_mlp if before else None, stream, share)
    net = mlp_moments(block.mlp, inner.mean, inner.covariance)
    D = _after(net.slope, J2)
    left = net.covariance - _square(net.slope, inner.covariance)
    if J2 is not None:  # what the norm leaves unexplained passes through the net
        left = left + _square(net.slope, inner.covariance - _square(J2, stream.covariance))
    output = TokenLaw(
        stream.mean + net.mean,
        symmetric(stream.covariance + _twice(D @ stream.covariance) + net.covariance),
        _through(D, stream.shared) + share * left,
    )
    if not before:
        output = _normalised(block.norm_mlp, output, share)[0]
    cross, cross_shared = _after_norm(J, law.covariance), _after_norm(J, law.shared)
    return BlockMoments(seen, cross, cross_shared, of, residual, output)


def _attended(
    law: TokenLaw, seen: TokenLaw, J: Array | None, of: AttentionMoments, share: float
) -> TokenLaw:
    """Law of the stream with attention added; `share` is 1/N."""
    K = of.slope - share * of.values
    average = share * _square(of.values, seen.within)
    noise, shared = of.noise - average, of.shared - average
    added = _square(K, seen.within) + _square(of.carried, seen.shared) + noise
    mixed = _after(K, J) @ law.within + _after(of.carried, J) @ law.shared
    return TokenLaw(
        law.mean + of.mean,
        symmetric(law.covariance + _twice(mixed) + added),
        _through(_after(of.carried, J), law.shared) + shared + share * (noise - shared),
    )


def _normalised(norm: Norm | None, law: TokenLaw, share: float) -> tuple[TokenLaw, Array | None]:
    """Law after a norm, and its mean Jacobian; None stands for the identity."""
    if norm is None:
        return law, None
    made = normalise(
        law.mean,
        law.covariance,
        norm.weight.astype(np.float64),
        norm.bias.astype(np.float64),
        norm.epsilon,
    )
    J = made.jacobian
    left = made.covariance - _square(J, law.covariance)
    return TokenLaw(made.mean, made.covariance, _square(J, law.shared) + share * left), J


def _after_norm(J: Array | None, covariance: Array) -> Array:
    return covariance if J is None else J @ covariance


def _after(matrix: Array, J: Array | None) -> Array:
    return matrix if J is None else matrix @ J


def _through(F: Array, covariance: Array) -> Array:
    """(I + F) S (I + F)ᵀ."""
    return _square(np.eye(len(F)) + F, covariance)


def _square(F: Array, covariance: Array) -> Array:
    return symmetric(F @ covariance @ F.T)


def _twice(matrix: Array) -> Array:
    return matrix + matrix.T
