"""What a child process may use that opens a file nobody has checked."""

from __future__ import annotations

import contextlib


def limit_memory(most: int) -> None:
    """Let this process have so many bytes of memory at most, where the system has such limits (not on Windows)."""
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (most, most))
