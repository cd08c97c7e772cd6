"""Timing against a peer: both run in turns in one process, so that other work on the machine slows both alike."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping
from statistics import median

import torch

from restore.learning.run.card import machine_facts

Work = Callable[[], object]


def parser(description: str, repeats: int) -> argparse.ArgumentParser:
    """The options every benchmark has."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--repeats", type=int, default=repeats, help="turns of each candidate [%(default)s]")
    options.add_argument("--threads", type=int, default=torch.get_num_threads(), help="[%(default)s]")
    return options


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


def report(seconds: Mapping[str, float], peer: str) -> None:
    """Print the time of each candidate, its ratio to that of the peer, and the machine."""
    for name, value in seconds.items():
        print(f"{name:<48} {1000 * value:12.3f} ms   {value / seconds[peer]:7.3f} x")
    print(f"({os.cpu_count()} cores; {machine_facts()})")
