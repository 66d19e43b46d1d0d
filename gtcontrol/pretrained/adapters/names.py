"""Names of weights, in checkpoints and modules of transformers 4 and of transformers 5."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...errors import ModelFileInvalid

__all__ = ["FAMILIES", "LAYER_PREFIXES", "Names", "translated"]

#: How the names of a layer's weights begin; the number of the layer stands for {}.
LAYER_PREFIXES = {
    "bert": ("encoder.layer.{}.",),
    "albert": ("encoder.albert_layer_groups.{}.albert_layers.{}.",),
    "vit": ("encoder.layer.{}.", "layers.{}."),
    "deit": ("encoder.layer.{}.", "layers.{}."),
    "dinov2": ("encoder.layer.{}.", "layers.{}."),
    "modernbert": ("layers.{}.",),
}

_VIT: dict[str, tuple[str, ...]] = {
    "query": ("attention.attention.query", "attention.q_proj"),
    "key": ("attention.attention.key", "attention.k_proj"),
    "value": ("attention.attention.value", "attention.v_proj"),
    "output": ("attention.output.dense", "attention.o_proj"),
    "inner": ("intermediate.dense", "mlp.fc1"),
    "outer": ("output.dense", "mlp.fc2"),
    "norm_attention": ("layernorm_before",),
    "norm_mlp": ("layernorm_after",),
}

#: Part of a layer -> its names, those of transformers 4 first.
_LAYERS: dict[str, dict[str, tuple[str, ...]]] = {
    "bert": {
        "query": ("attention.self.query",),
        "key": ("attention.self.key",),
        "value": ("attention.self.value",),
        "output": ("attention.output.dense",),
        "inner": ("intermediate.dense",),
        "outer": ("output.dense",),
        "norm_attention": ("attention.output.LayerNorm",),
        "norm_mlp": ("output.LayerNorm",),
    },
    "albert": {
        "query": ("attention.query",),
        "key": ("attention.key",),
        "value": ("attention.value",),
        "output": ("attention.dense",),
        "inner": ("ffn",),
        "outer": ("ffn_output",),
        "norm_attention": ("attention.LayerNorm",),
        "norm_mlp": ("full_layer_layer_norm",),
    },
    "vit": _VIT,
    "deit": _VIT,
    "dinov2": {
        **_VIT,
        "inner": ("mlp.fc1", "mlp.weights_in"),
        "gate": ("mlp.gate_proj",),
        "up": ("mlp.up_proj",),
        "outer": ("mlp.fc2", "mlp.weights_out", "mlp.down_proj"),
        "norm_attention": ("norm1",),
        "norm_mlp": ("norm2",),
        "scale_attention": ("layer_scale1.lambda1",),
        "scale_mlp": ("layer_scale2.lambda1",),
    },
    "modernbert": {
        "fused": ("attn.Wqkv",),
        "output": ("attn.Wo",),
        "inner": ("mlp.Wi",),
        "outer": ("mlp.Wo",),
        "norm_attention": ("attn_norm",),
        "norm_mlp": ("mlp_norm",),
    },
}

_IMAGES: dict[str, tuple[str, ...]] = {
    "projection": ("embeddings.patch_embeddings.projection",),
    "class": ("embeddings.cls_token",),
    "positions": ("embeddings.position_embeddings",),
    "final_norm": ("layernorm",),
}

_WORDS: dict[str, tuple[str, ...]] = {
    "words": ("embeddings.word_embeddings",),
    "positions": ("embeddings.position_embeddings",),
    "kinds": ("embeddings.token_type_embeddings",),
    "norm": ("embeddings.LayerNorm",),
}

#: Part outside the layers -> its names.
_OUTSIDE: dict[str, dict[str, tuple[str, ...]]] = {
    "bert": _WORDS,
    "albert": {**_WORDS, "projection": ("encoder.embedding_hidden_mapping_in",)},
    "vit": _IMAGES,
    "deit": {**_IMAGES, "distillation": ("embeddings.distillation_token",)},
    "dinov2": _IMAGES,
    "modernbert": {
        "words": ("embeddings.tok_embeddings",),
        "norm": ("embeddings.norm",),
        "final_norm": ("final_norm",),
    },
}

FAMILIES = tuple(_LAYERS)

#: Modules that hold the bare model.
_PREFIXES = {*FAMILIES, "model", "backbone", "module"}

#: Older names of the two arrays of a LayerNorm.
_NORM_ARRAYS = {"gamma": "weight", "beta": "bias"}


class Names:
    """Weights of a checkpoint or a module, found by what they are for.

    Parameters
    ----------
    family : str
        One of :data:`FAMILIES`.
    weights : mapping from str
        Name in the library -> array; names begin as in the bare model, without a prefix.
    """

    def __init__(self, family: str, weights: Mapping[str, Any]) -> None:
        self.family = family
        self.weights = weights
        #: Names that were asked for and found.
        self.used: set[str] = set()

    def layer(self, index: tuple[int, ...], part: str, array: str | None = "weight") -> Any:
        """Return an array of a layer, which must be there."""
        found = self.layer_or_none(index, part, array)
        if found is None:
            raise self._lacks(self._layer_names(index, part, array))
        return found

    def layer_or_none(self, index: tuple[int, ...], part: str, array: str | None = "weight") -> Any:
        """Return an array of a layer, or None."""
        return self._first(self._layer_names(index, part, array))

    def outside(self, part: str, array: str | None = "weight") -> Any:
        """Return an array of the embedding or the last norm, which must be there."""
        found = self.outside_or_none(part, array)
        if found is None:
            raise self._lacks(_full(_OUTSIDE[self.family].get(part, (part,)), array))
        return found

    def outside_or_none(self, part: str, array: str | None = "weight") -> Any:
        """Return an array of the embedding or the last norm, or None."""
        return self._first(_full(_OUTSIDE[self.family].get(part, ()), array))

    def unused(self) -> tuple[str, ...]:
        """Names of the weights that nobody asked for."""
        return tuple(sorted(set(self.weights) - self.used))

    def _layer_names(self, index: tuple[int, ...], part: str, array: str | None) -> list[str]:
        names = _full(_LAYERS[self.family].get(part, ()), array)
        return [p.format(*index) + n for p in LAYER_PREFIXES[self.family] for n in names]

    def _first(self, names: list[str]) -> Any:
        for name in names:
            if name in self.weights:
                self.used.add(name)
                return self.weights[name]
        return None

    def _lacks(self, names: list[str]) -> ModelFileInvalid:
        return ModelFileInvalid(
            f"the {self.family} model lacks the weight {' or '.join(names[:2])}; the checkpoint "
            "is incomplete, or its names are none that transformers 4 or 5 gives."
        )


def _full(names: tuple[str, ...], array: str | None) -> list[str]:
    return [name if array is None else f"{name}.{array}" for name in names]


def translated(family: str, name: str, into: Mapping[str, Any]) -> str | None:
    """Return the name among those of `into` that means the same weight as `name`, or None.

    Covers prefixes (``bert.``, ``model.``, ``backbone.``), both generations of transformers, and
    gamma and beta of old checkpoints.
    """
    stem, _, last = name.rpartition(".")
    name = f"{stem}.{_NORM_ARRAYS[last]}" if last in _NORM_ARRAYS else name
    for candidate in _without_prefixes(name):
        if candidate in into:
            return candidate
        for other in _synonyms(family, candidate):
            if other in into:
                return other
    return None


def _without_prefixes(name: str) -> list[str]:
    found = [name]
    while name.partition(".")[0] in _PREFIXES:
        name = name.partition(".")[2]
        found.append(name)
    return found


def _synonyms(family: str, name: str) -> list[str]:
    """All names of the weight of a layer that `name` is one name of."""
    prefixes = LAYER_PREFIXES[family]
    for prefix in prefixes:
        pattern = re.escape(prefix).replace(r"\{\}", r"(\d+)") + "(.*)"
        match = re.fullmatch(pattern, name)
        if match is None:
            continue
        *index, rest = match.groups()
        for names in _LAYERS[family].values():
            for known in names:
                if rest == known or rest.startswith(f"{known}."):
                    tail = rest[len(known) :]
                    return [p.format(*index) + n + tail for p in prefixes for n in names]
    return []
