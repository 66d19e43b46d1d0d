"""Small random models of the classes of transformers, all of whose weights matter."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_COMMON = {"hidden_size": 24, "num_attention_heads": 3, "num_hidden_layers": 3}
_WORDS = {"vocab_size": 60, "max_position_embeddings": 48, "intermediate_size": 40}
_PIXELS = {"image_size": 16, "patch_size": 4, "intermediate_size": 40}
_SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}

#: Name -> class of transformers without "Model", and what its configuration says.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", _WORDS),
    "bert-tanh": ("Bert", {**_WORDS, "hidden_act": "gelu_new", "layer_norm_eps": 1e-3}),
    "albert": ("Albert", {**_WORDS, "embedding_size": 10}),
    "albert-groups": (
        "Albert",
        {**_WORDS, "embedding_size": 10, "num_hidden_layers": 4, "num_hidden_groups": 2},
    ),
    "albert-inner": ("Albert", {**_WORDS, "embedding_size": 10, "inner_group_num": 2}),
    "vit": ("ViT", _PIXELS),
    "vit-no-bias": ("ViT", {**_PIXELS, "qkv_bias": False, "hidden_act": "quick_gelu"}),
    "deit": ("DeiT", _PIXELS),
    "dinov2": ("Dinov2", _PIXELS),
    "dinov2-gated": ("Dinov2", {**_PIXELS, "use_swiglu_ffn": True}),
    "modernbert": (
        "ModernBert",
        {**_WORDS, **_SPECIAL, "local_attention": 8, "max_position_embeddings": 256},
    ),
    "modernbert-bias": (
        "ModernBert",
        {
            **_WORDS,
            **_SPECIAL,
            "local_attention": 6,
            "attention_bias": True,
            "mlp_bias": True,
            "norm_bias": True,
            "hidden_activation": "silu",
        },
    ),
}

#: One for each class.
FAMILIES = ("bert", "albert", "vit", "deit", "dinov2", "modernbert")


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Transformers without logging, bars and warnings."""
    from gtcontrol.pretrained.adapters.library import quiet

    with warnings.catch_warnings(), quiet():
        yield


def build(variant: str, seed: int = 0, **changes: Any) -> Any:
    """A module with random weights, LayerNorms and biases included."""
    import torch
    import transformers

    name, settings = VARIANTS[variant]
    with silence():
        config = getattr(transformers, f"{name}Config")(**{**_COMMON, **settings, **changes})
        config._attn_implementation = "eager"
        model = getattr(transformers, f"{name}Model")(config)
    generator = torch.Generator().manual_seed(seed)
    for key, weight in model.named_parameters():
        spread = 0.25 if weight.ndim > 1 else 0.15
        weight.data.normal_(0.0, spread, generator=generator)
        norm = "norm" in key.lower() and key.endswith("weight")
        if norm or "lambda1" in key:
            weight.data += 1.0
    return model.eval()


def save(model: Any, folder: Path) -> Path:
    """Write a checkpoint as transformers does, and return its folder."""
    with silence():
        model.save_pretrained(folder)
    return folder


def run(model: Any, positions: bool = True, seed: int = 1) -> tuple[dict[str, Any], list[Any]]:
    """Random input, and the hidden states of transformers: before each layer, and the last."""
    import torch

    rng = np.random.default_rng(seed)
    config = model.config
    if hasattr(config, "patch_size"):
        shape = (2, config.num_channels, config.image_size, config.image_size)
        given: dict[str, Any] = {"pixel_values": rng.standard_normal(shape).astype(np.float32)}
    else:
        count = 40 if positions else config.local_attention // 2
        given = {"input_ids": rng.integers(0, config.vocab_size, (2, count))}
        if not positions:
            given["position_ids"] = np.zeros((1, count), dtype=np.int64)
    with silence(), torch.no_grad():
        tensors = {k: torch.from_numpy(v) for k, v in given.items()}
        states = model(**tensors, output_hidden_states=True).hidden_states
    return given, [state.numpy() for state in states]
