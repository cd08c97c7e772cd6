"""Images whose data end before the last row are refused, and all others are read, whatever wrote them (row 69)."""

from __future__ import annotations

import io
import itertools
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from bad_images import GREY, chunk, encoded, pages, png
from measured import attacked, linux
from PIL import Image
from short_files import fax, tiff

from restore.errors import InputError, ModelError
from restore.images import read_picture

NOISE = np.random.default_rng(5).integers(0, 256, (70, 45), dtype=np.uint8)
BITS = np.random.default_rng(6).random((40, 45)) > 0.7
ENDS = "lacks some of its rows|before its last row|cannot be decoded|is damaged|wrong checksum"


@pytest.fixture(autouse=True)
def silent(capfd):
    """Neither Pillow nor libtiff says anything of its own."""
    yield
    assert capfd.readouterr() == ("", "")


def read(content: bytes, frame: int | None = None) -> np.ndarray:
    return read_picture(io.BytesIO(content), name="x", frame=frame).levels


def interlaced(rows: bytes, width: int, height: int, depth: int = 8, colour: int = 0) -> bytes:
    """A PNG whose header says that its rows, given filtered, come in the seven passes of Adam7."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 1))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def refused(content: bytes, frame: int | None = None) -> None:
    with pytest.raises(InputError, match=f"x: .*({ENDS})") as caught:
        read(content, frame)
    assert caught.value.exit_code == 3


def whole_or_refused(content: bytes, whole: np.ndarray) -> bool:
    """Whether an image was read, which must be the whole one."""
    try:
        found = read(content)
    except InputError:
        return False
    np.testing.assert_array_equal(found, whole)
    return True


# --- PNG ---


def test_row69_half_of_the_rows_in_a_complete_stream() -> None:
    rows = [b"\0" + row.tobytes() for row in GREY]
    for count in range(len(rows)):
        refused(png(12, 10, 8, 0, b"".join(rows[:count])))
    refused(png(12, 10, 8, 0, b"".join(rows)[:-1]))
    np.testing.assert_array_equal(read(png(12, 10, 8, 0, b"".join(rows))), GREY)
    # More than enough is no fault: Pillow and libpng never look at it.
    np.testing.assert_array_equal(read(png(12, 10, 8, 0, b"".join(rows) + bytes(9))), GREY)


def test_row69_a_stream_in_many_chunks_some_of_them_empty() -> None:
    packed = zlib.compress(b"".join(b"\0" + row.tobytes() for row in GREY))
    parts = [b"", *(packed[at : at + 1] for at in range(len(packed))), b""]
    whole = png(12, 10, 8, 0, b"")
    start = whole.index(b"IDAT") - 4
    pieces = b"".join(chunk(b"IDAT", part) for part in parts)
    np.testing.assert_array_equal(read(whole[:start] + pieces + chunk(b"IEND", b"")), GREY)


# Which pass of Adam7 brings each pixel of 8x8, as the PNG specification draws it (section 8.2).
ADAM7 = np.array(
    [
        [1, 6, 4, 6, 2, 6, 4, 6],
        [7, 7, 7, 7, 7, 7, 7, 7],
        [5, 6, 5, 6, 5, 6, 5, 6],
        [7, 7, 7, 7, 7, 7, 7, 7],
        [3, 6, 4, 6, 3, 6, 4, 6],
        [7, 7, 7, 7, 7, 7, 7, 7],
        [5, 6, 5, 6, 5, 6, 5, 6],
        [7, 7, 7, 7, 7, 7, 7, 7],
    ]
)


@pytest.mark.parametrize(("depth", "colour", "samples"), [(1, 0, 1), (8, 0, 1), (16, 0, 1), (8, 4, 2), (8, 2, 3)])
def test_row69_interlaced(depth: int, colour: int, samples: int) -> None:
    for width, height in itertools.product(range(1, 10), repeat=2):
        passes = np.tile(ADAM7, (2, 2))[:height, :width]
        rows = b""
        for number in range(1, 8):
            for columns in (passes == number).sum(axis=1):
                rows += bytes(1 + -(-int(columns) * depth * samples // 8)) if columns else b""
        assert not read(interlaced(rows, width, height, depth, colour)).any()
        refused(interlaced(rows[:-1], width, height, depth, colour))


def test_row69_a_later_frame_of_an_animation() -> None:
    film = pages("PNG")
    assert [read(film, frame)[0, 0] for frame in range(3)] == [0, 128, 255]
    # The data of the second frame, in a complete stream of too few rows.
    start = film.index(b"fdAT") - 4
    (length,) = struct.unpack_from(">I", film, start)
    number = film[start + 8 : start + 12]
    short = chunk(b"fdAT", number + zlib.compress(zlib.decompress(film[start + 12 : start + 8 + length])[:-5]))
    film = film[:start] + short + film[start + 12 + length :]
    assert read(film, 0)[0, 0] == 0
    refused(film, 1)
    refused(film, 2)  # which is laid upon the second one


# --- JPEG ---


JPEGS = {
    "grey": (NOISE, {}),
    "optimised": (NOISE, {"optimize": True, "quality": 95}),
    "progressive": (NOISE, {"progressive": True}),
    "restarts": (NOISE, {"restart_marker_blocks": 3}),
    "progressive-restarts": (NOISE, {"progressive": True, "restart_marker_rows": 2}),
    "equal-colours": (np.dstack([NOISE] * 3), {"subsampling": 2}),
    "smooth": (np.linspace(0, 255, 70 * 45).reshape(70, 45).astype(np.uint8), {}),
    "flat": (np.full((70, 45), 128, np.uint8), {}),
}


@pytest.mark.parametrize("name", JPEGS)
def test_row69_jpeg_data_that_end_too_early(name: str) -> None:
    pixels, options = JPEGS[name]
    content = encoded(pixels, "JPEG", **options)
    with Image.open(io.BytesIO(content)) as image:
        expected = np.asarray(image.convert("L"))
    whole = read(content)
    np.testing.assert_array_equal(whole, expected)
    start = content.index(b"\xff\xda") + 16
    middle = (start + len(content)) // 2
    for length in [*range(start, len(content) - 2, 7), *range(max(start, len(content) - 20), len(content) - 2)]:
        # In a flat grey image the missing rows look like the rows that are there.
        assert not whole_or_refused(content[:length] + b"\xff\xd9", whole) or name == "flat" or length > middle
    refused(encoded(NOISE, "JPEG", **options)[:-40] + b"\xff\xd9")


def test_row69_jpeg_with_something_after_it() -> None:
    content = encoded(NOISE, "JPEG")
    np.testing.assert_array_equal(read(content + b"\xff\xda and whatever"), read(content))


def test_row66_jpeg_with_more_scans_than_any_image_needs() -> None:
    content = encoded(NOISE, "JPEG", progressive=True)
    start, end = content.rindex(b"\xff\xda"), len(content) - 2
    read(content[:end] + 50 * content[start:end] + b"\xff\xd9")
    with pytest.raises(InputError, match="more than 100 passes"):
        read(content[:end] + 100 * content[start:end] + b"\xff\xd9")


def test_jpeg_in_colour_is_still_told_from_grey() -> None:
    colour = np.random.default_rng(7).integers(0, 256, (70, 45, 3), dtype=np.uint8)
    for options in ({}, {"subsampling": 0}, {"progressive": True}):
        with pytest.raises(ModelError):
            read(encoded(colour, "JPEG", **options))
    cmyk = Image.fromarray(np.dstack([NOISE] * 3)).convert("CMYK")
    assert read(encoded(cmyk, "JPEG")).shape == NOISE.shape


# --- TIFF ---


ROWS = GREY.tobytes()


@pytest.mark.parametrize("compression", [1, 8], ids=["plain", "deflate"])
def test_row69_strips_and_tiles_that_are_not_there(compression: int) -> None:
    def packed(rows: bytes) -> bytes:
        return zlib.compress(rows) if compression == 8 else rows

    halves = [packed(ROWS[:60]), packed(ROWS[60:])]
    np.testing.assert_array_equal(read(tiff(12, 10, halves, compression=compression, rows=5)), GREY)
    # A file may list more strips than it needs.
    if compression != 1:  # Pillow reads these by itself, every one of them
        np.testing.assert_array_equal(read(tiff(12, 10, [*halves, b"x"], compression=compression, rows=5)), GREY)
    refused(tiff(12, 10, halves[:1], compression=compression, rows=5))
    refused(tiff(12, 10, [halves[0], b""], compression=compression, rows=5))
    refused(tiff(12, 10, [packed(ROWS[:60])], compression=compression))
    tile = packed(bytes(16 * 16))
    assert not read(tiff(24, 10, [tile, tile], compression=compression, tile=16)).any()
    refused(tiff(24, 10, [tile], compression=compression, tile=16))


@pytest.mark.parametrize(
    ("name", "compression"), [("group4", 4), ("group3", 3), ("tiff_ccitt", 2)], ids=["group4", "group3", "ccitt"]
)
def test_row69_fax_pages_that_end_too_early(name: str, compression: int) -> None:
    data = fax(BITS, name)
    height, width = BITS.shape
    with Image.open(io.BytesIO(encoded(Image.fromarray(BITS), "TIFF", compression=name))) as image:
        photometric = image.tag_v2[262]  # type: ignore[attr-defined]
    page = {"compression": compression, "bits": 1, "photo": photometric}
    whole = read(tiff(width, height, [data], **page))
    np.testing.assert_array_equal(whole, np.where(BITS, 255, 0))
    # The rows of a page of half the length, with the mark of the end of a page after them.
    refused(tiff(width, height, [fax(BITS[:20], name)], **page))
    read_at = [
        length
        for length in range(1, len(data))
        if whole_or_refused(tiff(width, height, [data[:length]], **page), whole)
    ]
    # What is gone of those can only be the mark, of six lines at most.
    assert all(length > len(data) - 12 for length in read_at)


@pytest.mark.parametrize("strips", [70, 16], ids=["one", "many"])
def test_row69_jpeg_in_a_tiff(strips: int) -> None:
    parts = [NOISE[first : first + strips] for first in range(0, 70, strips)]
    streams = [encoded(part, "JPEG") for part in parts]
    whole = read(tiff(45, 70, streams, compression=7, rows=strips))
    with Image.open(io.BytesIO(streams[0])) as image:
        np.testing.assert_array_equal(whole[:strips], np.asarray(image))
    cut = streams[-1][: len(streams[-1]) * 3 // 4] + b"\xff\xd9"
    refused(tiff(45, 70, [*streams[:-1], cut], compression=7, rows=strips))


def test_row69_lines_of_libtiff_are_not_shown() -> None:
    refused(tiff(12, 10, [zlib.compress(ROWS)[:-20]], compression=8))
    refused(tiff(12, 10, [b"\x0b"], compression=32773))
    refused(tiff(12, 10, [b"\x80\x01"], compression=5))


@linux
def test_row69_what_pillow_logs_is_not_shown(tmp_path: Path) -> None:
    content = tiff(12, 10, [ROWS])
    samples = struct.Struct("<HHII")
    harmless, harmful = tmp_path / "a.tif", tmp_path / "b.tif"
    harmless.write_bytes(content)
    harmful.write_bytes(content.replace(samples.pack(277, 4, 1, 1), samples.pack(277, 4, 1, 2049)))
    # Outside of pytest, which would take in what is logged; that nothing is on stderr is asserted there.
    said, _ = attacked("read_picture(path, name='x')", harmless, harmful, "from restore.images import read_picture")
    assert said.startswith("InputError x: ")
