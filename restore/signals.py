"""SIGINT and SIGTERM: outside a command they end the process, inside they are raised so that everything cleans up.

This is loaded before anything else, so it loads little itself.
"""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM)

# The signals that arrived inside the command that runs, and the contexts that hold them back.
_came: list[int] = []
_holding: list[Held] = []


class Terminated(BaseException):
    """SIGTERM arrived. Raised, so that temporary files are removed on the way out."""


def leave(number: int, frame: FrameType | None) -> None:
    """End the process: before a command begins and after it ends, nothing is under way.

    An exception would get lost in the imports it interrupts, or end in a traceback.
    """
    try:
        os.write(2, b"restore: stopped\n")
    finally:
        os._exit(128 + number)


class Raised:
    """A context in which signals are raised, as KeyboardInterrupt or `Terminated`."""

    def __enter__(self) -> Raised:
        _came.clear()
        _holding.clear()
        self._unraisable, sys.unraisablehook = sys.unraisablehook, self._dropped
        handle(self._raise)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        handle(leave)
        sys.unraisablehook = self._unraisable

    def _raise(self, number: int, frame: FrameType | None) -> None:
        _came.append(number)
        if not _holding:
            stop()

    def _dropped(self, what: sys.UnraisableHookArgs) -> None:
        # Python drops what a finaliser raises; the signal is sent again when it is over.
        if _came and isinstance(what.exc_value, KeyboardInterrupt | Terminated):
            import _thread  # starting a `threading.Thread` waits for it, and the signal would be dropped here again

            _thread.start_new_thread(_send_soon, (_came.pop(),))
        else:
            self._unraisable(what)


def _send_soon(number: int) -> None:
    time.sleep(0.03)
    os.kill(os.getpid(), number)


class Held:
    """A context in which signals wait: they are raised at its end. In other threads than the main one it does nothing.

    Raised while a lock of `threading` is taken or left, one may leave it taken, and a thread waiting.
    """

    def __enter__(self) -> None:
        import threading

        if threading.current_thread() is threading.main_thread():
            _holding.append(self)

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self in _holding:
            _holding.remove(self)
            stop(fault)


def stop(fault: BaseException | None = None) -> None:
    """If a signal has come, raise it, instead of what a library turned it into."""
    if _came:
        raise (KeyboardInterrupt if _came[-1] == signal.SIGINT else Terminated) from fault


def handle(handler: Callable[[int, FrameType | None], None]) -> None:
    """Call this from now on when a signal comes."""
    try:
        for number in SIGNALS:
            # Whoever started this process in the background may have told it to ignore Ctrl-C.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, handler)
    except ValueError:  # not the main thread, whom signals do not concern
        pass
