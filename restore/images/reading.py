"""Read pictures by their content, never by their name."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import threading
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import ExifTags, Image, ImageFile, ImageOps, UnidentifiedImageError

from restore import buckets
from restore.errors import InputError, RestoreError, TooLarge, option, reason, shown
from restore.images import pdf, tiff
from restore.images.colours import SHALLOW, picture_of
from restore.images.formats import FORMATS, READ, paged
from restore.images.metadata import metadata
from restore.images.picture import Picture
from restore.sizes import DEFAULT_MAX_PIXELS

# A path, a stream opened for reading bytes, or what was read from one; and a PDF that is open.
File = str | os.PathLike[str] | BinaryIO | bytes
Source = File | pdf.Document

# All images of a set, or pages of a file, together may have this many times as many pixels as one.
_SET = 20

# The most scans of a JPEG, each of which changes all pixels and may take a few bytes: encoders write some ten. And what
# begins anything but pixels among them.
_MOST_SCANS = 100
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")

# Pillow's log would go to stderr by default; what matters it raises.
logging.getLogger("PIL").addHandler(logging.NullHandler())
# Pillow's limits and Python's warning filters belong to the whole process. The first of several readers changes them,
# and the last puts them back; no reader waits for another one's file.
_COUNTING = threading.Lock()
_READERS = list[int]()
_BEFORE = dict[str, Any]()


def check_together(pixels: int, name: str, max_pixels: int) -> None:
    """Raise InputError if the images of a set have together more than twenty times the pixels that one may have."""
    if pixels > _SET * max_pixels:
        fault = f"its images have more than {_SET * max_pixels} pixels together, {_SET} times those of one"
        remedy = f"raise {option('max_pixels')} above {-(-pixels // _SET) - 1} if this is meant"
        raise InputError(f"{fault}; {remedy}", name)


def read_picture(
    source: Source,
    *,
    name: str,
    frame: int | None = None,
    max_pixels: int = DEFAULT_MAX_PIXELS,
    colour: bool = False,
) -> Picture:
    """Read one picture, turned upright; every conversion is noted, and what cannot be read raises InputError.

    Args:
        source: a path, a stream opened for reading bytes, its content, or a PDF that is open.
        name: its name for messages.
        frame: the frame or page to read, from 0; required if a file holds several.
        max_pixels: refuse larger images before decoding them; the frames before a chosen one count too.
        colour: keep colours, as levels (H, W, 3); else they become grey levels, see `picture_of`.
    """
    label = shown(name)
    if isinstance(source, pdf.Document):
        return _page(source, label, frame, colour)
    content = read_content(source, label, max_pixels)
    if paged(content) == "PDF":
        with pdf.Document(content, label, max_pixels) as document:
            return _page(document, label, frame, colour)
    return _picture(content, label, frame, max_pixels, colour)


def _picture(content: bytes, label: str, frame: int | None, max_pixels: int, colour: bool) -> Picture:
    """The picture in a file that Pillow reads."""
    pages = tiff.pages(content, label) if paged(content) else []
    with pillow(label, max_pixels), Image.open(io.BytesIO(content), formats=READ) as image:
        count = len(pages) or getattr(image, "n_frames", 1)
        views = image.format == "MPO" and frame is None  # others are views and previews of the first one
        number = 0 if views else _chosen(frame, count, label)
        _seek(image, number, pages, label, max_pixels)
        # Read these first: loading forgets them.
        layout = _layout(image)
        negative = bool(pages) and image.tag_v2.get(ExifTags.Base.PhotometricInterpretation) == 0  # type: ignore[attr-defined]
        turned, info = metadata(image, content, number)
        exif = image.getexif()
        exif[ExifTags.Base.Orientation] = turned
        _load(image, content, bool(pages or number), layout, label)
        upright = ImageOps.exif_transpose(image) or image
        upright.format = image.format
        picture = picture_of(upright, label, colour=colour)
    levels = picture.levels
    notes = (*picture.notes, *([f"it holds {count} pictures, of which the first is read"] if views else []))
    if negative and image.mode.startswith("I;16"):  # at 8 bits Pillow inverts it
        levels = 65535 - levels
    elif ";16" in layout and not image.mode.startswith("I"):
        notes = (*notes, SHALLOW)
    notes = (*notes, "it is turned upright as its orientation tag says") if turned > 1 else notes
    return replace(picture, levels=levels, notes=notes, bits=image.mode == "1", one_of_many=count > 1, info=info)


def _seek(image: Image.Image, number: int, pages: list[int], label: str, max_pixels: int) -> None:
    """Go to a frame or page; raises TooLarge if it, or all that have to be decoded for it, have too many pixels."""
    # The pages of a TIFF are independent; frames of other formats are laid on top of each other.
    pixels = pages[number] if pages else image.width * image.height * (number + 1)
    if number and pixels <= max_pixels:
        image.seek(number)
        pixels = max(pixels, image.width * image.height)  # of some formats frames grow
    if pixels > max_pixels:
        raise too_large(label, max_pixels)


def _load(image: ImageFile.ImageFile, content: bytes, several: bool, layout: str, label: str) -> None:
    """Decode an image; raises InputError if that costs too much, or it ends early where Pillow reads it in silence."""
    if layout == "I;12":
        raise InputError("has levels of 12 bits; convert it to 8 or 16 bits first", label)
    if image.format in ("JPEG", "MPO") and _scans(content) > _MOST_SCANS:
        raise InputError(f"has more than {_MOST_SCANS} scans; save it anew as PNG", label)
    if image.format == "TIFF":
        tiff.silence()
        tiff.check_rows(image, content, label)
    image.load()
    if not several and _ends_early(image, content):
        raise InputError("ends before its last row; get an intact copy", label)


def _page(document: pdf.Document, label: str, number: int | None, colour: bool) -> Picture:
    """The picture on a page of a PDF."""
    drawn = document.page(_chosen(number, document.count, label))
    if drawn is None:
        raise too_large(label, document.max_pixels)
    return replace(picture_of(drawn, label, colour=colour), one_of_many=document.count > 1, info=drawn.info)


def read_content(source: File, label: str, max_pixels: int) -> bytes:
    """The bytes of a file or stream; raises InputError if it cannot be read, is empty, or longer than such an image."""
    if isinstance(source, bytes):
        return source
    # An image of this many pixels needs no more bytes, and an endless stream (a device, a pipe) must end somewhere.
    limit = 8 * max_pixels + 2**26
    content = io.BytesIO()
    try:
        with contextlib.ExitStack() as stack:
            stream: Any = buckets.path_of(source) if isinstance(source, str | os.PathLike) else source
            if isinstance(stream, buckets.Remote):
                stream = io.BytesIO(buckets.read(stream, limit + 1))
            elif isinstance(stream, Path):
                stream = stack.enter_context(stream.open("rb"))
            while part := stream.read(2**20):
                if content.tell() + len(part) > limit:
                    raise TooLarge(f"is longer than {max_pixels} pixels; raise {option('max_pixels')}", label)
                content.write(part)
    except RestoreError:
        raise
    except (OSError, ValueError) as fault:
        why = shown(getattr(fault, "strerror", None) or str(fault))
        raise InputError(f"cannot be read ({why}); check the path and its permissions", label) from fault
    if not content.tell():
        raise InputError("is empty (0 bytes); give an image file", label)
    return content.getvalue()


@contextlib.contextmanager
def pillow(label: str, max_pixels: int) -> Iterator[None]:
    """Run Pillow strictly, under our limit and without warnings, and turn its faults into `InputError`."""
    with _COUNTING:
        if not _READERS:
            _BEFORE.update(most=Image.MAX_IMAGE_PIXELS, truncated=ImageFile.LOAD_TRUNCATED_IMAGES)
            warnings.filterwarnings("ignore", module=r"PIL\.")
            _BEFORE["filter"] = warnings.filters[0]
            ImageFile.LOAD_TRUNCATED_IMAGES = False
        _READERS.append(max_pixels)
        Image.MAX_IMAGE_PIXELS = -(-max(_READERS) // 2)  # above twice as many it refuses
    try:
        yield
    except RestoreError:
        raise
    except Image.DecompressionBombError as fault:
        raise too_large(label, max_pixels) from fault
    except UnidentifiedImageError as fault:
        raise InputError(f"is damaged, or none of {', '.join(FORMATS)}; give another file", label) from fault
    except Exception as fault:  # decoders of damaged files raise nearly anything
        why = reason(fault) or type(fault).__name__
        raise InputError(f"cannot be decoded ({why}); get an intact copy", label) from fault
    finally:
        with _COUNTING:
            _READERS.remove(max_pixels)
            if not _READERS:
                Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = _BEFORE["most"], _BEFORE["truncated"]
                with contextlib.suppress(ValueError):  # others may have put back theirs
                    warnings.filters.remove(_BEFORE["filter"])  # type: ignore[attr-defined]


def too_large(label: str, max_pixels: int) -> TooLarge:
    """The error for an image with more pixels than allowed."""
    return TooLarge(f"has more than {max_pixels} pixels; raise {option('max_pixels')} if this is meant", label)


def _chosen(frame: int | None, count: int, label: str) -> int:
    if frame is None and count > 1:
        raise InputError(f"holds {count} frames or pages; choose one with {option('frame')} 0 to {count - 1}", label)
    if not 0 <= (frame or 0) < count:
        there_are = f"give 0 to {count - 1}" if count > 1 else "it has one picture; leave it out"
        raise InputError(f"has no frame {frame}; {option('frame')}: {there_are}", label)
    return frame or 0


def _scans(content: bytes) -> int:
    """The number of scans of a JPEG, in all its pictures."""
    count, at = 0, 0
    while marker := _MARKER.search(content, at):
        kind = marker[0][1]
        at = marker.end()
        count += kind == 0xDA
        if kind not in (0x01, 0xD8, 0xD9) and at + 2 <= len(content):  # others tell their length
            at += max(2, int.from_bytes(content[at : at + 2], "big"))
    return count


def _ends_early(image: Image.Image, content: bytes) -> bool:
    """True if the data of an image, decoded, end before its last rows, which stay as they were before decoding."""
    if np.asarray(image)[-2:].reshape(min(2, image.height), -1).any(axis=1).all():  # at first all are 0
        return False
    bands = len(image.getbands())
    with Image.open(io.BytesIO(content), formats=READ) as again:
        if (again.mode, again.size) != (image.mode, image.size):
            return False
        again.im = Image.new(again.mode, again.size, (255,) * bands if bands > 1 else 255).im
        again.load()
        return bool((np.asarray(again)[-2:] != np.asarray(image)[-2:]).any())


def _layout(image: ImageFile.ImageFile) -> str:
    """The layout of the stored pixels, in Pillow's words; it shows if `image.mode` holds less than the file."""
    layout = image.tile[0][3] if image.tile else ""
    if image.format == "PPM" and image.mode == "RGB" and isinstance(layout, tuple) and int(layout[-1]) > 255:
        return "RGB;16B"
    return str(layout[0] if isinstance(layout, tuple) else layout)
