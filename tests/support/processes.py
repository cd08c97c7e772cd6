"""Other processes: waiting for what they do, and servers on this machine."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

# Seconds after which a test takes what it waits for to hang. Nothing takes nearly so long, on however busy a machine.
HANG = 600.0


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[Any] | None = None) -> None:
    """Return once something has happened; fail if the process that should do it has ended, or it hangs."""
    until = time.monotonic() + HANG
    while not happened():
        assert process is None or process.poll() is None, f"ended with code {process and process.returncode}"
        assert time.monotonic() < until, "hangs"
        time.sleep(0.02)


linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says how much memory was taken")


@dataclass
class Mirror:
    """What the server answers per path, and what it was asked."""

    address: str
    answers: dict[str, tuple[int, bytes]]
    promised: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)


@contextmanager
def serving() -> Iterator[Mirror]:
    state = Mirror("", {})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            status, body = state.answers.get(self.path, (404, b""))
            self.send_response(status)
            self.send_header("Content-Length", str(state.promised.get(self.path, len(body))))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join()
