"""Read pages of a PDF as pixels, write pages as a PDF, and exchange its scans, with the libraries of the extra `pdf`.

A page that is a scan is read in the resolution of the scan, so that its pixels are those of the scan; any other page in
that of print. A PDF is opened by a child process, `drawing` or `exchanging`, as it can cost any time and memory.
"""

from __future__ import annotations

import base64
import io
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from restore.errors import InputError, UsageError, extra, shown
from restore.images.colours import spread

# The most seconds that a page may take, and bytes beside its pixels.
SECONDS = 60
PAGE_BYTES = 2**30
# Dots per inch of an image that does not say, and the sides that a page may have, in points.
DPI = 96
PAGE_SIDES = (3, 14_400)


def areas(content: bytes, label: str) -> list[int]:
    """The number of pixels of each page; errors as in `page`."""
    return [math.prod(size) for size in _drawing(content, label, "all", 0)[0]["sizes"]]


def scans(content: bytes, label: str) -> list[int]:
    """The pages, from 0, that an image covers for the most part; errors as in `page`."""
    return [number for number, scan in enumerate(_drawing(content, label, "all", 0)[0]["scans"]) if scan]


def page(content: bytes, label: str, number: int | None, max_pixels: int) -> tuple[int, Image.Image | None]:
    """The number of pages, and one of them, from 0, drawn; None if it has too many pixels, or there is no such page.

    Raises InputError if it is damaged, has a password, or takes too much time or memory, and UsageError if the library
    that reads it is not installed.
    """
    header, pixels = _drawing(content, label, number, max_pixels)
    if not pixels:
        return header["count"], None
    levels = np.frombuffer(pixels, np.uint8).reshape(*header["sizes"][0][::-1], 3)
    image = Image.fromarray(levels if spread(levels).any() else levels[..., 1])
    if profile := base64.b64decode(header["profile"]):
        image = _in_profile(image, profile)
        image.info["icc_profile"] = profile
    image.info["dpi"] = tuple(header["dpi"])
    return header["count"], image


def _in_profile(image: Image.Image, profile: bytes) -> Image.Image:
    """The levels that an image, drawn for screens, has in a colour profile of its own; as it is if that does not fit.

    They are those of the file but for rounding.
    """
    from PIL import ImageCms

    try:
        theirs, screen = ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.createProfile("sRGB")
        levels = ImageCms.profileToProfile(image.convert("RGB"), screen, theirs, outputMode=image.mode)
    except (ImageCms.PyCMSError, OSError):
        return image
    off = np.abs(np.asarray(levels, np.int16) - np.asarray(image, np.int16)) if levels is not None else np.zeros(1)
    return image if levels is None or off.max() <= 1 else levels


def require_writer(name: str) -> None:
    """Raise UsageError, naming a file to write, if a library that writes PDF is not installed."""
    for library in ("pikepdf", "img2pdf"):
        if find_spec(library) is None:
            raise UsageError(f"writing PDF needs {library}; {extra('pdf')}", name)


def bound(images: Sequence[bytes]) -> bytes:
    """A PDF of images, one a page; their pixels, their resolution and their colour profile are kept."""
    import img2pdf

    sheets, contents = list[tuple[float, ...]](), list[bytes]()
    for content in images:
        with Image.open(io.BytesIO(content)) as image:
            dpi = map(float, image.info.get("dpi", (DPI, DPI)))
            sides = (72 * side / (resolution or DPI) for side, resolution in zip(image.size, dpi, strict=True))
            sheets.append(tuple(min(max(side, PAGE_SIDES[0]), PAGE_SIDES[1]) for side in sides))
            if image.mode == "1":  # as a fax, which is smaller; its code goes into the PDF as it is
                fax = io.BytesIO()
                image.save(fax, "TIFF", compression="group4", strip_size=math.prod(image.size))
                content = fax.getvalue()
        contents.append(content)
    # Its own layout rounds resolutions, and its other engine gives each document another number.
    sizes, engine = iter(sheets), img2pdf.Engine.internal
    made: bytes = img2pdf.convert(*contents, layout_fun=lambda *_: 2 * next(sizes), nodate=True, engine=engine)
    return made


def exchanged(content: bytes, images: Mapping[int, bytes], label: str) -> bytes:
    """A PDF with other images in place of the scans of some pages, by number from 0; all else stays as it is.

    The images are as for `bound`, and show what `page` has drawn. Errors are as in `page`.
    """
    sheets = bound(list(images.values()))
    most = PAGE_BYTES + 4 * (len(content) + len(sheets))
    return _child("exchanging.py", [list(images), len(content), most], content + sheets, label)[1]


def _drawing(content: bytes, label: str, number: int | str | None, max_pixels: int) -> tuple[dict[str, Any], bytes]:
    """Run `drawing` on a PDF; return its header on pages, and the pixels drawn."""
    if find_spec("pypdfium2") is None:
        raise UsageError(f"reading PDF needs pypdfium2; {extra('pdf')}", label)
    limits = [number, max_pixels, PAGE_BYTES + 2 * len(content) + 16 * max_pixels]
    return _child("drawing.py", limits, content, label)


def _child(program: str, limits: list[Any], content: bytes, label: str) -> tuple[dict[str, Any], bytes]:
    """Run a child process on a PDF; return its JSON header and the bytes that follow it."""
    command = [sys.executable, "-P", str(Path(__file__).with_name(program)), json.dumps(limits)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, input=content, capture_output=True, env=environment, timeout=SECONDS, check=True)
        line, _, rest = done.stdout.partition(b"\n")
        header = json.loads(line)
    except (subprocess.SubprocessError, ValueError) as fault:
        why = f"takes more than {SECONDS} s or {PAGE_BYTES >> 20} MiB to draw"
        raise InputError(f"{why}; save it as TIFF", label) from fault
    if "fault" in header:
        why = f"cannot be read as a PDF ({shown(header['fault'])})"
        raise InputError(f"{why}; get an intact copy without a password", label)
    return header, rest


def limit_memory(most: int) -> None:
    """Limit a child process to `most` bytes of memory, where the system can (not on Windows)."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (most, most))
