"""Our server in a thread of this process, requests to it that are sent as they are, and a runtime for its page."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from processes import HANG

from restore.app.server import Server
from restore.app.workers import Workers
from restore.data.sets.download import RemoteFile
from restore.inference.options import Options

# What is not installed without the extra `serve`.
pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")


# The most pixels of a picture that these servers take.
PIXELS = 2000 * 2000


@contextmanager
def serving(
    site: Mapping[str, bytes], workers: int = 2, queue: int = 4, host: str = "127.0.0.1", seconds: float = HANG
) -> Iterator[Server]:
    """A server on a free port, which ends with the context once all that runs is done."""
    server = Server(site, Workers(Options(max_pixels=PIXELS), workers, queue, seconds), host, 0)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.should_exit = True
        thread.join(HANG)


def address(server: Server) -> tuple[str, int]:
    host, port = server.url.removeprefix("http://").rstrip("/").rsplit(":", 1)
    return host, int(port)


def ask(
    server: Server, target: str, method: str = "GET", body: Any = None, host: str | None = "localhost", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    """The answer to a request whose target is sent as it is."""
    connection = http.client.HTTPConnection(*address(server), timeout=HANG)
    connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
    told = {"Host": host, "Content-Length": None if body is None else str(len(body)), **headers}
    for name, value in told.items():
        if value is not None:
            connection.putheader(name.replace("_", "-"), value)
    connection.endheaders(body)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def form(**files: bytes) -> tuple[bytes, str]:
    """Files as multipart/form-data, and its content type."""
    parts = [
        f'--edge\r\nContent-Disposition: form-data; name="{name}"; filename="{name}.png"\r\n\r\n'.encode() + content
        for name, content in files.items()
    ]
    return b"\r\n".join([*parts, b"--edge--\r\n"]), "multipart/form-data; boundary=edge"


def post(server: Server, target: str, body: bytes | dict[str, bytes], **headers: str) -> tuple[int, Any, bytes]:
    """Status, what is told in JSON, and a picture if it comes alone; files are sent as a form."""
    if isinstance(body, dict):
        body, headers["Content_Type"] = form(**body)
    answer, content = ask(server, target, "POST", body, **headers)
    if answer.headers["Content-Type"] == "application/json":
        return answer.status, json.loads(content), b""
    return answer.status, json.loads(answer.headers["X-Restore"]), content


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
