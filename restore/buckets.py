"""Files by URL, such as objects in a bucket, read and written by fsspec, the library of the extra `buckets`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath, PurePosixPath
from typing import Any
from urllib.request import url2pathname

from restore.errors import InputError, OutputError, RestoreError, UsageError, extra, pip, reason


class Remote(PurePosixPath):
    """A URL as a path, of which pathlib keeps one slash of `://`; its text has both.

    >>> str(path_of("s3://bucket/scans/a.png").with_name("b.png"))
    's3://bucket/scans/b.png'
    """

    def __str__(self) -> str:
        return re.sub(r"(^|::)([A-Za-z][\w+.-]+):(/|$)", r"\1\2://", super().__str__())


# A file or folder on this machine, or by its URL.
Place = Path | Remote


def path_of(name: str | os.PathLike[str]) -> Place:
    """The path that a name means: one on this machine, also by `file://`, or a URL."""
    text = os.fspath(name)
    if text.startswith("file://"):
        return Path(url2pathname(text.removeprefix("file://")))
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


def existing(paths: list[Place]) -> set[PurePath]:
    """Those of some paths where there is something; each folder of a URL is listed once."""
    names = {folder: listed(folder) for folder in {path.parent for path in paths if isinstance(path, Remote)}}
    return {
        path
        for path in paths
        if (path.name in names[path.parent] if isinstance(path, Remote) else os.path.lexists(path))
    }


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
        raise error(f"cannot be {done} ({reason(fault)}); check the name and your rights", path) from fault
