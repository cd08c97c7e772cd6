"""Read pages of a PDF as pixels, and write pages as a PDF, with the libraries of the extra `pdf`.

A page that is a scan is read in the resolution of the scan, so that its pixels are those of the scan; any other page in
that of print. Pages are drawn by a child process, `drawing`, as a page can cost any amount of time and memory.
"""

from __future__ import annotations

import json
import logging
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from restore.errors import InputError, UsageError, shown
from restore.images.picture import Stored
from restore.images.raster import Raster, spread

# The most seconds that a page may take, and bytes beside its pixels.
SECONDS, BYTES = 60, 2**30
# It warns of unusual sizes, on stderr by default.
logging.getLogger("img2pdf").addHandler(logging.NullHandler())


def areas(content: bytes, label: str) -> list[int]:
    """The number of pixels of each page; errors as in `raster`."""
    return [math.prod(size) for size in _answer(content, label, "all", 0)[0]["sizes"]]


def raster(content: bytes, label: str, page: int | None, max_pixels: int) -> tuple[int, Raster | None]:
    """The number of pages, and the pixels of one; None if it has more than allowed, or there is no such page.

    Args:
        content: the file.
        label: its name for messages.
        page: from 0; None for the only one.
        max_pixels: the most pixels it may have.

    Raises:
        InputError: if it is damaged, has a password, or cannot be drawn in the time and memory allowed.
        UsageError: if the library that reads it is not installed.
    """
    head, pixels = _answer(content, label, page, max_pixels)
    if not pixels:
        return head["count"], None
    levels = np.frombuffer(pixels, np.uint8).reshape(*head["sizes"][0][::-1], 3)
    grey = not spread(levels).any()
    return head["count"], Raster(levels[..., 1] if grey else levels, stored=Stored(dpi=tuple(head["dpi"])))


def require_writer(name: str) -> None:
    """Raise UsageError, naming a file to write, if the library that writes PDF is not installed."""
    if find_spec("img2pdf") is None:
        raise UsageError(f"{shown(name)}: writing PDF needs img2pdf; pip install 'restore-prior[pdf]'")


def bound(images: Sequence[bytes]) -> bytes:
    """A PDF of images, PNG or TIFF, one a page; their data, and their resolution, are kept as they are."""
    import img2pdf

    return bytes(img2pdf.convert(list(images), nodate=True, engine=img2pdf.Engine.internal))


def _answer(content: bytes, label: str, page: int | str | None, max_pixels: int) -> tuple[dict[str, Any], bytes]:
    """What the child process says of pages, and the pixels it has drawn; see `drawing`."""
    if find_spec("pypdfium2") is None:
        raise UsageError(f"{label}: reading PDF needs pypdfium2; pip install 'restore-prior[pdf]'")
    limits = json.dumps([page, max_pixels, BYTES + 2 * len(content) + 16 * max_pixels])
    command = [sys.executable, "-P", str(Path(__file__).with_name("drawing.py")), limits]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, input=content, capture_output=True, env=environment, timeout=SECONDS, check=True)
        head, _, pixels = done.stdout.partition(b"\n")
        told = json.loads(head)
    except (subprocess.SubprocessError, ValueError) as fault:
        why = f"takes more than {SECONDS} s or {BYTES >> 20} MiB to draw"
        raise InputError(f"{label}: {why}; save it as TIFF") from fault
    if "fault" in told:
        why = f"cannot be read as a PDF ({shown(told['fault'])})"
        raise InputError(f"{label}: {why}; get an intact copy without a password")
    return told, pixels
