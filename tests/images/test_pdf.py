"""Pages of PDF: read in the resolution of their scans, refused within a budget, and written without loss."""

from __future__ import annotations

import io
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_images import COLOUR, GREY, encoded, fax
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from restore.errors import InputError, UsageError
from restore.images import Book, Picture, bound, encode, pdf, read_picture

pypdfium2: Any = pytest.importorskip("pypdfium2")
pikepdf: Any = pytest.importorskip("pikepdf")
pytest.importorskip("img2pdf")

pytestmark = pytest.mark.usefixtures("foreseen")


def written(*pictures: Picture) -> bytes:
    return bound([encode(picture, picture.pixels, format="PDF") for picture in pictures], "PDF")


def read(content: bytes, **options: Any) -> Picture:
    return read_picture(io.BytesIO(content), name="x.pdf", **options)


def drawn(width: float, height: float, image: np.ndarray | None = None, *size: float) -> bytes:
    """A page of this size in points, with an image of so many points in a corner of it."""
    document = pypdfium2.PdfDocument.new()
    page = document.new_page(width, height)
    if image is not None:
        placed = pypdfium2.PdfImage.new(document)
        placed.set_bitmap(pypdfium2.PdfBitmap.from_pil(Image.fromarray(image)))
        placed.set_matrix(pypdfium2.PdfMatrix().scale(size[0], size[-1]))
        page.insert_obj(placed)
        page.gen_content()
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


# PDF knows no pages below three points, which are 13 pixels at 300 dpi.
SHAPES = st.tuples(st.integers(13, 60), st.integers(13, 60))


@given(
    SHAPES.flatmap(lambda shape: arrays(np.uint8, shape)), st.sampled_from([None, 72, 72.27, 96, 150, 204, 299.9, 300])
)
@example(np.arange(50_000, dtype=np.uint8).reshape(200, 250), 1200)
@settings(max_examples=5, deadline=None)
def test_pages_come_back_pixel_by_pixel(levels: np.ndarray, dpi: float | None) -> None:
    picture = Picture(levels, info={} if dpi is None else {"dpi": (dpi, dpi)})
    again = read(written(picture))
    np.testing.assert_array_equal(again.levels, levels)
    assert again.info["dpi"] == pytest.approx((dpi or 96,) * 2, rel=1e-3)  # 96 is what is taken for granted


def test_black_and_white_takes_a_bit_for_each_pixel_and_nothing_is_lost_to_jpeg() -> None:
    stripes = np.where(np.arange(400) // 7 % 2, 255, 0).astype(np.uint8) * np.ones((300, 1), np.uint8)
    content = written(Picture(stripes), Picture(GREY))
    assert b"CCITTFaxDecode" in content and b"DCTDecode" not in content
    assert len(content) < stripes.size / 20
    np.testing.assert_array_equal(read(content, frame=0).levels, stripes)
    np.testing.assert_array_equal(read(content, frame=1).levels, GREY)
    assert content == written(Picture(stripes), Picture(GREY))


@pytest.mark.parametrize(("degrees", "turns"), [(90, -1), (180, 2), (270, 1)])
def test_a_page_that_is_turned_is_read_upright(degrees: int, turns: int) -> None:
    document = pypdfium2.PdfDocument(written(Picture(GREY)))
    document[0].set_rotation(degrees)
    stream = io.BytesIO()
    document.save(stream)
    np.testing.assert_array_equal(read(stream.getvalue()).levels, np.rot90(GREY, turns))


def test_a_fax_and_a_page_of_whole_points_keep_their_rows() -> None:
    # 204 x 98 dpi; and a page of 595 x 842 points, as is written for A4, whose scan of 300 dpi is 2480 x 3508.
    levels = np.arange(51 * 49, dtype=np.uint8).reshape(49, 51)
    again = read(written(Picture(levels, info={"dpi": (204, 98)})))
    np.testing.assert_array_equal(again.levels, levels)
    assert again.info["dpi"] == pytest.approx((204, 98), rel=1e-3)
    levels = np.random.default_rng(0).integers(0, 256, (351, 248), dtype=np.uint8)
    np.testing.assert_array_equal(read(drawn(59, 84, levels, 59, 84)).levels, levels)


def test_a_page_that_is_no_scan_is_drawn_as_for_print() -> None:
    assert read(drawn(72, 36)).levels.shape == (150, 300)
    # Nor does a fine picture in a corner make it one.
    assert read(drawn(72, 36, COLOUR[..., 0].repeat(9, 0).repeat(9, 1), 10)).levels.shape == (150, 300)
    # A scan of 7200 dpi is none.
    assert read(drawn(3, 3, np.zeros((300, 300), np.uint8), 3)).levels.shape == (50, 50)


def test_a_page_is_measured_before_it_is_drawn_and_pages_have_one_budget(tmp_path: Any) -> None:
    with pytest.raises(InputError):
        read(drawn(14_400, 14_400))  # 3,600 million pixels
    path = tmp_path / "x.pdf"
    path.write_bytes(written(*[Picture(GREY)] * 3))
    assert Book.of(path.read_bytes(), "x", 18).count == 3
    with pytest.raises(InputError):
        _ = Book.of(path.read_bytes(), "x", 17).count


def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    # The child dies alone.
    monkeypatch.setattr("restore.images.pdf.PAGE_BYTES", 0)
    with pytest.raises(InputError):
        read(drawn(720, 720), max_pixels=9_000_000)


def test_damaged_and_protected() -> None:
    whole = written(Picture(GREY))
    stream = io.BytesIO()
    with pikepdf.open(io.BytesIO(whole)) as document:
        document.save(stream, encryption=pikepdf.Encryption(owner="a", user="b"))
    for content in (whole[:30], b"%PDF-1.7\n" + bytes(99), stream.getvalue()):
        with pytest.raises(InputError):
            read(content)


@pytest.mark.parametrize("library", ["pypdfium2", "pikepdf", "img2pdf"])
def test_without_the_extra_one_line_says_what_to_install(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = written(Picture(GREY))
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UsageError):
        read(content) if library == "pypdfium2" else written(Picture(GREY))


def hold(data: bytes, filter: str, bits: int = 8, **parameters: int) -> bytes:
    """A PDF of two pages: an image in whatever state, of 40x60 pixels, and a sound one."""
    document = pikepdf.new()
    for content, kind, depth in ((data, filter, bits), (zlib.compress(LEVELS.tobytes()), "/FlateDecode", 8)):
        document.add_blank_page(page_size=(40, 60))
        image = pikepdf.Stream(document, b"")
        image.Type, image.Subtype = pikepdf.Name.XObject, pikepdf.Name.Image
        image.Width, image.Height, image.ColorSpace, image.BitsPerComponent = 40, 60, pikepdf.Name.DeviceGray, depth
        decoding = pikepdf.Dictionary(**parameters) if parameters and kind == filter else None
        image.write(content, filter=pikepdf.Name(kind), decode_parms=decoding)
        page = document.pages[-1]
        page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(I=image))
        page.Contents = pikepdf.Stream(document, b"q 40 0 0 60 0 0 cm /I Do Q")
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


LEVELS = np.random.default_rng(4).integers(0, 256, (60, 40), dtype=np.uint8)
RAW, JPEG = zlib.compress(LEVELS.tobytes()), encoded(LEVELS, "JPEG", quality=95)
FAX = fax(LEVELS > 127, "group4")
NOISE = np.random.default_rng(5).bytes(500)
DAMAGED = {
    "jpeg": (NOISE, "/DCTDecode"),
    "jpeg-cut": (JPEG[: len(JPEG) // 2], "/DCTDecode"),
    "jpeg-empty": (b"", "/DCTDecode"),
    "jpeg-2000": (NOISE, "/JPXDecode"),
    "flate": (NOISE, "/FlateDecode"),
    "flate-cut": (RAW[: len(RAW) // 2], "/FlateDecode"),
    "flate-short": (zlib.compress(LEVELS[:50].tobytes()), "/FlateDecode"),
    "lzw": (NOISE, "/LZWDecode"),
    "jbig2": (NOISE, "/JBIG2Decode", 1),
    "unknown": (NOISE, "/NoSuchDecode"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_an_image_that_cannot_be_decoded_is_not_taken_for_a_blank_page(kind: str) -> None:
    content = hold(*DAMAGED[kind])
    with pytest.raises(InputError):
        read(content, frame=0)
    np.testing.assert_array_equal(read(content, frame=1).levels, LEVELS)


@pytest.mark.parametrize(
    ("data", "filter", "bits", "parameters"),
    [
        (RAW, "/FlateDecode", 8, {}),
        (JPEG, "/DCTDecode", 8, {}),
        (JPEG + b"more", "/DCTDecode", 8, {}),
        (FAX, "/CCITTFaxDecode", 1, {"K": -1, "Columns": 40, "Rows": 60, "BlackIs1": True}),
        (zlib.compress(np.packbits(LEVELS > 127, axis=1).tobytes()), "/FlateDecode", 1, {}),
        (zlib.compress(LEVELS.tobytes() + b"more"), "/FlateDecode", 8, {}),
    ],
)
def test_sound_images_are_read(data: bytes, filter: str, bits: int, parameters: dict[str, int]) -> None:
    levels = read(hold(data, filter, bits, **parameters), frame=0).levels
    if filter != "/DCTDecode":
        np.testing.assert_array_equal(levels, LEVELS if bits == 8 else np.where(LEVELS > 127, 255, 0))
    else:
        assert abs(levels.astype(int) - LEVELS).mean() < 10


def test_one_child_draws_all_pages_and_another_one_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Popen(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            started.append(arguments)
            super().__init__(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    pages = [Picture(np.full((20, 20), level, np.uint8)) for level in range(0, 200, 10)]
    document = pdf.Document(written(*pages), "x", 9999)
    with document, ThreadPoolExecutor(4) as pool:
        assert Book(document, "x", 9999).count == document.count == len(document.scans) == 20
        levels = list(pool.map(lambda number: read_picture(document, name="x", frame=number).levels[3, 3], range(20)))
        assert levels == list(range(0, 200, 10)) and len(started) == 1
        child, folder = document._child, document._folder
        assert child is not None and folder is not None
        child.kill()
        with pytest.raises(InputError):
            read_picture(document, name="x", frame=0)
        assert read_picture(document, name="x", frame=1).levels[3, 3] == 10 and len(started) == 2
    assert document._child is None and not Path(folder.name).exists()
