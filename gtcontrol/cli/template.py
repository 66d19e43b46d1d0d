"""Writing the problem files that people start from."""

from __future__ import annotations

from pathlib import Path

from ..errors import OutputFailure

__all__ = ["write"]


def write(text: str, path: Path) -> Path:
    """Write a new file; one that is there already is left alone."""
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise OutputFailure(f"{path} exists already; choose another name with --out.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputFailure(f"cannot write {path}: {reason}.") from None
    return path
