"""Weights of residual softmax attention layers, as arrays and as files."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _check
from .._check import Array
from ..errors import ResultFileInvalid
from .plain import Arrays, pack_plain, plain, read_array
from .tensor_files import DTYPES, encode

__all__ = ["LAYERS_FILE", "WEIGHTS_FILE", "LayerWeights"]

#: Names of the files that hold a network by itself.
WEIGHTS_FILE, LAYERS_FILE = "weights.safetensors", "layers.json"

#: What a network computes, in words, for readers of its files.
_FORMULAS = (
    "x is (N, dim) or (batch, N, dim); for each layer l in order: x = x + step * v(x)",
    "v(x) = affine.weight x + affine.bias + output.weight concat_h(attention_h(x))",
    "attention_h(x)_i = sum_j softmax_j(scale * <q_hi, k_hj>) v_hj",
    "j runs over all tokens of the sequence; with mask_self over all but i",
    "q = query.weight x + query.bias, k = key.weight x, v = value.weight x",
    "rows h*head_dim ... (h+1)*head_dim - 1 of q, k and v belong to head h, from 0",
)

#: Names of the tensors with their shapes; l stands for the number of a layer, from 0.
_SHAPES = {
    "step": "()",
    "blocks.l.query.weight": "(heads*head_dim, dim)",
    "blocks.l.query.bias": "(heads*head_dim,)",
    "blocks.l.key.weight": "(heads*head_dim, dim)",
    "blocks.l.value.weight": "(heads*head_dim, dim)",
    "blocks.l.output.weight": "(dim, heads*head_dim)",
    "blocks.l.affine.weight": "(dim, dim)",
    "blocks.l.affine.bias": "(dim,)",
}

#: Those that a network without attention has.
_AFFINE = ("step", "blocks.l.affine.weight", "blocks.l.affine.bias")

_MATRICES = ("query", "key", "value", "output", "affine")


@dataclass(frozen=True, eq=False)
class LayerWeights:
    """Weights of n residual layers x + h (attention(x) + A x + b) with H heads of width k.

    The score of query x and key y is scale · ⟨W_Q x + b_Q, W_K y⟩ with scale = 1/√k, and a head
    adds W_O W_V times the average of the tokens under the softmax of the scores.

    Attributes
    ----------
    step : float
        h, the same for all layers.
    heads, head_dim : int
        H and k; zero heads are a network without attention.
    mask_self : bool
        Whether no token attends to itself.
    dtype : str
        Type in which the network is to work, "float64" or "float32"; the arrays are float64.
    query, key, value : (n, H k, d) arrays
        W_Q, W_K and W_V of all heads, one below the other.
    query_bias : (n, H k) array
        b_Q.  A bias of the keys would drop out of the softmax, one of the values is part of b.
    output : (n, d, H k) array
        W_O of all heads, side by side.
    affine : (n, d, d) array
        A.
    bias : (n, d) array
        b.
    """

    step: float
    heads: int
    head_dim: int
    mask_self: bool
    dtype: str
    query: Array
    query_bias: Array
    key: Array
    value: Array
    output: Array
    affine: Array
    bias: Array

    @property
    def layers(self) -> int:
        """Number n of layers."""
        return int(self.bias.shape[0])

    @property
    def dim(self) -> int:
        """Dimension d of the tokens."""
        return int(self.bias.shape[1])

    @property
    def scale(self) -> float:
        """Factor of the inner products of queries and keys, 1/√k."""
        return 1.0 / math.sqrt(self.head_dim) if self.head_dim else 1.0

    @property
    def numbers(self) -> int:
        """How many numbers the weights are."""
        matrices = sum(int(getattr(self, name).size) for name in _MATRICES)
        return matrices + int(self.query_bias.size) + int(self.bias.size)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Weights by their names in a ``state_dict``, in the type of the network."""
        made: dict[str, Array] = {"step": np.array(self.step)}
        for i in range(self.layers):
            if self.heads:
                made[f"blocks.{i}.query.weight"] = self.query[i]
                made[f"blocks.{i}.query.bias"] = self.query_bias[i]
                made[f"blocks.{i}.key.weight"] = self.key[i]
                made[f"blocks.{i}.value.weight"] = self.value[i]
                made[f"blocks.{i}.output.weight"] = self.output[i]
            made[f"blocks.{i}.affine.weight"] = self.affine[i]
            made[f"blocks.{i}.affine.bias"] = self.bias[i]
        return {name: np.asarray(value, dtype=self.dtype) for name, value in made.items()}

    def files(self) -> dict[str, bytes]:
        """Content of the files that hold the network by itself, by name."""
        sizes = {
            "dim": self.dim,
            "layers": self.layers,
            "heads": self.heads,
            "head_dim": self.head_dim,
            "step": self.step,
            "scale": self.scale,
            "mask_self": self.mask_self,
            "dtype": self.dtype,
        }
        document = {
            **sizes,
            "weights": WEIGHTS_FILE,
            "formulas": list(_FORMULAS),
            "tensors": _SHAPES if self.heads else {k: _SHAPES[k] for k in _AFFINE},
        }
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        return {
            WEIGHTS_FILE: encode(self.tensors(), {"format": "pt"}),
            LAYERS_FILE: text.encode(),
        }

    def pack(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and arrays."""
        names = (*_MATRICES, "query_bias", "bias")
        return pack_plain(self), {f"weights.{name}": getattr(self, name) for name in names}

    @classmethod
    def unpack(cls, values: dict[str, Any], arrays: Arrays) -> LayerWeights:
        """Restore the weights."""
        found = plain(cls, values)
        _check.number("step", found["step"], low=0.0, strict=True)
        _check.integer("heads", found["heads"], low=0)
        _check.integer("head_dim", found["head_dim"], low=0)
        if found["dtype"] not in DTYPES:
            raise ResultFileInvalid(
                f"`dtype` is {found['dtype']!r:.40}; expected one of {', '.join(DTYPES)}."
            )
        width = found["heads"] * found["head_dim"]
        bias = read_array(arrays, "weights.bias", None, None)
        n, d = bias.shape
        if not n or not d:
            raise ResultFileInvalid("the weights are those of no layer, or of no dimension.")
        return cls(
            **found,
            query=read_array(arrays, "weights.query", n, width, d),
            query_bias=read_array(arrays, "weights.query_bias", n, width),
            key=read_array(arrays, "weights.key", n, width, d),
            value=read_array(arrays, "weights.value", n, width, d),
            output=read_array(arrays, "weights.output", n, d, width),
            affine=read_array(arrays, "weights.affine", n, d, d),
            bias=bias,
        )
