"""Bad (and merely unusual) images and masks: what to write, and what has to come of it.

Functions write into the folder they are given and return what a user would name on the command line. An expected error
of None means that the file is accepted.
"""

from __future__ import annotations

import io
import itertools
import os
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import settings
from PIL import Image, ImageCms

from restore.errors import InputError, RestoreError
from restore.images import Picture, read_picture

SHAPE = (10, 12)
GREY = np.random.default_rng(0).integers(0, 256, SHAPE, dtype=np.uint8)
GREY16 = np.random.default_rng(1).integers(0, 65536, SHAPE, dtype=np.uint16)
COLOUR = np.random.default_rng(2).integers(0, 256, (*SHAPE, 3), dtype=np.uint8)
NOT_ROOT = hasattr(os, "geteuid") and os.geteuid() != 0


# --- TIFF files written by hand: with fewer data than they promise, or with a promise beyond all measure ---


def tiff_directory(tags: dict[int, int | Sequence[int]], start: int, following: int = 0) -> bytes:
    """A directory of a little-endian TIFF that begins at `start` in the file, with its arrays after it."""
    entries, arrays = b"", b""
    end = start + 2 + 12 * len(tags) + 4
    for tag, value in sorted(tags.items()):
        values = [value] if isinstance(value, int) else list(value)
        packed = struct.pack(f"<{len(values)}I", *values)
        if len(values) > 1:
            arrays += packed
            packed = struct.pack("<I", end + len(arrays) - len(packed))
        entries += struct.pack("<HHI", tag, 4, len(values)) + packed
    return struct.pack("<H", len(tags)) + entries + struct.pack("<I", following) + arrays


def tiff(
    width: int, height: int, segments: Sequence[bytes], *, compression: int = 1, bits: int = 8, **more: int
) -> bytes:
    """A grey TIFF of strips, or of tiles if their size is given; `rows` of a strip, `tile` a side, `photo`metric."""
    places, lengths = (324, 325) if "tile" in more else (273, 279)
    shape = {322: more["tile"], 323: more["tile"]} if "tile" in more else {278: more.get("rows", height)}
    tags: dict[int, int | Sequence[int]] = {
        256: width,
        257: height,
        258: bits,
        259: compression,
        262: more.get("photo", 1),
        277: 1,
        **shape,
        places: [0] * len(segments),
        lengths: [len(segment) for segment in segments],
    }
    start = 8 + len(tiff_directory(tags, 8))
    tags[places] = list(itertools.accumulate(map(len, segments[:-1]), initial=start))
    return struct.pack("<2sHI", b"II", 42, 8) + tiff_directory(tags, 8) + b"".join(segments)


def huge_tile(compression: int = 8) -> bytes:
    """A TIFF of 12x10 pixels, 200 bytes long, whose only tile has 46,000 x 46,000."""
    return tiff(12, 10, [zlib.compress(bytes(99))], compression=compression, tile=46_000)


def many_pages(count: int) -> bytes:
    """A TIFF of so many pages of one pixel, which they share."""
    tags: dict[int, int | Sequence[int]] = {256: 1, 257: 1, 258: 8, 259: 1, 262: 1, 273: 4, 277: 1, 278: 1, 279: 1}
    page = tiff_directory(tags, 0)[:-4]
    following = [8 + (len(page) + 4) * number for number in range(1, count)]
    pages = b"".join(page + struct.pack("<I", start) for start in (*following, 0))
    return struct.pack("<2sHI", b"II", 42, 8) + pages


def many_strips(count: int) -> bytes:
    """A TIFF of one column, each pixel of which is a strip, in a file of eight bytes a strip."""
    return tiff(1, count, [b"x"] * count, rows=1)


def many_tags(count: int) -> bytes:
    """A TIFF whose tags all name the same 100,000 bytes."""
    head = struct.pack("<2sHIH", b"II", 42, 8, count)
    return head + b"".join(struct.pack("<HHII", 40_000 + tag, 1, 100_000, 8) for tag in range(count)) + bytes(70_000)


def shared_strips(count: int, segment: bytes, width: int = 8, **more: int) -> bytes:
    """A TIFF of one row a strip, all of which name the same bytes."""
    tags: dict[int, int | Sequence[int]] = {256: width, 257: count, 258: more["bits"], 259: more["compression"]}
    tags |= {262: 0, 277: 1, 278: 1, 279: [len(segment)] * count}
    start = 8 + len(tiff_directory(tags | {273: [0] * count}, 8))
    return struct.pack("<2sHI", b"II", 42, 8) + tiff_directory(tags | {273: [start] * count}, 8) + segment


def shared_directories(count: int) -> bytes:
    """A TIFF of pages whose directories, of 4096 entries without values each, lie twelve bytes apart."""
    entries = 4096
    content = bytearray(
        struct.pack("<2sHI", b"II", 42, 8) + (struct.pack("<H", entries) + bytes(10)) * (entries + count)
    )
    for page in range(count - 1):
        struct.pack_into("<I", content, 8 + 12 * (page + entries) + 2, 8 + 12 * (page + 1))
    return bytes(content)


def many_scans(count: int) -> bytes:
    """A JPEG whose last scan comes again and again, twelve bytes each time."""
    content = encoded(np.full((64, 64), 128, np.uint8), "JPEG", progressive=True)
    last = content.rindex(b"\xff\xda")
    return content[:last] + content[last:-2] * count + b"\xff\xd9"


def fax(image: np.ndarray, compression: str) -> bytes:
    """The only strip of black-and-white pixels (H, W) as libtiff compresses them."""
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "TIFF", compression=compression, tiffinfo={278: len(image)})
    with Image.open(stream) as opened:
        (start,), (size,) = (opened.tag_v2[tag] for tag in (273, 279))  # type: ignore[attr-defined]
    return stream.getvalue()[start : start + size]


# --- images ---


@dataclass(frozen=True)
class Case:
    """One file: `write(folder)` makes it and returns its path."""

    row: str
    write: Callable[[Path], Path]
    error: type[RestoreError] | None
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
SMALL = b"".join(b"\0" + row.tobytes() for row in GREY)


def half_a_tiff() -> bytes:
    return tiff(12, 10, [GREY[:5].tobytes()], rows=5)


def half_a_fax(compression: str, number: int) -> bytes:
    """A page of 40 lines, in the data of which there are 20: Pillow reads it silently."""
    lines = np.random.default_rng(3).random((20, 48)) > 0.5
    return tiff(48, 40, [fax(lines, compression)], compression=number, bits=1, photo=0)


def cut(format: str, name: str, **options: object) -> Case:
    """A file without its last quarter."""
    return Case(f"cut-{name}", file(f"cut.{name}", lambda: short(encoded(GREY, format, **options))), InputError)


def short(content: bytes) -> bytes:
    return content[: len(content) * 3 // 4]


def cmyk() -> bytes:
    return encoded(Image.fromarray(GREY).convert("RGB").convert("CMYK"), "TIFF")


IMAGES = [
    Case("missing", missing, InputError),
    Case("folder", directory, InputError),
    Case("unreadable", unreadable, InputError, possible=NOT_ROOT),
    Case("dangling-link", dangling_link, InputError),
    Case("looping-link", looping_link, InputError),
    Case("zero-bytes", file("empty.png", lambda: b""), InputError),
    Case("text", file("text.png", lambda: b"this is no image\n"), InputError),
    Case("eps", file("page.png", lambda: EPS), InputError),
    Case("svg", file("drawing.svg", lambda: SVG), InputError),
    Case("pdf", file("paper.pdf", lambda: PDF), InputError),
    cut("PNG", "png"),
    cut("JPEG", "jpg"),
    cut("JPEG", "progressive.jpg", progressive=True),
    cut("GIF", "gif"),
    cut("BMP", "bmp"),
    cut("WEBP", "webp"),
    cut("PPM", "pgm"),
    cut("TIFF", "tif"),
    cut("TIFF", "lzw.tif", compression="tiff_lzw"),
    Case("half-a-tiff", file("half.tif", half_a_tiff), InputError),
    Case("half-a-fax-4", file("half.tif", lambda: half_a_fax("group4", 4)), InputError),
    Case("half-a-fax-3", file("half.tif", lambda: half_a_fax("group3", 3)), InputError),
    Case("flipped-pixels", file("flip.png", lambda: flipped(encoded(GREY), 50)), InputError),
    Case("bomb-png", file("bomb.png", lambda: png(60000, 60000, 8, 0, b"\0")), InputError),
    Case("bomb-pgm", file("bomb.pgm", lambda: b"P5 60000 60000 255\n0"), InputError),
    Case("bomb-tile", file("tile.tif", huge_tile), InputError),
    Case("bomb-pages", file("p.tif", lambda: many_pages(1001)), InputError),
    Case("bomb-strips", file("s.tif", lambda: many_strips(1_000_000)), InputError),
    Case(
        "bomb-shared", file("s.tif", lambda: shared_strips(5000, b"\x80" * 20_000, bits=1, compression=4)), InputError
    ),
    Case("bomb-directories", file("d.tif", lambda: shared_directories(900)), InputError),
    Case("bomb-scans", file("j.jpg", lambda: many_scans(200)), InputError),
    Case("many-scans", file("j.jpg", lambda: many_scans(20)), None),
    Case("bomb-tags", file("s.tif", lambda: many_tags(3000)), InputError),
    Case("bomb-text", file("t.png", lambda: png(12, 10, 8, 0, SMALL, before_pixels=BOMB_TEXT)), InputError),
    Case("no-width", file("thin.png", lambda: png(0, 5, 8, 0, b"\0" * 5)), InputError),
    Case("no-height", file("flat.pgm", lambda: b"P5 5 0 255\n"), InputError),
    Case("nan", file("nan.tif", lambda: float_tiff(np.nan)), InputError),
    Case("infinite", file("inf.tif", lambda: float_tiff(np.inf)), InputError),
    Case("above-one", file("range.tif", lambda: float_tiff(255.0)), InputError),
    Case("32-bit-tiff", file("deep.tif", lambda: encoded(GREY16.astype(np.int32), "TIFF")), InputError),
    Case("12-bit-tiff", file("d.tif", lambda: retagged(encoded(GREY16, "TIFF"), 258, 12)), InputError),
    Case("film-gif", file("film.gif", lambda: pages("GIF")), InputError),
    Case("film-png", file("film.png", lambda: pages("PNG")), InputError),
    Case("film-webp", file("film.webp", lambda: pages("WEBP", lossless=True)), InputError),
    Case("pages-tiff", file("book.tif", lambda: pages("TIFF")), InputError),
    Case("jpeg-named-png", file("photo.png", lambda: encoded(GREY, "JPEG")), None),
    Case("png-named-jpg", file("drawing.jpg", lambda: encoded(GREY)), None),
    Case("1x1", file("dot.png", lambda: encoded(GREY[:1, :1])), None),
    Case("1xN", file("line.png", lambda: encoded(GREY[:, :1])), None),
    Case("16-bit-png", file("deep.png", lambda: encoded(GREY16)), None),
    Case("16-bit-tiff", file("deep.tif", lambda: encoded(GREY16, "TIFF")), None),
    Case("white-is-zero", file("d.tif", lambda: retagged(encoded(GREY16, "TIFF"), 262, 0)), None),
    Case("16-bit-colour", file("c.png", lambda: png16(np.dstack([GREY16] * 3), 2)), None),
    Case("floats", file("range.tif", lambda: float_tiff(1.0)), None),
    Case("palette", file("p.png", lambda: encoded(Image.fromarray(GREY).convert("P"))), None),
    Case("1-bit", file("bit.png", lambda: encoded(Image.fromarray(GREY > 99))), None),
    Case("alpha", file("a.png", lambda: encoded(np.dstack([GREY, 255 - GREY]))), None),
    Case("alpha-16-bit", file("a.png", lambda: png16(np.dstack([GREY16, 65535 - GREY16]), 4)), None),
    Case("transparent-level", file("a.png", lambda: with_key("L")), None),
    Case("transparent-level-16-bit", file("a.png", lambda: with_key("I;16")), None),
    Case("transparent-palette", file("a.png", lambda: with_key("P")), None),
    Case("cmyk", file("c.tif", cmyk), None),
    Case("lab", file("l.tif", lambda: encoded(lab(GREY), "TIFF")), None),
    Case("turned", file("turned.jpg", lambda: oriented("JPEG")), None),
    Case("colour", file("colour.png", lambda: encoded(COLOUR)), None),
    Case("colour-palette", file("c.gif", lambda: encoded(COLOUR, "GIF")), None),
]

# -------------------------------------------------------------------------------------------------------------- masks

HOLE = np.zeros(SHAPE, np.uint8)
HOLE[2:5, 3:9] = 255
SOFT = np.where(HOLE > 0, 128, 127).astype(np.uint8)
# White everywhere, opaque only over the hole: white paint on an empty layer.
LAYER = np.dstack([np.full(SHAPE, 255, np.uint8), HOLE])

MASKS = [
    Case("missing", missing, InputError),
    Case("cut", file("mask.png", lambda: short(encoded(HOLE))), InputError),
    Case("other-size", file("mask.png", lambda: encoded(HOLE[1:])), InputError),
    Case("all-white", file("mask.png", lambda: encoded(np.full_like(HOLE, 255))), InputError),
    Case("too-dark", file("mask.png", lambda: encoded(HOLE // 127)), InputError),
    Case("zero-one", file("mask.png", lambda: encoded(HOLE // 255)), None),
    Case("deep-zero-one", file("mask.png", lambda: encoded(HOLE.astype(np.uint16) // 255)), None),
    Case("empty", file("mask.png", lambda: encoded(np.zeros_like(HOLE))), None),
    Case("plain", file("mask.png", lambda: encoded(HOLE)), None),
    Case("1-bit", file("mask.png", lambda: encoded(Image.fromarray(HOLE > 0))), None),
    Case("16-bit", file("mask.png", lambda: encoded(HOLE.astype(np.uint16) * 257)), None),
    Case("soft", file("mask.png", lambda: encoded(SOFT)), None),
    Case("colour", file("mask.png", lambda: encoded(np.dstack([HOLE, HOLE, HOLE // 2]))), None),
    Case("layer", file("mask.png", lambda: encoded(LAYER)), None),
]


quick = settings(max_examples=40)


def read(data: bytes, **options: int) -> Picture:
    return read_picture(io.BytesIO(data), name="x.png", **options)


def check_message(fault: RestoreError, name: object) -> None:
    message = str(fault)
    assert message.isprintable()
    assert message.startswith(f"{name}: ")


# --- good files of any name ---


def images(folder: Path, *names: str) -> list[Path]:
    paths = [folder / name for name in names]
    for path in paths:
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(encoded(GREY))
    return paths
