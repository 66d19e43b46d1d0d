"""Blocks and embeddings from the weights of a model and its configuration."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...errors import InvalidShape, ModelFileInvalid, UnsupportedModel
from ..embedding import Embedding, TokenEmbedding
from ..stack import Block
from ..weights import AttentionWeights, Floats, Mlp, Norm, Rope
from .configuration import activation_name, whole
from .names import Names

__all__ = ["blocks_of", "final_norm_of", "token_embedding_of"]

Index = tuple[int, ...]

#: Defaults of the libraries for the epsilon of LayerNorm, where they are not 1e-12.
_EPSILON = {"dinov2": 1e-6, "modernbert": 1e-5}


def blocks_of(names: Names, config: dict[str, Any]) -> tuple[Block, ...]:
    """Return the blocks of a model in the order in which they are applied.

    Parameters
    ----------
    names : Names
        Of NumPy arrays in single precision.
    config : dict
        The configuration; the names of transformers 4 and of transformers 5 are understood.
    """
    depth = whole(config, "num_hidden_layers")
    if names.family != "albert":
        return tuple(_block(names, config, (i,), i) for i in range(depth))
    groups = whole(config, "num_hidden_groups", 1)
    inner = whole(config, "inner_group_num", 1)
    made = {(g, j): _block(names, config, (g, j), g) for g in range(groups) for j in range(inner)}
    order = [(int(i / (depth / groups)), j) for i in range(depth) for j in range(inner)]
    return tuple(made[index] for index in order)


def _block(names: Names, config: dict[str, Any], index: Index, layer: int) -> Block:
    placement: Literal["pre", "post"] = "post" if names.family in ("bert", "albert") else "pre"
    first = "norm_attention"
    epsilon = _epsilon(names.family, config)
    attention = _attention(names, config, index)
    absent = names.family == "modernbert" and names.layer_or_none(index, first) is None
    rope, window = _positions(config, layer) if names.family == "modernbert" else (None, None)
    scaled = names.family == "dinov2"
    return Block(
        attention=attention,
        mlp=_mlp(names, config, index),
        norm_attention=None if absent and layer == 0 else _norm(names, index, first, epsilon),
        norm_mlp=_norm(names, index, "norm_mlp", epsilon),
        placement=placement,
        scale_attention=names.layer(index, "scale_attention", None) if scaled else None,
        scale_mlp=names.layer(index, "scale_mlp", None) if scaled else None,
        rope=rope,
        window=window,
    )


def _epsilon(family: str, config: dict[str, Any]) -> float:
    key = "norm_eps" if family == "modernbert" else "layer_norm_eps"
    value = config.get(key, _EPSILON.get(family, 1e-12))
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ModelFileInvalid(
            f"the epsilon of LayerNorm in config.json must be a number >= 0; it is {value!r}."
        )
    return float(value)


def _norm(names: Names, index: Index, part: str, epsilon: float) -> Norm:
    weight = names.layer(index, part)
    bias = names.layer_or_none(index, part, "bias")
    return Norm(weight, _zeros(len(weight)) if bias is None else bias, epsilon)


def _zeros(*shape: int) -> Floats:
    return np.zeros(shape, dtype=np.float32)


def _attention(names: Names, config: dict[str, Any], index: Index) -> AttentionWeights:
    heads = whole(config, "num_attention_heads")
    if names.family == "modernbert":
        fused = names.layer(index, "fused")
        parts = _thirds(fused, "Wqkv")
        bias = names.layer_or_none(index, "fused", "bias")
        biases = [None] * 3 if bias is None else _thirds(bias, "Wqkv.bias")
    else:
        kinds = ("query", "key", "value")
        parts = [names.layer(index, kind) for kind in kinds]
        biases = [names.layer_or_none(index, kind, "bias") for kind in kinds]
    rows, d = parts[0].shape
    if rows % heads:
        raise ModelFileInvalid(
            f"{rows} rows of queries do not split into {heads} heads (`num_attention_heads`)."
        )
    k = rows // heads
    split = [p.reshape(heads, k, d) if p.shape == (rows, d) else p for p in parts]
    shifts = [_zeros(heads, k) if b is None else b.reshape(heads, -1) for b in biases]
    output_bias = names.layer_or_none(index, "output", "bias")
    return AttentionWeights(
        query=split[0],
        query_bias=shifts[0],
        key=split[1],
        key_bias=shifts[1],
        value=split[2],
        value_bias=shifts[2],
        output=names.layer(index, "output"),
        output_bias=_zeros(d) if output_bias is None else output_bias,
        scale=k**-0.5,
    )


def _thirds(fused: Floats, name: str) -> list[Any]:
    if len(fused) % 3:
        raise ModelFileInvalid(f"{name} has {len(fused)} rows, which is no multiple of 3.")
    return [fused[i * len(fused) // 3 : (i + 1) * len(fused) // 3] for i in range(3)]


def _mlp(names: Names, config: dict[str, Any], index: Index) -> Mlp:
    outer = names.layer(index, "outer")
    outer_bias = names.layer_or_none(index, "outer", "bias")
    gate = names.layer_or_none(index, "gate")
    if gate is not None:
        # One matrix in transformers 4, two in transformers 5.
        both = ("gate", "up")
        inner = np.concatenate([names.layer(index, part) for part in both])
        inner_bias = np.concatenate([names.layer(index, part, "bias") for part in both])
    else:
        inner = names.layer(index, "inner")
        inner_bias = names.layer_or_none(index, "inner", "bias")
    swiglu = names.family == "dinov2" and (bool(config.get("use_swiglu_ffn")) or gate is not None)
    key = "hidden_activation" if names.family == "modernbert" else "hidden_act"
    default = "gelu_new" if names.family == "albert" else "gelu"
    return Mlp(
        inner=inner,
        inner_bias=_zeros(len(inner)) if inner_bias is None else inner_bias,
        outer=outer,
        outer_bias=_zeros(len(outer)) if outer_bias is None else outer_bias,
        activation="silu" if swiglu else activation_name({key: default} | config, key),
        gated=swiglu or names.family == "modernbert",
    )


def _positions(config: dict[str, Any], layer: int) -> tuple[Rope, int | None]:
    """Rotary positions and window of a layer of ModernBERT.

    transformers 4 writes bases and a period into the configuration, transformers 5 a list of the
    kinds of layers and their parameters.
    """
    kinds = config.get("layer_types")
    every = whole(config, "global_attn_every_n_layers", 3)
    sliding = layer % every != 0 if kinds is None else kinds[layer] == "sliding_attention"
    kind = "sliding_attention" if sliding else "full_attention"
    default = 10000.0 if sliding else 160000.0
    theta = config.get("local_rope_theta" if sliding else "global_rope_theta", default)
    parameters = (config.get("rope_parameters") or {}).get(kind) or {}
    scaled = parameters.get("rope_type", "default") != "default" or config.get("rope_scaling")
    if scaled:
        raise UnsupportedModel("rotary positions of ModernBERT with a scaling are not covered.")
    theta = parameters.get("rope_theta", theta if theta is not None else default)
    return Rope(float(theta)), whole(config, "local_attention", 128) // 2 if sliding else None


def final_norm_of(names: Names, config: dict[str, Any]) -> Norm | None:
    """Return the norm after the last block, if the architecture has one."""
    if names.family in ("bert", "albert"):
        return None
    return _outside_norm(names, config, "final_norm")


def _outside_norm(names: Names, config: dict[str, Any], part: str) -> Norm:
    weight = names.outside(part)
    bias = names.outside_or_none(part, "bias")
    return Norm(
        weight, _zeros(len(weight)) if bias is None else bias, _epsilon(names.family, config)
    )


def token_embedding_of(names: Names, config: dict[str, Any], tokenizer: str) -> Embedding:
    """Return how words become tokens."""
    positions = names.outside_or_none("positions")
    kinds = names.outside_or_none("kinds")
    words = names.outside("words")
    if names.family != "modernbert" and positions is None:
        raise ModelFileInvalid(f"the {names.family} model lacks its position embeddings.")
    for name, table in (("positions", positions), ("types", kinds)):
        if table is not None and table.shape[1:] != words.shape[1:]:
            raise InvalidShape(
                f"embeddings of {name} have shape {table.shape}, those of words {words.shape}."
            )
    return TokenEmbedding(
        words=words,
        positions=positions,
        kind=None if kinds is None else kinds[0],
        norm=_outside_norm(names, config, "norm"),
        projection=names.outside_or_none("projection"),
        projection_bias=names.outside_or_none("projection", "bias"),
        tokenizer=tokenizer,
    )
