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
import zlib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from PIL.ExifTags import Base as Tag

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
    """Raise UsageError, naming a file to write, if the library that writes PDF is not installed."""
    if find_spec("pikepdf") is None:
        raise UsageError(f"writing PDF needs pikepdf; {extra('pdf')}", name)


def bound(images: Sequence[bytes]) -> bytes:
    """A PDF of images, one a page; their pixels, their resolution and their colour profile are kept."""
    import pikepdf

    document, stream = pikepdf.new(), io.BytesIO()
    for content in images:
        with Image.open(io.BytesIO(content)) as image:
            dpi = image.info.get("dpi", (DPI, DPI))
            width, height = (
                min(max(72 * side / (resolution or DPI), PAGE_SIDES[0]), PAGE_SIDES[1])
                for side, resolution in zip(image.size, map(float, dpi), strict=True)
            )
            data, facts = _embedded(image)
            if profile := image.info.get("icc_profile"):
                bands = len(image.getbands())
                facts["ColorSpace"] = pikepdf.Array([pikepdf.Name.ICCBased, document.make_stream(profile, N=bands)])
        page = document.add_blank_page(page_size=(width, height))
        page.add_resource(document.make_stream(data, **facts), pikepdf.Name.XObject, pikepdf.Name.Scan)
        page.Contents = document.make_stream(f"q {width:f} 0 0 {height:f} 0 0 cm /Scan Do Q".encode())
    document.save(stream, deterministic_id=True)
    return stream.getvalue()


def _embedded(image: Image.Image) -> tuple[bytes, dict[str, Any]]:
    """The data of an image in a PDF, compressed without loss, and its entries."""
    from pikepdf import Dictionary, Name

    (width, height), bands = image.size, len(image.getbands())
    facts: dict[str, Any] = {"Type": Name.XObject, "Subtype": Name.Image, "Width": width, "Height": height}
    facts["ColorSpace"] = Name.DeviceRGB if bands == 3 else Name.DeviceGray
    if image.mode == "1":
        strip = io.BytesIO()
        image.save(strip, "TIFF", compression="group4", strip_size=width * height)
        with Image.open(strip) as fax:
            start, length = (fax.tag_v2[tag][0] for tag in (Tag.StripOffsets, Tag.StripByteCounts))  # type: ignore[attr-defined]
        coding = Dictionary(K=-1, Columns=width, Rows=height, BlackIs1=True)
        facts |= {"BitsPerComponent": 1, "Filter": Name.CCITTFaxDecode, "DecodeParms": coding}
        return strip.getvalue()[start : start + length], facts
    # Each row is stored as its difference from the one above, which PNG calls filter 2.
    levels = np.asarray(image).reshape(height, -1)
    rows = np.insert(np.diff(levels, axis=0, prepend=np.zeros_like(levels[:1])), 0, 2, axis=1)
    above = Dictionary(Predictor=12, Colors=bands, BitsPerComponent=8, Columns=width)
    facts |= {"BitsPerComponent": 8, "Filter": Name.FlateDecode, "DecodeParms": above}
    return zlib.compress(rows.tobytes()), facts


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
