"""The one user of transformers: modules of a checkpoint, and what they compute."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ModelFileInvalid, UnsupportedModel
from ..extra import missing, shortened, torch_library
from ..weights import Floats
from .names import translated

__all__ = ["build", "hidden_states", "quiet", "transformers_library"]

#: Family -> class of the configuration, class of the bare model, arguments of the latter.
_CLASSES: dict[str, tuple[str, str, dict[str, bool]]] = {
    "bert": ("BertConfig", "BertModel", {"add_pooling_layer": False}),
    "albert": ("AlbertConfig", "AlbertModel", {"add_pooling_layer": False}),
    "vit": ("ViTConfig", "ViTModel", {"add_pooling_layer": False}),
    "deit": ("DeiTConfig", "DeiTModel", {"add_pooling_layer": False}),
    "dinov2": ("Dinov2Config", "Dinov2Model", {}),
    "modernbert": ("ModernBertConfig", "ModernBertModel", {}),
}

#: Weights without which a model computes the same: of masked pixels only.
_NEEDLESS = ("mask_token",)


def transformers_library() -> Any:
    """Return transformers, or raise that it is not installed."""
    try:
        import transformers
    except ImportError:
        raise missing("transformers", "a pretrained model") from None
    return transformers


@contextlib.contextmanager
def quiet() -> Iterator[Any]:
    """Yield transformers with its logging, progress bars and warnings off."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = transformers_library()
        own, hub = library.utils.logging, logging.getLogger("huggingface_hub")
        level, level_of_hub = own.get_verbosity(), hub.level
        bars = own.is_progress_bar_enabled()
        own.set_verbosity(logging.CRITICAL + 10)
        hub.setLevel(logging.CRITICAL + 10)
        own.disable_progress_bar()
        try:
            yield library
        finally:
            own.set_verbosity(level)
            hub.setLevel(level_of_hub)
            if bars:
                own.enable_progress_bar()


def build(
    family: str, config: dict[str, Any], weights: Mapping[str, Any], source: str
) -> tuple[Any, tuple[str, ...]]:
    """Return the bare model of transformers with given weights, and the names of unused ones.

    The model shares the memory of `weights` where they are in single precision.

    Raises
    ------
    ModelFileInvalid
        If weights are missing, or have other shapes than the configuration says.
    UnsupportedModel
        If the installed transformers does not know the architecture.
    """
    torch = torch_library()
    config_class, model_class, options = _CLASSES[family]
    with quiet() as library:
        if not hasattr(library, model_class):
            raise UnsupportedModel(
                f"transformers {library.__version__} has no {model_class}; install a newer one."
            )
        plain = {k: v for k, v in config.items() if k not in ("auto_map", "quantization_config")}
        try:
            settings = getattr(library, config_class).from_dict(plain)
            settings._attn_implementation = "eager"
            model, info = getattr(library, model_class).from_pretrained(
                None,
                config=settings,
                state_dict=dict(weights),
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **options,
            )
        except Exception as error:  # whatever its own checks of a configuration raise
            reason = shortened(error, 200)
            raise ModelFileInvalid(
                f"config.json of {source} does not make a {model_class}: {reason}."
            ) from None
    _refuse_shapes(info["mismatched_keys"], source)
    left = _fill_missing(family, model, weights, info, source)
    return model.to(torch.float32).eval(), left


def _refuse_shapes(mismatched: Any, source: str) -> None:
    """Refuse weights of wrong shapes: names, in newer versions with both shapes."""
    for item in sorted(mismatched, key=str):
        name, detail = item, "has another shape than config.json asks for"
        if not isinstance(item, str):
            name, found, wanted = item
            detail = f"has shape {tuple(found)}, but config.json asks for {tuple(wanted)}"
        raise ModelFileInvalid(f"the weight {name} of {source} {detail}.")


def _fill_missing(
    family: str, model: Any, weights: Mapping[str, Any], info: Any, source: str
) -> tuple[str, ...]:
    """Weights that transformers did not recognise by name; return those that nobody needs."""
    torch = torch_library()
    state = model.state_dict()
    lacking = {n for n in info["missing_keys"] if not n.endswith(_NEEDLESS)}
    filled: dict[str, None] = {}
    for name in sorted(weights if lacking else ()):
        known = translated(family, name, dict.fromkeys(lacking))
        if known is None:
            continue
        if state[known].shape != weights[name].shape:
            wrong = (name, weights[name].shape, state[known].shape)
            _refuse_shapes([wrong], source)
        with torch.no_grad():
            state[known].copy_(weights[name])
        lacking.remove(known)
        filled[known] = None
    if lacking:
        first = ", ".join(sorted(lacking)[:3])
        raise ModelFileInvalid(
            f"the checkpoint {source} lacks {len(lacking)} of {len(state)} weights, among them "
            f"{first}; it is incomplete, or of another architecture than its config.json says."
        )
    # Unknown names come back as transformers has renamed them.
    unknown = {n for n in info["unexpected_keys"] if translated(family, n, filled) is None}
    return tuple(sorted(unknown))


def hidden_states(
    family: str, model: Any, inputs: Mapping[str, Any], depth: int
) -> tuple[Floats, list[Floats]]:
    """Return what enters the first block of a module, and what leaves every block.

    Parameters
    ----------
    family : str
    model : torch module
    inputs : mapping
        Keyword arguments of the model; arrays become tensors.
    depth : int
        Number of blocks that are applied.

    Returns
    -------
    (T, N, d) array and list of (T, N, d) arrays
    """
    torch = torch_library()
    entered: list[Floats] = []
    left: list[Floats] = []

    def keep(module: Any, given: Any, result: Any) -> None:
        entered.append(given[0].numpy().copy())
        left.append((result[0] if isinstance(result, tuple) else result).numpy().copy())

    hooks = [layer.register_forward_hook(keep) for layer in _layers(family, model)]
    try:
        with quiet(), torch.no_grad():
            model(**{name: _tensor(value) for name, value in inputs.items()})
    finally:
        for hook in hooks:
            hook.remove()
    if len(left) != depth:
        raise UnsupportedModel(
            f"the {family} model of this transformers runs {len(left)} blocks, not {depth}."
        )
    return entered[0], left


def _tensor(value: Any) -> Any:
    return torch_library().from_numpy(value) if isinstance(value, np.ndarray) else value


def _layers(family: str, model: Any) -> list[Any]:
    """Modules of the layers, in either generation of transformers."""
    if family == "albert":
        groups = model.encoder.albert_layer_groups
        return [layer for group in groups for layer in group.albert_layers]
    encoder = getattr(model, "encoder", model)
    return list(encoder.layer if hasattr(encoder, "layer") else encoder.layers)


def offline() -> bool:
    """Whether the user forbade transformers the network."""
    return any(
        os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE")
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )


def cached_file(name: str, file: str, *, local: bool) -> Path | None:
    """Return a file of a model of the hub, downloaded unless `local`; None if it has no such."""
    with quiet() as library:
        try:
            found = library.utils.hub.cached_file(
                name,
                file,
                local_files_only=local,
                _raise_exceptions_for_gated_repo=False,
                _raise_exceptions_for_missing_entries=False,
                _raise_exceptions_for_connection_errors=False,
            )
        except (OSError, ValueError) as error:
            reason = shortened(error)
            raise ModelFileInvalid(f"{file} of {name} cannot be fetched: {reason}.") from None
    return None if found is None else Path(found)
