"""The command line: ``gtcontrol run FILE`` and its companions."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the ``gtcontrol`` command."""
    try:
        from .app import app
    except KeyboardInterrupt:  # pressed while the commands are loaded
        sys.stderr.write("gtcontrol: interrupted; nothing was written.\n")
        sys.exit(1)
    app()
