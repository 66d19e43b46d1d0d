"""Residual softmax attention as modules of torch; importing this module imports torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.nn.utils import skip_init

from ..._check import Array
from ...errors import InvalidShape
from ...progress import Progress
from ...results.network import LayerWeights

__all__ = ["AttentionBlock", "ResidualTransformer", "move"]

#: Queries that are treated together where a mask hides the diagonal: O(N) memory.
ROWS = 512


class AttentionBlock(nn.Module):
    """Velocity of tokens in one layer, Σ_h W_O,h softmax(scale Q_h K_hᵀ) V_h + A x + b.

    Parameters
    ----------
    dim : int
        Dimension d of the tokens.
    heads, head_dim : int
        Heads, and the width of each; without heads the layer is affine.
    mask_self : bool
        Let no token attend to itself.
    dtype : torch.dtype
    """

    def __init__(
        self, dim: int, heads: int, head_dim: int, *, mask_self: bool, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.heads, self.head_dim, self.mask_self = heads, head_dim, mask_self
        self.scale = 1.0 / math.sqrt(head_dim) if head_dim else 1.0
        width = heads * head_dim
        # Weights are loaded: initial ones would only draw from the global generator.
        if heads:
            self.query = skip_init(nn.Linear, dim, width, dtype=dtype)
            self.key = skip_init(nn.Linear, dim, width, bias=False, dtype=dtype)
            self.value = skip_init(nn.Linear, dim, width, bias=False, dtype=dtype)
            self.output = skip_init(nn.Linear, width, dim, bias=False, dtype=dtype)
        self.affine = skip_init(nn.Linear, dim, dim, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Velocity of tokens (batch, N, d), of the same shape."""
        moved: Tensor = self.affine(x)
        if not self.heads:
            return moved
        q, k, v = (self._split(part(x)) for part in (self.query, self.key, self.value))
        averages = self._attend(q, k, v)
        joined = averages.transpose(1, 2).flatten(2)
        return moved + self.output(joined)

    def _split(self, rows: Tensor) -> Tensor:
        """(batch, N, H k) as (batch, H, N, k)."""
        return rows.unflatten(2, (self.heads, self.head_dim)).transpose(1, 2)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if not self.mask_self:
            return scaled_dot_product_attention(q, k, v, scale=self.scale)
        count, parts = q.shape[2], []
        for first in range(0, count, ROWS):
            some = q[:, :, first : first + ROWS]
            mask = torch.ones(some.shape[2], count, dtype=torch.bool, device=q.device)
            mask.diagonal(first).fill_(value=False)
            parts.append(scaled_dot_product_attention(some, k, v, attn_mask=mask, scale=self.scale))
        return torch.cat(parts, dim=2)


class ResidualTransformer(nn.Module):
    """Residual layers of softmax attention, x ← x + h v_l(x), with weights of an exported plan.

    Parameters
    ----------
    dim : int
        Dimension d of the tokens.
    layers : int
    heads, head_dim : int
        Heads of each layer, and their width; zero heads are a network without attention.
    step : float
        h, kept as the buffer ``step``.
    mask_self : bool
        Let no token attend to itself.
    dtype : torch.dtype
        Of the parameters, which are not initialised: load a ``state_dict``, or use
        :meth:`from_weights`.
    """

    def __init__(
        self,
        dim: int,
        layers: int,
        heads: int,
        head_dim: int,
        step: float,
        *,
        mask_self: bool = False,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        super().__init__()
        self.dim, self.heads, self.head_dim, self.mask_self = dim, heads, head_dim, mask_self
        self.step: Tensor
        self.register_buffer("step", torch.tensor(step, dtype=dtype))
        self.blocks = nn.ModuleList(
            AttentionBlock(dim, heads, head_dim, mask_self=mask_self, dtype=dtype)
            for _ in range(layers)
        )

    @classmethod
    def from_weights(cls, weights: LayerWeights) -> ResidualTransformer:
        """Build the network with these weights."""
        dtype = torch.float64 if weights.dtype == "float64" else torch.float32
        made = cls(
            weights.dim,
            weights.layers,
            weights.heads,
            weights.head_dim,
            weights.step,
            mask_self=weights.mask_self,
            dtype=dtype,
        )
        made.load_state_dict(
            {name: torch.tensor(value, dtype=dtype) for name, value in weights.tensors().items()}
        )
        return made

    def forward(self, x: Tensor) -> Tensor:
        """Move tokens (N, d) or (batch, N, d) through all layers; clouds of a batch are apart."""
        if not isinstance(x, Tensor):
            raise InvalidShape(
                f"tokens must be a torch tensor of shape (N, {self.dim}) or (batch, N, "
                f"{self.dim}), not {type(x).__module__}.{type(x).__qualname__}; convert them by "
                f"`torch.tensor(tokens, dtype=torch.{_named(self.step.dtype)})`."
            )
        if x.dim() not in (2, 3) or x.shape[-1] != self.dim:
            raise InvalidShape(
                f"tokens must have shape (N, {self.dim}) or (batch, N, {self.dim}); they have "
                f"{tuple(x.shape)}."
            )
        if self.mask_self and self.heads and x.shape[-2] < 2:
            raise InvalidShape("a token that must not attend to itself needs another token.")
        if x.dtype != self.step.dtype:
            raise InvalidShape(
                f"the tokens are {_named(x.dtype)}, the module is {_named(self.step.dtype)}; "
                "convert one of them by `.to(dtype)`."
            )
        tokens = x if x.dim() == 3 else x[None]
        for block in self.blocks:
            tokens = tokens + self.step * block(tokens)
        return tokens if x.dim() == 3 else tokens[0]

    def extra_repr(self) -> str:
        """Sizes, step and scale of the scores."""
        scale = 1.0 / math.sqrt(self.head_dim) if self.head_dim else 1.0
        return (
            f"dim={self.dim}, layers={len(self.blocks)}, heads={self.heads}, "
            f"head_dim={self.head_dim}, step={float(self.step):.6g}, scale={scale:.6g}, "
            f"mask_self={self.mask_self}, dtype={_named(self.step.dtype)}"
        )


def move(weights: LayerWeights, tokens: Array, progress: Progress) -> Array:
    """Tokens (N, d) after all layers, as float64; progress is told after each layer."""
    network = ResidualTransformer.from_weights(weights)
    count = len(network.blocks)

    def tell(number: int) -> Callable[..., None]:
        def told(*_: Any) -> None:
            progress((number + 1) / count, f"{len(tokens)} tokens in layer {number + 1} of {count}")

        return told

    for number, block in enumerate(network.blocks):
        block.register_forward_hook(tell(number))
    with torch.no_grad():
        moved = network(torch.tensor(tokens, dtype=network.step.dtype))
    return np.asarray(moved.numpy(), dtype=np.float64)


def _named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
