"""The table of bad (and merely unusual) images and masks: what to write, and what has to come of it.

Each case is named after its row in the project's list of bad inputs. Functions write into the folder they are given and
return what a user would name on the command line. An expected error of None means that the file is to be accepted.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import short_files
from PIL import Image, ImageCms

from restore.errors import InputError, ModelError, RestoreError

SHAPE = (10, 12)
GREY = np.random.default_rng(0).integers(0, 256, SHAPE, dtype=np.uint8)
GREY16 = np.random.default_rng(1).integers(0, 65536, SHAPE, dtype=np.uint16)
COLOUR = np.random.default_rng(2).integers(0, 256, (*SHAPE, 3), dtype=np.uint8)
NOT_ROOT = hasattr(os, "geteuid") and os.geteuid() != 0


@dataclass(frozen=True)
class Case:
    """One file: `write(folder)` makes it and returns its path."""

    row: str
    write: Callable[[Path], Path]
    error: type[RestoreError] | None
    says: str = ""
    possible: bool = True  # False where the system does not let the fault happen (permissions bind no root)

    @property
    def exit_code(self) -> int:
        return self.error.exit_code if self.error else 0


# ---------------------------------------------------------------------------------------------------------- building


def encoded(image: Image.Image | np.ndarray, format: str = "PNG", **options: object) -> bytes:
    stream = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(stream, format, **options)
    return stream.getvalue()


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width: int, height: int, depth: int, colour: int, rows: bytes, *, before_pixels: bytes = b"") -> bytes:
    """A PNG by hand; `rows` are the filtered bytes before compression."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + header + before_pixels + pixels + chunk(b"IEND", b"")


def png16(channels: np.ndarray, colour: int, **options: bytes) -> bytes:
    """A 16-bit PNG of (H, W, C) channels."""
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in channels)
    return png(channels.shape[1], channels.shape[0], 16, colour, rows, **options)


def flipped(data: bytes, position: int, bit: int = 0) -> bytes:
    changed = bytearray(data)
    changed[position] ^= 1 << bit
    return bytes(changed)


def file(name: str, make: Callable[[], bytes]) -> Callable[[Path], Path]:
    """A writer of one file with this content, made only when it is needed."""

    def write(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(make())
        return path

    return write


def pages(format: str, **options: object) -> bytes:
    frames = [Image.fromarray(np.full(SHAPE, level, np.uint8)) for level in (0, 128, 255)]
    return encoded(frames[0], format, save_all=True, append_images=frames[1:], **options)


def lab(grey: np.ndarray) -> Image.Image:
    spaces = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
    converted = ImageCms.profileToProfile(Image.fromarray(grey).convert("RGB"), *spaces, outputMode="LAB")
    assert converted is not None
    return converted


def oriented(format: str, orientation: int = 6) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(GREY, format, exif=exif)


def with_key(mode: str) -> bytes:
    """A PNG whose transparency is one level, not a channel."""
    image = Image.fromarray(GREY16 if mode == "I;16" else GREY)
    return encoded(
        image if mode in ("L", "I;16") else image.convert(mode), transparency=5 if mode != "RGB" else (5,) * 3
    )


def retagged(tiff: bytes, tag: int, value: int) -> bytes:
    """A TIFF of Pillow's with another value in one of its tags."""
    at = tiff.index(struct.pack("<HHI", tag, 3, 1)) + 8
    return tiff[:at] + struct.pack("<I", value) + tiff[at + 4 :]


def float_tiff(value: float) -> bytes:
    values = np.full(SHAPE, 0.5, np.float32)
    values[3, 4] = value
    return encoded(values, "TIFF")


# --------------------------------------------------------------------------------------------------- things not files


def missing(folder: Path) -> Path:
    return folder / "missing.png"


def directory(folder: Path) -> Path:
    path = folder / "folder.png"
    path.mkdir()
    return path


def unreadable(folder: Path) -> Path:
    path = file("secret.png", lambda: encoded(GREY))(folder)
    path.chmod(0)
    return path


def dangling_link(folder: Path) -> Path:
    path = folder / "dangling.png"
    path.symlink_to("nowhere.png")
    return path


def looping_link(folder: Path) -> Path:
    path = folder / "loop.png"
    path.symlink_to("loop.png")
    return path


# ------------------------------------------------------------------------------------------------------------- images

SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'
EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n"
PDF = b"%PDF-1.4\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF\n"
BOMB_TEXT = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(2**21), 9))
BOMB_PROFILE = chunk(b"iCCP", b"icc\0\0" + zlib.compress(bytes(2**21), 9))
SMALL = b"".join(b"\0" + row.tobytes() for row in GREY)


def half_a_tiff() -> bytes:
    return short_files.tiff(12, 10, [GREY[:5].tobytes()], rows=5)


def half_a_fax() -> bytes:
    """A page of 40 lines, in the data of which there are 20: libtiff only warns of it."""
    lines = np.random.default_rng(3).random((20, 48)) > 0.5
    return short_files.tiff(48, 40, [short_files.fax(lines, "group4")], compression=4, bits=1, photo=0)


IMAGES = [
    Case("row01-missing", missing, InputError, "does not exist"),
    Case("row02-folder", directory, InputError, "folder"),
    Case("row03-unreadable", unreadable, InputError, "permissions", possible=NOT_ROOT),
    Case("row04-dangling-link", dangling_link, InputError, "link"),
    Case("row04-looping-link", looping_link, InputError, "links"),
    Case("row05-zero-bytes", file("empty.png", lambda: b""), InputError, "empty"),
    Case("row06-text", file("text.png", lambda: b"this is no image\n"), InputError, "not an image of a kind"),
    Case("row07-jpeg-named-png", file("photo.png", lambda: encoded(GREY, "JPEG")), None),
    Case("row07-png-named-jpg", file("drawing.jpg", lambda: encoded(GREY)), None),
    Case("row08-truncated-png", file("cut.png", lambda: encoded(GREY)[:-40]), InputError, "intact"),
    Case("row08-png-header-only", file("cut.png", lambda: encoded(GREY)[:33]), InputError, "damaged"),
    Case("row08-truncated-jpeg", file("cut.jpg", lambda: encoded(GREY, "JPEG")[:-30]), InputError, "truncated"),
    Case("row08-truncated-tiff", file("cut.tif", lambda: encoded(GREY, "TIFF")[:-30]), InputError, "intact"),
    Case("row08-truncated-gif", file("cut.gif", lambda: encoded(GREY, "GIF")[:-30]), InputError, "intact"),
    Case("row08-truncated-webp", file("cut.webp", lambda: encoded(GREY, "WEBP")[:-30]), InputError, "intact"),
    Case("row09-flipped-idat", file("flip.png", lambda: flipped(encoded(GREY), 50)), InputError, "checksum"),
    Case("row09-flipped-ihdr", file("flip.png", lambda: flipped(encoded(GREY), 19)), InputError, "checksum"),
    Case("row10-flipped-iend-crc", file("end.png", lambda: flipped(encoded(GREY), -1)), None),
    Case("row11-60000-square", file("bomb.png", lambda: png(60000, 60000, 8, 0, b"\0")), InputError, "--max-pixels"),
    Case("row11-60000-square-ppm", file("bomb.pgm", lambda: b"P5 60000 60000 255\n0"), InputError, "--max-pixels"),
    Case("row12-11000-square", file("bomb.png", lambda: png(11000, 11000, 1, 0, b"\0")), InputError, "--max-pixels"),
    Case("row13-no-width", file("thin.png", lambda: png(0, 5, 8, 0, b"\0" * 5)), InputError),
    Case("row13-no-height", file("flat.pgm", lambda: b"P5 5 0 255\n"), InputError),
    Case("row14-1x1", file("dot.png", lambda: encoded(GREY[:1, :1])), None),
    Case("row14-1xN", file("line.png", lambda: encoded(GREY[:, :1])), None),
    Case("row15-16-bit-png", file("deep.png", lambda: encoded(GREY16)), None),
    Case("row15-16-bit-tiff", file("deep.tif", lambda: encoded(GREY16, "TIFF")), None),
    Case("row15-16-bit-pgm", file("deep.pgm", lambda: encoded(GREY16, "PPM")), None),
    Case("row15-32-bit-tiff", file("deep.tif", lambda: encoded(GREY16.astype(np.int32), "TIFF")), InputError, "white"),
    Case("row15-12-bit-tiff", file("d.tif", lambda: retagged(encoded(GREY16, "TIFF"), 258, 12)), InputError, "12 bits"),
    Case("row15-white-is-zero", file("d.tif", lambda: retagged(encoded(GREY16, "TIFF"), 262, 0)), None),
    Case("row16-grey-palette", file("p.png", lambda: encoded(Image.fromarray(GREY).convert("P"))), None),
    Case("row16-grey-gif", file("p.gif", lambda: encoded(GREY, "GIF")), None),
    Case("row17-1-bit", file("bit.png", lambda: encoded(Image.fromarray(GREY > 99))), None),
    Case("row18-alpha", file("a.png", lambda: encoded(np.dstack([GREY, 255 - GREY]))), None),
    Case("row18-alpha-16-bit", file("a.png", lambda: png16(np.dstack([GREY16, 65535 - GREY16]), 4)), None),
    Case("row18-transparent-level", file("a.png", lambda: with_key("L")), None),
    Case("row18-transparent-level-16-bit", file("a.png", lambda: with_key("I;16")), None),
    Case("row18-transparent-colour", file("a.png", lambda: with_key("RGB")), None),
    Case("row18-transparent-palette", file("a.png", lambda: with_key("P")), None),
    Case("row18-transparent-bit", file("a.png", lambda: encoded(Image.fromarray(GREY > 99), transparency=0)), None),
    Case(
        "row19-cmyk", file("c.tif", lambda: encoded(Image.fromarray(GREY).convert("RGB").convert("CMYK"), "TIFF")), None
    ),
    Case("row19-ycbcr", file("y.tif", lambda: encoded(Image.fromarray(GREY).convert("YCbCr"), "TIFF")), None),
    Case("row19-lab", file("l.tif", lambda: encoded(lab(GREY), "TIFF")), None),
    Case("row20-orientation-jpeg", file("turned.jpg", lambda: oriented("JPEG")), None),
    Case("row20-orientation-png", file("turned.png", lambda: oriented("PNG")), None),
    Case("row20-orientation-tiff", file("turned.tif", lambda: oriented("TIFF")), None),
    Case("row21-animated-gif", file("film.gif", lambda: pages("GIF")), InputError, "--frame 0 to 2"),
    Case("row21-animated-png", file("film.png", lambda: pages("PNG")), InputError, "--frame 0 to 2"),
    Case("row21-animated-webp", file("film.webp", lambda: pages("WEBP", lossless=True)), InputError, "--frame 0 to 2"),
    Case("row22-two-page-tiff", file("book.tif", lambda: pages("TIFF")), InputError, "--frame 0 to 2"),
    Case("row23-nan", file("nan.tif", lambda: float_tiff(np.nan)), InputError, "NaN"),
    Case("row23-infinite", file("inf.tif", lambda: float_tiff(np.inf)), InputError, "infinite"),
    Case("row24-above-one", file("range.tif", lambda: float_tiff(255.0)), InputError, "[0, 1]"),
    Case("row24-below-zero", file("range.tif", lambda: float_tiff(-0.1)), InputError, "[0, 1]"),
    Case("row24-in-range", file("range.tif", lambda: float_tiff(1.0)), None),
    Case("row25-eps", file("page.eps", lambda: EPS), InputError, "not an image of a kind"),
    Case("row25-eps-named-png", file("page.png", lambda: EPS), InputError, "not an image of a kind"),
    Case("row25-svg", file("drawing.svg", lambda: SVG), InputError, "not an image of a kind"),
    Case("row25-damaged-pdf", file("paper.pdf", lambda: PDF), InputError, "cannot be read as a PDF"),
    Case("row26-huge-text", file("t.png", lambda: png(12, 10, 8, 0, SMALL, before_pixels=BOMB_TEXT)), InputError),
    Case("row26-huge-profile", file("i.png", lambda: png(12, 10, 8, 0, SMALL, before_pixels=BOMB_PROFILE)), InputError),
    Case("row28-colour", file("colour.png", lambda: encoded(COLOUR)), ModelError, "greyscale"),
    Case("row28-colour-palette", file("c.gif", lambda: encoded(COLOUR, "GIF")), ModelError, "greyscale"),
    Case("row28-16-bit-colour", file("c.png", lambda: png16(np.dstack([GREY16] * 3), 2)), ModelError, "greyscale"),
    Case("row28-grey-in-colour", file("grey.png", lambda: encoded(np.dstack([GREY] * 3))), None),
    Case("row66-tile-of-46000", file("tile.tif", short_files.huge_tile), InputError, "--max-pixels"),
    Case("row66-40000-pages", file("p.tif", lambda: short_files.many_pages(40_000)), InputError, "--frame 0 to 39999"),
    Case("row69-half-a-png", file("half.png", lambda: png(12, 10, 8, 0, SMALL[:60])), InputError, "last row"),
    Case("row69-half-a-tiff", file("half.tif", half_a_tiff), InputError, "some of its rows"),
    Case("row69-half-a-jpeg", file("half.jpg", lambda: encoded(GREY, "JPEG")[:-40] + b"\xff\xd9"), InputError, "row"),
    Case("row69-half-a-fax", file("half.tif", half_a_fax), InputError, "last row"),
]

# -------------------------------------------------------------------------------------------------------------- masks

HOLE = np.zeros(SHAPE, np.uint8)
HOLE[2:5, 3:9] = 255
SOFT = np.where(HOLE > 0, 128, 127).astype(np.uint8)
# White everywhere, opaque only over the hole: white paint on an empty layer.
LAYER = np.dstack([np.full(SHAPE, 255, np.uint8), HOLE])

MASKS = [
    Case("row01-missing", missing, InputError, "does not exist"),
    Case("row08-truncated", file("mask.png", lambda: encoded(HOLE)[:-20]), InputError, "intact"),
    Case(
        "row30-other-size",
        file("mask.png", lambda: encoded(HOLE[1:])),
        InputError,
        "12x9 pixels, but the image has 12x10",
    ),
    Case("row31-all-fill", file("mask.png", lambda: encoded(np.full_like(HOLE, 255))), InputError, "every pixel"),
    Case("row32-empty", file("mask.png", lambda: encoded(np.zeros_like(HOLE))), None, "nothing to fill"),
    Case("row33-too-dark", file("mask.png", lambda: encoded(HOLE // 255)), InputError, "brighter than half of white"),
    Case("row33-plain", file("mask.png", lambda: encoded(HOLE)), None),
    Case("row33-1-bit", file("mask.png", lambda: encoded(Image.fromarray(HOLE > 0))), None),
    Case("row33-16-bit", file("mask.png", lambda: encoded(HOLE.astype(np.uint16) * 257)), None),
    Case("row33-soft", file("mask.png", lambda: encoded(SOFT)), None, "grey levels"),
    Case("row33-colour", file("mask.png", lambda: encoded(np.dstack([HOLE, HOLE, HOLE // 2]))), None, "in colour"),
    Case(
        "row33-colour-16-bit", file("mask.png", lambda: png16(np.dstack([HOLE.astype(np.uint16) * 257] * 3), 2)), None
    ),
    Case("row33-layer", file("mask.png", lambda: encoded(LAYER)), None, "transparent"),
]
