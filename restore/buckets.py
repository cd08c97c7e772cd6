"""Files by URL, such as objects in a bucket, read and written by fsspec, the library of the extra `buckets`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from restore.errors import InputError, OutputError, RestoreError, UsageError, extra, pip, reason

# What stands in a URL before its path; what a protocol has of its own follows the first of several that are chained.
_PROTOCOL = re.compile(r"((?:[A-Za-z][\w+.-]*::)*[A-Za-z][\w+.-]*://)")
# Settings of a file system that say who asks, not what.
_WHO = re.compile("user|pass|key|secret|token|credential|anon|account_key|sas", re.IGNORECASE)


@dataclass(frozen=True, order=True)
class Remote:
    """A URL as it was written, with what pathlib has of paths. The last part of its path alone is ever changed.

    Of chained URLs the first path is meant, and of an address on the web all before its query.

    >>> str(path_of("zip://scans//a.png::s3://bucket/z.zip").with_name("b.png"))
    'zip://scans//b.png::s3://bucket/z.zip'
    """

    text: str

    def __str__(self) -> str:
        return self.text

    def __fspath__(self) -> str:
        return self.text

    def _parts(self) -> tuple[str, str, str]:
        """What stands before the path, the path, and what stands behind it."""
        protocol = _PROTOCOL.match(self.text)
        head = protocol[1] if protocol else ""
        path, chain, rest = self.text[len(head) :].partition("::")
        query = re.search("[?#]", path) if head.startswith(("http://", "https://")) else None
        end = query.start() if query else len(path)
        return head, path[:end], path[end:] + chain + rest

    def _with_path(self, path: str) -> Remote:
        head, _, tail = self._parts()
        return Remote(head + path + tail)

    @property
    def parts(self) -> tuple[str, ...]:
        """What stands before the path with all behind it, and the names in the path."""
        head, path, tail = self._parts()
        return head + tail, *path.split("/")

    @property
    def name(self) -> str:
        return self._parts()[1].rstrip("/").rpartition("/")[2]

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> Remote:
        folder, slash, _ = self._parts()[1].rstrip("/").rpartition("/")
        return self._with_path(folder or slash)

    def with_name(self, name: str) -> Remote:
        folder, slash, _ = self._parts()[1].rstrip("/").rpartition("/")
        return self._with_path(folder + slash + name)

    def __truediv__(self, name: str) -> Remote:
        path = self._parts()[1]
        return self._with_path(path + "/" * bool(path and not path.endswith("/")) + name)


# A file or folder on this machine, or by its URL.
Place = Path | Remote


def path_of(name: str | os.PathLike[str]) -> Place:
    """The path that a name means: one on this machine, also by `file://`, or a URL."""
    text = os.fspath(name)
    if text.startswith("file://"):
        from urllib.request import url2pathname  # loads what talks to the web

        return Path(url2pathname(re.sub("^file://(localhost(?=/))?", "", text)))
    return Remote(text) if re.match(r"[A-Za-z][\w+.:-]+://", text) else Path(name)


def is_folder(path: str | os.PathLike[str]) -> bool:
    """True if a path leads to a folder. Unlike `Path.is_dir`, False if that is unknown: opening will report it."""
    place = path_of(path)
    if not isinstance(place, Remote):
        return os.path.isdir(place)  # noqa: PTH112
    with _opened(place, InputError) as (system, key):
        return bool(system.isdir(key))


def listed(folder: Remote) -> dict[str, bool]:
    """The names in a folder, in order, with True for each file; none if there is no such folder."""
    with _opened(folder, InputError) as (system, key):
        try:
            entries = system.ls(key, detail=True)
        except FileNotFoundError:
            return {}
        names = {PurePosixPath(entry["name"]).name: entry["type"] == "file" for entry in entries}
        return dict(sorted(names.items()))


def existing(paths: Sequence[Place]) -> set[Place]:
    """Those of some paths where there is something; each folder of a URL is listed once."""
    parents = {path.parent for path in paths if isinstance(path, Remote)}
    names = {folder: listed(folder) for folder in parents if not str(folder).endswith("/")}
    there = set[Place]()
    for path in paths:
        if not isinstance(path, Remote):
            exists = os.path.lexists(path)
        elif path.parent in names:
            exists = path.name in names[path.parent]
        else:  # a folder without a name, whose listing is that of another
            with _opened(path, InputError) as (system, key):
                exists = bool(system.exists(key))
        there |= {path} if exists else set()
    return there


def identity(path: Remote) -> object:
    """What tells an object from all others, however its URL is written: its file system, and its name there."""
    try:
        import fsspec

        system, key = fsspec.core.url_to_fs(str(path))
    except Exception:  # whoever reads or writes it will say why
        return path
    while hasattr(system, "fs") and not hasattr(system, "fo"):  # that keeps copies of what is in another one
        system = system.fs
    if type(system).__name__ == "LocalFileSystem":
        return Path(key)
    what = {name: str(value) for name, value in system.storage_options.items() if not _WHO.search(name)}
    return type(system), *sorted(what.items()), system._strip_protocol(key)


def read(path: Remote, most: int) -> bytes:
    """The first bytes of a file, at most so many; raises InputError if it cannot be read."""
    with _opened(path, InputError) as (system, key), system.open(key, "rb") as stream:
        return bytes(stream.read(most))


def write(path: Remote, content: bytes, error: type[RestoreError]) -> None:
    """Write a file at once, so that a store of objects shows it whole or not at all; raises `error` if it refuses."""
    with _opened(path, error) as (system, key):
        system.pipe_file(key, content)


@contextmanager
def _opened(path: Remote, error: type[RestoreError]) -> Iterator[tuple[Any, str]]:
    """The file system of a URL, and the name of the file there; all its faults become `error`."""
    try:
        import fsspec
    except ModuleNotFoundError as fault:
        raise UsageError(f"needs fsspec; {extra('buckets')}", path) from fault
    try:
        yield fsspec.core.url_to_fs(str(path))
    except ImportError as fault:
        raise UsageError(f"needs a library of its own ({reason(fault)}); try {pip('install')}", path) from fault
    except Exception as fault:  # of whatever library reaches it
        done = "written" if issubclass(error, OutputError) else "read"
        raise error(f"cannot be {done} ({reason(fault, str(path))}); check the name and your rights", path) from fault
