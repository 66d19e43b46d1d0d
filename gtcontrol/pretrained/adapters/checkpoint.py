"""Weights from the files of a checkpoint; no code of a checkpoint is ever run."""

from __future__ import annotations

import contextlib
import pickle
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ModelFileInvalid, NotFinite, UnsupportedModel
from ..extra import missing, shortened, torch_library
from .configuration import read_json

__all__ = ["WEIGHT_FILES", "naming_what_is_not_finite", "read_weights", "weight_files"]

#: In this order; an index names the parts of a checkpoint in several files.
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)


def weight_files(folder: Path) -> tuple[Path, ...]:
    """Return the files that hold the weights of the checkpoint in `folder`."""
    for name in WEIGHT_FILES:
        path = folder / name
        if not path.is_file():
            continue
        if not name.endswith(".index.json"):
            return (path,)
        parts = read_json(path).get("weight_map")
        if not isinstance(parts, dict) or not parts:
            raise ModelFileInvalid(f"{path} has no `weight_map` with the parts of the checkpoint.")
        paths = tuple(folder / str(part) for part in sorted(set(map(str, parts.values()))))
        for part in paths:
            if part.resolve().parent != folder.resolve() or not part.is_file():
                raise ModelFileInvalid(
                    f"{path} names the part {part.name}, which is not in the same folder."
                )
        return paths
    raise ModelFileInvalid(f"{folder} holds no weights; expected one of {', '.join(WEIGHT_FILES)}.")


def read_weights(folder: Path) -> dict[str, Any]:
    """Return the tensors of torch in a checkpoint by their names.

    Files are mapped into memory where their format allows it, so that reading copies nothing.
    """
    weights: dict[str, Any] = {}
    for path in weight_files(folder):
        read = _read_safetensors if path.suffix == ".safetensors" else _read_pickled
        weights |= read(path)
    if not weights:
        raise ModelFileInvalid(f"{folder} holds a checkpoint without any weights.")
    return weights


@contextlib.contextmanager
def naming_what_is_not_finite(weights: Mapping[str, Any], place: Path) -> Iterator[None]:
    """Name the weight that is not finite if a model is refused, and if there is one.

    Parameters
    ----------
    weights : mapping
        Arrays of NumPy by their names.
    place : path
        The file or folder they come from, for the message.
    """
    try:
        yield
    except (NotFinite, UnsupportedModel):
        for name, value in weights.items():
            if value.dtype.kind == "f" and not np.isfinite(value.sum(dtype=np.float64)):
                raise NotFinite(
                    f"the weight {name} in {place} holds nan or infinity; the checkpoint is "
                    "damaged, or its training has failed."
                ) from None
        raise


def _read_safetensors(path: Path) -> dict[str, Any]:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError:
        torch_library()  # which is named first if both are missing
        raise missing("safetensors", f"reading {path.name}") from None
    try:
        return dict(load_file(path))
    except (SafetensorError, OSError, ValueError) as error:
        raise _damaged(path, error) from None


def _read_pickled(path: Path) -> dict[str, Any]:
    torch = torch_library()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = _unpickle(path)
    except pickle.UnpicklingError as error:
        if "weights_only" in str(error).lower():
            raise ModelFileInvalid(
                f"{path} holds Python objects besides weights, and loading them could run code; "
                "save the state dict alone, or as safetensors."
            ) from None
        raise _damaged(path, error) from None
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, AttributeError) as error:
        raise _damaged(path, error) from None
    if isinstance(loaded, dict) and isinstance(loaded.get("state_dict"), dict):
        loaded = loaded["state_dict"]
    if not isinstance(loaded, dict):
        raise ModelFileInvalid(f"{path} holds {type(loaded).__name__}; expected weights by name.")
    return {str(name): value for name, value in loaded.items() if torch.is_tensor(value)}


def _unpickle(path: Path) -> Any:
    """What torch's restricted reader makes of a file, mapped into memory if it is not too old."""
    torch = torch_library()
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError as error:
        if "mmap can only be used" not in str(error):
            raise
        return torch.load(path, map_location="cpu", weights_only=True)


def _damaged(path: Path, error: Exception) -> ModelFileInvalid:
    return ModelFileInvalid(f"{path} is damaged or no checkpoint: {shortened(error)}.")
