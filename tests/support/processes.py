"""Other processes: waiting for what they do, and servers on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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


SERVER = """
import io, json, os, signal, sys, tempfile
from restore.images import exchanging

answer = sys.stdout.buffer
while request := sys.stdin.buffer.readline():
    limits, size, seconds = json.loads(request)
    content = sys.stdin.buffer.read(size)
    with tempfile.TemporaryFile() as drawn:
        if not (child := os.fork()):
            signal.alarm(seconds)
            sys.stdin, sys.stdout = io.TextIOWrapper(io.BytesIO(content)), io.TextIOWrapper(drawn)
            try:
                exchanging.main(*limits)
                sys.stdout.flush()
            except BaseException as fault:
                os._exit(2 if isinstance(fault, MemoryError) else print(repr(fault), file=sys.stderr) or 1)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        drawn.seek(0)
        pixels = drawn.read()
        answer.write(json.dumps([code, len(pixels)]).encode() + b"\\n" + pixels)
        answer.flush()
"""

_run = subprocess.run


class DrawingServer:
    """Stands in for `subprocess.run` of the program that exchanges scans; any fault but a want of memory fails."""

    def __enter__(self) -> DrawingServer:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen([sys.executable, "-P", "-c", SERVER], env=environment, **pipes)
        self.lock = threading.Lock()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=60)

    def run(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[Any]:
        if len(command) != 4 or Path(command[2]).name != "exchanging.py":
            return _run(command, **options)
        assert self.process.stdin and self.process.stdout
        given = options["input"]
        with self.lock:
            told = [json.loads(command[-1]), len(given), options["timeout"]]
            self.process.stdin.write(json.dumps(told).encode() + b"\n" + given)
            self.process.stdin.flush()
            code, size = json.loads(self.process.stdout.readline())
            content = self.process.stdout.read(size)
        assert code != 1, "an unforeseen exception in the program"
        if code:
            raise subprocess.CalledProcessError(code, command)
        return subprocess.CompletedProcess(command, code, content)


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
