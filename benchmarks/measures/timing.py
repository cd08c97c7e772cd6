"""Timing against a peer: both run in turns in one process, so that other work on the machine slows both alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

import numpy as np
import torch

from benchmarks.measures.script import head, row
from restore.learning.run.card import machine_facts

Work = Callable[[], object]

# The command `restore`, in a new process.
COMMAND = (sys.executable, "-c", "from restore.cli import main; main()")

# Starts a command and prints its seconds, its KiB, and the seconds of processors that it took. It runs in a small
# process of its own, because the peak memory of a command includes that of the process that started it.
STOPWATCH = """
import os, sys, time
start = time.perf_counter()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(child, 0)
print([time.perf_counter() - start, used.ru_maxrss, used.ru_utime + used.ru_stime])
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


def on_processors(count: int) -> None:
    """Limit this process, and those it starts, to a number of processors, if the system can."""
    torch.set_num_threads(count)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def medians(candidates: Mapping[str, Work], repeats: int, warm_up: int = 1) -> dict[str, float]:
    """Median seconds of each candidate. They run in turns; the first `warm_up` rounds do not count."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(warm_up + repeats):
        for name, work in candidates.items():
            start = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - start)
    return {name: median(values[warm_up:]) for name, values in seconds.items()}


def report(seconds: Mapping[str, float], peer: str, title: str = "", **more: Mapping[str, str]) -> None:
    """Print the time of each candidate, its ratio to that of the peer, and the machine.

    Args:
        seconds: by candidate.
        peer: the candidate whose ratio is 1.
        title: stands above the candidates.
        more: further columns by their heads, with a cell for each candidate.
    """
    head(title, "ms", "ratio", *more)
    for name, value in seconds.items():
        row(name, f"{1000 * value:.3f}", f"{value / seconds[peer]:.2f}", *(column[name] for column in more.values()))
    print(f"({os.cpu_count()} cores; {machine_facts()})")


def of_process(*command: str) -> tuple[float, float]:
    """Run a command; return its seconds and its peak of memory in MiB."""
    seconds, mebibytes, _ = spent(*command)
    return seconds, mebibytes


def spent(*command: str) -> tuple[float, float, float]:
    """The same, and the seconds of processors, which other work on the machine hardly changes."""
    stopwatch = [sys.executable, "-I", "-S", "-c", STOPWATCH, *command]
    done = subprocess.run(stopwatch, check=True, stdout=subprocess.PIPE, text=True)
    seconds, kibibytes, of_processors = json.loads(done.stdout.splitlines()[-1])
    return seconds, kibibytes / 1024, of_processors


def of_processes(commands: Iterable[Sequence[str]], repeats: int) -> np.ndarray:
    """Run commands in turns, of which the first does not count; what each has spent (turns, commands, 3)."""
    commands = list(commands)
    return np.array([[spent(*command) for command in commands] for _ in range(1 + repeats)][1:])
