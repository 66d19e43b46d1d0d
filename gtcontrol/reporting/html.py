"""Reports: one HTML page that needs nothing else, and no network."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ..results.base import Result
from ..results.reachability import Reachability
from ..results.steering import Steering
from . import figures
from .atomic import replace_file
from .views import Fact, view

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["render", "write"]

_TEMPLATE = "page.html.jinja"

_REPLAY = (
    (
        "replay error",
        "by how much the plan misses the target when another integrator runs it",
    ),
    ("lower bound", "a proved number below which no plan whatsoever can cost"),
)
_DISTANCE = (
    ("W₂", "the Wasserstein distance: the root mean square way that tokens must go at least"),
)


@dataclass(frozen=True)
class Image:
    """A picture, ready for the page."""

    name: str
    caption: str
    data: str
    width: int
    height: int


def render(result: Result, images: Mapping[str, bytes] | None = None) -> str:
    """Return the report as one HTML page; the same result gives the same text.

    Parameters
    ----------
    result : Result
    images : mapping from figure name to PNG file, optional
        The pictures, if they have been drawn already.
    """
    import jinja2

    seen = view(result)
    drawn = figures.images(result) if images is None else images
    source = resources.files(__package__).joinpath(_TEMPLATE).read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["coded"] = _coded
    return environment.from_string(source).render(
        view=seen,
        images=[_image(name, data, seen.captions[name]) for name, data in drawn.items()],
        facts=_facts,
        glossary=_glossary(result),
        loading=_loading(result),
    )


def write(result: Result, path: str | PathLike[str]) -> Path:
    """Write the report to the file `path`, whose folder is made if need be.

    Raises
    ------
    OutputFailure
        If the file cannot be written; what stood there before is then kept.
    """
    return replace_file(path, render(result).encode("utf-8"))


def _image(name: str, data: bytes, caption: str) -> Image:
    width, height = struct.unpack(">II", data[16:24])  # the header chunk of a PNG file
    return Image(name, caption, base64.b64encode(data).decode("ascii"), width, height)


def _facts(rows: tuple[Fact, ...]) -> Markup:
    from markupsafe import Markup

    lines = [
        Markup('<tr><th scope="row">{}</th><td>{}</td></tr>').format(row.label, _coded(row.value))
        for row in rows
    ]
    body = Markup("\n").join(lines)
    return Markup('<div class="scroll"><table><tbody>\n{}\n</tbody></table></div>').format(body)


def _coded(text: str) -> Markup:
    """Escape text and set what stands between backticks as code."""
    from markupsafe import Markup

    parts = text.split("`")
    if len(parts) % 2 == 0:  # an odd backtick is no markup
        return Markup("{}").format(text)
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(p) if i % 2 else p for i, p in enumerate(parts))


def _glossary(result: Result) -> tuple[tuple[str, str], ...]:
    if isinstance(result, Steering):
        return (*_REPLAY, *_DISTANCE)
    return _DISTANCE if isinstance(result, Reachability) else ()


def _loading(result: Result) -> str:
    lines = ["import gtcontrol as gt", 'result = gt.load("FOLDER")', "print(result.summary())"]
    if isinstance(result, Steering):
        lines += [
            "middle = result.horizon / 2",
            "parameters = result.schedule(middle)  # A, V, B, b at that time",
            "law = result.trajectory.at(middle)    # the Gaussian at that time",
        ]
    return "\n".join(lines) + "\n"
