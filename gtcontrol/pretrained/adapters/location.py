"""Where a model is: a folder, a file, a package, or a name of the hub."""

from __future__ import annotations

import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import ModelFileInvalid
from .checkpoint import WEIGHT_FILES
from .configuration import read_json
from .library import cached_file, offline
from .packages import PREFIX, find_in_package

__all__ = ["PRESETS", "Location", "locate"]

#: Short name -> name of the hub.
PRESETS: Mapping[str, str] = {
    "modernbert": "answerdotai/ModernBERT-base",
    "deit": "facebook/deit-tiny-patch16-224",
}

#: Files that are fetched beside configuration and weights, if the hub has them.
_BESIDE = (
    "preprocessor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "spiece.model",
)

_HUB_NAME = re.compile(r"[\w][\w.\-]*/[\w][\w.\-]*|[a-z][\w.\-]*")

#: Names of folders that say nothing about the model in them.
_NAMELESS = ("model", "models", "checkpoint", "onnx", "")

#: Seconds until a network counts as absent.
PATIENCE = 5.0


@dataclass(frozen=True)
class Location:
    """A folder with a checkpoint, or an ONNX file.

    Parameters
    ----------
    name : str
        Of the model, for tables and titles.
    path : Path
    """

    name: str
    path: Path

    @property
    def is_onnx(self) -> bool:
        """Whether the model is one ONNX file."""
        return self.path.suffix == ".onnx"


def locate(source: str | os.PathLike[str]) -> Location:
    """Return where a model is, downloading it if it is a name of the hub.

    Raises
    ------
    ModelFileInvalid
        If there is no such folder or file, or the hub cannot be reached or has no such model.
    MissingPackage
        If it is inside a package that is not installed.
    """
    if not isinstance(source, str | os.PathLike) or not os.fspath(source):
        raise ModelFileInvalid("`source` must be a folder, an ONNX file, or a name of the hub.")
    text = os.fspath(source)
    if text.startswith(PREFIX):
        package = text.removeprefix(PREFIX)
        return Location(package, find_in_package(package))
    path = Path(text).expanduser()
    if path.is_dir():
        return _folder(path)
    if path.is_file():
        if path.suffix == ".onnx":
            return Location(path.stem, path)
        raise ModelFileInvalid(
            f"{path} is a file; give the folder of a checkpoint (config.json and weights), or an "
            "ONNX file."
        )
    name = PRESETS.get(text.lower(), text)
    if path.suffix == ".onnx" or not isinstance(source, str) or not _HUB_NAME.fullmatch(name):
        raise ModelFileInvalid(
            f"{text} is no folder, no ONNX file, and no name of the hub (such as "
            f"{', '.join(PRESETS.values())})."
        )
    return Location(name, _from_hub(name))


def _folder(path: Path) -> Location:
    """The checkpoint of a folder, or its one ONNX file if it holds no weights beside."""
    configured = (path / "config.json").is_file()
    models = sorted(path.glob("*.onnx"))
    weighed = any((path / file).is_file() for file in WEIGHT_FILES)
    if len(models) == 1 and not (configured and weighed):
        return Location(models[0].stem, models[0])
    if configured:
        name = path.resolve().name
        if name in _NAMELESS:
            name = str(read_json(path / "config.json").get("_name_or_path") or name)
        return Location(name.rstrip("/").rpartition("/")[2], path)
    raise ModelFileInvalid(
        f"{path} has no config.json; give a folder with config.json and weights "
        f"({WEIGHT_FILES[0]} or {WEIGHT_FILES[2]}), or an ONNX file."
    )


def _from_hub(name: str) -> Path:
    """Folder with the files of a model: from the cache if they are there, else from the hub."""
    config = cached_file(name, "config.json", local=True)
    if config is not None and _weights(name, local=True):
        return config.parent
    if offline():
        raise ModelFileInvalid(
            f"{name} is not in the cache, and HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE forbids to "
            "fetch it; give a folder with config.json and weights."
        )
    _reach(name)
    config = cached_file(name, "config.json", local=False)
    if config is None or not _weights(name, local=False):
        raise ModelFileInvalid(
            f"{name} has no {'config.json' if config is None else 'weights'} on the hub that can "
            "be read here; give a folder with config.json and weights."
        )
    for file in _BESIDE:
        cached_file(name, file, local=False)
    return config.parent


def _weights(name: str, *, local: bool) -> bool:
    """Whether the weights of a model are in the cache now."""
    for file in WEIGHT_FILES:
        path = cached_file(name, file, local=local)
        if path is None:
            continue
        if file.endswith(".index.json"):
            parts = set(map(str, read_json(path).get("weight_map", {}).values()))
            return all(cached_file(name, part, local=local) is not None for part in parts)
        return True
    return False


def _reach(name: str) -> None:
    """Say within seconds if the hub cannot be reached: its own client tries for minutes."""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    address = f"{endpoint}/{name}/resolve/main/config.json"
    if not address.startswith(("https://", "http://")):
        raise ModelFileInvalid(f"HF_ENDPOINT is {endpoint!r}; expected an address of the web.")
    request = urllib.request.Request(address, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE):
            return
    except urllib.error.HTTPError as error:
        if error.code in (401, 403, 404):
            # Names that need an account are left to the library, which knows the user's.
            if error.code == 404:
                raise ModelFileInvalid(
                    f"the hub has no model {name}; check the name, or give a folder with "
                    "config.json and weights."
                ) from None
            return
        reason = f"it answers {error.code}"
    except (OSError, ValueError) as error:
        reason = " ".join(str(getattr(error, "reason", error)).split()) or type(error).__name__
    raise ModelFileInvalid(
        f"{name} is not in the cache, and the hub {endpoint} cannot be reached ({reason[:100]}); "
        "connect to a network, or give a folder with config.json and weights."
    )
