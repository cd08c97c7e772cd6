"""A process that restores what is posted, one picture at a time, and ends alone if that takes too long or breaks it."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from restore.app.answers import Answers, Task
from restore.errors import RestoreError
from restore.inference.options import Options
from restore.inference.tiles.blend import Watch

# Seconds between two looks at who still waits, and those in which a process may give up what nobody waits for.
LOOK, GRACE = 0.05, 2.0

# As in `Answers.answer`.
Answer = tuple[dict[str, Any], dict[str, bytes]]


class Stopped(Exception):
    """Nobody waits any more for what a process does."""


class Late(Exception):
    """A request took longer than it may."""


class Failed(Exception):
    """A process failed at a request, in a way that no error of ours foresees."""


class Worker:
    """A process with its own priors, started when it is first asked. Only one thread may ask at a time."""

    def __init__(self, options: Options, seconds: float) -> None:
        """Take the options of the server, and the most seconds of a request."""
        self.options, self.seconds = options, seconds
        self._context = multiprocessing.get_context("spawn")
        self._process: Any = None

    def answer(
        self,
        image: bytes,
        mask: bytes | None,
        wanted: Mapping[str, Any],
        watch: Watch,
        *,
        whole: bool = True,
        task: Task = "denoise",
    ) -> Answer:
        """As `Answers` does a task, in the process; `watch` is called all the time, and may raise what ends it.

        Raises:
            Late: if it took longer than it may. The process has ended.
            Failed: if the process failed or ended by itself.
        """
        with self._attended():
            if self._process is None or not self._process.is_alive():
                self._start()
            self._end.send((image, mask, dict(wanted), whole, task))
        limit = time.monotonic() + self.seconds
        while not self._replied():
            try:
                watch(0)
            except BaseException:
                self._give_up()
                raise
            if time.monotonic() > limit:
                self.close()
                remedy = "send a smaller one, or name its model and p"
                raise Late(f"the image takes more than {self.seconds:g} s to restore; {remedy}")
        with self._attended():
            made = self._end.recv()
        if isinstance(made, Exception):
            raise made
        answer: Answer = made
        return answer

    def close(self) -> int:
        """End the process, and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.kill()
        process.join()
        self._end.close()
        return int(process.exitcode or 0)

    @contextmanager
    def _attended(self) -> Iterator[None]:
        """Raise Failed if the process has ended."""
        try:
            yield
        except (EOFError, OSError) as fault:
            self._process.join(GRACE)
            code = self.close()
            raise Failed(signal.Signals(-code).name if code < 0 else f"exit code {code}") from fault

    def _replied(self) -> bool:
        with self._attended():
            return bool(self._end.poll(LOOK))

    def _give_up(self) -> None:
        """Let the process give up its request, or end it if it does not."""
        if self._process is None:
            return
        self._stop.set()
        with suppress(EOFError, OSError):
            if self._end.poll(GRACE):
                self._end.recv()
                self._stop.clear()
                return
        self.close()

    def _start(self) -> None:
        self._end, other = self._context.Pipe()
        self._stop = self._context.Event()
        self._process = self._context.Process(target=_serve, args=(other, self._stop, self.options), daemon=True)
        # Ctrl-C goes to all processes, and is for the first one.
        masked = sys.platform != "win32" and signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self._process.start()
        finally:
            if sys.platform != "win32":
                signal.pthread_sigmask(signal.SIG_SETMASK, masked or ())
        other.close()
        self._end.recv()  # it is ready


def _serve(end: Any, stop: Any, options: Options) -> None:
    """Answer requests until the other end of the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = Answers(options)

    def watch(share: float) -> None:
        if stop.is_set():
            raise Stopped

    with suppress(EOFError, OSError):
        end.send(None)
        while True:
            image, mask, wanted, whole, task = end.recv()
            try:
                made: Any
                if task == "marks":
                    made = answers.marks(image, wanted)
                else:
                    made = answers.answer(image, mask, wanted, watch, whole=whole)
            except (RestoreError, Stopped) as fault:
                made = fault
            except Exception as fault:
                made = Failed(f"{type(fault).__name__}: {fault}")
                made.add_note(traceback.format_exc())
            end.send(made)
