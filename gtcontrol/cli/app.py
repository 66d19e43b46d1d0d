"""The commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import __version__
from .group import OneLineGroup
from .terminal import say

__all__ = ["app"]

app = typer.Typer(
    cls=OneLineGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Problem = Annotated[
    str,
    typer.Argument(
        metavar="FILE|NAME",
        help="A problem file (TOML), or the name of one that comes with gtcontrol.",
        show_default=False,
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        say(f"gtcontrol {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _gtcontrol(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Control design for Gaussian Transformer dynamics.

    Start with `gtcontrol list`, then `gtcontrol run steer-planar`.

    Exit codes:

    0: the question was answered, also by "it blows up" or "it cannot be reached";

    1: it could not be answered or printed, or an expectation of the file was not met;

    2: bad input, with one line on standard error and nothing written.
    """
    if context.invoked_subcommand is None:
        say(context.get_help())


@app.command()
def run(
    problem: Problem,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder for the results.  Default: runs/NAME."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing but what went wrong.")
    ] = False,
) -> None:
    """Answer a problem, and write result.json, result.npz, report.html and figures."""
    from .session import run_problem

    raise typer.Exit(run_problem(problem, out, as_json=as_json, quiet=quiet))


@app.command("list")
def list_problems() -> None:
    """List the problems that come with gtcontrol."""
    from ..problem import zoo
    from . import kinds

    documents = {name: kinds.read(zoo.path(name)) for name in zoo.names()}
    width = max(map(len, documents))
    for name, document in documents.items():
        say(f"{name:{width}}  {document.kind:8}  {document.title}")


@app.command()
def show(problem: Problem) -> None:
    """Print the file of a problem."""
    from ..problem import files
    from ..problem.messages import located
    from .session import find

    path = find(problem)
    with located(str(path)):
        say(files.text(path))


@app.command()
def new(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            help="Kind of problem; without it, the kinds are listed.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="File to write.  Default: KIND.toml."),
    ] = None,
) -> None:
    """Write a commented problem file to start from."""
    from . import kinds
    from .template import write

    if kind is None:
        for name in kinds.KINDS:
            say(f"{name:9} {kinds.load(name).ABOUT}")
        return
    path = write(kinds.load(kind).TEMPLATE, Path(f"{kind}.toml") if out is None else out)
    say(f"Wrote {path}.  Edit it, then: gtcontrol run {path}")


@app.command()
def check(problem: Problem) -> None:
    """Check a problem file without running it."""
    from . import kinds
    from .session import find

    path = find(problem)
    task = kinds.prepare(kinds.read(path), path)
    hint = f"; {task.lacks}" if task.lacks else ""
    say(f"{path}: valid ({task.about}){hint}")


@app.command()
def verify(
    certificate: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Folder (or its result.json) that `gtcontrol run` wrote for a certificate.",
            show_default=False,
        ),
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was found as JSON, and nothing else.")
    ] = False,
) -> None:
    """Check a saved certificate again in exact arithmetic, without any solver.

    Exit codes: 0 if it is proved, 1 if it is numerical evidence only, 2 if it is rejected.
    """
    from .checking import verify_saved

    raise typer.Exit(verify_saved(certificate, as_json=as_json))


@app.command()
def inspect(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Folder of a checkpoint, ONNX file, name on the hub, or `package:NAME`.",
            show_default=False,
        ),
    ],
    source: Annotated[
        str,
        typer.Option("--input", metavar="matched|isotropic|real", help="What runs through it."),
    ] = "matched",
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="FILE", help="Real input: text, folder of images, .npy, .safetensors."
        ),
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option(
            help="Tokens of each sequence.  Default: 512, or as many as an image has.",
        ),
    ] = None,
    sequences: Annotated[
        int | None,
        typer.Option(help="Sequences.  Default: 16, or all of a file of tokens."),
    ] = None,
    layers: Annotated[
        int | None, typer.Option(help="Look at so many of the first layers only.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder for the results.  Default: runs/MODEL."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing but what went wrong.")
    ] = False,
) -> None:
    """Tell where the Gaussian theory holds in a pretrained Transformer, layer by layer."""
    from .inspecting import inspect_model

    made = inspect_model(
        model,
        {
            "input": source,
            "data": data,
            "tokens": tokens,
            "sequences": sequences,
            "layers": layers,
            "seed": seed,
        },
        out,
        as_json=as_json,
        quiet=quiet,
    )
    raise typer.Exit(made)


@app.command()
def report(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Folder that `gtcontrol run` has written.", show_default=False
        ),
    ],
) -> None:
    """Draw the report and the figures of a saved result again."""
    from ..reporting import files as reports
    from ..results.storage import load

    result = load(directory)
    reports.check_writable(directory)
    reports.write_all(result, directory)
    say(f"Report: {directory / 'report.html'}")
