"""Write files so that a crash, a full disk or a signal never leaves half a file behind."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from pathlib import Path

from restore import buckets
from restore.errors import OutputError, RestoreError

# Temporary files live for milliseconds. One older than this, in seconds, is from a killed process.
ABANDONED = 600.0


def write_atomically(path: str | os.PathLike[str], content: bytes, error: type[RestoreError] = OutputError) -> None:
    """Replace `path` by new content, or leave it exactly as it was.

    The content is written to a temporary file in the same folder, flushed to disk, and renamed over `path`. A replaced
    file keeps its permissions, and its owner if this user may set it; a link is replaced, not followed. To a URL it is
    written at once (`buckets.write`).

    Args:
        path: the file to write.
        content: its new bytes.
        error: what to raise if the file system refuses (no space, no permission, no such folder).
    """
    target = buckets.path_of(path)
    if isinstance(target, buckets.Remote):
        buckets.write(target, content, error)
        return
    # The name is short, because the target's may have the allowed 255 bytes. It is chosen before the file exists, so
    # that a signal at any time finds it.
    temporary = target.parent / f".restore-{os.urandom(8).hex()}"
    try:
        before = target.stat() if target.exists() else None
        # The new file is never readable by more users than the old one.
        narrow = 0o666 if before is None else 0o600
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(temporary, flags, narrow), "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if before is not None:
            if hasattr(os, "chown"):  # Windows has no owners
                with contextlib.suppress(OSError):
                    os.chown(temporary, before.st_uid, before.st_gid)
            # The permissions of the old group are not for another group.
            same = temporary.stat().st_gid == before.st_gid
            temporary.chmod(stat.S_IMODE(before.st_mode) & (0o777 if same else 0o707))
        temporary.replace(target)
        with contextlib.suppress(PermissionError):  # Windows opens no folders
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as fault:
        reason = fault.strerror or fault
        raise error(f"cannot be written ({reason}); free some space or choose another place", target) from fault
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def make_folder(folder: Path, remedy: str, error: type[RestoreError] = OutputError) -> None:
    """Make a folder, and those above it, if it is missing; raises `error`, which ends with the remedy, if it cannot."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise error(f"cannot be made ({fault.strerror}); {remedy}", folder) from fault


def check_regular(path: Path, most: int) -> None:
    """Refuse links, pipes and everything else that is no file, and files of more than `most` bytes.

    Raises:
        ValueError: if it is refused.
        OSError: if there is nothing.
    """
    state = path.lstat()
    if not stat.S_ISREG(state.st_mode) or state.st_size > most:
        raise ValueError(f"it is no file, a link, or larger than {most} bytes")


def remove_abandoned(folder: str | os.PathLike[str]) -> None:
    """Remove temporary files of `write_atomically` whose process was killed."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                ours = re.fullmatch(r"\.restore-[0-9a-f]{16}", entry.name) and stat.S_ISREG(status.st_mode)
                if ours and time.time() - status.st_mtime > ABANDONED:
                    Path(entry.path).unlink()
