"""A pretrained Transformer as values: a stack of bare blocks, whatever library it came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .._check import Array
from ..errors import InvalidShape
from ..progress import Progress, silent
from .block import Block
from .embedding import Embedding, PatchEmbedding, TokenEmbedding
from .weights import AttentionWeights, Floats, Mlp, Norm, Rope

if TYPE_CHECKING:
    from ..gaussian import Gaussian
    from ..results.gaussianity import Gaussianity
    from ..results.heads import HeadTable
    from .forecast import Forecast
    from .forward import BlockRecord
    from .measurement import LayerMoments
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

    def gaussianity(
        self,
        tokens: Array | Floats,
        *,
        directions: int = 128,
        components: int = 16,
        baselines: int = 20,
        rng: np.random.Generator | int = 0,
        positions: bool = True,
    ) -> tuple[Gaussianity, ...]:
        """Tell how far the tokens of all sequences are from Gaussian, before and after each block.

        Parameters
        ----------
        tokens : (T, N, d) or (N, d) array
        directions, components, baselines : int
            As in :func:`gtcontrol.gaussianity`.
        rng : numpy.random.Generator or int
            Source of randomness, or its seed.
        positions : bool
            As in :meth:`run`.

        Returns
        -------
        tuple of Gaussianity
            Of the tokens that are given, then of the output of each block.
        """
        from ..validation.shape import gaussianity
        from .measurement import given

        generator = np.random.default_rng(rng)

        def measure(cloud: Array | Floats) -> Gaussianity:
            return gaussianity(
                np.asarray(cloud).reshape(-1, self.width),
                directions=directions,
                components=components,
                baselines=baselines,
                rng=generator,
            )

        walk = self.walk(tokens, ("output",), positions=positions)
        return (measure(tokens), *(measure(given(record.output)) for record in walk))

    def heads(self, moments: Gaussian | Sequence[LayerMoments], tokens: int = 512) -> HeadTable:
        """Return :func:`gtcontrol.pretrained.tabulate_heads` of this stack.

        Parameters
        ----------
        moments : Gaussian or sequence of LayerMoments
            The law of the input, or moments that were measured in each block.
        tokens : int
            Tokens N of a sequence.

        Returns
        -------
        HeadTable
        """
        from .heads import tabulate_heads

        return tabulate_heads(self, moments, tokens)

    def propagate(
        self,
        law: Gaussian,
        tokens: int | None = 512,
        *,
        self_key: bool = True,
        blocks: int | None = None,
        measured: tuple[ArrayLike, ArrayLike] | None = None,
        progress: Progress = silent,
    ) -> Propagation:
        """Return :func:`gtcontrol.pretrained.propagate` of this stack.

        Parameters
        ----------
        law : Gaussian
            Of the input, of dimension d.
        tokens : int or None
            Tokens of a sequence; None for the mean field.
        self_key : bool
            Whether a token is among its own keys.
        blocks : int, optional
            How many blocks are passed, all by default.
        measured : ((n + 1, d) array, (n + 1, d, d) array), optional
            Measured means and covariances before the first block and after each.
        progress : callable

        Returns
        -------
        Propagation
        """
        from .propagation.chain import propagate

        return propagate(
            self,
            law,
            tokens,
            self_key=self_key,
            blocks=blocks,
            measured=measured,
            progress=progress,
        )

    def forecast(
        self,
        law: Gaussian,
        depth: int | None = None,
        tokens: int | None = 512,
        *,
        measured: ArrayLike | None = None,
    ) -> Forecast:
        """Return :func:`gtcontrol.pretrained.forecast_stack` of this stack.

        Parameters
        ----------
        law : Gaussian
            Of the input, of dimension d.
        depth : int, optional
            Layers, those of the stack by default; beyond them its blocks are repeated.
        tokens : int or None
            Tokens of a sequence; None for the mean field.
        measured : (k + 1,) array, optional
            Measured total variance of the input, then after each layer.

        Returns
        -------
        Forecast
        """
        from .forecast import forecast_stack

        return forecast_stack(self, law, depth, tokens, measured=measured)
