"""Our blocks held against the library that a model was written for, on random input."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import UnsupportedModel
from ..embedding import PatchEmbedding, TokenEmbedding
from ..entrance import embed_images, embed_words
from ..stack import Stack
from ..weights import Floats
from .library import hidden_states, transformers_library

__all__ = ["TOLERANCE", "check_against_module", "compare"]

#: Largest relative difference of a token that single precision explains.
TOLERANCE = 1e-5

#: Tokens of a random sequence, if windows do not ask for more.
TOKENS = 96


def compare(
    stack: Stack,
    tokens: Floats,
    entered: Floats,
    left: list[Floats],
    library: str,
    *,
    positions: bool = True,
) -> tuple[float, float]:
    """Return how far our embedding and blocks are from the library's, at most, and their chain.

    The difference of two tokens is relative to the norm of the library's.  Blocks are compared
    one by one, each from what enters it in the library: through a chain of blocks the rounding
    errors of the first ones grow.

    Parameters
    ----------
    stack : Stack
    tokens, entered : (T, N, d) arrays
        What enters the first block, ours and the library's.
    left : list of (T, N, d) arrays
        What leaves each block of the library.
    library : str
        Its name, for messages.
    positions : bool
        As in :meth:`gtcontrol.pretrained.Stack.run`.

    Raises
    ------
    UnsupportedModel
        If anything differs by more than :data:`TOLERANCE`.
    """
    errors = {"the embedding": _difference(tokens, entered)}
    given = entered
    for i, (block, wanted) in enumerate(zip(stack.blocks, left, strict=True)):
        alone = Stack(stack.name, stack.family, (block,))
        made = alone.run(given, ("output",), positions=positions)[0].output
        errors[f"block {i + 1}"] = _difference(made, wanted)
        given = wanted
    worst = max(errors, key=lambda part: errors[part])
    if not errors[worst] <= TOLERANCE:
        raise UnsupportedModel(
            f"{worst} of {stack.name} differs from {library} by {errors[worst]:.2g} (relative; "
            f"allowed: {TOLERANCE:g}), so this model is not what its adapter takes it for; "
            "load it with `check=False` to look at it all the same."
        )
    chain = 0.0
    for record, wanted in zip(stack.walk(entered, positions=positions), left, strict=True):
        chain = max(chain, _difference(record.output, wanted))
    return errors[worst], chain


def check_against_module(stack: Stack, module: Any) -> tuple[float, str]:
    """Hold a stack against its module of transformers; return the difference, and a sentence.

    Parameters
    ----------
    stack : Stack
    module : torch module

    Returns
    -------
    float, str
    """
    rng = np.random.default_rng(0)
    library = f"transformers {transformers_library().__version__}"
    ours, theirs = _input(stack, rng, None)
    entered, left = hidden_states(stack.family, module, theirs, stack.depth)
    worst, chain = compare(stack, ours, entered, left, library)
    note = (
        f"every block within {worst:.1e} of {library}, the chain of {stack.depth} within "
        f"{chain:.1e}, on random input"
    )
    windows = [block.window for block in stack.blocks if block.window is not None]
    if any(block.rope is not None for block in stack.blocks):
        # All positions zero and all windows wider than the sequence: attention to content alone.
        count = min([TOKENS, *windows])
        ours, theirs = _input(stack, rng, count)
        theirs["position_ids"] = np.zeros((1, count), dtype=np.int64)
        entered, left = hidden_states(stack.family, module, theirs, stack.depth)
        other, _ = compare(stack, ours, entered, left, library, positions=False)
        worst = max(worst, other)
        note += f", with positions and without ({other:.1e})"
    return worst, note


def _input(
    stack: Stack, rng: np.random.Generator, count: int | None
) -> tuple[Floats, dict[str, Any]]:
    """Random tokens from our embedding, and what the library makes them from."""
    embedding = stack.embedding
    if isinstance(embedding, PatchEmbedding):
        channels, size = embedding.projection.shape[1], embedding.size
        pixels = rng.standard_normal((1, channels, size, size)).astype(np.float32)
        options = {} if stack.family == "dinov2" else {"interpolate_pos_encoding": True}
        return embed_images(embedding, pixels), {"pixel_values": pixels, **options}
    if not isinstance(embedding, TokenEmbedding):
        raise UnsupportedModel(f"{stack.name} has no embedding to make random input with.")
    if count is None:
        windows = [block.window for block in stack.blocks if block.window is not None]
        count = max([TOKENS, *(2 * w + 32 for w in windows)])
        count = count if embedding.positions is None else min(count, len(embedding.positions))
    ids = rng.integers(0, len(embedding.words), (1, count))
    return embed_words(embedding, ids), {"input_ids": ids}


def _difference(ours: Floats | None, theirs: Floats) -> float:
    """Largest norm of a difference of two tokens, relative to that of theirs."""
    if ours is None or ours.shape != theirs.shape:
        return float("inf")
    gap = np.linalg.norm(ours.astype(np.float64) - theirs, axis=-1)
    size = np.linalg.norm(theirs.astype(np.float64), axis=-1)
    return float(np.max(gap / np.maximum(size, np.finfo(np.float32).tiny)))
