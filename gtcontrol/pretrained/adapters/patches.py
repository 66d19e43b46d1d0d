"""Patch embeddings of image models, with the pixel values that their processors expect."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ModelFileInvalid, UnsupportedModel
from ..embedding import PatchEmbedding
from ..weights import Floats
from .configuration import read_json
from .names import Names

__all__ = ["patch_embedding_of", "processor_of"]

_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))

#: Mean and deviation of pixels that the libraries' processors start from.
_PIXELS = {"vit": _HALF, "deit": _IMAGENET, "dinov2": _IMAGENET}

#: Of Pillow, which numbers its filters 0 to 5.
_BILINEAR, _BICUBIC, _FILTERS = 2, 3, (0, 1, 2, 3, 4, 5)

#: Larger images do not fit into memory as tokens that attend to each other.
LARGEST_EDGE = 4096


def patch_embedding_of(
    names: Names, config: dict[str, Any], processor: dict[str, Any]
) -> PatchEmbedding:
    """Return how images become tokens.

    Parameters
    ----------
    names : Names
    config : dict
    processor : dict
        As in ``preprocessor_config.json``; empty for the defaults of the architecture.
    """
    projection = names.outside("projection")
    special = [names.outside("class", None).reshape(-1, len(projection))]
    if names.family == "deit":
        special.append(names.outside("distillation", None).reshape(-1, len(projection)))
    tokens = np.concatenate(special)
    positions = names.outside("positions", None)
    positions = positions.reshape(positions.shape[-2:])
    _check_grid(positions, tokens, projection)
    size, edge, keep = _geometry(names.family, config, processor)
    mean, deviation = _PIXELS[names.family]
    usual = _BILINEAR if names.family == "vit" else _BICUBIC
    patch = projection.shape[-1]
    if size % patch:
        raise ModelFileInvalid(f"images of {size} pixels do not split into patches of {patch}.")
    return PatchEmbedding(
        projection=projection,
        bias=names.outside("projection", "bias"),
        special=tokens,
        positions=positions,
        size=size,
        resize=edge,
        keep_aspect=keep,
        mean=_values(processor.get("image_mean", mean), "image_mean", projection),
        deviation=_values(processor.get("image_std", deviation), "image_std", projection),
        resampling=_resampling(processor.get("resample", usual)),
    )


def processor_of(folder: Path) -> dict[str, Any]:
    """Return the processor's configuration of a folder, empty if it has none."""
    path = folder / "preprocessor_config.json"
    return read_json(path) if path.is_file() else {}


def _geometry(
    family: str, config: dict[str, Any], processor: dict[str, Any]
) -> tuple[int, int, bool]:
    """Pixels after cropping and before, and whether resizing keeps the ratio of the edges."""
    native = _edge(config.get("image_size", 224), "image_size")
    if not processor and family == "dinov2":
        native = min(native, 224)  # to which its processor crops, whatever it was trained with
    crops = processor.get("do_center_crop", family != "vit")
    size = _edge(processor.get("crop_size", native) if crops else native, "crop_size")
    resized = processor.get("size", round(size * 256 / 224) if crops else native)
    keep = "shortest_edge" in resized if isinstance(resized, dict) else family == "dinov2"
    edge = _edge(resized, "size")
    return (size if crops else edge), edge, keep


def _check_grid(positions: Floats, special: Floats, projection: Floats) -> None:
    if projection.ndim != 4 or projection.shape[2] != projection.shape[3]:
        raise UnsupportedModel(
            f"the projection of patches has shape {projection.shape}; square patches are covered."
        )
    count = len(positions) - len(special)
    side = round(count**0.5) if count > 0 else 0
    if side < 1 or side * side != count or positions.shape[1] != len(projection):
        raise UnsupportedModel(
            f"position embeddings of shape {positions.shape} for {len(special)} special tokens "
            "are no square grid of patches."
        )


def _edge(value: Any, name: str) -> int:
    """Pixels of an edge: a number, or an object or list of edges that are equal."""
    found = value
    if isinstance(value, dict):
        value = [value[k] for k in ("shortest_edge", "height", "width") if k in value]
    if isinstance(value, list | tuple) and value:
        value = value[0] if all(v == value[0] for v in value) else None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_EDGE:
        raise ModelFileInvalid(
            f"`{name}` must be the edge of a square, 1 to {LARGEST_EDGE} pixels; "
            f"it is {found!r:.80}."
        )
    return value


def _values(values: Any, name: str, projection: Floats) -> tuple[float, ...]:
    """One finite number for each channel."""
    channels = projection.shape[1]
    numbers = values if isinstance(values, list | tuple) else []
    good = all(isinstance(v, int | float) and abs(v) < math.inf for v in numbers)
    if not good or len(numbers) < channels or (name == "image_std" and min(numbers) <= 0):
        kind = "positive numbers" if name == "image_std" else "numbers"
        raise ModelFileInvalid(
            f"`{name}` must be {channels} {kind}, one for each channel; it is {values!r:.80}."
        )
    return tuple(float(v) for v in numbers[:channels])


def _resampling(value: Any) -> int:
    if value not in _FILTERS or not isinstance(value, int):
        raise ModelFileInvalid(f"`resample` must be one of {_FILTERS}; it is {value!r:.80}.")
    return value
