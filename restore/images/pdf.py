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
from PIL import Image

from restore.errors import InputError, UsageError, shown
from restore.images.colours import spread

# The most seconds that a page may take, and bytes beside its pixels.
SECONDS = 60
BYTES = 2**30
# It warns of unusual sizes, on stderr by default.
logging.getLogger("img2pdf").addHandler(logging.NullHandler())


def areas(content: bytes, label: str) -> list[int]:
    """The number of pixels of each page; errors as in `page`."""
    return [math.prod(size) for size in _answer(content, label, "all", 0)[0]["sizes"]]


def page(content: bytes, label: str, number: int | None, max_pixels: int) -> tuple[int, Image.Image | None]:
    """The number of pages, and one of them, from 0, drawn; None if it has too many pixels, or there is no such page.

    Raises InputError if it is damaged, has a password, or takes too much time or memory, and UsageError if the library
    that reads it is not installed.
    """
    header, pixels = _answer(content, label, number, max_pixels)
    if not pixels:
        return header["count"], None
    levels = np.frombuffer(pixels, np.uint8).reshape(*header["sizes"][0][::-1], 3)
    image = Image.fromarray(levels if spread(levels).any() else levels[..., 1])
    image.info["dpi"] = tuple(header["dpi"])
    return header["count"], image


def require_writer(name: str) -> None:
    """Raise UsageError, naming a file to write, if the library that writes PDF is not installed."""
    if find_spec("img2pdf") is None:
        raise UsageError("writing PDF needs img2pdf; pip install 'restore-prior[pdf]'", name)


def bound(images: Sequence[bytes]) -> bytes:
    """A PDF of images, PNG or TIFF, one a page; their data, and their resolution, are kept as they are."""
    import img2pdf

    return bytes(img2pdf.convert(list(images), nodate=True, engine=img2pdf.Engine.internal))


def _answer(content: bytes, label: str, number: int | str | None, max_pixels: int) -> tuple[dict[str, Any], bytes]:
    """What the child process says of pages, and the pixels it has drawn; see `drawing`."""
    if find_spec("pypdfium2") is None:
        raise UsageError("reading PDF needs pypdfium2; pip install 'restore-prior[pdf]'", label)
    limits = json.dumps([number, max_pixels, BYTES + 2 * len(content) + 16 * max_pixels])
    command = [sys.executable, "-P", str(Path(__file__).with_name("drawing.py")), limits]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, input=content, capture_output=True, env=environment, timeout=SECONDS, check=True)
        line, _, pixels = done.stdout.partition(b"\n")
        header = json.loads(line)
    except (subprocess.SubprocessError, ValueError) as fault:
        why = f"takes more than {SECONDS} s or {BYTES >> 20} MiB to draw"
        raise InputError(f"{why}; save it as TIFF", label) from fault
    if "fault" in header:
        why = f"cannot be read as a PDF ({shown(header['fault'])})"
        raise InputError(f"{why}; get an intact copy without a password", label)
    return header, pixels
