"""Exported layers beside torch's own multi-head attention of the same size: processor time.

Both are residual layers of H heads of width k = d/H with a linear map beside attention, without
gradients, in one thread; times are the smallest of a few, in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

import gtcontrol as gt

from .figures import Figure, table, timed

DEFAULT_COUNT = 5

#: Tokens, dimension and heads of the two sizes; the number of layers.
SIZES, LAYERS = ((512, 256, 8), (4096, 32, 4)), 6


def parameters(d: int, heads: int) -> gt.Parameters:
    """Heads whose scores and values have rank d/H, so that the layers have the usual widths."""
    rng = np.random.default_rng(0)
    k = d // heads
    B, V = (
        np.array([rng.standard_normal((d, k)) @ rng.standard_normal((k, d)) for _ in range(heads)])
        for _ in range(2)
    )
    size = 0.1 / d
    return gt.Parameters(A=-0.1 * np.eye(d), B=size * B, V=size * V, b=np.ones(d))


def stack(d: int, heads: int, torch: Any) -> Any:
    """Residual layers of ``torch.nn.MultiheadAttention`` and ``torch.nn.Linear``."""
    nn = torch.nn

    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.ModuleList(
                nn.MultiheadAttention(d, heads, batch_first=True) for _ in range(LAYERS)
            )
            self.affine = nn.ModuleList(nn.Linear(d, d) for _ in range(LAYERS))

        def forward(self, x: Any) -> Any:
            for attention, affine in zip(self.attention, self.affine, strict=True):
                x = x + 0.1 * (attention(x, x, x, need_weights=False)[0] + affine(x))
            return x

    return Layers().eval()


def measure(count: int) -> list[Figure]:
    """Times of one forward run, the best of `count`."""
    if find_spec("torch") is None:
        print("    torch is not installed: its figures are left out")
        return []
    import torch

    torch.set_num_threads(1)
    rows, made = [], []
    for tokens, d, heads in SIZES:
        network = gt.to_torch(parameters(d, heads), 0.6, layers=LAYERS, dtype="float32")
        x = torch.tensor(
            np.random.default_rng(1).standard_normal((1, tokens, d)), dtype=torch.float32
        )
        other = stack(d, heads, torch)
        with torch.no_grad():
            ours, theirs = _best(count, network, other, x)
        ratio = ours / theirs
        name = f"N = {tokens}, d = {d}, {heads} heads"
        rows.append((name, f"{1000 * ours:.1f}", f"{1000 * theirs:.1f}"))
        made.append(
            Figure(
                f"exported over nn.MultiheadAttention, {name}",
                f"{ratio:.2f} times",
                "<= 1.25 times",
                ratio <= 1.25,
            )
        )
    print(table((f"{LAYERS} layers, float32", "exported, ms cpu", "torch.nn, ms cpu"), rows))
    return made


def _best(
    count: int, first: Callable[[Any], Any], second: Callable[[Any], Any], x: Any
) -> tuple[float, float]:
    """Least processor times of two networks on the same tokens, in turn."""
    times = [
        [timed(lambda: network(x))[1].processor for network in (first, second)]  # noqa: B023
        for _ in range(count + 1)  # the first ones warm up
    ]
    ours, theirs = np.min(times, axis=0)
    return float(ours), float(theirs)
