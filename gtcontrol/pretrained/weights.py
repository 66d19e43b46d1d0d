"""Weights of the parts of a block, as NumPy arrays in single precision, and what they compute."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._check import Array, integer
from ..errors import InvalidNumber, InvalidShape, NotFinite

__all__ = ["ACTIVATIONS", "AttentionWeights", "Floats", "Mlp", "Norm", "Rope"]

#: Weights as they are in a checkpoint; memory may be shared with the library that read them.
Floats = NDArray[np.float32]

#: ``gelu`` is u Φ(u), ``gelu_tanh`` its approximation by tanh, ``gelu_quick`` u σ(1.702 u).
ACTIVATIONS = ("gelu", "gelu_tanh", "gelu_quick", "relu", "silu", "tanh", "sigmoid", "identity")


@dataclass(frozen=True, eq=False)
class Norm:
    """LayerNorm: weight (x - mean x)/√(var x + epsilon) + bias, over the entries of a token.

    Parameters
    ----------
    weight, bias : (d,) float32 arrays
        The bias is zero in models that have none.
    epsilon : float
    """

    weight: Floats
    bias: Floats
    epsilon: float

    def __post_init__(self) -> None:
        _fit(self, {"weight": ("d",), "bias": ("d",)})


@dataclass(frozen=True, eq=False)
class AttentionWeights:
    """Softmax attention with H heads of dimension k and biases, on tokens of width d.

    The score of query token x and key token y is scale ⟨W_Q x + b_Q, W_K y + b_K⟩, which equals
    ⟨B x + β, y⟩ up to terms without y, and those drop out of the softmax, b_K among them.

    Parameters
    ----------
    query, key, value : (H, k, d) float32 arrays
    query_bias, key_bias, value_bias : (H, k) float32 arrays
    output : (d, H k) float32 array
        Columns h k to (h + 1) k belong to head h.
    output_bias : (d,) float32 array
    scale : float
        Mostly 1/√k.
    """

    query: Floats
    query_bias: Floats
    key: Floats
    key_bias: Floats
    value: Floats
    value_bias: Floats
    output: Floats
    output_bias: Floats
    scale: float

    def __post_init__(self) -> None:
        matrix, bias = ("H", "k", "d"), ("H", "k")
        pattern: dict[str, tuple[str, ...]] = {}
        for name in ("query", "key", "value"):
            pattern |= {name: matrix, f"{name}_bias": bias}
        _fit(self, pattern | {"output": ("d", "H k"), "output_bias": ("d",)})

    @property
    def heads(self) -> int:
        """Number of heads H."""
        return int(self.query.shape[0])

    @property
    def head_width(self) -> int:
        """Dimension k of a head."""
        return int(self.query.shape[1])

    @property
    def width(self) -> int:
        """Width d of the tokens."""
        return int(self.query.shape[2])

    def output_of(self, head: int) -> Array:
        """Return W_O,h in double precision, (d, k)."""
        head, k = self._index(head), self.head_width
        return np.asarray(self.output[:, head * k : (head + 1) * k], dtype=np.float64)

    def V_factors(self, head: int) -> tuple[Array, Array]:  # noqa: N802
        """Return (W_O,h (d, k), W_V,h (k, d)), whose product is V_h, in double precision."""
        head = self._index(head)
        return self.output_of(head), np.asarray(self.value[head], dtype=np.float64)

    def B_factors(self, head: int) -> tuple[Array, Array]:  # noqa: N802
        """Return (scale W_K,hᵀ (d, k), W_Q,h (k, d)), whose product is B_h, in double precision."""
        head = self._index(head)
        key = np.asarray(self.key[head], dtype=np.float64)
        return np.asarray(self.scale * key.T), np.asarray(self.query[head], dtype=np.float64)

    def V(self, head: int) -> Array:  # noqa: N802
        """Return V_h = W_O,h W_V,h, (d, d), in double precision."""
        left, right = self.V_factors(head)
        return np.asarray(left @ right)

    def B(self, head: int) -> Array:  # noqa: N802
        """Return B_h = scale W_K,hᵀ W_Q,h, (d, d), in double precision."""
        left, right = self.B_factors(head)
        return np.asarray(left @ right)

    def beta(self, head: int) -> Array:
        """Return β_h = scale W_K,hᵀ b_Q,h, (d,), in double precision."""
        return np.asarray(self.B_factors(head)[0] @ self.query_bias[head].astype(np.float64))

    def value_offset(self, head: int) -> Array:
        """Return W_O,h b_V,h, (d,), in double precision: weights of a softmax sum to one."""
        return np.asarray(self.output_of(head) @ self.value_bias[head].astype(np.float64))

    def _index(self, head: int) -> int:
        """Return `head`, which must be one of 0 to H - 1."""
        number = integer("head", head, low=0)
        if number >= self.heads:
            raise InvalidNumber(f"`head` is {number}; the heads are 0 to {self.heads - 1}.")
        return number

    def scaled(self, factors: Floats | None) -> AttentionWeights:
        """Return weights whose output is multiplied by `factors` (d,), entry by entry."""
        if factors is None:
            return self
        return replace(
            self, output=factors[:, None] * self.output, output_bias=factors * self.output_bias
        )


@dataclass(frozen=True, eq=False)
class Mlp:
    """Feed-forward net: outer act(inner x + inner_bias) + outer_bias.

    If gated, `inner` has 2 k rows, and act of the first k is multiplied by the last k: GeGLU,
    SwiGLU (Shazeer 2020, "GLU variants improve Transformer").

    Parameters
    ----------
    inner : (k, d) or, gated, (2 k, d) float32 array
    inner_bias : (k,) or (2 k,) float32 array
    outer : (d, k) float32 array
    outer_bias : (d,) float32 array
    activation : str
        One of ``ACTIVATIONS``.
    gated : bool
    """

    inner: Floats
    inner_bias: Floats
    outer: Floats
    outer_bias: Floats
    activation: str
    gated: bool = False

    def __post_init__(self) -> None:
        rows = "2 k" if self.gated else "k"
        pattern = {"outer": ("d", "k"), "outer_bias": ("d",)}
        _fit(self, pattern | {"inner": (rows, "d"), "inner_bias": (rows,)})
        if self.activation not in ACTIVATIONS:
            raise InvalidNumber(
                f"`activation` is {self.activation!r}; expected one of {', '.join(ACTIVATIONS)}."
            )

    @property
    def width(self) -> int:
        """Width d of the tokens."""
        return int(self.outer.shape[0])

    @property
    def hidden(self) -> int:
        """Width k inside."""
        return int(self.outer.shape[1])

    def scaled(self, factors: Floats | None) -> Mlp:
        """Return a net whose output is multiplied by `factors` (d,), entry by entry."""
        if factors is None:
            return self
        return replace(
            self, outer=factors[:, None] * self.outer, outer_bias=factors * self.outer_bias
        )


@dataclass(frozen=True)
class Rope:
    """Rotary positions (Su et al. 2021): entries (j, j + k/2) of a head turn by p theta^(-2j/k).

    The score of tokens at positions p and p' then has B = W_Kᵀ R(p - p') W_Q instead of W_Kᵀ W_Q.

    Parameters
    ----------
    theta : float
        The base of the frequencies.
    """

    theta: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.theta) and self.theta > 0):
            raise InvalidNumber(f"`theta` must be positive and finite; it is {self.theta}.")


def _fit(part: Any, pattern: dict[str, tuple[str, ...]]) -> None:
    """Refuse arrays whose shapes do not follow `pattern`, or which are not finite.

    Sizes are letters, or products of two of them or of a number and one; letters are bound where
    they first stand alone.
    """
    sizes: dict[str, int] = {}
    kind = type(part).__name__
    for name, letters in pattern.items():
        value = getattr(part, name)
        if not isinstance(value, np.ndarray) or value.dtype != np.float32:
            raise InvalidShape(f"`{name}` of {kind} must be a float32 array of NumPy.")
        if value.ndim == len(letters):
            for letter, size in zip(letters, value.shape, strict=True):
                if len(letter) == 1:
                    sizes.setdefault(letter, int(size))
        wanted = tuple(math.prod(_size(s, sizes) for s in letter.split()) for letter in letters)
        if value.shape != wanted or 0 in wanted:
            raise InvalidShape(
                f"`{name}` of {kind} must have shape {wanted}; it has {value.shape}."
            )
        # A sum is finite exactly if all entries are, short of overflow; no mask is allocated.
        if not np.isfinite(value.sum(dtype=np.float64)):
            raise NotFinite(f"`{name}` of {kind} holds nan or infinity.")
    unknown = set(pattern) - {f.name for f in fields(part)}
    if unknown:
        raise InvalidShape(f"{kind} has no {sorted(unknown)}.")


def _size(factor: str, sizes: dict[str, int]) -> int:
    return int(factor) if factor.isdigit() else sizes.get(factor, 0)
