"""How many functions of the package a command goes through, and in how many files, when it is run a second time.

    python benchmarks/package/path_length.py
    python benchmarks/package/path_length.py denoise assets/digit-noisy.png --model tap-mnist --p 0.1 --names
    python benchmarks/package/path_length.py train FOLDER --minutes 0.1

Named functions count, each once: no lambdas, comprehensions, or bodies of modules and classes. Other threads count,
other processes do not. Results go to a folder that is deleted.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import itertools
import os
import signal
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = str(ROOT / "restore") + os.sep
EXAMPLE = ["denoise", str(ROOT / "assets" / "digit-noisy.png"), "--model", "tap-mnist", "--p", "0.1"]

# The options by which each command writes to files, or folders, of our own.
OUTPUTS = {command: {"--output": ".png"} for command in ("denoise", "complete", "corrupt")}
OUTPUTS["train"] = {"--run": "-run", "--output": "-prior"}


class Trace:
    """The functions of the package that ran, in the order of their first calls."""

    def __init__(self) -> None:
        self.codes: dict[CodeType, None] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<") or not code.co_filename.startswith(PACKAGE):
            return
        if code.co_flags & inspect.CO_NEWLOCALS and code.co_flags & inspect.CO_OPTIMIZED:  # no body of a class
            self.codes.setdefault(code)

    @property
    def files(self) -> list[str]:
        """The file of each function, below the package."""
        return [code.co_filename.removeprefix(PACKAGE) for code in self.codes]


def call(words: list[str]) -> int:
    """Run the command in this process, silently; return its exit code."""
    from restore.cli import main

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    sys.argv = ["restore", *words]
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main()
        return 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if code:
            print(said.getvalue(), file=sys.stderr)
        return code
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def traced(words: list[str]) -> Trace:
    """What a second run of a command goes through, as the first imports and opens.

    Raises:
        SystemExit: if the command fails.
    """
    trace = Trace()
    with tempfile.TemporaryDirectory() as folder:
        for turn in ("first", "second"):
            whole = list(words)
            for option, ending in OUTPUTS.get(words[0], {}).items():
                whole += [option, str(Path(folder) / (turn + ending))] if option not in words else []
            if turn == "second":
                threading.setprofile(trace)
                sys.setprofile(trace)
            try:
                code = call(whole)
            finally:
                sys.setprofile(None)
                threading.setprofile(None)
            if code:
                raise SystemExit(code)
    return trace


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--names", action="store_true", help="print them too, by file")
    chosen, words = parser.parse_known_args()
    trace = traced(words or EXAMPLE)
    files, rooms = Counter(trace.files), [Path(file).parts[0] for file in trace.files]
    moves = sum(one != other for one, other in itertools.pairwise(rooms))
    print(f"{len(trace.codes)} functions in {len(files)} files; first calls change the room {moves} times")
    for file, count in sorted(files.items()) if chosen.names else ():
        names = (code.co_qualname for code in trace.codes if code.co_filename == PACKAGE + file)
        print(f"{count:4} {file}: {', '.join(names)}")


if __name__ == "__main__":
    main()
