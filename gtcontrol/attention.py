"""Softmax attention over N tokens, in memory O(N)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._check import Array
from .errors import InvalidMethod, InvalidShape
from .feedforward import FeedForward
from .parameters import Head, Parameters

__all__ = ["Average", "Mask", "attention_spread", "queries_of", "softmax_average", "velocity"]

#: ``average(queries, keys)``: the average of the keys under softmax weights, for each query.
Average = Callable[[Array, Array], Array]

Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.intp]

#: Queries and keys that are treated together; their scores stay in the processor's cache.
ROWS, COLUMNS = 128, 512

#: Scores of at most this size need no common shift: neither a weight, nor a sum of them, nor a
#: sum of weighted keys can then leave the range of the type or lose digits.
SAFE_SCORE = {np.dtype(np.float64): 300.0, np.dtype(np.float32): 40.0}


class Mask(Enum):
    """Which tokens a token attends to."""

    NONE = "each token attends to all tokens, itself included"
    SELF = "each token attends to all tokens but itself"
    CAUSAL = "each token attends to itself and to the tokens before it"


def softmax_average(
    queries: Array,
    keys: Array,
    mask: Mask = Mask.NONE,
    *,
    own: Indices | None = None,
    single: bool = False,
) -> Array:
    """Average of the keys under softmax weights, one row for each query.

    The scores are taken block by block, so that no n by N matrix occurs.  Scores that could
    leave the range of the exponential get a running maximum subtracted (as in online softmax).
    Weights that the mask hides are zero from the start, not subtracted in the end, so that
    nothing cancels where a token would attend to itself only.

    Parameters
    ----------
    queries : (n, k) array
        Row i holds the vector whose inner products with the keys are the scores of query i.
    keys : (N, k) array
    mask : Mask
    own : (n,) array of int, optional
        With a mask, the number of the key that belongs to the same token as query i,
        increasing; by default i.
    single : bool
        Form scores and weights in single precision; sums are in double precision.

    Returns
    -------
    (n, k) array
        Σ_j exp(⟨q_i, y_j⟩) y_j / Σ_j exp(⟨q_i, y_j⟩), over the keys that are not hidden.
    """
    scores = _Scores.of(queries, keys, mask, own, single)
    averages = np.empty(queries.shape)
    for rows in scores.rows():
        sums = np.zeros((averages[rows].shape[0], keys.shape[1] + 1))
        for block, weights, rescale in scores.weights(rows):
            if rescale is not None:
                sums *= rescale
            sums += weights @ block.extended
        averages[rows] = sums[:, :-1] / sums[:, -1:]
    averages += scores.centre
    return averages


def attention_spread(queries: Array, keys: Array, mask: Mask = Mask.NONE) -> tuple[Array, Array]:
    """Weight w_ii of each token's own key, and the effective number 1/Σ_j w_ij² of keys.

    Parameters
    ----------
    queries, keys : (N, k) arrays
        As in :func:`softmax_average`; query i and key i belong to the same token.
    mask : Mask

    Returns
    -------
    own_weights, effective_sizes : (N,) arrays
    """
    scores = _Scores.of(queries, keys, mask, None, False)
    weights_of_own, sizes = np.empty(len(queries)), np.empty(len(queries))
    for rows in scores.rows():
        own = scores.own[rows]
        total, squares, kept = np.zeros((3, own.size, 1))
        for block, weights, rescale in scores.weights(rows):
            if rescale is not None:
                total *= rescale
                squares *= rescale**2
                kept *= rescale
            total[:, 0] += weights.sum(axis=1)
            squares[:, 0] += np.einsum("ij,ij->i", weights, weights)
            hit, columns = block.diagonal(own)
            kept[hit, 0] += weights[hit, columns]
        weights_of_own[rows] = (kept / total)[:, 0]
        # The two sums are scaled alike: squares/total² lies between 1/N and 1.
        sizes[rows] = 1.0 / (squares / total / total)[:, 0]
    return weights_of_own, sizes


def velocity(
    p: Parameters,
    tokens: Array,
    average: Average | None = None,
    *,
    mask: Mask = Mask.NONE,
    feedforward: FeedForward | None = None,
) -> Array:
    """Velocity of every token under feed-forward and softmax attention.

        x' = A x + b + Σ_h V_h Σ_j w_hj(x) y_j + outer · act(inner x + bias),
        w_hj(x) ∝ exp⟨B_h x + β_h, y_j⟩,

    with the sum over all tokens y_j that the mask leaves.

    Parameters
    ----------
    p : Parameters
        Of dimension k.
    tokens : (N, k) array
    average : callable, optional
        Another way to compute :func:`softmax_average` under the same mask.
    mask : Mask
    feedforward : FeedForward, optional
        Of dimension k.

    Returns
    -------
    (N, k) array
    """
    if average is None:
        average = partial(softmax_average, mask=mask)
    moved = tokens @ p.A.T + p.b
    for head in p.heads:
        if np.any(head[0]):
            moved += _attend(head, tokens, average, mask) @ head[0].T
    if feedforward is not None:
        moved += feedforward.velocity(tokens)
    return np.asarray(moved)


def queries_of(head: Head, tokens: Array) -> Array:
    """Vectors B x + β whose inner products with the keys are the scores, shape (N, k)."""
    _, B, beta = head
    made = tokens @ B.T
    return np.asarray(made if beta is None else made + beta)


def _attend(head: Head, tokens: Array, average: Average, mask: Mask) -> Array:
    _, B, beta = head
    if not np.any(B) and (beta is None or not np.any(beta)):
        return _equal_weights(tokens, mask)
    return average(queries_of(head, tokens), tokens)


def _equal_weights(tokens: Array, mask: Mask) -> Array:
    """Averages where all scores are equal: no exponential is needed."""
    count = tokens.shape[0]
    if mask is Mask.CAUSAL:
        return np.asarray(np.cumsum(tokens, axis=0) / np.arange(1, count + 1)[:, None])
    mean = tokens.mean(axis=0, keepdims=True)
    if mask is Mask.SELF:
        return np.asarray(mean + (mean - tokens) / (count - 1))
    return np.asarray(mean)


@dataclass(frozen=True, eq=False)
class _Block:
    """Keys from number `first` on: as columns, and as rows with a one at the end."""

    first: int
    columns: Floats
    extended: Floats

    def diagonal(self, own: Indices) -> tuple[Indices, Indices]:
        """Rows of the block's scores whose own key is in it, and the columns of these keys."""
        place = own - self.first
        hit = np.flatnonzero((place >= 0) & (place < self.columns.shape[1]))
        return hit, place[hit]


@dataclass(frozen=True, eq=False)
class _Scores:
    """Softmax weights, before they are divided by their sums, block by block.

    A common shift of the keys drops out of the weights; `centre` is subtracted.
    """

    queries: Floats
    own: Indices
    mask: Mask
    centre: Array
    blocks: tuple[_Block, ...]
    reach: float

    @classmethod
    def of(
        cls, queries: Array, keys: Array, mask: Mask, own: Indices | None, single: bool
    ) -> _Scores:
        """Prepare the scores of queries and keys, checked to fit the mask."""
        count = keys.shape[0]
        if own is None:
            own = np.arange(queries.shape[0])
        if mask is not Mask.NONE and (own.size != queries.shape[0] or np.any(own >= count)):
            raise InvalidShape(
                f"with a mask each query needs a key of its own; there are {queries.shape[0]} "
                f"queries and {count} keys."
            )
        if mask is Mask.SELF and count < 2:
            raise InvalidMethod("a token that must not attend to itself needs another token.")
        centre = keys.mean(axis=0)
        dtype = np.float32 if single else np.float64
        shifted: Floats = np.asarray(keys - centre, dtype=dtype)
        blocks = []
        for j in range(0, count, COLUMNS):
            part = shifted[j : j + COLUMNS]
            ones = np.ones((part.shape[0], 1), dtype=dtype)
            columns = np.ascontiguousarray(part.T)
            blocks.append(_Block(j, columns, np.concatenate([part, ones], axis=1)))
        with np.errstate(over="ignore"):  # infinity is a bound, too
            reach = float(np.sqrt(np.max(np.square(shifted).sum(axis=1))))
        return cls(
            np.ascontiguousarray(queries, dtype=dtype), own, mask, centre, tuple(blocks), reach
        )

    def rows(self) -> Iterator[slice]:
        """Blocks of queries."""
        for i in range(0, self.queries.shape[0], ROWS):
            yield slice(i, i + ROWS)

    def weights(self, rows: slice) -> Iterator[tuple[_Block, Floats, Floats | None]]:
        """Blocks of weights, and by what earlier sums must be multiplied (None: by one).

        The array of weights is used again for the next block.
        """
        queries, own = self.queries[rows], self.own[rows]
        with np.errstate(over="ignore", invalid="ignore"):  # then it is not safe
            largest_query = np.sqrt(np.max(np.square(queries).sum(axis=1)))
            safe = bool(largest_query * self.reach <= SAFE_SCORE[queries.dtype])  # Cauchy-Schwarz
        buffer = np.empty((queries.shape[0], COLUMNS), dtype=queries.dtype)
        lowest = 0.5 * np.finfo(queries.dtype).min  # finite: infinities have no difference
        largest = np.full((queries.shape[0], 1), lowest, dtype=queries.dtype)
        for block in self.blocks:
            if self.mask is Mask.CAUSAL and block.first > own[-1]:
                break
            scores = buffer[:, : block.columns.shape[1]]
            np.matmul(queries, block.columns, out=scores)
            rescale = None
            if not safe:
                self._hide(scores, own, block, -np.inf)
                now = np.maximum(largest, scores.max(axis=1, keepdims=True))
                scores -= now
                rescale, largest = np.exp(largest - now), now
            np.exp(scores, out=scores)
            if safe:
                self._hide(scores, own, block, 0.0)
            yield block, scores, rescale

    def _hide(self, scores: Floats, own: Indices, block: _Block, value: float) -> None:
        if self.mask is Mask.SELF:
            scores[block.diagonal(own)] = value
        elif self.mask is Mask.CAUSAL:
            place = own - block.first
            if place[0] < scores.shape[1] - 1:
                scores[np.arange(scores.shape[1]) > place[:, None]] = value
