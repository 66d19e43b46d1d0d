"""Run the command line as ``python -m gtcontrol``."""

from .cli import main

if __name__ == "__main__":
    main()
