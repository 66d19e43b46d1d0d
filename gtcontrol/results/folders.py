"""What the folder of a result holds, and which folders may be written to."""

from __future__ import annotations

from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path

from ..errors import GtcontrolError, OutputFailure

__all__ = ["CONTENTS", "FURTHER", "path_of", "refuse_foreign"]

#: Files that only some results have: the weights of a network, and what they are.
FURTHER = ("layers.json", "weights.safetensors")

#: What such a folder holds; one that holds anything else is never written to.
CONTENTS = ("result.json", "result.npz", "report.html", "figures", "figures/*.png", *FURTHER)


def path_of(directory: str | PathLike[str], error: type[GtcontrolError]) -> Path:
    """Return `directory` as a path; what is none raises `error`."""
    try:
        return Path(directory)
    except TypeError:
        kind = type(directory).__name__
        raise error(f"`directory` must be the path of a folder, not {kind}.") from None


def refuse_foreign(
    path: str | PathLike[str], folder: Path, ours: tuple[str, ...] = CONTENTS
) -> None:
    """Refuse a folder that holds files that are not part of an earlier result.

    Parameters
    ----------
    path : path
        The folder as it was named, for the message.
    folder : pathlib.Path
        The same, resolved; it exists.
    ours : tuple of str
        Patterns of the files and folders that an earlier result consists of.

    Raises
    ------
    OutputFailure
        If it holds anything else; the message names the first of them.
    """
    held = sorted(entry.name for entry in folder.iterdir())
    if held and "result.json" not in held:
        raise OutputFailure(
            f"cannot write into {path}: it is not empty and holds no earlier result "
            f"({_listed(held)}); name another folder."
        )
    inside = sorted(entry.relative_to(folder).as_posix() for entry in folder.rglob("*"))
    foreign = [name for name in inside if not any(fnmatchcase(name, own) for own in ours)]
    if foreign:
        raise OutputFailure(
            f"cannot write into {path}: beside an earlier result it holds other files "
            f"({_listed(foreign)}); move them away or name another folder."
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
