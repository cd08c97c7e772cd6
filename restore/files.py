"""Writing files so that a crash, a full disk or a signal never leaves half of one behind."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from pathlib import Path

from restore.errors import OutputError, RestoreError, shown

# Temporary files live for milliseconds. One this old, in seconds, belongs to a process that was killed.
ABANDONED = 60.0


def write_atomically(path: str | os.PathLike[str], content: bytes, error: type[RestoreError] = OutputError) -> None:
    """Replace `path` by new content, or leave it exactly as it was.

    The content goes to a temporary name in the same folder, is flushed to disk, and is renamed over `path`; then the
    folder's entry is flushed. A file that is replaced keeps its permissions; a link is replaced, not followed.

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
        before = _status(target)
        # What replaces a file is at no time open to more people than that was.
        narrow = 0o666 if before is None else 0o600
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, narrow), "wb") as stream:
            if before is not None:
                _permit_as(before, stream.fileno())
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


def _status(path: Path) -> os.stat_result | None:
    """That of the file that is found under a name; None if there is none."""
    try:
        return path.stat()
    except OSError:  # or a link that leads nowhere; whoever writes says what else is wrong
        return None


def _permit_as(before: os.stat_result, descriptor: int) -> None:
    """Give an open file the owner, the group and the permissions of another, as far as this user may."""
    mode = stat.S_IMODE(before.st_mode) & 0o777
    now = os.fstat(descriptor)
    if now.st_uid != before.st_uid:
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, -1)
    if now.st_gid != before.st_gid:
        try:
            os.fchown(descriptor, -1, before.st_gid)
        except PermissionError:
            # What one group was allowed is not for another: it gets what everybody gets.
            mode = mode & ~0o070 | (mode & 0o007) << 3
    os.fchmod(descriptor, mode)


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
