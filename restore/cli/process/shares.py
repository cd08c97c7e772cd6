"""Share work among processes of this machine, of one thread each; only the first process reports."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, suppress
from typing import Any, TypeVar

from restore import signals
from restore.errors import RestoreWarning, in_command

Item = TypeVar("Item")
Made = TypeVar("Made")


def shared(
    count: int, work: Callable[[list[Item]], Generator[Made]], items: list[Item], lost: Callable[[Item, str], Made]
) -> Generator[Made]:
    """What `work` makes of each item, in order, by `count` processes, which end with this iterator.

    Args:
        count: of processes; each has every `count`-th item.
        work: makes one thing of each item, in order; it is pickled, as are the items and what it makes.
        items: what to work on.
        lost: makes what stands for an item whose process has ended, from the way it ended.
    """
    with ExitStack() as stack:
        started = [_started(stack) for _ in range(count)]
        for number, (_, end) in enumerate(started):
            with suppress(OSError):  # if it has ended, receiving says so
                end.send((work, items[number::count]))
        for number, item in enumerate(items):
            process, end = started[number % count]
            try:
                while isinstance(made := end.recv(), str):
                    warnings.warn(made, RestoreWarning, stacklevel=2)
            except (EOFError, OSError):
                process.join()
                code = process.exitcode or 0
                made = lost(item, signal.Signals(-code).name if code < 0 else f"exit code {code}")
            if isinstance(made, Exception):
                raise made
            yield made
        for process, _ in started:  # before they would be terminated
            process.join()


def _started(stack: ExitStack) -> tuple[Any, Any]:
    """A process that waits for its work, with this end of the pipe to it; it is ended as the stack closes."""
    context = multiprocessing.get_context("spawn")
    end, other = context.Pipe()
    process = context.Process(target=_serve, args=(other,), daemon=True)
    masked = sys.platform != "win32" and signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:  # Ctrl-C goes to all processes, and is for this one: the new one would start with a traceback
        process.start()
    finally:
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_SETMASK, masked or ())
    other.close()
    stack.callback(process.join)
    stack.callback(process.terminate)
    stack.callback(end.close)
    return process, end


def _serve(end: Any) -> None:
    """Work in a process of its own, until the work is done, or the other end of the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    from restore.inference import threads  # libraries read the environment as they are loaded

    threads.settle()
    warnings.showwarning = lambda message, *where: end.send(str(message))
    try:
        with suppress(EOFError, OSError), in_command(), signals.Raised():
            work, items = end.recv()
            try:
                with closing(work(items)) as every:
                    for made in every:
                        end.send(made)
            except Exception as fault:
                end.send(fault)
    except signals.Terminated:
        sys.exit(128 + signal.SIGTERM)
