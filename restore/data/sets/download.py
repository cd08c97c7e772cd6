"""Download published files: the result is the published file, byte for byte, or an error."""

from __future__ import annotations

import contextlib
import hashlib
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from restore.errors import InputError, OutputError, shown
from restore.files import write_atomically

_SECONDS_WITHOUT_DATA = 30


@dataclass(frozen=True)
class RemoteFile:
    """A published file.

    Attributes:
        name: its file name.
        size: in bytes; no more is ever read.
        sha256: of its content, in hexadecimal.
        mirrors: addresses of the folders that hold it, in the order to try them.
        origin: where a user can get it if there are no mirrors.
    """

    name: str
    size: int
    sha256: str
    mirrors: tuple[str, ...]
    origin: str = "no mirror is known"


def fetch(file: RemoteFile, folder: Path) -> Path:
    """The file in `folder`, downloaded unless an intact copy is there; a damaged copy is removed.

    Returns:
        The path of a file with the right checksum.

    Raises:
        InputError: if no mirror gave the file; the message says why for each. Nothing is left behind.
        OutputError: if the folder cannot be written to.
    """
    target = folder / file.name
    if _intact(target, file):
        return target
    with contextlib.suppress(OSError):
        target.unlink()
    content = download(file)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise OutputError(
            f"{shown(folder)}: cannot be made ({fault.strerror}); set RESTORE_DATA to another place"
        ) from fault
    write_atomically(target, content)
    return target


def download(file: RemoteFile) -> bytes:
    """Download the content of a published file from the first mirror that has it; nothing is written.

    Raises:
        InputError: if no mirror gave the file; the message says why for each.
    """
    faults = []
    for address in _addresses(file):
        try:
            content = _get(address, file.size)
        except (OSError, HTTPException) as fault:
            # urllib's URLError and HTTPError are OSErrors; HTTPException is an invalid answer.
            faults.append(f"{address}: {getattr(fault, 'reason', None) or fault or type(fault).__name__}")
            continue
        if _matches(content, file):
            return content
        faults.append(f"{address}: checksum mismatch ({len(content)} of {file.size} bytes)")
    raise InputError(f"{file.name}: could not be downloaded ({'; '.join(faults) or file.origin})")


def read_intact(path: Path, file: RemoteFile) -> bytes:
    """Read a copy of a published file, for readers that must not be given anything else.

    Raises:
        InputError: if the copy cannot be read, or differs in any bit from what was published.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(file.size + 1)
    except OSError as fault:
        raise InputError(f"{shown(path)}: cannot be read ({fault.strerror or fault})") from fault
    if not _matches(content, file):
        found = f"more than {file.size}" if len(content) > file.size else f"{len(content)} of {file.size}"
        raise InputError(
            f"{shown(path)}: checksum mismatch ({found} bytes); remove it, or get it again from "
            f"{' or '.join(_addresses(file))}"
        )
    return content


def _addresses(file: RemoteFile) -> list[str]:
    return [mirror.rstrip("/") + "/" + file.name for mirror in file.mirrors]


def _get(address: str, size: int) -> bytes:
    # One byte more than expected is enough to fail the checksum, and no mirror can fill the memory.
    with urllib.request.urlopen(address, timeout=_SECONDS_WITHOUT_DATA) as answer:
        content: bytes = answer.read(size + 1)
    return content


def _intact(path: Path, file: RemoteFile) -> bool:
    try:
        return path.stat().st_size == file.size and _matches(path.read_bytes(), file)
    except OSError:
        return False


def _matches(content: bytes, file: RemoteFile) -> bool:
    return hashlib.sha256(content).hexdigest() == file.sha256
