"""A pretrained Transformer as values: a stack of bare blocks, whatever library it came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from .._check import Array
from ..errors import InvalidShape
from .embedding import Embedding, PatchEmbedding, TokenEmbedding
from .weights import AttentionWeights, Floats, Mlp, Norm, Rope

if TYPE_CHECKING:
    from ..gaussian import Gaussian
    from ..results.heads import HeadTable
    from .forecast import Forecast
    from .forward import BlockRecord
    from .propagation.chain import Propagation

__all__ = [
    "AttentionWeights",
    "Block",
    "Embedding",
    "Floats",
    "Mlp",
    "Norm",
    "PatchEmbedding",
    "Rope",
    "Stack",
    "TokenEmbedding",
]

#: What can be recorded of a layer.

RECORDS = ("input", "attended", "attention", "residual", "norm", "mlp", "output")


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


@dataclass(frozen=True, eq=False)
class Stack:
    """Blocks of a pretrained Transformer, with what comes before and after them.

    Parameters
    ----------
    name : str
        Of the model, for tables and titles.
    family : str
        ``bert``, ``albert``, ``vit``, ``deit``, ``dinov2``, ``modernbert``, or ``custom``.
    blocks : tuple of Block
        From the first layer to the last; the same object for layers that share their weights.
    embedding : Embedding or None
        How text or images become tokens.
    final_norm : Norm or None
        Applied after the last block.
    source : str
        Where it was loaded from.
    ignored : tuple of str
        Names of weights of the checkpoint that are no part of the stack.
    numerics : float
        Largest relative difference of a block's output from that of the reference library, as
        measured at load; nan if it was not measured.
    numerics_note : str
        What was compared with what, or why nothing was.
    """

    name: str
    family: str
    blocks: tuple[Block, ...]
    embedding: Embedding | None = None
    final_norm: Norm | None = None
    source: str = ""
    ignored: tuple[str, ...] = ()
    numerics: float = float("nan")
    numerics_note: str = field(default="not compared")

    def __post_init__(self) -> None:
        if not self.blocks:
            raise InvalidShape("`blocks` is empty; a stack has at least one block.")
        for i, block in enumerate(self.blocks):
            if block.width != self.width:
                raise InvalidShape(
                    f"block {i + 1} has width {block.width}, but block 1 has width {self.width}."
                )

    def __repr__(self) -> str:
        return (
            f"Stack({self.name!r}, family={self.family!r}, depth={self.depth}, "
            f"width={self.width}, heads={self.blocks[0].attention.heads}, shared={self.shared})"
        )

    @property
    def width(self) -> int:
        """Width d of the residual stream."""
        return self.blocks[0].width

    @property
    def depth(self) -> int:
        """Number of layers."""
        return len(self.blocks)

    @property
    def shared(self) -> bool:
        """Whether all layers are one block: constant parameters in time."""
        return self.depth > 1 and all(block is self.blocks[0] for block in self.blocks)

    def run(
        self,
        tokens: Array | Floats,
        record: Sequence[str] = ("attention", "residual", "norm", "mlp", "output"),
        *,
        positions: bool = True,
    ) -> tuple[BlockRecord, ...]:
        """Run sequences of tokens through all blocks and keep what is recorded of each.

        Parameters
        ----------
        tokens : (T, N, d) or (N, d) array
            Sequences that do not see each other; a single one is one with T = 1.
        record : sequence of str
            Which arrays to keep, of ``input``, ``attended``, ``attention``, ``residual``,
            ``norm``, ``mlp``, ``output``; see :class:`gtcontrol.pretrained.forward.BlockRecord`.
        positions : bool
            Whether rotary positions and attention windows apply. Without them the blocks are
            equivariant under permutations of the tokens.

        Returns
        -------
        tuple of BlockRecord
            One for each layer. All of it is held in memory: for large models use :meth:`walk`.
        """
        return tuple(self.walk(tokens, record, positions=positions))

    def walk(
        self,
        tokens: Array | Floats,
        record: Sequence[str] = ("output",),
        *,
        positions: bool = True,
    ) -> Iterator[BlockRecord]:
        """Return the records of :meth:`run` one by one, so that only one is in memory at a time.

        Parameters
        ----------
        tokens : (T, N, d) or (N, d) array
        record : sequence of str
        positions : bool
            All as in :meth:`run`.

        Returns
        -------
        iterator of BlockRecord
        """
        from .forward import walk

        return walk(self, tokens, record, positions=positions)

    def propagate(
        self, law: Gaussian, tokens: int | None = 512, *, self_key: bool = True
    ) -> Propagation:
        """Predict the law of Gaussian tokens after every block.

        See :func:`gtcontrol.pretrained.propagate`, which can also start from measured moments.

        Parameters
        ----------
        law : Gaussian
            Of dimension d.
        tokens : int or None
            Tokens in a sequence; None for the mean field of infinitely many.
        self_key : bool
            Whether a token is among its own keys.
        """
        from .propagation.chain import propagate

        return propagate(self, law, tokens, self_key=self_key)

    def heads(self, law: Gaussian, tokens: int = 512) -> HeadTable:
        """Tabulate what each head does to the variance of Gaussian tokens.

        See :func:`gtcontrol.pretrained.tabulate_heads`, which also takes measured moments.

        Parameters
        ----------
        law : Gaussian
            Of dimension d: the tokens that enter the first block.
        tokens : int
            Tokens in a sequence.
        """
        from .heads import tabulate_heads

        return tabulate_heads(self, law, tokens)

    def forecast(
        self, law: Gaussian, depth: int | None = None, tokens: int | None = 512
    ) -> Forecast:
        """Forecast the variance of Gaussian tokens against depth, and beyond the last block.

        See :func:`gtcontrol.pretrained.forecast_stack`.

        Parameters
        ----------
        law : Gaussian
            Of dimension d: the tokens that enter the first block.
        depth : int, optional
            Layers; those of the stack by default.
        tokens : int or None
            Tokens in a sequence; None for the mean field of infinitely many.
        """
        from .forecast import forecast_stack

        return forecast_stack(self, law, depth, tokens)
