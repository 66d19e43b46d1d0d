"""What a model's configuration file says, and which models are refused, by name and reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...errors import ModelFileInvalid, UnsupportedModel
from .names import FAMILIES

__all__ = ["activation_name", "read_json", "refuse_unsupported", "whole"]

#: Decoders: a token attends to those before it only.
_CAUSAL = (
    "bloom", "codegen", "cohere", "cohere2", "ctrl", "dbrx", "deepseek_v2", "deepseek_v3",
    "falcon", "gemma", "gemma2", "gemma3", "gemma3_text", "glm", "glm4", "gpt2",
    "gpt_bigcode", "gpt_neo", "gpt_neox", "gpt_oss", "gptj", "granite", "imagegpt", "jamba",
    "llama", "llama4", "llama4_text", "mamba", "mamba2", "mistral", "mixtral", "mpt",
    "nemotron", "olmo", "olmo2", "olmo3", "openai-gpt", "opt", "phi", "phi3", "phimoe",
    "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "rwkv", "smollm3", "stablelm", "starcoder2",
    "xglm", "modernbert-decoder", "bert-generation",
)  # fmt: skip

#: Encoders with decoders, which attend to the encoder.
_CROSS = (
    "bart", "bigbird_pegasus", "blenderbot", "blenderbot-small", "encoder-decoder", "fsmt",
    "led", "longt5", "m2m_100", "marian", "mbart", "mt5", "mvp", "nllb-moe", "pegasus",
    "pegasus_x", "plbart", "prophetnet", "speech_to_text", "speecht5",
    "switch_transformers", "t5", "t5gemma", "trocr", "udop", "umt5",
    "vision-encoder-decoder", "whisper",
)  # fmt: skip

#: Names of activations in configurations -> ours.
_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "quick_gelu": "gelu_quick",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "linear": "identity",
    "gelu_tanh": "gelu_tanh",
    "gelu_quick": "gelu_quick",
    "identity": "identity",
}


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        reason = " ".join(str(error).split())
        raise ModelFileInvalid(f"{path} cannot be read as JSON: {reason}.") from None
    if not isinstance(value, dict):
        raise ModelFileInvalid(f"{path} holds {type(value).__name__}; expected a JSON object.")
    return value


def refuse_unsupported(config: dict[str, Any], source: str) -> str:
    """Return the family of a configuration, or say why its model is refused.

    Raises
    ------
    UnsupportedModel
        For causal masks, cross-attention, grouped keys, and architectures without an adapter.
    ModelFileInvalid
        If the configuration names no architecture.
    """
    family = config.get("model_type")
    if not isinstance(family, str) or not family:
        raise ModelFileInvalid(
            f"the config.json of {source} has no `model_type`; expected one of "
            f"{', '.join(FAMILIES)}."
        )
    reasons = _reasons(family, config)
    if reasons:
        raise UnsupportedModel(
            f"{source} is a {family} model with {' and '.join(reasons)}, which the mean-field "
            f"theory here does not cover; load one of {', '.join(FAMILIES)}."
        )
    if family not in FAMILIES:
        raise UnsupportedModel(
            f"{source} is a {family} model, for which there is no adapter; load one of "
            f"{', '.join(FAMILIES)}."
        )
    return family


def _reasons(family: str, config: dict[str, Any]) -> list[str]:
    reasons = []
    if family in _CAUSAL or config.get("is_decoder") or config.get("is_causal"):
        reasons.append("a causal mask")
    if (
        family in _CROSS
        or config.get("add_cross_attention")
        or config.get("is_encoder_decoder")
        or config.get("cross_attention_hidden_size")
    ):
        reasons.append("cross-attention")
    heads = config.get("num_attention_heads", config.get("n_head"))
    groups = config.get("num_key_value_heads")
    if isinstance(groups, int) and isinstance(heads, int) and groups != heads:
        reasons.append(f"grouped keys ({groups} for {heads} heads)")
    kind = config.get("position_embedding_type")
    if kind not in (None, "absolute", "rope", "rotary", "sans_pos"):
        reasons.append(f"positions of the kind {kind!r} inside attention")
    return reasons


def activation_name(config: dict[str, Any], key: str) -> str:
    """Return our name of the activation that a configuration asks for."""
    name = config.get(key, "gelu")
    if name not in _ACTIVATIONS:
        raise UnsupportedModel(
            f"the activation {name!r} (`{key}` in config.json) is not one of "
            f"{', '.join(_ACTIVATIONS)}."
        )
    return _ACTIVATIONS[name]


def whole(config: dict[str, Any], key: str, default: int | None = None) -> int:
    """Return a positive whole number of a configuration."""
    value = config.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ModelFileInvalid(
            f"`{key}` in config.json must be a positive whole number; it is {value!r}."
        )
    return value
