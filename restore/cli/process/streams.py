"""The standard streams of the process as the caller left them, some of them perhaps closed."""

from __future__ import annotations

import os
import sys


def settle() -> None:
    """Make every standard stream a file that is open, and stdout one that can write any text.

    In place of a closed one comes a file that can be opened only the wrong way, so that using it is an error, but no
    file opened later takes its number, to be read or written in its stead.
    """
    for name, mode, wrong in (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_RDONLY)):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, wrong)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
