"""What people are told: nothing of it steers a terminal, and on stderr nothing that is told can stop the work."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from restore.errors import shown


def escaped(text: str) -> str:
    r"""The text with what is not to be seen, such as the escapes of a terminal, written out as `\x1b`; lines stay."""
    return "".join(c if c in "\n\t" else shown(c) for c in text)


def say(text: str) -> None:
    """Tell on stderr; where that is closed or full nobody hears it."""
    try:
        print(escaped(text), file=sys.stderr, flush=True)
    except OSError:
        drop(sys.stderr)


def tell(text: str, *, flush: bool = False) -> None:
    """Tell on stdout, which raises the OSErrors of that."""
    print(escaped(text), flush=flush)


def drop(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, and all that follows, so that flushing at exit does not complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
