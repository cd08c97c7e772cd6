"""Files of several pages: counted within a budget, read page by page, and written as one file."""

from __future__ import annotations

import io
import os
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from bad_images import GREY, encoded, many_pages, pages
from PIL import Image

from restore.api.kinds import unpack
from restore.errors import InputError
from restore.images import Book, bound, check_holds, encode, read_picture

BITS = GREY > 99


def saved(path: Path, *images: Any) -> Path:
    """A TIFF of these pages, with compressions and resolutions of their own."""
    kinds = [("group4", 300), ("tiff_lzw", 200), ("packbits", 100)]
    parts = []
    for image, (compression, dpi) in zip(images, kinds, strict=False):
        page = Image.fromarray(image)
        parts.append(encoded(page, "TIFF", compression=compression if page.mode == "1" else "tiff_lzw", dpi=(dpi, dpi)))
    path.write_bytes(bound(parts, "TIFF"))
    return path


def counted(path: Path, max_pixels: int = 10_000) -> int:
    return Book.of(path.read_bytes(), "x", max_pixels).count


def test_pages_are_counted_and_frames_are_not(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for content, count in [
        *((pages("TIFF"), 3), (encoded(GREY, "TIFF"), 1), (encoded(GREY), 1), (pages("GIF"), 1), (b"", 1)),
        *((pages("TIFF", big_tiff=True), 3), (many_pages(1000), 1000)),
    ]:
        path.write_bytes(content)
        assert counted(path) == count
    path.write_bytes(many_pages(1001))
    with pytest.raises(InputError):
        counted(path)


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=(pages("TIFF"),))
    writer.start()
    assert len(unpack(pipe).items) == 3
    writer.join(60)


@pytest.mark.parametrize("big", [False, True])
def test_the_pixels_of_all_pages_have_one_budget(big: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    wide = [Image.fromarray(np.zeros((rows, 12), np.uint8)) for rows in (10, 20, 70)]
    path.write_bytes(encoded(wide[0], "TIFF", save_all=True, append_images=wide[1:], big_tiff=big))
    assert counted(path, 60) == 3  # together they have 1200, twenty times sixty
    with pytest.raises(InputError):
        counted(path, 59)


def test_pages_keep_their_mode_compression_and_resolution(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.tif", BITS, GREY, np.dstack([GREY] * 3))
    pictures = [read_picture(path, name="x", frame=page) for page in range(3)]
    again = bound([encode(picture, 1 - picture.pixels, format="TIFF") for picture in pictures], "TIFF")
    with Image.open(path) as before, Image.open(io.BytesIO(again)) as after:
        assert after.n_frames == 3  # type: ignore[attr-defined]
        for page in range(3):
            before.seek(page)
            after.seek(page)
            assert after.mode == before.mode
            assert after.info["compression"] == before.info["compression"]
            assert after.info["dpi"] == before.info["dpi"]
            np.testing.assert_array_equal(np.asarray(after.convert("L")), 255 - np.asarray(before.convert("L")))


@pytest.mark.parametrize(("source", "written"), [("jpeg", "tiff_adobe_deflate"), ("raw", "raw")])
def test_compressions_that_lose_pixels_are_replaced(source: str, written: str) -> None:
    picture = read_picture(io.BytesIO(encoded(GREY, "TIFF", compression=source)), name="x")
    again = Image.open(io.BytesIO(encode(picture, picture.pixels, format="TIFF")))
    assert again.info["compression"] == written
    np.testing.assert_array_equal(np.asarray(again), picture.levels)


@pytest.mark.parametrize(("image", "written"), [(BITS, "group4"), (GREY, "tiff_adobe_deflate")])
def test_a_tiff_of_a_picture_that_was_none_is_compressed(image: Any, written: str) -> None:
    source = image if isinstance(image, Image.Image) else Image.fromarray(image)
    picture = read_picture(io.BytesIO(encoded(source, "PNG")), name="x")
    again = Image.open(io.BytesIO(encode(picture, picture.pixels, format="TIFF")))
    assert again.info["compression"] == written
    np.testing.assert_array_equal(np.asarray(again.convert("L")), picture.levels)


def test_probabilities_of_a_page_of_bits_are_written_with_eight() -> None:
    picture = read_picture(io.BytesIO(encoded(Image.fromarray(BITS), "TIFF", compression="group4")), name="x")
    again = Image.open(io.BytesIO(encode(picture, np.full(BITS.shape, 0.5), format="TIFF")))
    assert again.mode == "L" and again.info["compression"] == "tiff_adobe_deflate"


def test_a_format_without_pages_is_refused_for_several() -> None:
    check_holds(3, "PDF", source="x.tif", target="y.pdf")
    check_holds(1, "PNG", source="x.tif", target="y.png")
    with pytest.raises(InputError):
        check_holds(3, "PNG", source="x.tif", target="y.png")
