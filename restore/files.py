"""Writing files so that a crash, a full disk or a signal never leaves half of one behind."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

from restore.errors import OutputError, RestoreError, shown

# Temporary files live for milliseconds. One this old, in seconds, belongs to a process that was killed.
ABANDONED = 60.0


def write_atomically(path: str | os.PathLike[str], content: bytes, error: type[RestoreError] = OutputError) -> None:
    """Replace `path` by new content, or leave it exactly as it was.

    The content goes to a temporary name in the same folder, is flushed to disk, and is renamed over `path`; then the
    folder's entry is flushed.

    Args:
        path: the file to write.
        content: what it is to hold.
        error: what to raise when the file system refuses (no space, no permission, no such folder).
    """
    target = Path(path)
    # A short name of its own, so that a target name of 255 bytes still has a temporary one; and known before there is
    # such a file, so that a signal at any time finds it.
    temporary = target.parent / f".restore-{os.urandom(8).hex()}"
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
        _flush_folder(target.parent)
    except OSError as fault:
        reason = fault.strerror or fault
        raise error(
            f"{shown(target)}: cannot be written ({reason}); free some space or choose another place"
        ) from fault
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _flush_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary files that `write_atomically` could not, because its process was killed."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if re.fullmatch(r"\.restore-[0-9a-f]{16}", entry.name):
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > ABANDONED:
                        Path(entry.path).unlink()
