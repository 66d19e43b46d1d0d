"""Running one problem: from its file to the folder with its report."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from ..problem import zoo
from ..problem.expectations import Finding
from ..problem.messages import located, one_line
from ..results.base import Result
from ..results.writing import to_json
from ..status import Status
from . import kinds
from .group import ANSWERED, UNANSWERED
from .kinds.base import Task
from .terminal import Unprintable, complain, progress_bar, say, warnings_on_one_line

__all__ = ["Question", "find", "run_problem", "run_task"]


def find(problem: str) -> Path:
    """File of a problem that is given by its path, or by its name in the zoo."""
    path = Path(problem)
    if path.suffix == ".toml" or path.name != problem or _is_file(path):
        return path
    return zoo.path(problem)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long for a file
        return False


def run_problem(
    problem: str, out: Path | None, *, as_json: bool = False, quiet: bool = False
) -> int:
    """Run a problem, write its results into a folder, and return the exit code.

    Parameters
    ----------
    problem : str
        Path of a problem file, or name of a problem of the zoo.
    out : Path, optional
        Folder for the results; by default ``runs/NAME``.
    as_json : bool
        Print the result as JSON, and nothing else.
    quiet : bool
        Print nothing but errors and unmet expectations.
    """
    path = find(problem)
    document = kinds.read(path)
    task = kinds.prepare(document, path)
    folder = Path("runs") / path.stem if out is None else out
    question = Question(document.kind, document.title, one_line(str(path)), folder)
    return run_task(task, question, as_json=as_json, quiet=quiet)


@dataclass(frozen=True)
class Question:
    """Where a task comes from, and where its answer goes.

    Attributes
    ----------
    kind, title : str
    place : str
        What messages about bad input begin with: the file; empty for none.
    folder : Path
        For the results.
    """

    kind: str
    title: str
    place: str
    folder: Path


def run_task(task: Task, question: Question, *, as_json: bool = False, quiet: bool = False) -> int:
    """Run a task, write its results, and return the exit code; options as in `run_problem`."""
    from ..reporting import files as reports

    folder = question.folder
    reports.check_writable(folder)
    with (
        progress_bar(quiet=quiet) as progress,
        warnings_on_one_line(),
        located(question.place) if question.place else nullcontext(),
    ):
        result = task.run(progress)
    try:
        findings = task.findings(result)
        reports.write_all(result, folder)
    except KeyboardInterrupt:
        return _keep_result(result, folder)
    try:
        if as_json:
            say(to_json(result))
        elif not quiet:
            say(_conclusion(question.title, result, findings, folder))
    except Unprintable as error:
        raise Unprintable(f"{error} The results are in {folder}.") from None
    return _exit_code(result, findings, folder, question.kind)


def _keep_result(result: Result, folder: Path) -> int:
    """Leave the result itself when the drawing of its report was interrupted."""
    from ..reporting import files as reports

    reports.write_result(result, folder)
    complain(
        f"interrupted while the report was drawn; the result is kept in {folder}: "
        f"`gtcontrol report {shlex.quote(str(folder))}` draws it."
    )
    return UNANSWERED


def _conclusion(title: str, result: Result, findings: Sequence[Finding], folder: Path) -> str:
    lines = [title, ""] if title else []
    lines += [result.summary().rstrip(), "", f"Report: {folder / 'report.html'}"]
    if findings:
        met = sum(f.met for f in findings)
        lines.append(f"Expectations of the file: {met} of {len(findings)} met.")
    return "\n".join(lines)


def _exit_code(result: Result, findings: Sequence[Finding], folder: Path, kind: str) -> int:
    if getattr(result, "status", None) is Status.INTERRUPTED:
        less = ": no feedback was designed" if kind == "track" and result.kind != kind else ""
        what = "plan" if less else "result"
        complain(f"interrupted{less}; the best {what} so far is kept in {folder}.")
        return UNANSWERED
    unmet = [f for f in findings if not f.met]
    for finding in unmet:
        complain(f"expectation not met: {finding}.")
    if not result.answered:
        complain(f"the question could not be answered; see {folder / 'report.html'}.")
    return UNANSWERED if unmet or not result.answered else ANSWERED
