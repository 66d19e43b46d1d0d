"""One layer of a Transformer as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import InvalidShape
from .weights import AttentionWeights, Floats, Mlp, Norm, Rope

__all__ = ["Block"]


@dataclass(frozen=True, eq=False)
class Block:
    """One layer: attention and a feed-forward net, each added to the residual stream.

        pre:   x1 = x + s1 attn(norm1 x),    x2 = x1 + s2 mlp(norm2 x1)
        post:  x1 = norm1(x + s1 attn x),    x2 = norm2(x1 + s2 mlp x1)

    Parameters
    ----------
    attention : AttentionWeights
    mlp : Mlp
    norm_attention, norm_mlp : Norm or None
        norm1 and norm2; None is the identity (ModernBERT's first block).
    placement : "pre" or "post"
    scale_attention, scale_mlp : (d,) float32 arrays or None
        The factors s1, s2 of LayerScale; None is one.
    rope : Rope or None
        Rotary positions.
    window : int or None
        A token attends to those at most this far on either side; None is all of them.
    """

    attention: AttentionWeights
    mlp: Mlp
    norm_attention: Norm | None
    norm_mlp: Norm | None
    placement: Literal["pre", "post"]
    scale_attention: Floats | None = None
    scale_mlp: Floats | None = None
    rope: Rope | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        d = self.width
        if self.placement not in ("pre", "post"):
            raise InvalidShape(f"`placement` must be 'pre' or 'post'; it is {self.placement!r}.")
        sizes = {"mlp": self.mlp.width}
        for name in ("norm_attention", "norm_mlp"):
            norm: Norm | None = getattr(self, name)
            sizes |= {name: len(norm.weight)} if norm is not None else {}
        for name in ("scale_attention", "scale_mlp"):
            scale: Floats | None = getattr(self, name)
            sizes |= {name: len(scale)} if scale is not None else {}
        for name, size in sizes.items():
            if size != d:
                raise InvalidShape(f"`{name}` has width {size}, but `attention` has width {d}.")

    @property
    def width(self) -> int:
        """Width d of the residual stream."""
        return self.attention.width

    def folded(self) -> Block:
        """Return the same map without LayerScale, whose factors go into the output weights.

        Whoever reads V_h = W_O,h W_V,h off a block needs this: the factors multiply V_h, the
        outer weights of the feed-forward net and both biases.
        """
        return Block(
            attention=self.attention.scaled(self.scale_attention),
            mlp=self.mlp.scaled(self.scale_mlp),
            norm_attention=self.norm_attention,
            norm_mlp=self.norm_mlp,
            placement=self.placement,
            rope=self.rope,
            window=self.window,
        )
