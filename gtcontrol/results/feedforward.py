"""Feed-forward layers with an activation as plain values and arrays, and back."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidMethod, ResultFileInvalid
from ..feedforward import ACTIVATIONS, FeedForward
from .plain import Arrays, read_array

__all__ = ["pack_feedforward", "unpack_feedforward"]


def pack_feedforward(name: str, layer: FeedForward | None) -> tuple[dict[str, Any], Arrays]:
    """Plain values and arrays of a layer, or of none, under the prefix `name`.

    Raises
    ------
    InvalidMethod
        If the activation is a function, which cannot be written down.
    """
    if layer is None:
        return {f"{name}.activation": None}, {}
    if not isinstance(layer.activation, str):
        raise InvalidMethod(
            f"the activation `{layer.name}` is a function of your own, which cannot be saved; use "
            f"one that has a name ({', '.join(ACTIVATIONS)})."
        )
    arrays = {
        f"{name}.inner": layer.inner,
        f"{name}.bias": layer.bias,
        f"{name}.outer": layer.outer,
    }
    return {f"{name}.activation": layer.activation}, arrays


def unpack_feedforward(name: str, values: dict[str, Any], arrays: Arrays) -> FeedForward | None:
    """Restore a layer, if one was saved."""
    key = f"{name}.activation"
    if key not in values:
        raise ResultFileInvalid(f"`{key}` is missing.")
    activation = values[key]
    if activation is None and not any(found.startswith(f"{name}.") for found in arrays):
        return None
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ResultFileInvalid(f"unknown activation {activation!r:.40} of `{name}`.")
    inner = read_array(arrays, f"{name}.inner", None, None)
    hidden, dim = inner.shape
    bias = read_array(arrays, f"{name}.bias", hidden)
    outer = read_array(arrays, f"{name}.outer", dim, hidden)
    return FeedForward(inner, bias, outer, activation)
