"""What each head of a stack does to the variance of the tokens, and whether theory may say so.

To first order, attention changes the total variance of the residual stream x by 2 tr Cov(a, x), to
which head h contributes 2 tr(V_h S B_h C) in the mean field: S is the covariance of what attention
sees and C = Cov(u, x) that of this with the stream.  For N tokens the slope is that of softmax over
finitely many keys, and what all tokens of a sequence share (at least the mean of the sample, S/N)
passes through V_h as well: keys differ by what they do not share.  All products are taken in the k
dimensions of the head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._check import Array
from ..errors import InvalidShape
from ..finite_tokens import FiniteTokens
from ..gaussian import Gaussian
from ..results.heads import HeadFacts, HeadTable
from .measurement import LayerMoments
from .propagation.attention import AttentionMoments, attention_moments
from .propagation.blocks import block_moments
from .propagation.chain import check_stack
from .propagation.law import TokenLaw, root
from .stack import Block, Stack
from .weights import AttentionWeights

__all__ = ["block_heads", "tabulate_heads"]

#: Directions with less variance than this fraction of the largest are left out of regressions.
SINGULAR = 1e-9


@dataclass(frozen=True, eq=False)
class _Seen:
    """What attention sees, u: mean, covariance, that of the means of sequences; the same with x.

    ``total`` is tr S_x of the stream.
    """

    mean: Array
    covariance: Array
    shared: Array
    cross: Array
    cross_shared: Array
    total: float


def tabulate_heads(
    stack: Stack, moments: Gaussian | Sequence[LayerMoments], tokens: int = 512
) -> HeadTable:
    """Tabulate the heads of a stack.

    Parameters
    ----------
    stack : Stack
        Of width d.
    moments : Gaussian or sequence of LayerMoments
        The law of the tokens that enter the first block, from which those before the other blocks
        are predicted; or the moments measured in each block, which need not be all.
    tokens : int
        Number N of tokens that attend to each other.

    Returns
    -------
    HeadTable

    Raises
    ------
    InvalidShape, InvalidNumber
        If the arguments do not fit each other.
    """
    finite = FiniteTokens.named("tokens", tokens)
    rows: list[HeadFacts] = []
    if isinstance(moments, Gaussian):
        check_stack(stack, moments)
        law = TokenLaw.of(moments, finite)
        for layer, block in enumerate(stack.blocks, 1):
            made = block_moments(block, law, finite)
            u, total = made.seen, float(np.trace(law.covariance))
            seen = _Seen(u.mean, u.covariance, u.shared, made.cross, made.cross_shared, total)
            rows += _rows(block, layer, seen, finite)
            law = made.output
        return HeadTable(count=finite.count, rows=tuple(rows))
    if not isinstance(moments, Sequence) or not all(isinstance(m, LayerMoments) for m in moments):
        raise InvalidShape(
            f"`moments` must be a Gaussian or a sequence of LayerMoments, not "
            f"{type(moments).__name__}."
        )
    if len(moments) > stack.depth:
        raise InvalidShape(
            f"there are moments of {len(moments)} layers, but the stack has {stack.depth}."
        )
    for layer, (block, of) in enumerate(zip(stack.blocks, moments, strict=False), 1):
        rows += block_heads(block, layer, of, finite)
    return HeadTable(count=finite.count, rows=tuple(rows))


def block_heads(
    block: Block, layer: int, of: LayerMoments, tokens: FiniteTokens
) -> tuple[HeadFacts, ...]:
    """Facts about the heads of one block, on the moments measured in it.

    Parameters
    ----------
    block : Block
    layer : int
        From 1.
    of : LayerMoments
    tokens : FiniteTokens
    """
    u, x = of.attended, of.before
    cross = of.attended_before
    # The means of sequences are few: their regression on the stream is that of all tokens.
    shared = cross @ np.linalg.pinv(x.covariance, rcond=SINGULAR, hermitian=True) @ x.between
    return _rows(
        block, layer, _Seen(u.mean, u.covariance, u.between, cross, shared, x.trace), tokens
    )


def _rows(block: Block, layer: int, seen: _Seen, tokens: FiniteTokens) -> tuple[HeadFacts, ...]:
    weights = block.folded().attention
    keys = (seen.covariance - seen.shared) * tokens.count / tokens.others
    of = attention_moments(weights, seen.mean, keys, tokens)
    L = root(seen.covariance)
    share = 1.0 / tokens.count
    return tuple(_facts(weights, h, layer, seen, of, L, share) for h in range(weights.heads))


def _facts(
    weights: AttentionWeights,
    h: int,
    layer: int,
    seen: _Seen,
    of: AttentionMoments,
    L: Array,
    share: float,
) -> HeadFacts:
    (output, value), (key, query) = weights.V_factors(h), weights.B_factors(h)
    core = value @ seen.covariance @ key
    asked = query @ seen.cross @ output
    spread = query @ seen.covariance @ query.T
    gain = np.sum((core @ spread @ core.T) * (output.T @ output)) / seen.total
    apart, together = of.rows[h] - share * value, of.rows[h] + (1.0 - of.self_weight[h]) * value
    added = apart @ (seen.cross - seen.cross_shared) + together @ seen.cross_shared
    return HeadFacts(
        layer=layer,
        head=h + 1,
        rate=2 * float(np.sum(core * asked.T)) / seen.total,
        effective_rate=2 * float(np.sum(added * output.T)) / seen.total,
        gain=float(np.sqrt(max(gain, 0.0))),
        balance_V=_balance(L.T @ output, value @ L),
        balance_B=_balance(L.T @ key, query @ L),
        logit_variance=float(of.logit_variance[h]),
        self_weight=float(of.self_weight[h]),
    )


def _balance(left: Array, right: Array) -> float:
    """Return tr M/Σ|λ| for the symmetric part of M = left right, whose rank is at most 2 k.

    With Z = (left, rightᵀ) = Q R it is ½ Q R J Rᵀ Qᵀ, where J swaps the two halves.
    """
    k = left.shape[1]
    R = np.asarray(np.linalg.qr(np.concatenate([left, right.T], axis=1), mode="r"))
    swapped = np.concatenate([R[:, k:], R[:, :k]], axis=1)
    values = np.linalg.eigvalsh(0.5 * swapped @ R.T)
    size = float(np.sum(np.abs(values)))
    return float(values.sum()) / size if size > 0 else 0.0
