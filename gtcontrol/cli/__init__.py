"""The command line: ``gtcontrol run FILE`` and its companions."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Entry point of the ``gtcontrol`` command."""
    from .app import app

    app()
