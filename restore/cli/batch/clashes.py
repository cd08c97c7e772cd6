"""Refuse to write a file that a command also reads, or writes twice."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from restore.errors import UsageError, shown

# A file by its name, or a standard stream by its number; the shell may have redirected it to a file.
File = Path | int
STDIN, STDOUT = 0, 1
_NAMES = {STDIN: "stdin", STDOUT: "stdout"}


def refuse_clashes(reads: Iterable[File], writes: Iterable[File]) -> None:
    """Refuse to write a file that is also read, or written twice, by any name or link.

    Pipes, terminals and devices do not count: nothing in them can be lost.
    """
    read: dict[object, File] = {_identity(file): file for file in reads}
    written: dict[object, File] = {}
    for file in writes:
        keys: list[object] = [key for key in (_identity(file), _place(file)) if key is not None]
        for key in keys:
            if key in read:
                raise UsageError(f"{_shown(file)}: is to be written, and read as {_shown(read[key])}; choose another")
            if key in written:
                both = "" if written[key] == file else f", also as {_shown(written[key])}"
                raise UsageError(f"{_shown(file)}: is to be written twice{both}; choose another for one of them")
        written |= dict.fromkeys(keys, file)


def _identity(file: File) -> tuple[int, int] | None:
    """What all links to a file share; None if it does not exist or is not a regular file."""
    try:
        status = os.fstat(file) if isinstance(file, int) else file.stat()
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _place(file: File) -> Path | None:
    """The path of a file with all links to its folder resolved."""
    return None if isinstance(file, int) else Path(os.path.realpath(file.parent), file.name)


def _shown(file: File) -> str:
    return _NAMES[file] if isinstance(file, int) else shown(file)
