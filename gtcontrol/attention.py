"""Softmax attention over N tokens, in memory O(N)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ._check import Array
from .parameters import Head, Parameters

__all__ = ["Average", "softmax_average", "velocity"]

#: ``average(queries, keys)``: the average of the keys under softmax weights, for each query.
Average = Callable[[Array, Array], Array]

#: Queries that are treated together.
ROWS = 32

#: Keys that are treated together; blocks of scores then stay in the processor's cache.
COLUMNS = 1024


def softmax_average(queries: Array, keys: Array) -> Array:
    """Average of the keys under softmax weights, one row for each query.

    The scores are taken block by block, with a running maximum and a running sum (as in
    online softmax), so that neither an n by N matrix nor an overflow can occur.

    Parameters
    ----------
    queries : (n, k) array
        Row i holds the vector whose inner products with the keys are the scores of query i.
    keys : (N, k) array

    Returns
    -------
    (n, k) array
        Σ_j exp(⟨q_i, y_j⟩) y_j / Σ_j exp(⟨q_i, y_j⟩).
    """
    centre = keys.mean(axis=0)  # a common shift of the keys drops out of the weights
    shifted = keys - centre
    blocks = [
        (np.ascontiguousarray(part.T), np.concatenate([part, np.ones((part.shape[0], 1))], axis=1))
        for part in (shifted[j : j + COLUMNS] for j in range(0, keys.shape[0], COLUMNS))
    ]
    averages = np.empty_like(queries)
    for i in range(0, queries.shape[0], ROWS):
        averages[i : i + ROWS] = _rows(queries[i : i + ROWS], blocks)
    averages += centre
    return averages


def velocity(p: Parameters, tokens: Array, average: Average = softmax_average) -> Array:
    """Velocity of every token under feed-forward and softmax attention.

        x' = A x + b + Σ_h V_h Σ_j w_hj(x) y_j,   w_hj(x) ∝ exp⟨B_h x + β_h, y_j⟩,

    with the sum over all tokens y_j, the token itself included.

    Parameters
    ----------
    p : Parameters
        Of dimension k.
    tokens : (N, k) array
    average : callable, optional
        Another way to compute :func:`softmax_average`.

    Returns
    -------
    (N, k) array
    """
    moved = tokens @ p.A.T + p.b
    for head in p.heads:
        if np.any(head[0]):
            moved += _attend(head, tokens, average) @ head[0].T
    return np.asarray(moved)


def _attend(head: Head, tokens: Array, average: Average) -> Array:
    _, B, beta = head
    if not np.any(B) and (beta is None or not np.any(beta)):  # all scores are equal
        return np.asarray(tokens.mean(axis=0, keepdims=True))
    scores = tokens @ B.T
    return average(scores if beta is None else scores + beta, tokens)


def _rows(queries: Array, blocks: Sequence[tuple[Array, Array]]) -> Array:
    n, k = queries.shape
    largest = np.full((n, 1), -np.inf)
    sums = np.zeros((n, k + 1))  # weighted sum of the keys, and sum of the weights
    for transposed, extended in blocks:
        scores = queries @ transposed
        now = np.maximum(largest, scores.max(axis=1, keepdims=True))
        scores -= now
        np.exp(scores, out=scores)
        sums *= np.exp(largest - now)
        sums += scores @ extended
        largest = now
    return np.asarray(sums[:, :-1] / sums[:, -1:])
