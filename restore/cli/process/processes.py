"""A command in several processes, as torchrun starts it: they work together, and the first alone speaks."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import wraps
from pathlib import Path
from typing import ParamSpec

Arguments = ParamSpec("Arguments")


def with_others(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """The same command, and with `WORLD_SIZE` above 1 in the environment one that works together with the others.

    Nothing is heard of any process but the first, except for internal faults; exit codes are the same in all.
    """

    @wraps(command)
    def run(*arguments: Arguments.args, **options: Arguments.kwargs) -> None:
        if not _several():
            return command(*arguments, **options)
        from restore.errors import RestoreError
        from restore.learning.run.parallel import joined

        if os.environ.get("RANK", "0") == "0":
            with joined():
                return command(*arguments, **options)
        try:
            with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere), joined():
                return command(*arguments, **options)
        except RestoreError as fault:
            raise SystemExit(fault.exit_code) from fault
        except KeyboardInterrupt as stop:
            raise SystemExit(128 + getattr(stop, "signal_number", signal.SIGINT)) from stop

    return run


def launched_by() -> list[str]:
    """The words that start several processes, before those of the command; none for one."""
    return ["torchrun", f"--nproc-per-node={os.environ['WORLD_SIZE']}", "-m", "--"] if _several() else []


def _several() -> bool:
    """Whether there are others.

    Raises:
        UsageError: if their number is none.
    """
    from restore.errors import UsageError

    count = os.environ.get("WORLD_SIZE", "1")
    if not count.isdecimal() or int(count) < 1:
        raise UsageError(f"WORLD_SIZE must be a number of processes, not {count!r}; start with torchrun, or unset it")
    return int(count) > 1
