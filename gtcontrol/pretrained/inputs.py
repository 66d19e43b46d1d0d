"""Tokens to send through a model: of real data, or Gaussian with the moments of real ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from .._check import Array, integer
from ..errors import InvalidMethod, ModelFileInvalid
from .adapters.tokenizer import tokenizer_of
from .embedding import PatchEmbedding, TokenEmbedding
from .entrance import embed_images, embed_words
from .images import image_files, read_crops
from .samples import sample_photograph, sample_reactions, sample_text
from .stack import Stack
from .weights import Floats

__all__ = ["KINDS", "embeddings"]

KINDS = ("real", "matched", "isotropic")

#: Files that hold tokens, or numbers of words, instead of text or pixels.
ARRAYS = (".npy", ".safetensors")

#: Characters of a text that are read at most.
LONGEST_TEXT = 4_000_000

#: Largest part of words that the vocabulary may not know.
UNKNOWN = 0.3


def embeddings(
    stack: Stack,
    kind: str = "real",
    data: str | os.PathLike[str] | None = None,
    *,
    sequences: int = 16,
    tokens: int = 512,
    rng: np.random.Generator | int = 0,
) -> Floats:
    """Return sequences of tokens that enter the first block.

    Parameters
    ----------
    stack : Stack
    kind : str
        ``real`` for tokens of data; ``matched`` for independent Gaussian tokens with the mean and
        covariance of all tokens of the data; ``isotropic`` for N(0, (tr S/d) I) with the
        covariance S of the data.
    data : path, optional
        A text, cut into sequences with the special tokens of the model around them; an image or
        a folder of images, prepared as the model's processor does, random crops if there are
        fewer images than sequences; a file ``.npy`` or ``.safetensors`` with tokens, (T, N, d) or
        (N, d), or with numbers of words, (T, N), taken as they are. Without: docstrings of
        Python's standard library, a photograph that comes with Matplotlib, or, for vocabularies
        of chemical reactions, esterifications and amidations.
    sequences : int
        Number T of sequences; of real data, at most.
    tokens : int
        Number N of tokens of a sequence. Real text has at most as many as the model has
        positions, real images as many as they have patches.
    rng : numpy.random.Generator or int
        Chooses sequences or crops if there are more than asked for, and draws Gaussian tokens.

    Returns
    -------
    (T, N, d) float32 array

    Raises
    ------
    InvalidMethod
        If `kind` is unknown, or the model has no embedding for the data.
    ModelFileInvalid
        If the data cannot be read, are too short, or of another kind than the model's.
    """
    if kind not in KINDS:
        raise InvalidMethod(f"`kind` is {kind!r}; expected one of {', '.join(KINDS)}.")
    count = integer("sequences", sequences, low=1)
    length = integer("tokens", tokens, low=2)
    generator = rng if isinstance(rng, np.random.Generator) else _seeded(rng)
    real = _real(stack, None if data is None else Path(data), count, length, generator)
    if kind == "real":
        return real
    mean, covariance = _pooled(real)
    d = len(mean)
    if kind == "isotropic":
        mean, covariance = np.zeros(d), np.eye(d) * (np.trace(covariance) / d)
    values, vectors = np.linalg.eigh(covariance)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = np.empty((count, length, d), dtype=np.float32)
    for sequence in drawn:  # so that no second array of their size is needed
        sequence[:] = mean + generator.standard_normal((length, d)) @ factor.T
    return drawn


def _seeded(rng: object) -> np.random.Generator:
    return np.random.default_rng(integer("rng", rng, low=0))


def _pooled(real: Floats) -> tuple[Array, Array]:
    """Mean and covariance of the tokens of all sequences."""
    cloud = real.reshape(-1, real.shape[-1]).astype(np.float64)
    mean = cloud.mean(axis=0)
    cloud -= mean
    return mean, cloud.T @ cloud / len(cloud)


def _real(
    stack: Stack, data: Path | None, count: int, length: int, rng: np.random.Generator
) -> Floats:
    if data is not None and not data.exists():
        raise ModelFileInvalid(f"there is no file or folder {data}; give a text, images or tokens.")
    embedding = stack.embedding
    if data is not None and data.suffix in ARRAYS:
        array = _read_array(data)
        if array.dtype.kind in "iu" and isinstance(embedding, TokenEmbedding):
            return embed_words(embedding, np.atleast_2d(array))
        return _as_tokens(array, stack, data)
    if isinstance(embedding, TokenEmbedding):
        longest = length if embedding.positions is None else len(embedding.positions)
        return embed_words(embedding, _words(embedding, data, count, min(length, longest), rng))
    if isinstance(embedding, PatchEmbedding):
        files = image_files(sample_photograph() if data is None else data)
        return embed_images(embedding, read_crops(embedding, files, count, rng))
    raise InvalidMethod(
        f"{stack.name} has no embedding, so `data` must be a file of tokens (.npy, .safetensors)."
    )


def _words(
    embedding: TokenEmbedding,
    data: Path | None,
    count: int,
    length: int,
    rng: np.random.Generator,
) -> np.ndarray[Any, Any]:
    """Numbers of words, (T, N): a text cut into pieces, each between special tokens."""
    tokenizer = tokenizer_of(embedding.tokenizer)
    if data is None:
        text, name = (sample_reactions() if tokenizer.reads_reactions else sample_text()), "sample"
    else:
        text, name = _read_text(data), str(data)
    ids = tokenizer.numbers(text)
    strange = float(np.mean(ids == tokenizer.unknown)) if ids.size else 0.0
    if strange > UNKNOWN:
        raise ModelFileInvalid(
            f"the vocabulary does not know {strange:.0%} of the words of {name}; give a text of "
            "the kind that the model was trained on."
        )
    begin, end = tokenizer.begin, tokenizer.end
    inner = length - len(begin) - len(end)
    pieces = len(ids) // inner if inner > 0 else 0
    if pieces < 1:
        raise ModelFileInvalid(
            f"{name} has {len(ids)} words of the vocabulary, and one sequence needs {inner}; give "
            "a longer text, or lower `tokens`."
        )
    chosen = np.sort(rng.permutation(pieces)[:count])
    cut = ids[: pieces * inner].reshape(pieces, inner)[chosen]
    edges = [np.tile(np.asarray(e, dtype=ids.dtype), (len(cut), 1)) for e in (begin, end)]
    return np.concatenate([edges[0], cut, edges[1]], axis=1)


def _read_text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(LONGEST_TEXT)
    except (OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:120]
        raise ModelFileInvalid(f"{path} cannot be read as text: {reason}.") from None


def _read_array(path: Path) -> np.ndarray[Any, Any]:
    """The one array in a file."""
    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        from safetensors.numpy import load_file

        arrays = load_file(path)
    except ImportError:
        raise ModelFileInvalid(f"{path} needs the package safetensors; or give .npy.") from None
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise ModelFileInvalid(f"{path} cannot be read as an array: {reason}.") from None
    if len(arrays) != 1:
        raise ModelFileInvalid(f"{path} holds {len(arrays)} arrays; expected one.")
    return np.asarray(next(iter(arrays.values())))


def _as_tokens(array: np.ndarray[Any, Any], stack: Stack, path: Path) -> Floats:
    made = np.asarray(array, dtype=np.float32) if array.dtype.kind in "fiu" else array
    made = made[None] if made.ndim == 2 else made
    if made.dtype != np.float32 or made.ndim != 3 or made.shape[2] != stack.width or not made.size:
        raise ModelFileInvalid(
            f"{path} holds an array of shape {array.shape} and type {array.dtype}; expected tokens "
            f"(T, N, {stack.width})."
        )
    if not np.isfinite(made.sum(dtype=np.float64)):
        raise ModelFileInvalid(f"{path} holds nan or infinity.")
    return made
