"""Text for people: it cannot control a terminal, and failing to print on stderr never stops the work."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from restore.errors import shown


def escaped(text: str) -> str:
    r"""Write out invisible characters, such as the escapes of a terminal, as `\x1b`; line breaks stay."""
    return "".join(c if c in "\n\t" else shown(c) for c in text)


def say(text: str) -> None:
    """Print on stderr; if that is closed or full, the text is lost."""
    try:
        print(escaped(text), file=sys.stderr, flush=True)
    except OSError:
        drop(sys.stderr)


def tell(text: str, *, flush: bool = False) -> None:
    """Print on stdout; raises OSError if that fails."""
    print(escaped(text), flush=flush)


def drop(stream: TextIO) -> None:
    """Discard what is buffered and all that follows, so that flushing at exit does not fail."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), stream.fileno())
