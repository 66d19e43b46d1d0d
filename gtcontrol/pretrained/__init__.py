"""Pretrained Transformers as stacks of blocks that the Gaussian theory can be applied to.

Names are loaded when they are first used; torch and transformers are imported only when a model
is loaded or run.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .block import Block as Block
    from .embedding import (
        Embedding as Embedding,
        PatchEmbedding as PatchEmbedding,
        TokenEmbedding as TokenEmbedding,
    )
    from .forecast import (
        Forecast as Forecast,
        forecast_layers as forecast_layers,
        forecast_stack as forecast_stack,
    )
    from .forward import BlockRecord as BlockRecord
    from .heads import tabulate_heads as tabulate_heads
    from .inputs import embeddings as embeddings
    from .inspection import inspect as inspect
    from .loading import load as load, presets as presets
    from .propagation.chain import Propagation as Propagation, propagate as propagate
    from .propagation.comparison import LawFit as LawFit
    from .stack import Stack as Stack
    from .weights import (
        AttentionWeights as AttentionWeights,
        Mlp as Mlp,
        Norm as Norm,
        Rope as Rope,
    )

_HOMES = {
    "AttentionWeights": "weights",
    "Block": "block",
    "BlockRecord": "forward",
    "Embedding": "embedding",
    "Forecast": "forecast",
    "LawFit": "propagation.comparison",
    "Mlp": "weights",
    "Norm": "weights",
    "PatchEmbedding": "embedding",
    "Propagation": "propagation.chain",
    "Rope": "weights",
    "Stack": "stack",
    "TokenEmbedding": "embedding",
    "embeddings": "inputs",
    "forecast_layers": "forecast",
    "forecast_stack": "forecast",
    "inspect": "inspection",
    "load": "loading",
    "presets": "loading",
    "propagate": "propagation.chain",
    "tabulate_heads": "heads",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - names, all strings


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gtcontrol.pretrained' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
