"""Tokens to send through a model: of real data, or Gaussian with the moments of real ones."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from .._check import Array, integer
from ..errors import InvalidMethod, ModelFileInvalid
from .adapters.tokenizer import tokenizer_of
from .amounts import ARRAYS, Amount, require_room, tell
from .embedding import PatchEmbedding, TokenEmbedding
from .entrance import embed_images, embed_words
from .extra import shortened
from .images import image_files, read_crops
from .samples import sample_photograph, sample_reactions, sample_text
from .stack import Stack
from .weights import Floats

__all__ = ["KINDS", "embeddings"]

KINDS = ("real", "matched", "isotropic")

#: Characters of a text that are read at most.
LONGEST_TEXT = 4_000_000

#: Largest part of words that the vocabulary may not know.
UNKNOWN = 0.3


def embeddings(
    stack: Stack,
    kind: str = "real",
    data: str | os.PathLike[str] | None = None,
    *,
    sequences: int | None = None,
    tokens: int | None = None,
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
    sequences : int, optional
        Number T of sequences, 16 by default; of text or a file of tokens at most so many, and by
        default all of the latter.
    tokens : int, optional
        Number N of tokens of a sequence: by default 512, or for image models, whatever the kind,
        as many as an image has. Real text has at most as many as the model has positions; real
        images and files of tokens have their own number.
    rng : numpy.random.Generator or int
        Chooses sequences or crops if there are more than asked for, and draws Gaussian tokens.

    Returns
    -------
    (T, N, d) float32 array

    Warns
    -----
    UserWarning
        If another number of sequences or tokens was used than was asked for.

    Raises
    ------
    TooLarge
        If so many tokens do not fit into memory.
    InvalidMethod
        If `kind` is unknown, or the model has no embedding for the data.
    ModelFileInvalid
        If the data cannot be read, are too short, or of another kind than the model's.
    """
    if kind not in KINDS:
        raise InvalidMethod(f"`kind` is {kind!r}; expected one of {', '.join(KINDS)}.")
    asked = Amount.of(sequences, tokens)
    count, length = asked.count, asked.length(stack.embedding)
    if kind != "real":
        require_room(count, length, stack.width)
    generator = rng if isinstance(rng, np.random.Generator) else _seeded(rng)
    real = _real(stack, None if data is None else Path(data), kind, asked, generator)
    if kind == "real":
        return real
    if isinstance(stack.embedding, PatchEmbedding) and length != stack.embedding.tokens:
        warnings.warn(
            f"used {length} tokens as asked for, but the model has {stack.embedding.tokens} of an "
            "image.",
            stacklevel=2,
        )
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
    stack: Stack, data: Path | None, kind: str, asked: Amount, rng: np.random.Generator
) -> Floats:
    """Tokens of the data; for Gaussian ones with their moments, of the whole of a file."""
    if data is not None and not data.exists():
        raise ModelFileInvalid(f"there is no file or folder {data}; give a text, images or tokens.")
    embedding = stack.embedding
    if data is not None and data.suffix in ARRAYS:
        array = _read_array(data)
        if array.dtype.kind in "iu" and isinstance(embedding, TokenEmbedding):
            ids = np.atleast_2d(array)
            return embed_words(embedding, _some(ids, asked, data, rng) if kind == "real" else ids)
        made = _as_tokens(array, stack, data)
        return _some(made, asked, data, rng) if kind == "real" else made
    if isinstance(embedding, TokenEmbedding):
        ids = _words(embedding, data, asked, rng, told=kind == "real")
        require_room(len(ids), ids.shape[1], stack.width)
        return embed_words(embedding, ids)
    if isinstance(embedding, PatchEmbedding):
        files = image_files(sample_photograph() if data is None else data)
        pixels = embedding.size**2 * int(embedding.projection.shape[1])
        require_room(asked.count, embedding.tokens, stack.width, pixels)
        if kind == "real":
            tell("tokens", asked.tokens, embedding.tokens, "the model has so many of an image")
        return embed_images(embedding, read_crops(embedding, files, asked.count, rng))
    raise InvalidMethod(
        f"{stack.name} has no embedding, so `data` must be a file of tokens (.npy, .safetensors)."
    )


def _some(
    made: np.ndarray[Any, Any], asked: Amount, data: Path, rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    """At most as many sequences of a file as were asked for, in their order."""
    there, length = made.shape[:2]
    tell("tokens", asked.tokens, length, f"the sequences of {data} have so many")
    if asked.sequences is None or asked.sequences == there:
        return made
    if asked.sequences > there:
        tell("sequences", asked.sequences, there, f"{data} holds no more")
        return made
    return np.asarray(made[np.sort(rng.permutation(there)[: asked.sequences])])


def _words(
    embedding: TokenEmbedding,
    data: Path | None,
    asked: Amount,
    rng: np.random.Generator,
    *,
    told: bool,
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
    length = asked.text_length(embedding)
    inner = length - len(begin) - len(end)
    if inner < 1:
        raise ModelFileInvalid(
            f"{length} tokens have no room for words beside the {len(begin) + len(end)} special "
            "ones of a sequence; raise `tokens`."
        )
    pieces = len(ids) // inner
    if pieces < 1:
        raise ModelFileInvalid(
            f"{name} has {len(ids)} words of the vocabulary, and one sequence needs {inner}; give "
            "a longer text, or lower `tokens`."
        )
    chosen = np.sort(rng.permutation(pieces)[: asked.count])
    if told:
        tell("tokens", asked.tokens, length, f"the model has {length} positions")
        tell("sequences", asked.sequences, len(chosen), f"{name} has no more of {length} tokens")
    cut = ids[: pieces * inner].reshape(pieces, inner)[chosen]
    edges = [np.tile(np.asarray(e, dtype=ids.dtype), (len(cut), 1)) for e in (begin, end)]
    return np.concatenate([edges[0], cut, edges[1]], axis=1)


def _read_text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(LONGEST_TEXT)
    except (OSError, UnicodeDecodeError) as error:
        reason = shortened(error)
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
        reason = shortened(error)
        raise ModelFileInvalid(f"{path} cannot be read as an array: {reason}.") from None
    if len(arrays) != 1:
        raise ModelFileInvalid(f"{path} holds {len(arrays)} arrays; expected one.")
    return np.asarray(next(iter(arrays.values())))


def _as_tokens(array: np.ndarray[Any, Any], stack: Stack, path: Path) -> Floats:
    if array.dtype.kind in "fiu" and array.size:
        largest = max(float(array.max()), -float(array.min()))
        limit = float(np.sqrt(np.finfo(np.float32).max / stack.width))
        if limit < largest < np.inf:
            raise ModelFileInvalid(
                f"{path} holds values up to {largest:.3g}, whose squares overflow single "
                f"precision, in which models run; scale them below {limit / 2:.1g}."
            )
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
