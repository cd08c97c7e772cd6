"""Read pages of a PDF as pixels, write pages as a PDF, and exchange its scans, with the libraries of the extra `pdf`.

A page that is a scan is read in the resolution of the scan, so that its pixels are those of the scan; any other page in
that of print. A PDF is opened by a child process, `drawing` or `exchanging`, as it can cost any time and memory. One
child draws all pages of a document.
"""

from __future__ import annotations

import base64
import io
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
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


class Document:
    """A PDF that a child process holds open, from a file of its own, until it is closed; any thread may ask for pages.

    Errors of all methods: InputError if it is damaged, has a password, or takes too much time or memory, and UsageError
    if the library that reads it is not installed. After one, the next page gets another child.
    """

    _child: subprocess.Popen[bytes] | None = None
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def __init__(self, content: bytes, label: str, max_pixels: int) -> None:
        """Take the content, its name for messages, and the most pixels of a page."""
        if find_spec("pypdfium2") is None:
            raise UsageError(f"reading PDF needs pypdfium2; {extra('pdf')}", label)
        self.content, self.label, self.max_pixels = content, label, max_pixels
        self._turn = threading.Lock()
        self._opened: dict[str, Any] = {}

    def __enter__(self) -> Document:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    @property
    def count(self) -> int:
        """The number of pages."""
        with self._turn:
            self._open()
            return int(self._opened["count"])

    @cached_property
    def _outlines(self) -> list[dict[str, Any]]:
        outlines: list[dict[str, Any]] = self._asked()[0]["pages"]
        return outlines

    @property
    def areas(self) -> list[int]:
        """The number of pixels of each page."""
        return [math.prod(outline["size"]) for outline in self._outlines]

    @property
    def scans(self) -> list[int]:
        """The pages, from 0, that an image covers for the most part."""
        return [number for number, outline in enumerate(self._outlines) if outline["scan"]]

    def page(self, number: int) -> Image.Image | None:
        """A page, from 0, drawn; None if it has too many pixels.

        Raises InputError, too, if it holds an image that cannot be decoded, which is drawn as nothing.
        """
        facts, pixels = self._asked(number, self.max_pixels)
        if not pixels:
            return None
        if facts["undecoded"]:
            raise InputError("holds an image that cannot be decoded, or ends early; get an intact copy", self.label)
        levels = np.frombuffer(pixels, np.uint8).reshape(*facts["size"][::-1], 3)
        image = Image.fromarray(levels if spread(levels).any() else levels[..., 1])
        if profile := base64.b64decode(facts["profile"]):
            image = _in_profile(image, profile)
            image.info["icc_profile"] = profile
        image.info["dpi"] = tuple(facts["dpi"])
        return image

    def close(self) -> None:
        """End the child, if there is one."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()
        if self._folder is not None:
            self._folder.cleanup()

    def _asked(self, *request: int) -> tuple[dict[str, Any], bytes]:
        """The child's answer to a request: its header, and the bytes that follow it."""
        with self._turn:
            child = self._open()
            assert child.stdin is not None
            with suppress(OSError):  # it has ended, and says nothing
                child.stdin.write(json.dumps(request).encode() + b"\n")
                child.stdin.flush()
            return self._received(child)

    def _open(self) -> subprocess.Popen[bytes]:
        """The child with the document, started if there is none."""
        if self._child is None:
            self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            path = Path(self._folder.name) / "document.pdf"
            most = PAGE_BYTES + 2 * len(self.content)
            path.write_bytes(self.content)
            command, environment = _program("drawing.py", [str(path), most + 16 * self.max_pixels])
            pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
            self._child = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment, **pipes)
            self._opened = self._received(self._child)[0]
            self._folder.cleanup()  # the child keeps it open; where that keeps the file, it goes when the child ends
        return self._child

    def _received(self, child: subprocess.Popen[bytes]) -> tuple[dict[str, Any], bytes]:
        """What a child says next; it is ended if that takes too long, or it says that something is wrong."""
        assert child.stdout is not None
        late = threading.Timer(SECONDS, child.kill)
        late.start()
        try:
            header = json.loads(child.stdout.readline())
            rest = child.stdout.read(header["bytes"])
            complete = len(rest) == header["bytes"]
        except ValueError:
            complete = False
        finally:
            late.cancel()
        if not complete:
            self.close()
            raise _too_costly(self.label)
        if "fault" in header:
            self.close()
            raise _unreadable(header["fault"], self.label)
        return header, rest


def _in_profile(image: Image.Image, profile: bytes) -> Image.Image:
    """The levels that an image, drawn for screens, has in a colour profile of its own; as it is if that does not fit.

    They are those of the file but for rounding.
    """
    from PIL import ImageCms

    try:
        theirs = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        screen = ImageCms.createProfile("sRGB")
        levels = ImageCms.profileToProfile(image.convert("RGB"), screen, theirs, outputMode=image.mode)
    except (ImageCms.PyCMSError, OSError):
        return image
    if levels is None:
        return image
    off = np.abs(np.asarray(levels, np.int16) - np.asarray(image, np.int16))
    return image if off.max() <= 1 else levels


def require_writer(name: str) -> None:
    """Raise UsageError, naming a file to write, if a library that writes PDF is not installed."""
    for library in ("pikepdf", "img2pdf"):
        if find_spec(library) is None:
            raise UsageError(f"writing PDF needs {library}; {extra('pdf')}", name)


def bound(images: Sequence[bytes]) -> bytes:
    """A PDF of images, one a page; their pixels, their resolution and their colour profile are kept."""
    import img2pdf

    sheets = list[tuple[float, ...]]()
    contents = list[bytes]()
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
    sizes = iter(sheets)
    engine = img2pdf.Engine.internal
    made: bytes = img2pdf.convert(*contents, layout_fun=lambda *_: 2 * next(sizes), nodate=True, engine=engine)
    return made


def exchanged(content: bytes, images: Mapping[int, bytes], label: str) -> bytes:
    """A PDF with other images in place of the scans of some pages, by number from 0; all else stays as it is.

    The images are as for `bound`, and show what `Document.page` has drawn. Errors are as there.
    """
    sheets = bound(list(images.values()))
    most = PAGE_BYTES + 4 * (len(content) + len(sheets))
    command, environment = _program("exchanging.py", [list(images), len(content), most])
    both = content + sheets
    limit = SECONDS + len(images)
    try:
        done = subprocess.run(command, input=both, capture_output=True, env=environment, timeout=limit, check=True)
        line, _, made = done.stdout.partition(b"\n")
        header = json.loads(line)
    except (subprocess.SubprocessError, ValueError) as fault:
        raise _too_costly(label) from fault
    if "fault" in header:
        raise _unreadable(header["fault"], label)
    return made


def _program(name: str, words: list[Any]) -> tuple[list[str], dict[str, str]]:
    """The command of a child process, and its environment."""
    command = [sys.executable, "-P", str(Path(__file__).with_name(name)), json.dumps(words)]
    return command, os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}


def _too_costly(label: str) -> InputError:
    return InputError(f"takes more than {SECONDS} s or {PAGE_BYTES >> 20} MiB to draw; save it as TIFF", label)


def _unreadable(fault: str, label: str) -> InputError:
    return InputError(f"cannot be read as a PDF ({shown(fault)}); get an intact copy without a password", label)


def limit_memory(most: int) -> None:
    """Limit a child process to `most` bytes of memory, where the system can (not on Windows)."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def limit_time() -> None:
    """Let a child process work for `SECONDS` from now on, also if nobody is left to end it (not on Windows)."""
    if sys.platform != "win32":
        import resource

        spent = resource.getrusage(resource.RUSAGE_SELF)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        soft = math.ceil(spent.ru_utime + spent.ru_stime) + SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))
