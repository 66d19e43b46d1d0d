"""From words or pixels to the tokens that enter the first block, as the model does it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidNumber, InvalidShape
from .embedding import PatchEmbedding, TokenEmbedding
from .extra import torch_library, view
from .forward import apply_norm
from .weights import Floats

__all__ = ["embed_images", "embed_words"]

#: Sequences or images at once.
BATCH = 16


def embed_words(embedding: TokenEmbedding, ids: np.ndarray[Any, Any]) -> Floats:
    """Return the tokens of sequences of words.

    Parameters
    ----------
    embedding : TokenEmbedding
    ids : (T, N) integer array
        Numbers of words in the vocabulary.

    Returns
    -------
    (T, N, d) float32 array

    Raises
    ------
    InvalidNumber, InvalidShape
        If a number is not in the vocabulary, or a sequence longer than the positions.
    """
    torch = torch_library()
    ids = np.asarray(ids)
    if ids.ndim != 2 or ids.dtype.kind not in "iu" or 0 in ids.shape:
        raise InvalidShape(
            f"`ids` must be a (T, N) array of whole numbers; it is {ids.shape}, {ids.dtype}."
        )
    size = len(embedding.words)
    if ids.min() < 0 or ids.max() >= size:
        worst = ids.max() if ids.max() >= size else ids.min()
        raise InvalidNumber(f"`ids` holds {worst}; the vocabulary has the numbers 0 to {size - 1}.")
    count = ids.shape[1]
    if embedding.positions is not None and count > len(embedding.positions):
        raise InvalidShape(
            f"sequences have {count} tokens, but the model has {len(embedding.positions)} "
            "positions; lower `tokens`."
        )
    made = []
    for start in range(0, len(ids), BATCH):
        x = embedding.words[ids[start : start + BATCH]]
        if embedding.kind is not None:
            x += embedding.kind
        if embedding.positions is not None:
            x += embedding.positions[:count]
        with torch.no_grad():
            y = apply_norm(embedding.norm, torch.from_numpy(x))
            if embedding.projection is not None:
                bias = embedding.projection_bias
                linear = torch.nn.functional.linear
                y = linear(y, view(embedding.projection), None if bias is None else view(bias))
            made.append(y.numpy())
    return np.concatenate(made)


def embed_images(embedding: PatchEmbedding, pixels: Floats) -> Floats:
    """Return the tokens of images: special tokens, then patches row by row.

    Positions are interpolated to the grid of the images, bicubically, if it is another one than
    the model was trained with.

    Parameters
    ----------
    embedding : PatchEmbedding
    pixels : (T, c, s, s) float32 array
        Normalised as the model's processor does.

    Returns
    -------
    (T, N, d) float32 array
    """
    torch = torch_library()
    channels, patch = embedding.projection.shape[1:3]
    shape = pixels.shape
    if len(shape) != 4 or shape[1] != channels or shape[2] != shape[3] or shape[2] % patch:
        raise InvalidShape(
            f"`pixels` must have shape (T, {channels}, s, s) with s a multiple of {patch}; it has "
            f"{shape}."
        )
    positions = view(interpolated(embedding, shape[2] // patch))
    special = view(embedding.special)
    made = []
    with torch.no_grad():
        for start in range(0, len(pixels), BATCH):
            part = view(pixels[start : start + BATCH])
            convolve = torch.nn.functional.conv2d
            patches = convolve(part, view(embedding.projection), view(embedding.bias), stride=patch)
            patches = patches.flatten(2).transpose(1, 2)
            tokens = torch.cat((special.expand(len(part), -1, -1), patches), dim=1)
            made.append((tokens + positions).numpy())
    return np.concatenate(made)


def interpolated(embedding: PatchEmbedding, side: int) -> Floats:
    """Return the positions of special tokens and of a grid of side by side patches, (N, d)."""
    torch = torch_library()
    special = len(embedding.special)
    own = round((len(embedding.positions) - special) ** 0.5)
    if own == side:
        return embedding.positions
    grid = view(embedding.positions[special:]).reshape(1, own, own, -1).permute(0, 3, 1, 2)
    made = torch.nn.functional.interpolate(
        grid, size=(side, side), mode="bicubic", align_corners=False
    )
    patches = made.permute(0, 2, 3, 1).reshape(side * side, -1).numpy()
    return np.concatenate([embedding.positions[:special], patches])
