"""Write files so that a crash, a full disk or a signal never leaves half a file behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import time
from pathlib import Path

from restore.errors import OutputError, RestoreError, shown

# Temporary files live for milliseconds. Without locks, one older than this, in seconds, is from a killed process.
ABANDONED = 60.0


def write_atomically(path: str | os.PathLike[str], content: bytes, error: type[RestoreError] = OutputError) -> None:
    """Replace `path` by new content, or leave it exactly as it was.

    The content is written to a temporary file in the same folder, flushed to disk, and renamed over `path`; then the
    folder is flushed. A replaced file keeps its permissions; a link is replaced, not followed. The temporary file is
    locked, which tells it from those of killed processes.

    Args:
        path: the file to write.
        content: its new bytes.
        error: what to raise if the file system refuses (no space, no permission, no such folder).
    """
    target = Path(path)
    # The name is short, because the target's may have the allowed 255 bytes. It is chosen before the file exists, so
    # that a signal at any time finds it.
    temporary = target.parent / f".restore-{os.urandom(8).hex()}"
    try:
        before = _status(target)
        # The new file is never readable by more people than the old one.
        narrow = 0o666 if before is None else 0o600
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, narrow), "wb") as stream:
            if before is not None:
                _permit_as(before, stream.fileno())
            # Locked before anything is written: see `_remove_if_abandoned`. Not every file system has locks.
            with contextlib.suppress(OSError):
                fcntl.flock(stream, fcntl.LOCK_EX)
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
    """The status of the file at a path; None if there is none."""
    try:
        return path.stat()
    except OSError:  # also for a link to nowhere; writing reports any other fault
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
            # What the old group was allowed is not for another group: it gets what everybody gets.
            mode = mode & ~0o070 | (mode & 0o007) << 3
    os.fchmod(descriptor, mode)


def holds(path: str | os.PathLike[str], content: bytes) -> bool:
    """Whether a path is a file, not a link, with exactly this content."""
    file = Path(path)
    try:
        status = file.lstat()
        return stat.S_ISREG(status.st_mode) and status.st_size == len(content) and file.read_bytes() == content
    except OSError:
        return False


def _flush_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_abandoned(folder: str | os.PathLike[str]) -> None:
    """Remove temporary files of `write_atomically` whose process was killed."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if re.fullmatch(r"\.restore-[0-9a-f]{16}", entry.name):
                with contextlib.suppress(OSError):
                    _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(path: Path) -> None:
    """Remove a temporary file that no process has locked.

    An empty file that is young is spared: a process may be about to lock it. Without locks every young file is spared.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        young = time.time() - status.st_mtime <= ABANDONED
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            spared = young and os.fstat(descriptor).st_size == 0
        except BlockingIOError:
            spared = True
        except OSError:
            spared = young
        if stat.S_ISREG(status.st_mode) and not spared:
            path.unlink()
    finally:
        os.close(descriptor)
