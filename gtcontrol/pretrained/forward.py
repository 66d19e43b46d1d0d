"""Forward runs of a stack by torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._check import Array
from ..errors import InvalidMethod
from .weights import Floats

if TYPE_CHECKING:
    from .stack import Stack

__all__ = ["BlockRecord", "walk"]


@dataclass(frozen=True, eq=False)
class BlockRecord:
    """What was recorded in one layer; fields that were not asked for are None.

    Parameters
    ----------
    layer : int
        From 1.
    input : (T, N, d) float32 array or None
        The residual stream before the layer.
    attended : (T, N, d) float32 array or None
        What queries, keys and values are computed from: norm1(input) if the norm comes first,
        else the input.
    attention : (T, N, d) float32 array or None
        What attention adds to the stream, with output bias and LayerScale.
    residual : (T, N, d) float32 array or None
        The sum of input and attention, before any norm.
    norm : (T, N, d) float32 array or None
        What the feed-forward net sees: norm2(residual) if norms come first, else norm1(residual).
    mlp : (T, N, d) float32 array or None
        What the feed-forward net adds, with bias and LayerScale.
    output : (T, N, d) float32 array or None
        The residual stream after the layer.
    """

    layer: int
    input: Floats | None = None
    attended: Floats | None = None
    attention: Floats | None = None
    residual: Floats | None = None
    norm: Floats | None = None
    mlp: Floats | None = None
    output: Floats | None = None


def walk(
    stack: Stack, tokens: Array | Floats, record: Sequence[str], *, positions: bool
) -> Iterator[BlockRecord]:
    """Yield what is recorded of each block; see :meth:`gtcontrol.pretrained.Stack.walk`."""
    raise InvalidMethod("Forward runs need the torch extra.")
