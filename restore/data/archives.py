"""Read the files of a zip archive in memory. Nothing is written, and sizes are checked before unpacking."""

from __future__ import annotations

import contextlib
import gzip
import posixpath
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, cast

from restore.errors import InputError, RestoreError, reason, shown

# The most files in an archive, and bytes of one and of all once they are unpacked: a small archive may hold gigabytes.
MAX_MEMBERS = 200_000
MAX_MEMBER_BYTES = 1 << 26
MAX_ARCHIVE_BYTES = 1 << 33

ZIP = (b"PK\3\4", b"PK\5\6")
GZIP = b"\x1f\x8b"


@contextlib.contextmanager
def readable(name: str | Path) -> Iterator[None]:
    """Turn every fault of reading a file into an `InputError` that names it."""
    try:
        yield
    except RestoreError:
        raise
    except Exception as fault:  # decoders of damaged files raise nearly anything
        why = getattr(fault, "strerror", None) or reason(fault)
        raise InputError(f"cannot be read ({why}); get an intact copy", name) from fault


def unpacked(path: Path) -> IO[bytes]:
    """Open a file for reading, through gzip if it is compressed."""
    with path.open("rb") as stream:
        packed = stream.read(2) == GZIP
    return cast(IO[bytes], gzip.open(path)) if packed else path.open("rb")


def members(
    path: Path, *, files: int = MAX_MEMBERS, file_bytes: int = MAX_MEMBER_BYTES, all_bytes: int = MAX_ARCHIVE_BYTES
) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """The files of an archive, by name, each with a function that reads it.

    Raises InputError for damage, names that lead out of it, and what is too large.
    """
    with readable(path), zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if len(entries) > files:
            raise InputError(f"holds more than {files} members; pack fewer into one archive", path)
        if sum(entry.file_size for entry in entries) > all_bytes:
            raise InputError("unpacks to too many bytes; pack fewer files into one archive", path)
        for entry in entries:
            name = posixpath.normpath(entry.filename.lstrip("/"))
            if name == ".." or name.startswith("../"):
                raise InputError(f"{shown(entry.filename)} leads out of it; pack plain files only", path)
            if entry.file_size > file_bytes:
                raise InputError(f"{shown(entry.filename)} unpacks to too many bytes; leave it out", path)
            if not entry.is_dir():
                yield name, partial(archive.read, entry)
