"""What the optional packages of the extra ``pretrained`` are needed for, said in one line."""

from __future__ import annotations

import textwrap
import warnings
from typing import Any

from ..errors import MissingPackage
from .weights import Floats

__all__ = ["missing", "shortened", "torch_library", "view"]


def missing(package: str, purpose: str) -> MissingPackage:
    """Return the error that names a package which is not installed, and the remedy."""
    return MissingPackage(
        f"{package} is not installed, and {purpose} needs it: "
        "`pip install 'gtcontrol[pretrained]'`."
    )


def shortened(error: Exception, longest: int = 160) -> str:
    """What another library says about an error: on one line, cut between words, no full stop."""
    text = " ".join(str(error).split()) or type(error).__name__
    first = text.split(" ", 1)[0]
    if len(first) > longest - 2:
        return f"{first[: longest - 2]} …"
    return textwrap.shorten(text, longest, placeholder=" …").rstrip(".")


def torch_library() -> Any:
    """Return torch.

    Raises
    ------
    MissingPackage
        If it is not installed.
    """
    try:
        import torch
    except ImportError:
        raise missing("torch", "a pretrained model") from None
    return torch


def view(array: Floats) -> Any:
    """Return a torch tensor that shares the memory of `array`, which must not be written to."""
    torch = torch_library()
    with warnings.catch_warnings():
        # Weights are read-only, and nothing here writes to them.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)
