"""A runtime for the local page, for tests."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from restore.data.sets.download import RemoteFile

FILES = {"package/dist/run.mjs": b"export {};", "package/dist/run.wasm": b"\0asm" + bytes(5000), "package.json": b"{}"}

WANTED = ("package/dist/run.mjs", "package/dist/run.wasm")


def tarball(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def released(archive: bytes, mirror: str = "http://127.0.0.1:9/") -> RemoteFile:
    """A release whose archive is this one."""
    return RemoteFile("run-1.0.tgz", hashlib.sha256(archive).hexdigest(), (mirror,))


def local(folder: Path, content: bytes) -> Path:
    path = folder / "run.tgz"
    path.write_bytes(content)
    return path
