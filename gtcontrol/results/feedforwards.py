"""Feed-forward layers as plain values and arrays, and back."""

from __future__ import annotations

from typing import Any

from ..errors import OutputFailure, ResultFileInvalid
from ..feedforward import ACTIVATIONS, FeedForward
from .plain import Arrays, read_array

__all__ = ["pack_feedforward", "unpack_feedforward"]

_PREFIX = "feedforward"


def pack_feedforward(layer: FeedForward | None) -> tuple[dict[str, Any], Arrays]:
    """Name of the activation, and weights; nothing if there is no layer.

    Raises
    ------
    OutputFailure
        If the activation is a function, which no file can hold.
    """
    if layer is None:
        return {}, {}
    if not isinstance(layer.activation, str):
        raise OutputFailure(
            f"the activation `{layer.name}` is a function, which no file can hold; use one of "
            f"the names {', '.join(ACTIVATIONS)}, or keep the result in memory."
        )
    weights = {"inner": layer.inner, "bias": layer.bias, "outer": layer.outer}
    arrays = {f"{_PREFIX}.{name}": value for name, value in weights.items()}
    return {"activation": layer.activation}, arrays


def unpack_feedforward(values: dict[str, Any], arrays: Arrays) -> FeedForward | None:
    """Restore a layer, or None."""
    if f"{_PREFIX}.inner" not in arrays:
        return None
    activation = values["activation"]
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ResultFileInvalid(
            f"`activation` is {activation!r:.40}; expected one of {', '.join(ACTIVATIONS)}."
        )
    inner = read_array(arrays, f"{_PREFIX}.inner", None, None)
    k, d = inner.shape
    return FeedForward(
        inner,
        read_array(arrays, f"{_PREFIX}.bias", k),
        read_array(arrays, f"{_PREFIX}.outer", d, k),
        activation,
    )
