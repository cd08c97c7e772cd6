"""Read the files of an archive, zip or tar, in memory. Nothing is written, and sizes are checked before unpacking."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import posixpath
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from restore.errors import InputError, RestoreError, reason, shown

MAX_MEMBERS = 200_000
MAX_MEMBER_BYTES = 1 << 26
MAX_BYTES = 1 << 33
# Headers of tar archives are read at once, whatever length they claim.
_MAX_HEADER = 1 << 16

ZIP = (b"PK\3\4", b"PK\5\6")
# Records of padding that may follow the end of a tar archive.
PADDING = 64

_UNPACKERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}


class Member(NamedTuple):
    """A file in an archive: its name, and a function that reads it."""

    name: str
    read: Callable[[], bytes]


@contextlib.contextmanager
def readable(name: str | Path) -> Iterator[None]:
    """Turn every fault of reading a file into an `InputError` that names it."""
    try:
        yield
    except RestoreError:
        raise
    except Exception as fault:  # decoders of damaged files raise nearly anything
        said = getattr(fault, "strerror", None) or reason(fault) or type(fault).__name__
        raise InputError(f"cannot be read ({said}); get an intact copy", name) from fault


def unpacked(path: Path) -> IO[bytes]:
    """Open a file for reading, through gzip, bzip2 or xz if it is compressed by one of them."""
    with path.open("rb") as stream:
        head = stream.read(6)
    opener = next((opener for magic, opener in _UNPACKERS.items() if head.startswith(magic)), open)
    return opener(path, "rb")


def members(path: Path) -> Iterator[Member]:
    """List the files of an archive; read each before asking for the next.

    Raises InputError for damage, for names that lead out of it, links and devices, and for members that are too many,
    or too large.
    """
    total = 0
    with readable(path):
        for number, (entry, read) in enumerate(_entries(path)):
            name = posixpath.normpath(entry.name.lstrip("/"))
            total += entry.size
            fault = ""
            if name == ".." or name.startswith("../"):
                fault = f"{shown(entry.name)} leads out of it; pack plain files only"
            elif not (entry.isreg() or entry.isdir()) or entry.issparse():
                fault = f"{shown(entry.name)} is a link or a device; pack plain files only"
            elif number >= MAX_MEMBERS:
                fault = f"holds more than {MAX_MEMBERS} members; pack fewer into one archive"
            elif entry.size > MAX_MEMBER_BYTES or total > MAX_BYTES:
                fault = f"{shown(entry.name)} unpacks to too many bytes; leave it out"
            if fault:
                raise InputError(str(fault), path)
            if entry.isreg():
                yield Member(name, read)


def _entries(path: Path) -> Iterator[tuple[tarfile.TarInfo, Callable[[], bytes]]]:
    with path.open("rb") as file:
        is_zip = file.read(4) in ZIP
    if is_zip:
        with zipfile.ZipFile(path) as archive:
            for listed in archive.infolist():
                entry = tarfile.TarInfo(listed.filename)
                entry.size, entry.type = listed.file_size, tarfile.DIRTYPE if listed.is_dir() else tarfile.REGTYPE
                yield entry, partial(archive.read, listed)
        return
    with unpacked(path) as stream, tarfile.open(fileobj=cast(IO[bytes], _Headers(stream)), mode="r:") as tar:
        while (found := tar.next()) is not None:
            yield found, partial(_content, stream, found)
        # To tarfile an invalid header ends an archive, like the empty header at its end.
        stream.seek(tar.offset)
        if any(stream.read(tarfile.BLOCKSIZE)):
            raise tarfile.ReadError("a header in it makes no sense")
        # Only at its end is a compressed stream checked; padding is short.
        for _ in range(PADDING):
            if not stream.read(tarfile.RECORDSIZE):
                break


def _content(stream: IO[bytes], entry: tarfile.TarInfo) -> bytes:
    stream.seek(entry.offset_data)
    content = stream.read(entry.size)
    if len(content) < entry.size:
        raise EOFError("it ends within a member")
    return content


class _Headers:
    """A stream of which tarfile reads the headers, and not more at once than a header needs."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._read, self.seek, self.tell = stream.read, stream.seek, stream.tell

    def read(self, size: int) -> bytes:
        if size > _MAX_HEADER:
            raise tarfile.ReadError(f"a header in it claims {size} bytes")
        return self._read(size)
