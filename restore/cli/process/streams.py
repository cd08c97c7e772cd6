"""Make the standard streams usable, even if the caller closed some of them."""

from __future__ import annotations

import os
import sys


def settle() -> None:
    """Open every standard stream that is closed, and let stdout write any text.

    A closed stream is replaced by a file opened the wrong way: no file opened later can take its number.
    """
    for name, mode, wrong in (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_RDONLY)):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, wrong)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
