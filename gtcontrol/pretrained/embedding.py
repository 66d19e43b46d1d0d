"""How text and images become the tokens that enter the first block."""

from __future__ import annotations

from dataclasses import dataclass

from .weights import Floats, Norm

__all__ = ["Embedding", "PatchEmbedding", "TokenEmbedding"]


@dataclass(frozen=True, eq=False)
class TokenEmbedding:
    """Words, positions and the type of a sequence, summed, normalised and projected.

    Parameters
    ----------
    words : (n, e) float32 array
    positions : (p, e) float32 array or None
        None in models with rotary positions.
    kind : (e,) float32 array or None
        Embedding of the first type of sequence, which all tokens get.
    norm : Norm or None
    projection : (d, e) float32 array or None
        From the width of the words to that of the blocks (ALBERT).
    projection_bias : (d,) float32 array or None
    tokenizer : str
        The folder or hub name of the tokenizer; empty if there is none.
    """

    words: Floats
    positions: Floats | None
    kind: Floats | None
    norm: Norm | None
    projection: Floats | None = None
    projection_bias: Floats | None = None
    tokenizer: str = ""


@dataclass(frozen=True, eq=False)
class PatchEmbedding:
    """Patches of an image, each mapped linearly, after special tokens, plus positions.

    Parameters
    ----------
    projection : (d, c, p, p) float32 array
        Of patches of p by p pixels in c channels.
    bias : (d,) float32 array
    special : (s, d) float32 array
        Tokens before those of the patches: class, distillation.
    positions : (s + g g, d) float32 array
        On a grid of g by g patches; interpolated to other grids (bicubic).
    size : int
        Pixels that images are cropped to.
    resize : int
        Pixels of the edges before cropping.
    keep_aspect : bool
        Whether `resize` is the shorter edge; else images are made square.
    mean, deviation : tuples of c floats
        Pixel values in [0, 1] are shifted and divided by these.
    resampling : int
        As numbered by Pillow: 2 bilinear, 3 bicubic.
    """

    projection: Floats
    bias: Floats
    special: Floats
    positions: Floats
    size: int
    resize: int
    keep_aspect: bool
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    resampling: int = 3

    @property
    def tokens(self) -> int:
        """Tokens of an image: special ones, and one for each patch."""
        return len(self.special) + (self.size // int(self.projection.shape[-1])) ** 2


Embedding = TokenEmbedding | PatchEmbedding
