"""Waiting for other processes: for what they do, never for a time."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

# Seconds after which a test takes what it waits for to hang. Nothing takes nearly so long, on however busy a machine.
HANG = 600.0


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[Any] | None = None) -> None:
    """Return once something has happened; fail if the process that should do it has ended, or it hangs."""
    until = time.monotonic() + HANG
    while not happened():
        assert process is None or process.poll() is None, f"ended with code {process and process.returncode}"
        assert time.monotonic() < until, "hangs"
        time.sleep(0.02)
