"""Serve the page to this machine only, and restore what it posts.

All files are in memory: no request is ever turned into a path.
"""

from __future__ import annotations

import errno
import json
import select
import socket
import sys
from collections.abc import Mapping
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from restore.app.answers import BYTES, Answers
from restore.errors import RestoreError, UsageError

ADDRESS = "127.0.0.1"

# A foreign page can point a host name of its own at this machine; requests under such a name are refused.
HOSTS = {"localhost", ADDRESS}

JSON = "application/json"
TYPES = {"json": JSON, "png": "image/png"}
TYPES |= {
    ending: f"text/{kind}; charset=utf-8" for ending, kind in {"html": "html", "css": "css", "js": "javascript"}.items()
}

# Scripts, styles, images and data only from this site.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class Server(ThreadingTCPServer):
    """A web server for this machine alone: it sends `site`, files by address, and `answers` restore what is posted.

    With port 0 it picks a free one; see `url`. Raises UsageError if the port is in use or may not be used.
    """

    # Not `http.server.HTTPServer`, which looks up the name of its address.
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, site: Mapping[str, bytes], answers: Answers, port: int) -> None:
        self.site, self.answers = site, answers
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as fault:
            if fault.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            reason = "is in use" if fault.errno == errno.EADDRINUSE else "may not be used"
            raise UsageError(f"port {port} {reason}; give another with --port, or --port 0 for any free one") from fault

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that closes a connection early is not an error."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "restore"
    sys_version = ""
    timeout = 60  # seconds a connection may stay silent

    def do_GET(self) -> None:
        """Send a file."""
        if any(name in self.headers for name in ("Content-Length", "Transfer-Encoding")):
            self.close_connection = True  # what follows is no request
        if not self._welcome():
            return
        name = self._name or "index.html"
        if name in self.server.site:
            self._send(HTTPStatus.OK, self.server.site[name], TYPES[name.rpartition(".")[2]])
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Restore a picture."""
        if not self._welcome():
            return
        if self._name not in ("denoise", "complete"):
            self.send_error(HTTPStatus.NOT_FOUND)
        elif self.headers.get_all("Content-Type") != [JSON]:  # which no foreign page may send
            self.send_error(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        elif (length := _length(self.headers)) is None:
            self.send_error(HTTPStatus.LENGTH_REQUIRED)
        elif length > BYTES:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            status, content = HTTPStatus.OK, self.rfile.read(length)
            try:
                answer = self.server.answers.answer(content, complete=self._name == "complete", watch=self._stay)
            except RestoreError as fault:
                status, answer = HTTPStatus.UNPROCESSABLE_ENTITY, {"error": str(fault)}
            self._send(status, json.dumps(answer).encode(), JSON)

    def _stay(self, share: float) -> None:
        """Raise ConnectionAbortedError if nobody waits for the answer any more."""
        if select.select([self.connection], [], [], 0)[0] and not self.connection.recv(1, socket.MSG_PEEK):
            raise ConnectionAbortedError

    @property
    def _name(self) -> str:
        """The address without its slash; "/" for one that cannot be ours."""
        path = unquote(urlsplit(self.path).path)
        return path.removeprefix("/") if self.path.startswith("/") else "/"

    def _welcome(self) -> bool:
        """Answer under this machine's own names only, given exactly once."""
        hosts = [host.rpartition(":")[0] or host for host in self.headers.get_all("Host") or []]
        if len(hosts) == 1 and hosts[0] in HOSTS:
            return True
        self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "This server answers to localhost only")
        return False

    def _send(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing: the terminal is the user's."""


def _length(headers: Message) -> int | None:
    """The length of what is posted; None unless it was given exactly once, as a number, and nothing else says it."""
    given = headers.get_all("Content-Length") or []
    known = len(given) == 1 and given[0].isascii() and given[0].isdecimal() and "Transfer-Encoding" not in headers
    return int(given[0]) if known and len(given[0]) < 20 else None
