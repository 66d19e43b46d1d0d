"""Run the command line as ``python -m gtcontrol``."""

import os
import sys

from .cli import main

if __name__ == "__main__":
    try:
        main()
    except SystemExit as end:
        # If Ctrl-C struck within `exec` of a text, as dataclasses use it, Python would end itself
        # by that signal in place of the exit code, although the interruption was handled.
        if end.code == 1:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
            os._exit(1)
        raise
