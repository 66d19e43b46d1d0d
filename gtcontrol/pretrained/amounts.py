"""How many sequences of how many tokens: what was asked for, and what there is."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

from .._check import integer
from ..problem import memory
from .embedding import Embedding, PatchEmbedding, TokenEmbedding

__all__ = ["ARRAYS", "Amount", "Bound", "require_room", "tell"]

#: Files that hold tokens, or numbers of words, instead of text or pixels.
ARRAYS = (".npy", ".safetensors")

#: What is taken if nothing is said.
SEQUENCES, TOKENS = 16, 512


@dataclass(frozen=True)
class Bound:
    """Sequences and tokens of each before any is made: exactly so many, or at most."""

    sequences: int
    tokens: int
    exact: bool


@dataclass(frozen=True)
class Amount:
    """What was asked for; None is what fits the model and the data.

    Parameters
    ----------
    sequences, tokens : int or None
    """

    sequences: int | None
    tokens: int | None

    @classmethod
    def of(cls, sequences: int | None, tokens: int | None, low: int = 1) -> Amount:
        """Check both numbers; `low` is the least number of sequences."""
        return cls(
            None if sequences is None else integer("sequences", sequences, low=low),
            None if tokens is None else integer("tokens", tokens, low=2),
        )

    @property
    def count(self) -> int:
        """Number of sequences."""
        return SEQUENCES if self.sequences is None else self.sequences

    def length(self, embedding: Embedding | None) -> int:
        """Number of tokens of a Gaussian sequence: by default those of an image, if it is one."""
        if self.tokens is not None:
            return self.tokens
        return embedding.tokens if isinstance(embedding, PatchEmbedding) else TOKENS

    def text_length(self, embedding: TokenEmbedding) -> int:
        """Number of tokens of a sequence of text, at most as many as there are positions."""
        length = self.length(embedding)
        return length if embedding.positions is None else min(length, len(embedding.positions))

    def bound(
        self, embedding: Embedding | None, kind: str, data: Path | None = None
    ) -> Bound | None:
        """What will run through a model, as far as it is known without reading the data."""
        if kind != "real":
            return Bound(self.count, self.length(embedding), exact=True)
        if data is not None and data.suffix in ARRAYS:
            return None
        if isinstance(embedding, PatchEmbedding):
            return Bound(self.count, embedding.tokens, exact=True)
        if isinstance(embedding, TokenEmbedding):
            return Bound(self.count, self.text_length(embedding), exact=False)
        return None


def tell(what: str, asked: int | None, used: int, why: str) -> None:
    """Warn, in one line, that another number was used than was asked for, if one was."""
    if asked is not None and asked != used:
        warnings.warn(f"asked for {asked} {what}, used {used}: {why}.", stacklevel=3)


def require_room(sequences: int, tokens: int, width: int, pixels: int = 0) -> None:
    """Refuse tokens in single precision, and images of so many pixels, that do not fit into memory.

    Raises
    ------
    TooLarge
    """
    one = tokens * width
    memory.require(
        f"{sequences} sequences of {tokens} tokens of width {width}",
        # Of real ones a second copy is made, of Gaussian ones a sequence in double precision.
        0.5 * sequences * (2.0 * one + pixels if pixels else one) + 3.0 * one,
        "take fewer sequences or tokens",
    )
