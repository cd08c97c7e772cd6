"""Reading images and masks: every row of the table of bad images, and what conversions keep."""

from __future__ import annotations

import io
import threading
import zlib
from pathlib import Path
from typing import Any

import bad_images
import numpy as np
import pytest
from bad_images import COLOUR, GREY, GREY16, HOLE, SHAPE, SOFT, Case, check_message, chunk, encoded, read
from PIL import Image, ImageFile
from refusals import refused

from restore.errors import InputError, TooLarge, option
from restore.images import Mask, read_mask, read_picture
from restore.images.formats import READ
from restore.images.reading import pillow


def cases(table: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.row) for case in table if case.possible])


pytestmark = pytest.mark.usefixtures("silent")
BITS = np.random.default_rng(6).random((40, 45)) > 0.7


@cases(bad_images.IMAGES)
def test_image(case: bad_images.Case, tmp_path: Path) -> None:
    path = case.write(tmp_path)
    if case.error is None:
        picture = read_picture(path, name=str(path))
        assert picture.levels.ndim == 2 and 0 <= picture.pixels.min() <= picture.pixels.max() <= 1
        if picture.alpha is not None:
            assert (picture.alpha.shape, picture.alpha.dtype) == (picture.levels.shape, picture.levels.dtype)
        with path.open("rb") as stream:
            np.testing.assert_array_equal(read_picture(stream, name="-").levels, picture.levels)
        return
    with pytest.raises(case.error) as caught:
        read_picture(path, name=str(path))
    check_message(caught.value, path)


# --- unreadable ---


@pytest.mark.parametrize("format", READ)
def test_no_truncation_changes_pixels(format: str) -> None:
    data = encoded(GREY, format, lossless=True)  # of these, WebP alone takes the option
    whole = read(data).levels
    for length in range(1, len(data), 3):
        try:
            picture = read(data[:length])
        except InputError as fault:
            check_message(fault, "x.png")
        else:  # only what follows the pixels is gone
            np.testing.assert_array_equal(picture.levels, whole)


@pytest.mark.parametrize("kind", ["1", "L", "P", "RGB", "RGBA", "I;16", "interlaced", "gif"])
@pytest.mark.parametrize("height", [10, 11])
def test_data_that_end_properly_but_early(kind: str, height: int) -> None:
    mode = kind if kind not in ("interlaced", "gif") else "L"
    dark = Image.fromarray(np.zeros((height, 12), np.uint16 if mode == "I;16" else np.uint8))
    dark = dark if mode == "I;16" else dark.convert(mode)
    whole, early = encoded(dark, "GIF"), encoded(dark.crop((0, 0, 12, height - 1)), "GIF")
    if kind == "gif":
        for at in (8, early.index(b",") + 7):  # what it says of its height
            early = early[:at] + height.to_bytes(2, "little") + early[at + 2 :]
    else:
        line = {"1": 2, "RGB": 36, "RGBA": 48, "I;16": 24}.get(mode, 12) + 1
        passes = [(0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4), (2, 4, 0, 2), (0, 2, 1, 2), (1, 2, 0, 1)]
        counts = [
            len(range(top, height, down)) * (1 + len(range(left, 12, right))) for top, down, left, right in passes
        ]
        size, last = (sum(counts), 13) if kind == "interlaced" else (line * height, line)
        start, facts = encoded(dark).split(b"IHDR")
        head = start + chunk(b"IHDR", facts[:12] + bytes([kind == "interlaced"]))[4:]
        head += chunk(b"PLTE", bytes(3)) if kind == "P" else b""
        whole, early = (
            head + chunk(b"IDAT", zlib.compress(bytes(n))) + chunk(b"IEND", b"") for n in (size, size - last)
        )
    assert not read(whole).levels.any()  # black to the last row
    with pytest.raises(InputError) as caught:
        read(early)
    check_message(caught.value, "x.png")


@pytest.mark.parametrize(("name", "number"), [("group4", 4), ("group3", 3)])
def test_fax_strips_that_end_early(name: str, number: int) -> None:
    page = {"compression": number, "bits": 1, "photo": 1}
    strips = [bad_images.fax(BITS[first : first + 20], name) for first in (0, 20)]
    whole = read(bad_images.tiff(45, 40, strips, rows=20, **page)).levels
    np.testing.assert_array_equal(whole, np.where(BITS, 255, 0))
    for kept in range(1, 20):
        with pytest.raises(InputError):
            read(bad_images.tiff(45, 40, [strips[0], bad_images.fax(BITS[:kept], name)], rows=20, **page))
    # Without the mark at its end, which only this kind has, a strip is whole.
    if name == "group4":
        assert np.array_equal(read(bad_images.tiff(45, 40, [strips[0], strips[1][:-3]], rows=20, **page)).levels, whole)


@pytest.mark.parametrize("options", [1, 4, 5])
def test_fax_of_other_kinds_is_whole(options: int) -> None:
    for more in ({}, {266: 2}):  # bits in the other order
        page = encoded(Image.fromarray(BITS), "TIFF", compression="group3", tiffinfo={292: options, 278: 9, **more})
        np.testing.assert_array_equal(read(page).levels, np.where(BITS, 255, 0))


@pytest.mark.parametrize("compression", [1, 8], ids=["raw", "deflate"])
def test_strips_and_tiles_that_are_missing(compression: int) -> None:
    import zlib

    pack = zlib.compress if compression == 8 else bytes
    halves = [pack(GREY[:5].tobytes()), pack(GREY[5:].tobytes())]
    np.testing.assert_array_equal(read(bad_images.tiff(12, 10, halves, compression=compression, rows=5)).levels, GREY)
    tile = pack(bytes(256))
    for short in (
        bad_images.tiff(12, 10, halves[:1], compression=compression, rows=5),
        bad_images.tiff(12, 10, [halves[0], b""], compression=compression, rows=5),
        bad_images.tiff(24, 10, [tile], compression=compression, tile=16),
    ):
        with pytest.raises(InputError):
            read(short)


def test_strips_may_share_their_bytes_but_not_make_work(monkeypatch: pytest.MonkeyPatch) -> None:
    row = zlib.compress(bytes(range(0, 240, 5)))
    shared = bad_images.shared_strips(200, row, width=48, bits=8, compression=8)
    assert (read(shared).levels == 255 - np.arange(0, 240, 5)).all()
    opened = []

    def counted(*args: Any, **options: Any) -> Any:
        opened.append(args)
        return open_image(*args, **options)

    open_image = Image.open
    monkeypatch.setattr(Image, "open", counted)
    strips = [bad_images.fax(BITS[:1], "group4")] * 300
    assert read(bad_images.tiff(45, 300, strips, rows=1, compression=4, bits=1)).shape == (300, 45)
    assert len(opened) <= 4  # however many strips there are
    with pytest.raises(InputError):
        read(bad_images.shared_strips(5000, bytes(20_000), bits=1, compression=4))
    assert len(opened) <= 5


def test_no_reader_waits_for_the_file_of_another() -> None:
    found = list[object]()

    def others() -> None:
        found.append(read(encoded(GREY)).shape)
        with pytest.raises(TooLarge):  # its limit is its own
            read_picture(encoded(GREY), name="x", max_pixels=50)
        found.append(ImageFile.LOAD_TRUNCATED_IMAGES)

    with pillow("a file that takes long", 99):
        thread = threading.Thread(target=others, daemon=True)
        thread.start()
        thread.join(10)
        assert found == [SHAPE, False]


def test_the_settings_of_pillow_do_not_matter_and_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 7)
    assert read(encoded(GREY)).levels.shape == SHAPE
    with pytest.raises(InputError):
        read(encoded(GREY, "JPEG")[:-30])
    assert ImageFile.LOAD_TRUNCATED_IMAGES and Image.MAX_IMAGE_PIXELS == 7


# --- size before work ---


def test_the_limit_is_exact_and_holds_for_frames_and_pages() -> None:
    assert read(encoded(GREY), max_pixels=120).levels.shape == SHAPE
    for most in (119, 59):
        with pytest.raises(InputError):
            read(encoded(GREY), max_pixels=most)
    large = Image.fromarray(np.zeros((40, 40), np.uint8))
    book = encoded(GREY, "TIFF", save_all=True, append_images=[large])
    assert read(book, frame=0, max_pixels=500).levels.shape == SHAPE
    with pytest.raises(InputError):
        read(book, frame=1, max_pixels=500)


@pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP"])
def test_frames_before_the_chosen_one_count(format: str) -> None:
    film = bad_images.pages(format, **({"lossless": True} if format == "WEBP" else {}))
    assert read(film, frame=2, max_pixels=3 * GREY.size).levels[0, 0] == 255
    with pytest.raises(InputError):
        read(film, frame=2, max_pixels=3 * GREY.size - 1)


def test_an_endless_stream_ends() -> None:
    class Endless(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            return bytes(size)

    for source in (Endless(), *["/dev/zero"] * Path("/dev/zero").exists()):
        with pytest.raises(InputError):
            read_picture(source, name="-", max_pixels=1)


# --- handled, or converted with a note ---


def test_levels_that_stay_exact() -> None:
    for format in ("PNG", "TIFF", "PPM"):
        np.testing.assert_array_equal(read(encoded(GREY16, format)).levels, GREY16)
    big = Image.frombytes("I;16B", SHAPE[::-1], GREY16.astype(">u2").tobytes())
    np.testing.assert_array_equal(read(encoded(big, "TIFF")).levels, GREY16)
    for levels in (GREY, GREY16):
        negative = read(bad_images.retagged(encoded(levels, "TIFF"), 262, 0))
        np.testing.assert_array_equal(negative.levels, ~levels)
    np.testing.assert_array_equal(read(encoded(Image.fromarray(GREY).convert("P"))).levels, GREY)
    np.testing.assert_array_equal(read(encoded(GREY, "GIF")).levels, GREY)
    bits = read(encoded(Image.fromarray(GREY > 99)))
    assert bits.bits
    np.testing.assert_array_equal(bits.levels, np.where(GREY > 99, 255, 0))


def test_alpha_is_kept_aside() -> None:
    picture = read(encoded(np.dstack([GREY, 255 - GREY])))
    np.testing.assert_array_equal(picture.levels, GREY)
    np.testing.assert_array_equal(picture.alpha, 255 - GREY)
    key = read(bad_images.with_key("I;16"))
    np.testing.assert_array_equal(key.levels, GREY16)
    assert len(key.notes) == 1


CONVERTED = {
    "cmyk": (bad_images.cmyk, GREY),
    "ycbcr": (lambda: encoded(Image.fromarray(GREY).convert("YCbCr"), "TIFF"), GREY),
    "lab": (lambda: encoded(bad_images.lab(GREY), "TIFF"), GREY),
    "16-bit-alpha": (lambda: bad_images.png16(np.dstack([GREY16, GREY16[::-1]]), 4), GREY16 >> 8),
    "16-bit-colour": (lambda: bad_images.png16(np.dstack([GREY16] * 3), 2), GREY16 >> 8),
    "16-bit-colour-ppm": (lambda: b"P6 12 10 65535\n" + np.dstack([GREY16] * 3).astype(">u2").tobytes(), GREY16 >> 8),
    "float": (lambda: encoded((GREY / 255).astype(np.float32), "TIFF"), GREY),
    "colour": (lambda: encoded(COLOUR), np.rint(COLOUR @ [0.299, 0.587, 0.114])),
    "turned": (lambda: bad_images.oriented("PNG"), np.rot90(GREY, -1)),
    "upside-down": (lambda: bad_images.oriented("TIFF", 3), GREY[::-1, ::-1]),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_conversions_are_close_and_noted(name: str) -> None:
    make, expected = CONVERTED[name]
    picture = read(make())
    assert np.abs(picture.pixels * 255 - expected).max() <= 3
    assert len(picture.notes) == 1


@pytest.mark.parametrize(
    ("format", "options"), [("GIF", {}), ("PNG", {}), ("WEBP", {"lossless": True}), ("TIFF", {})], ids=str
)
def test_a_chosen_frame(format: str, options: dict[str, bool]) -> None:
    film = bad_images.pages(format, **options)
    assert [read(film, frame=frame).levels[0, 0] for frame in range(3)] == [0, 128, 255]
    for content, frame in ((film, None), (film, -1), (film, 3), (encoded(GREY), 1)):
        with refused(InputError, option("frame")):
            read(content, **({} if frame is None else {"frame": frame}))


def test_a_page_that_is_turned_turns_its_resolution() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = read(encoded(GREY, "TIFF", exif=exif, dpi=(200, 100)))
    assert picture.levels.shape == (12, 10) and picture.info["dpi"] == (100, 200)


# --- masks ---


@cases(bad_images.MASKS)
def test_mask(case: bad_images.Case, tmp_path: Path) -> None:
    path = case.write(tmp_path)
    if case.error is None:
        mask = read_mask(path, name=str(path), shape=SHAPE)
        np.testing.assert_array_equal(mask.hidden, (HOLE > 0) & (case.row != "empty"))
        assert len(mask.notes) == (case.row in ("empty", "soft", "colour", "layer", "zero-one", "deep-zero-one"))
        return
    with pytest.raises(case.error) as caught:
        read_mask(path, name=str(path), shape=SHAPE)
    check_message(caught.value, path)


def test_a_mask_that_may_be_inverted_gets_a_note_and_its_threshold_is_half_of_white() -> None:
    def masked(levels: np.ndarray) -> Mask:
        return read_mask(io.BytesIO(encoded(levels)), name="m", shape=SHAPE)

    assert np.array_equal(masked(255 - HOLE).hidden, HOLE == 0) and len(masked(255 - HOLE).notes) == 1
    np.testing.assert_array_equal(masked(SOFT).hidden, SOFT == 128)
    deep = np.where(HOLE > 0, 32768, 32767).astype(np.uint16)
    np.testing.assert_array_equal(masked(deep).hidden, HOLE > 0)


def test_a_painting_is_no_mask_and_two_colours_or_paint_on_a_layer_are() -> None:
    def masked(image: np.ndarray) -> Mask:
        return read_mask(io.BytesIO(encoded(image)), name="m", shape=SHAPE)

    red = np.dstack([COLOUR[..., 0] // 2 + 128, COLOUR[..., 1] // 3, COLOUR[..., 2] // 3])
    with pytest.raises(InputError) as caught:
        masked(red)
    check_message(caught.value, "m")
    paint = np.where(HOLE[..., None] > 0, (200, 30, 10), 0).astype(np.uint8)
    np.testing.assert_array_equal(masked(paint).hidden, HOLE > 0)
    layer = np.dstack([np.full_like(paint, (200, 30, 10)), HOLE])
    np.testing.assert_array_equal(masked(layer).hidden, HOLE > 0)
