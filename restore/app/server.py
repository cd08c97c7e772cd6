"""Serve the site to this machine only.

An address is looked up among those of the site and never turned into a path, so no request can leave the site.
"""

from __future__ import annotations

import errno
import sys
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from restore.app.assembly import Site, content
from restore.errors import UsageError

ADDRESS = "127.0.0.1"

# A foreign page can point a host name of its own at this machine; requests under such a name are refused.
_HOSTS = frozenset({"localhost", "127.0.0.1"})

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
}
_BINARY = "application/octet-stream"

# Scripts, styles, images and data only from this site; WebAssembly may be compiled.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "worker-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob: data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class Server(ThreadingTCPServer):
    """A web server for one site, reachable only from this machine.

    Args:
        site: what it serves.
        port: where it listens; 0 picks a free port, see `url`.

    Raises:
        UsageError: if the port is in use or may not be used.
    """

    # Not `http.server.HTTPServer`, which looks up the name of its address.
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, site: Site, port: int) -> None:
        self.site = site
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
        found = self._answer()
        if found is not None:
            self.wfile.write(found)

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> bytes | None:
        """Send the status and the headers; return the content to send next, or None after an error."""
        if _host(self.headers) not in _HOSTS:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "This server answers to localhost only")
            return None
        address = unquote(urlsplit(self.path).path) if self.path.startswith("/") else ""
        name = address.removeprefix("/") or ("index.html" if address else "")
        try:
            found = content(self.server.site[name])
        except (KeyError, OSError):
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", _TYPES.get(Path(name).suffix, _BINARY))
        self.send_header("Content-Length", str(len(found)))
        self.end_headers()
        return found

    def end_headers(self) -> None:
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing: the terminal is the user's."""


def _host(headers: Message) -> str:
    """The host name of a request without the port; empty unless it was given exactly once."""
    given = headers.get_all("Host") or []
    return given[0].rpartition(":")[0] or given[0] if len(given) == 1 else ""
