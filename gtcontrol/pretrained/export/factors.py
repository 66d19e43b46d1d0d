"""Weights of queries, keys, values and outputs from the matrices B and V of a schedule."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..._check import Array
from ...parameters import Head, Parameters
from ...problem import memory
from ...results.network import LayerWeights
from ...schedule import Schedule

__all__ = ["factorise", "score_factors", "value_factors"]

#: Singular values up to this many rounding errors of the largest one count as zero.
ROUNDING = 4.0


def factorise(layers: Schedule, *, mask_self: bool, dtype: str) -> LayerWeights:
    """Weights of the residual layers of a schedule of one piece for each, all of one length.

    B_h = W_Kᵀ W_Q/√k and V_h = W_O W_V hold to rounding.  k is the largest rank of a matrix of
    scores or values, so that low-rank heads stay narrow; what a head has less is filled up with
    zeros.

    Parameters
    ----------
    layers : Schedule
        Piecewise constant, with pieces of equal length.
    mask_self : bool
    dtype : str
    """
    count, d = layers.times.size - 1, layers.dim
    pieces = [piece.law(piece.start) for piece in layers.pieces(inner=True)]
    used = _used(pieces)
    scores = [[score_factors(head[1], head[2]) for head in _heads(p, used)] for p in pieces]
    values = [[value_factors(head[0]) for head in _heads(p, used)] for p in pieces]
    ranks = [len(pair[0]) for row in scores for pair in row]
    ranks += [len(pair[1]) for row in values for pair in row]
    k = max(ranks, default=0)
    width = len(used) * k
    memory.require(
        f"the weights of {count} layers of dimension {d}",
        2.0 * count * (d * (d + 1) + 4.0 * width * (d + 1)),
        "take fewer layers",
    )
    query, key, value = (np.zeros((count, width, d)) for _ in range(3))
    query_bias, output = np.zeros((count, width)), np.zeros((count, d, width))
    U = layers.basis
    for i in range(count):
        for j in range(len(used)):
            keys, queries, biases = scores[i][j]
            out, into = values[i][j]
            rows = slice(j * k, j * k + len(keys))
            # The scores are divided by √k again.
            scale = k**0.25
            key[i, rows], query[i, rows] = _lift(scale * keys, U), _lift(scale * queries, U)
            query_bias[i, rows] = scale * biases
            rows = slice(j * k, j * k + len(into))
            value[i, rows], output[i, :, rows] = _lift(into, U), _lift(out.T, U).T
    return LayerWeights(
        step=layers.horizon / count,
        heads=len(used),
        head_dim=k,
        mask_self=mask_self,
        dtype=dtype,
        query=query,
        query_bias=query_bias,
        key=key,
        value=value,
        output=output,
        affine=np.array([p.A if U is None else U @ p.A @ U.T for p in pieces]),
        bias=np.array([p.b if U is None else U @ p.b for p in pieces]),
    )


def score_factors(B: Array, beta: Array | None) -> tuple[Array, Array, Array]:
    """Factors K (r, d), Q (r, d) and c (r,) with B = Kᵀ Q and β = Kᵀ c, from one SVD of (B, β).

    β need not lie in the range of B: r is the rank of both together.
    """
    joint = np.column_stack([B, np.zeros(len(B)) if beta is None else beta])
    out, into = value_factors(joint)
    return out.T, into[:, :-1], into[:, -1]


def value_factors(V: Array) -> tuple[Array, Array]:
    """Factors O (d, r) and W (r, n) with V = O W, of equal norms, where r is the rank of V."""
    left, sizes, right = np.linalg.svd(V, full_matrices=False)
    rounding = ROUNDING * np.finfo(float).eps * math.sqrt(sizes.size)
    rank = int(np.count_nonzero(sizes > rounding * max(float(sizes[0]), np.finfo(float).tiny)))
    roots = np.sqrt(sizes[:rank])
    return left[:, :rank] * roots, roots[:, None] * right[:rank]


def _used(pieces: Sequence[Parameters]) -> list[int]:
    """Numbers of the heads that move tokens in any layer."""
    most = max(len(p.heads) for p in pieces)
    return [
        j for j in range(most) if any(len(p.heads) > j and np.any(p.heads[j][0]) for p in pieces)
    ]


def _heads(p: Parameters, used: Sequence[int]) -> list[Head]:
    """The heads that are used; those that a layer lacks are zero."""
    nothing = np.zeros((p.dim, p.dim))
    return [p.heads[j] if j < len(p.heads) else (nothing, nothing, None) for j in used]


def _lift(rows: Array, basis: Array | None) -> Array:
    return rows if basis is None else rows @ basis.T
