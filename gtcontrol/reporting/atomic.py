"""All or nothing on disk: files and folders that appear whole, or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

from ..errors import OutputFailure
from ..results.folders import refuse_foreign

__all__ = ["check_folder", "replace_file", "replaced_folder"]


def replace_file(path: str | PathLike[str], content: bytes) -> Path:
    """Write `content` to `path`: beside it first, then renamed over it."""
    with _told(path):
        target = _resolved(path)
        if target.is_dir():
            raise OutputFailure(
                f"cannot write {path}: it is a folder; name a file, such as "
                f"{Path(path) / 'report.html'}."
            )
        made = _make(target.parent)
        beside = target.parent / _fresh_name()
        try:
            beside.write_bytes(content)
            beside.replace(target)
        except BaseException:
            beside.unlink(missing_ok=True)
            _unmake(made)
            raise
    return Path(path)


def check_folder(path: str | PathLike[str], ours: tuple[str, ...]) -> None:
    """Check that :func:`replaced_folder` may write to `path`; leaves nothing behind.

    Raises
    ------
    OutputFailure
        If it may not: one line with the reason.
    """
    with _told(path):
        target = _checked(path, ours)
        made = _make(target.parent)
        try:
            # Names and rights are tried out, not guessed from permission bits.
            probe = target.parent / _fresh_name() if target.exists() else target
            probe.mkdir()
            probe.rmdir()
        finally:
            _unmake(made)


@contextmanager
def replaced_folder(path: str | PathLike[str], ours: tuple[str, ...]) -> Iterator[Path]:
    """Give a fresh folder to fill, which takes the place of `path` when all went well.

    Parameters
    ----------
    path : path
        Folder that may not exist yet, may be empty, or may hold an earlier result.
    ours : tuple of str
        Patterns of the files and folders that an earlier result consists of, such as
        "figures/*.png".  A folder that holds anything else is refused, so that nothing is
        deleted that we did not write.
    """
    with _told(path):
        target = _checked(path, ours)
        made = _make(target.parent)
        beside = target.parent / _fresh_name()
        try:
            beside.mkdir()
            yield beside
            _swap(beside, target)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            _unmake(made)
            raise


def _swap(fresh: Path, target: Path) -> None:
    """Put `fresh` in the place of `target`; on failure `target` is as it was."""
    if not target.exists():
        fresh.rename(target)
        return
    aside = target.parent / _fresh_name()
    target.rename(aside)
    try:
        fresh.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    try:
        shutil.rmtree(aside)
    except KeyboardInterrupt:
        shutil.rmtree(aside)  # the new result is in place: nothing of the old one may stay
        raise
    except OSError as error:
        raise OutputFailure(
            f"the new result is in {target}, but the earlier one could not be deleted from "
            f"{aside}: {error.strerror}."
        ) from None


def _checked(path: str | PathLike[str], ours: tuple[str, ...]) -> Path:
    target = _resolved(path)
    for place in (target, *target.parents):
        if place.exists() and not place.is_dir():
            raise OutputFailure(f"cannot write into {path}: {place} is a file, not a folder.")
    if not target.exists():
        return target
    here = Path.cwd().resolve()
    if here.is_relative_to(target):
        what = "is the current folder" if here == target else f"holds the current folder, {here}"
        raise OutputFailure(f"cannot write into {path}: it {what}; name a folder inside it.")
    refuse_foreign(path, target, ours)
    return target


def _fresh_name() -> str:
    return f".gtcontrol-{secrets.token_hex(6)}"


def _make(folder: Path) -> list[Path]:
    """Make a folder and its parents; return those that were not there, outermost first."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()][::-1]
    made: list[Path] = []
    try:
        for place in missing:
            place.mkdir()
            made.append(place)
    except BaseException:
        _unmake(made)
        raise
    return made


def _unmake(made: list[Path]) -> None:
    with suppress(OSError):  # somebody else put something there in the meantime: it stays
        for place in reversed(made):
            place.rmdir()


def _resolved(path: str | PathLike[str]) -> Path:
    try:
        return Path(path).resolve()
    except (ValueError, RuntimeError) as error:  # null characters; loops of symbolic links
        raise OutputFailure(f"cannot write {str(path)!r}: {error}.") from None


@contextmanager
def _told(path: str | PathLike[str]) -> Iterator[None]:
    """Turn the operating system's refusals into one line."""
    try:
        yield
    except OSError as error:
        raise OutputFailure(f"cannot write {path}: {error.strerror or error}.") from None
