"""Exit codes and one-line errors for every command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from ..errors import Contradiction, GtcontrolError
from .terminal import Unprintable, complain, unprintable

__all__ = ["ANSWERED", "BAD_INPUT", "UNANSWERED", "OneLineGroup"]

#: The question was answered, also by "it blows up" or "it cannot be reached".
ANSWERED = 0

#: The question could not be answered, or what the file expects did not come true.
UNANSWERED = 1

#: Bad input: one line on standard error, and nothing was written.
BAD_INPUT = 2

# What typer returns for Ctrl-C; its older versions raise `Abort` instead.
_INTERRUPTED = 130

# The class of all usage errors; depending on the version of typer it comes with click.
_UsageError: type[Any] = typer.BadParameter.__mro__[1]


class OneLineGroup(TyperGroup):
    """Group of commands whose errors are one line each, with the exit codes above."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and turn what it raises into an exit code."""
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except GtcontrolError as error:
            complain(str(error))
            code = BAD_INPUT
        except _UsageError as error:
            complain(f"{error.format_message()} See `{_command(error)} --help`.")
            code = BAD_INPUT
        except (Unprintable, Contradiction) as error:
            complain(str(error))
            code = UNANSWERED
        except OSError as error:
            if error.filename is not None:
                raise  # a file: a mistake of the program, as all files are written with care
            complain(unprintable(error))  # the help, which typer prints by itself
            code = UNANSWERED
        except (KeyboardInterrupt, typer.Abort):
            code = _INTERRUPTED
        if code == _INTERRUPTED:
            complain("interrupted; nothing was written.")
            code = UNANSWERED
        if standalone_mode:
            sys.exit(code or ANSWERED)
        return code


def _command(error: Any) -> str:
    """The command that an error of usage is about, as it is typed."""
    context = getattr(error, "ctx", None)
    if context is None or context.parent is None:
        return "gtcontrol"
    return f"gtcontrol {context.info_name}"
