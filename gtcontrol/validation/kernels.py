"""Ways to compute softmax averages: blocked NumPy, or the fused attention of torch if installed."""

from __future__ import annotations

import os
from functools import partial
from importlib.util import find_spec

import numpy as np

from .._check import Array
from ..attention import Average, Mask, softmax_average
from ..errors import InvalidMethod

__all__ = ["BACKENDS", "average_by", "choose", "fused_average"]

BACKENDS = ("auto", "numpy", "torch")

DTYPES = ("float64", "float32")

#: On one core the two are about equally fast; torch pays with this many cores and tokens.
CORES, TOKENS = 4, 4096

#: Taking a token's own key away again multiplies rounding errors; beyond this factor the average
#: is computed without it.
LARGEST_AMPLIFICATION = 16.0

#: With larger rounding errors the two scores of a token's own key differ.
LARGEST_SCORE_ERROR = 1e-3


def choose(backend: str, dtype: str, count: int) -> str:
    """Return ``"numpy"`` or ``"torch"``, whichever was asked for or is of advantage.

    Raises
    ------
    InvalidMethod
        If a name is unknown, or torch was asked for and is not installed.
    """
    if backend not in BACKENDS:
        raise InvalidMethod(f"`backend` is {backend!r}; expected one of {', '.join(BACKENDS)}.")
    if dtype not in DTYPES:
        raise InvalidMethod(f"`dtype` is {dtype!r}; expected one of {', '.join(DTYPES)}.")
    installed = find_spec("torch") is not None
    if backend == "torch" and not installed:
        raise InvalidMethod(
            "`backend` is 'torch', but torch is not installed; install it by "
            "`pip install 'gtcontrol[torch]'`, or use 'numpy'."
        )
    if backend != "auto":
        return backend
    pays = count >= TOKENS and len(os.sched_getaffinity(0)) >= CORES
    return "torch" if installed and pays else "numpy"


def average_by(backend: str, dtype: str, mask: Mask) -> Average:
    """Softmax average by the backend that was chosen."""
    single = dtype == "float32"
    if backend == "torch":
        return partial(fused_average, mask=mask, single=single)
    return partial(softmax_average, mask=mask, single=single)


def fused_average(
    queries: Array, keys: Array, mask: Mask = Mask.NONE, *, single: bool = False
) -> Array:
    """Return :func:`gtcontrol.attention.softmax_average` by torch's fused attention.

    The memory is O(N) with a mask, too: a mask of one's own makes torch form the N by N matrix,
    so the diagonal is taken out in another way.  One more key stands for the token itself: its
    score is ⟨q_i, y_i⟩ for query i, its value zero, and an extra component tells its weight p.
    The average a over all N + 1 keys then gives (a - p y_i)/(1 - 2p) without the diagonal.  The
    rounding error of the score enters multiplied by p/(1 - 2p); where that is much, because 1 - 2p
    is small or scores are large, the rows are computed again, by NumPy.

    Parameters
    ----------
    queries, keys : (n, k) and (N, k) arrays
        With a mask, n = N.
    mask : Mask
    single : bool
        Compute in single precision.

    Returns
    -------
    (n, k) array
    """
    if mask is Mask.SELF and len(keys) < 2:
        return softmax_average(queries, keys, mask)  # which refuses it
    centre = keys.mean(axis=0)
    shifted = keys - centre
    if mask is not Mask.SELF:
        return np.asarray(_fused(queries, shifted, single, mask is Mask.CAUSAL) + centre)
    own = np.einsum("ij,ij->i", queries, shifted)
    count, k = shifted.shape
    extended = np.zeros((count + 1, k + 1))
    extended[:count, :k] = shifted
    extended[count, k] = 1.0
    made = _fused(np.concatenate([queries, own[:, None]], axis=1), extended, single, False)
    p = made[:, k:]
    sizes = np.linalg.norm(queries, axis=1) * np.linalg.norm(shifted, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        averages = (made[:, :k] - p * shifted) / (1.0 - 2.0 * p) + centre
        amplified = p[:, 0] / (1.0 - 2.0 * p[:, 0]) * (1.0 + sizes)
    sure = (amplified >= 0) & (amplified < LARGEST_AMPLIFICATION)
    sure &= sizes * np.finfo(np.float32 if single else np.float64).eps < LARGEST_SCORE_ERROR
    rows = np.flatnonzero(~sure)  # so that nan is among them
    if rows.size:
        averages[rows] = softmax_average(queries[rows], keys, mask, own=rows, single=single)
    return np.asarray(averages)


def _fused(queries: Array, keys: Array, single: bool, causal: bool) -> Array:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    kind = torch.float32 if single else torch.float64
    q, k = (torch.tensor(x, dtype=kind)[None, None] for x in (queries, keys))
    made = scaled_dot_product_attention(q, k, k, scale=1.0, is_causal=causal)
    return np.asarray(made[0, 0].numpy(), dtype=np.float64)
