"""Draw pages of PDF without starting a program for each: one process that has loaded the library, and forks of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

SERVER = """
import io, json, os, signal, sys, tempfile
from restore.images import drawing

answer = sys.stdout.buffer
while request := sys.stdin.buffer.readline():
    limits, size, seconds = json.loads(request)
    content = sys.stdin.buffer.read(size)
    with tempfile.TemporaryFile() as drawn:
        if not (child := os.fork()):
            signal.alarm(seconds)
            sys.stdin, sys.stdout = io.TextIOWrapper(io.BytesIO(content)), io.TextIOWrapper(drawn)
            try:
                drawing.main(*limits)
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


class DrawingServer:
    """What stands in for `subprocess.run` of `restore.images.drawing`; a fault other than a want of memory fails."""

    def __enter__(self) -> DrawingServer:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen([sys.executable, "-P", "-c", SERVER], env=environment, **pipes)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=60)

    def run(self, command: list[str], *, input: bytes, timeout: int, **_: Any) -> subprocess.CompletedProcess[bytes]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps([json.loads(command[-1]), len(input), timeout]).encode() + b"\n" + input)
        self.process.stdin.flush()
        code, size = json.loads(self.process.stdout.readline())
        content = self.process.stdout.read(size)
        assert code != 1, "an unforeseen exception while a page was drawn"
        if code:
            raise subprocess.CalledProcessError(code, command)
        return subprocess.CompletedProcess(command, code, content)
