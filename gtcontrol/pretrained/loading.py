"""Load a pretrained Transformer as a stack of blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .._check import boolean
from .adapters.assembly import blocks_of, final_norm_of, token_embedding_of
from .adapters.checkpoint import naming_what_is_not_finite, read_weights, weight_files
from .adapters.configuration import read_json, refuse_unsupported, whole
from .adapters.library import build
from .adapters.location import PRESETS, Location, locate
from .adapters.names import Names
from .adapters.numerics import check_against_module
from .adapters.onnx_model import load_onnx
from .adapters.patches import patch_embedding_of, processor_of
from .embedding import Embedding
from .extra import torch_library
from .stack import Stack
from .weights import Floats

__all__ = ["load", "load_fitting", "presets"]


def presets() -> Mapping[str, str]:
    """Return the short names of models of the hub, and what they stand for."""
    return PRESETS


def load(source: str | os.PathLike[str], *, check: bool = True) -> Stack:
    """Load a pretrained Transformer: BERT, ALBERT, ViT, DeiT, DINOv2 or ModernBERT.

    No code of a checkpoint is run: weights are read from safetensors, from files of torch by
    their restricted reader, or from ONNX, and architectures are those of the installed
    transformers.

    Parameters
    ----------
    source : str or path
        A folder with ``config.json`` and weights (``model.safetensors`` or
        ``pytorch_model.bin``), an ONNX file with the layout of BERT, ViT or DINOv2,
        ``package:NAME`` for a model inside an installed package, or a name of the hub;
        :func:`presets` lists short names. Names of the hub need a network unless the model is in
        the cache.
    check : bool
        Hold every block against the library on random input, and refuse the model if one differs
        by more than 1e-5 (relative). ONNX is compared with onnxruntime if that is installed.

    Returns
    -------
    Stack
        Its `ignored` lists weights of the checkpoint that are no part of it (pooling, heads of
        tasks), its `numerics` the difference that was measured.

    Raises
    ------
    UnsupportedModel
        For causal masks, cross-attention, grouped keys, other architectures, or blocks that
        differ from the library's.
    ModelFileInvalid
        If there is no such model, no network, or files are damaged or incomplete.
    MissingPackage
        If torch or transformers is not installed.
    """
    return _load(source, boolean("check", check), _anything)


def load_fitting(source: str | os.PathLike[str], fits: Callable[[Stack], None]) -> Stack:
    """Load and compare a model as :func:`load` does, unless `fits` refuses it before that.

    Parameters
    ----------
    source : str or path
    fits : callable
        Raises if the stack, which has not been compared yet, is not wanted.
    """
    return _load(source, True, fits)


def _anything(stack: Stack) -> None:
    """Any stack will do."""


def _load(source: str | os.PathLike[str], check: bool, fits: Callable[[Stack], None]) -> Stack:
    torch_library()
    location = locate(source)
    if location.is_onnx:
        return load_onnx(location.name, location.path, check=check, fits=fits)
    return _load_checkpoint(location, check, fits)


def _load_checkpoint(location: Location, check: bool, fits: Callable[[Stack], None]) -> Stack:
    config = read_json(location.path / "config.json")
    family = refuse_unsupported(config, location.name)
    for key in ("num_hidden_layers", "num_attention_heads", "hidden_size"):
        whole(config, key)
    weights = read_weights(location.path)
    module, ignored = build(family, config, weights, location.name)
    del weights
    config |= module.config.to_dict()  # with the defaults of the library
    names = Names(family, {name: _array(value) for name, value in module.state_dict().items()})
    files = weight_files(location.path)
    with naming_what_is_not_finite(names.weights, files[0] if len(files) == 1 else location.path):
        blocks = blocks_of(names, config)
        stack = Stack(
            name=location.name,
            family=family,
            blocks=blocks,
            embedding=_embedding(names, config, location),
            final_norm=final_norm_of(names, config),
            source=str(location.path),
            ignored=tuple(sorted({*ignored, *names.unused()})),
        )
        fits(stack)
        if not check:
            return stack
        difference, note = check_against_module(stack, module)
    return replace(stack, numerics=difference, numerics_note=note)


def _embedding(names: Names, config: dict[str, Any], location: Location) -> Embedding:
    if names.family in ("bert", "albert", "modernbert"):
        return token_embedding_of(names, config, str(location.path))
    return patch_embedding_of(names, config, processor_of(location.path))


def _array(tensor: Any) -> Floats:
    """A read-only array that shares the memory of a tensor."""
    array: Floats = np.asarray(tensor.detach().numpy())
    array.setflags(write=False)
    return array
