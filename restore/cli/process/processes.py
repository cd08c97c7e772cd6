"""Run a command in several processes, as torchrun starts it: they work together, and only the first one reports."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from functools import wraps
from pathlib import Path
from typing import ParamSpec

Arguments = ParamSpec("Arguments")


def under_torchrun(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Make a command work together with the other processes if `WORLD_SIZE` in the environment is above 1.

    Only the first process reports, except for internal faults. All have the same exit code.
    """

    @wraps(command)
    def run(*arguments: Arguments.args, **options: Arguments.kwargs) -> None:
        if not _several():
            return command(*arguments, **options)
        from restore.errors import RestoreError
        from restore.learning.run.parallel import joined

        first = os.environ.get("RANK", "0") == "0"
        try:
            with ExitStack() as stack:
                if not first:
                    nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
                    stack.enter_context(redirect_stdout(nowhere))
                    stack.enter_context(redirect_stderr(nowhere))
                stack.enter_context(joined())
                command(*arguments, **options)
        except (RestoreError, KeyboardInterrupt) as fault:
            if first:
                raise
            stopped = 128 + getattr(fault, "signal_number", signal.SIGINT)
            raise SystemExit(fault.exit_code if isinstance(fault, RestoreError) else stopped) from fault
        # Threads of torch.distributed may still run while the interpreter ends, which then sometimes aborts.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    return run


def launched_by() -> list[str]:
    """The words before the command that start several processes; none for one."""
    return ["torchrun", f"--nproc-per-node={os.environ['WORLD_SIZE']}", "-m", "--"] if _several() else []


def _several() -> bool:
    """True if there are other processes; raises UsageError if `WORLD_SIZE` is not their number."""
    from restore.errors import UsageError

    count = os.environ.get("WORLD_SIZE", "1")
    if not count.isdecimal() or int(count) < 1:
        raise UsageError(f"WORLD_SIZE must be a number of processes, not {count!r}; start with torchrun, or unset it")
    return int(count) > 1
