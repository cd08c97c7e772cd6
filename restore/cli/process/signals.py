"""SIGINT and SIGTERM: outside a command they end the process, inside they are raised so that everything cleans up.

This is loaded before anything else, so it loads little itself.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


class Terminated(BaseException):
    """SIGTERM arrived. Raised, so that temporary files are removed on the way out."""


def leave_at_once() -> None:
    """Let signals end the process: an exception would get lost in the imports it interrupts."""
    _handle(_leave)


class Raised:
    """A context in which signals are raised, as KeyboardInterrupt or `Terminated`."""

    came = 0

    def __enter__(self) -> Raised:
        _handle(self._raise)
        return self

    def __exit__(self, *fault: object) -> None:
        leave_at_once()

    def stop(self, fault: BaseException | None = None) -> None:
        """If a signal has come, raise it, instead of what a library has turned it into."""
        if self.came:
            raise (KeyboardInterrupt if self.came == signal.SIGINT else Terminated) from fault

    def _raise(self, number: int, frame: FrameType | None) -> None:
        self.came = number
        self.stop()


def _handle(handler: Callable[[int, FrameType | None], None]) -> None:
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            # Whoever started this process in the background may have told it to ignore Ctrl-C.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, handler)
    except ValueError:  # not the main thread, whom signals do not concern
        pass


def _leave(number: int, frame: FrameType | None) -> None:
    try:
        os.write(2, b"restore: stopped\n")
    finally:
        os._exit(128 + number)
