"""The folder of a result: ``result.json``, ``result.npz``, ``report.html``, ``figures/``."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from ..results.base import Result
from ..results.folders import CONTENTS
from . import figures, html
from .atomic import check_folder, replaced_folder

__all__ = ["check_writable", "write_all", "write_result"]


def write_all(result: Result, directory: str | PathLike[str]) -> Path:
    """Write result, report and figures into `directory`, all or nothing.

    They are written into a new folder beside it, which is then renamed.  An earlier result
    in `directory` is replaced, and kept if anything fails.

    Parameters
    ----------
    result : Result
    directory : path
        A folder that does not exist, is empty, or holds an earlier result and nothing else.

    Returns
    -------
    pathlib.Path
        The folder.

    Raises
    ------
    OutputFailure
        If the folder cannot be written or holds other files.
    """
    with replaced_folder(directory, CONTENTS) as folder:
        images = figures.images(result)
        result.save(folder)
        (folder / "report.html").write_text(html.render(result, images), encoding="utf-8")
        (folder / "figures").mkdir()
        for name, data in images.items():
            (folder / "figures" / f"{name}.png").write_bytes(data)
    return Path(directory)


def write_result(result: Result, directory: str | PathLike[str]) -> Path:
    """Write the result alone into `directory`, all or nothing, without report and figures.

    Parameters
    ----------
    result : Result
    directory : path
        A folder as for :func:`write_all`.

    Returns
    -------
    pathlib.Path
        The folder.

    Raises
    ------
    OutputFailure
        If the folder cannot be written or holds other files.
    """
    with replaced_folder(directory, CONTENTS) as folder:
        result.save(folder)
    return Path(directory)


def check_writable(directory: str | PathLike[str]) -> None:
    """Check that :func:`write_all` may write to `directory`; leaves nothing behind.

    Meant to be called before long work, which must not end in a refusal.

    Raises
    ------
    OutputFailure
        If it may not: one line with the reason.
    """
    check_folder(directory, CONTENTS)
