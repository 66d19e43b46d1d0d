"""Moments of tokens through one block: attention and feed-forward net around a residual stream.

What a part adds to the stream is f = mean + F (x - m) + rest, with F the regression slope on the
stream and the rest uncorrelated with it; then

    Cov(x + f) = Cov(x) + F Cov(x) + Cov(x) Fᵀ + Cov(f).

If the part sees u = LayerNorm(x), its slope on the stream is that on u times the mean Jacobian J.
What a sequence shares of its tokens passes through by the slopes alone, as it is small beside what
tokens do not share; attention passes on what all keys share by its value matrices as well.
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
    cross : (d, d) array
        Cov(u, x) of what attention sees with the stream.
    attention : AttentionMoments
        With LayerScale.
    residual : TokenLaw
        Of the stream with attention added, before any norm.
    output : TokenLaw
        Of the stream after the block.
    """

    seen: TokenLaw
    cross: Array
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
    block = block.folded()
    before = block.placement == "pre"
    seen, J = _normalised(block.norm_attention if before else None, law)
    of = attention_moments(block.attention, seen.mean, seen.within, tokens)
    residual = _attended(law, seen, J, of)
    stream = residual if before else _normalised(block.norm_attention, residual)[0]
    inner, J2 = _normalised(block.norm_mlp if before else None, stream)
    net = mlp_moments(block.mlp, inner.mean, inner.covariance)
    D = _after(net.slope, J2)
    output = TokenLaw(
        stream.mean + net.mean,
        stream.covariance + _twice(D @ stream.covariance) + net.covariance,
        _through(D, stream.shared),
    )
    if not before:
        output = _normalised(block.norm_mlp, output)[0]
    cross = law.covariance if J is None else J @ law.covariance
    return BlockMoments(seen, cross, of, residual, output)


def _attended(law: TokenLaw, seen: TokenLaw, J: Array | None, of: AttentionMoments) -> TokenLaw:
    """Law of the stream with attention added.

    Within a sequence the slope is K; what its tokens share is passed on by Σ V_h besides.
    """
    K, whole = _after(of.slope, J), _after(of.values + of.slope, J)
    added = _square(of.slope, seen.within) + _square(of.values + of.slope, seen.shared) + of.noise
    mixed = K @ law.within + whole @ law.shared
    return TokenLaw(
        law.mean + of.mean,
        symmetric(law.covariance + _twice(mixed) + added),
        _through(whole, law.shared) + of.shared,
    )


def _normalised(norm: Norm | None, law: TokenLaw) -> tuple[TokenLaw, Array | None]:
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
    return TokenLaw(made.mean, made.covariance, _square(J, law.shared)), J


def _after(matrix: Array, J: Array | None) -> Array:
    return matrix if J is None else matrix @ J


def _through(F: Array, covariance: Array) -> Array:
    """(I + F) S (I + F)ᵀ."""
    return _square(np.eye(len(F)) + F, covariance)


def _square(F: Array, covariance: Array) -> Array:
    return symmetric(F @ covariance @ F.T)


def _twice(matrix: Array) -> Array:
    return matrix + matrix.T
