"""The `restore` command: thin layers over the package, one file per command."""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process and exit with the code that fits; see `restore.errors`."""
    # First of all: loading anything takes time in which a signal may come.
    from restore import signals

    signals.handle(signals.leave)
    import sys

    from restore import console

    console.settle()
    from restore.inference import threads

    threads.settle()
    from restore.cli.command import run

    sys.exit(run(sys.argv[1:]))
