"""Read the images of a user's archive in memory: zip, or tar with or without compression.

Nothing is written, and nothing is trusted. An archive with names that lead out of it, links or devices was made to
harm, and is refused as a whole. So is one that would unpack to more than any set of small images. What an archive
declares is checked before a byte is unpacked, and what it really holds during unpacking.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any, Literal

from restore.data.gathering.archive import content_of, sound
from restore.data.idx import GZIP
from restore.errors import InputError, shown

MAX_MEMBERS = 1_000_000
MAX_MEMBER_BYTES = 1 << 26
MAX_BYTES = 1 << 33

_ZIP = (b"PK\3\4", b"PK\5\6")
# Twice what xz -9 needs to unpack.
MAX_XZ_BYTES = 1 << 27
_TAR, _TAR_OFFSET = b"ustar", 257
_COMPRESSED: dict[bytes, Any] = {
    GZIP: gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lambda *of: io.BufferedReader(_Xz(*of)),
}
# How many bytes of a file show its kind.
HEAD = _TAR_OFFSET + len(_TAR)


@dataclass(frozen=True)
class Member:
    """A file in an archive.

    Attributes:
        name: its full name, with slashes, and without a leading ./
        read: returns its content; call it before asking for the next member.
    """

    name: str
    read: Callable[[], bytes]


def is_archive(head: bytes) -> bool:
    """Whether a file that starts with these `HEAD` bytes may be an archive; a compressed file need not be one."""
    return head.startswith((*_ZIP, *_COMPRESSED)) or head[_TAR_OFFSET:] == _TAR


def holds_tar(path: Path) -> bool:
    """Whether a gzipped file holds a tar archive."""
    with sound(path, "gzip file"), gzip.open(path) as stream:
        return stream.read(HEAD)[_TAR_OFFSET:] == _TAR


def members(path: Path) -> Iterator[Member]:
    """The files of an archive, in its order.

    Raises:
        InputError: if it cannot be read or is damaged; if a name is absolute or leads out of it; if a member is neither
            a file nor a folder but a link or a device; or if members are too many, too large, or too large together.
    """
    total = 0
    for number, entry in enumerate(_entries(path)):
        where = f"{shown(path)}: {shown(entry.name)}"
        if not entry.name:
            raise InputError(f"{shown(path)}: holds a member without a name; pack it anew")
        name = PureWindowsPath(entry.name)  # knows both kinds of slashes
        if name.root or ".." in name.parts:
            raise InputError(f"{where} is a name that leads out of the archive; do not trust this file")
        if entry.kind == "other":
            raise InputError(f"{where} is a link or a device; pack plain files only")
        total += entry.size
        if number >= MAX_MEMBERS:
            raise InputError(f"{shown(path)}: holds more than {MAX_MEMBERS} members; pack fewer into one archive")
        if entry.size > MAX_MEMBER_BYTES:
            raise InputError(f"{where} is larger than {MAX_MEMBER_BYTES} bytes; leave it out")
        if total > MAX_BYTES:
            raise InputError(f"{shown(path)}: unpacks to more than {MAX_BYTES} bytes; pack less into one archive")
        if entry.kind == "file":
            yield Member(PurePosixPath(entry.name).as_posix(), partial(_read, path, entry, where))


@dataclass(frozen=True)
class _Entry:
    """An entry of an archive: its name, kind and declared size, and how to open it."""

    name: str
    kind: Literal["file", "folder", "other"]
    size: int
    open: Callable[[], IO[bytes]]


def _read(path: Path, entry: _Entry, where: str) -> bytes:
    with sound(path, "archive"), entry.open() as stream:
        return content_of(stream, MAX_MEMBER_BYTES, where)


def _entries(path: Path) -> Iterator[_Entry]:
    with sound(path, "archive"):
        with path.open("rb") as stream:
            head = stream.read(HEAD)
        if head.startswith(_ZIP):
            with zipfile.ZipFile(path) as archive:
                for entry in archive.infolist():
                    yield _Entry(entry.filename, _zip_kind(entry), entry.file_size, partial(archive.open, entry))
        else:
            unpacked = next((opener for magic, opener in _COMPRESSED.items() if head.startswith(magic)), open)
            with unpacked(path, "rb") as stream:
                yield from _tar_entries(stream)


def _tar_entries(stream: IO[bytes]) -> Iterator[_Entry]:
    bounded = _Bounded(stream)
    with tarfile.open(fileobj=bounded, mode="r:") as archive:
        while (entry := archive.next()) is not None:
            kind: Literal["file", "folder", "other"] = (
                "file" if entry.isreg() else "folder" if entry.isdir() else "other"
            )
            yield _Entry(entry.name, kind, entry.size, partial(_open_tar, archive, entry))
            archive.members.clear()  # type: ignore[attr-defined]  # otherwise every one is kept
        # To tarfile an invalid header ends an archive, like the empty header at its end.
        bounded.seek(archive.offset)
        if any(bounded.read(tarfile.BLOCKSIZE)):
            raise tarfile.ReadError("a header in it makes no sense")


def _open_tar(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> IO[bytes]:
    stream = archive.extractfile(entry)
    assert stream is not None  # it is a plain file
    return stream


def _zip_kind(entry: zipfile.ZipInfo) -> Literal["file", "folder", "other"]:
    if not entry.filename:
        return "other"  # `is_dir` looks at the last letter of the name
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "other"
    return "folder" if entry.is_dir() else "file"


class _Bounded(io.RawIOBase):
    """A stream that gives no more bytes than an archive may hold, neither at once nor in total.

    A header in a tar archive may claim any length and is read at once. It would fill the memory before there is a
    member to check.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MAX_MEMBER_BYTES + 1:
            raise ValueError(f"it asks for {size} bytes at once")
        if self._stream.tell() + size > 2 * MAX_BYTES:
            raise ValueError(f"it unpacks to more than {2 * MAX_BYTES} bytes")
        return self._stream.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()


class _Xz(io.RawIOBase):
    """The content of an .xz file, as from `lzma.open`, but in bounded memory.

    Such a file may demand that up to four gigabytes of unpacked data are kept.
    """

    def __init__(self, path: Path, mode: Literal["rb"]) -> None:
        self._path = path
        self._packed = path.open(mode)
        self._begin()

    def _begin(self) -> None:
        self._packed.seek(0)
        self._unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, MAX_XZ_BYTES)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = b""
        while not content and len(buffer):
            if self._unpacker.eof:
                # Streams may follow each other, with zeros between them.
                following = self._unpacker.unused_data.lstrip(b"\0") or self._packed.read(1 << 16).lstrip(b"\0")
                if not following:
                    break
                self._unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, MAX_XZ_BYTES)
            else:
                following = self._packed.read(1 << 16) if self._unpacker.needs_input else b""
                if self._unpacker.needs_input and not following:
                    raise EOFError("it ends before the end of its data")
            content = self._unpack(following, len(buffer))
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)

    def _unpack(self, packed: bytes, most: int) -> bytes:
        try:
            return self._unpacker.decompress(packed, most)
        except lzma.LZMAError as fault:
            if "limit" not in str(fault):
                raise
            more = f"needs more than {MAX_XZ_BYTES >> 20} MiB of memory to be unpacked"
            raise InputError(f"{shown(self._path)}: {more}; pack it anew, with xz -9 at most") from fault

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        assert whence == io.SEEK_SET
        if offset < self._position:
            self._begin()
        while self._position < offset and self.read(min(1 << 16, offset - self._position)):
            pass
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        self._packed.close()
        super().close()
