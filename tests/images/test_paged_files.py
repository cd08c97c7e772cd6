"""Files of several pages: counted within a budget, read page by page, and written as one file (rows 22, 25, 66)."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_images import GREY, GREY16, encoded, pages
from PIL import Image
from short_files import many_pages

import restore
from restore.errors import InputError
from restore.images import bound, encode, page_count, read_picture
from restore.images.tiff import areas
from restore.images.tiff import pages as directories

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
    return page_count(path, name="x", max_pixels=max_pixels)


def test_row22_pages_are_counted_and_frames_are_not(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for content, count in [
        *((pages("TIFF"), 3), (encoded(GREY, "TIFF"), 1), (encoded(GREY), 1), (pages("GIF"), 1), (b"", 1)),
        (pages("TIFF", big_tiff=True), 3),
    ]:
        path.write_bytes(content)
        assert counted(path) == count
    assert counted(tmp_path / "missing") == counted(tmp_path) == 1


def test_a_pipe_is_not_read_to_count_its_pages(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert counted(pipe) == 1  # to open it would wait for a writer


@pytest.mark.parametrize("big", [False, True])
def test_row66_the_pixels_of_all_pages_have_one_budget(big: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    wide = [Image.fromarray(np.zeros((rows, 12), np.uint8)) for rows in (10, 20, 70)]
    path.write_bytes(encoded(wide[0], "TIFF", save_all=True, append_images=wide[1:], big_tiff=big))
    content = path.read_bytes()
    assert areas(content, directories(content, "x")) == [120, 240, 840]
    assert counted(path, 60) == 3  # twenty times sixty are 1200
    with pytest.raises(InputError, match=r"more than 1180 pixels together.*raise --max-pixels above 59"):
        counted(path, 59)


def test_row66_no_more_pages_than_can_be_meant(tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    path.write_bytes(many_pages(1000))
    assert counted(path) == 1000
    path.write_bytes(many_pages(1001))
    with pytest.raises(InputError, match=r"holds 1001 pages.*choose one with --frame 0 to 1000"):
        counted(path)


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


def test_probabilities_of_a_page_of_bits_are_written_with_eight() -> None:
    picture = read_picture(io.BytesIO(encoded(Image.fromarray(BITS), "TIFF", compression="group4")), name="x")
    again = Image.open(io.BytesIO(encode(picture, np.full(BITS.shape, 0.5), format="TIFF")))
    assert again.mode == "L" and again.info["compression"] == "tiff_adobe_deflate"


def test_a_page_that_is_turned_turns_its_resolution() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = read_picture(io.BytesIO(encoded(GREY, "TIFF", exif=exif, dpi=(200, 100))), name="x")
    assert picture.levels.shape == (12, 10) and picture.stored.dpi == (100, 200)


@pytest.mark.parametrize("dpi", [(0, 0), (float("inf"), 1), (-3, 5), ("a", 1)])
def test_a_resolution_that_cannot_be_is_none(dpi: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    content = encoded(GREY16, "PNG")
    real = Image.open

    def opened(*given: Any, **options: Any) -> Image.Image:
        image = real(*given, **options)
        image.info["dpi"] = dpi
        return image

    monkeypatch.setattr(Image, "open", opened)
    assert read_picture(io.BytesIO(content), name="x").stored.dpi is None


# --- in Python ---


@pytest.fixture
def strokes() -> list[np.ndarray]:
    made = []
    for column in (8, 13, 18):
        stroke = np.zeros((28, 28), bool)
        stroke[5:23, column : column + 2] = True
        made.append(stroke)
    return made


def test_the_pages_of_a_path_come_back_as_a_list(strokes: list[np.ndarray], tmp_path: Path) -> None:
    book, single = saved(tmp_path / "x.tif", *strokes), tmp_path / "y.png"
    Image.fromarray(strokes[0]).save(single)
    found = restore.denoise(book, "tap-mnist-25", p=0.02)
    assert [page.mode for page in found] == ["1", "1", "1"]
    alone = [restore.denoise(Image.fromarray(stroke), "tap-mnist-25", p=0.02) for stroke in strokes]
    assert all(page == one for page, one in zip(found, alone, strict=True))
    both = restore.denoise([str(single), book], "tap-mnist-25", p=0.02)
    assert both[0] == alone[0] and both[1] == found


def test_masks_may_have_pages_too(strokes: list[np.ndarray], tmp_path: Path) -> None:
    holes = [np.zeros((28, 28), bool) for _ in strokes]
    for row, hole in enumerate(holes):
        hole[8 + row : 11 + row, 6:22] = True
    book, masks = saved(tmp_path / "x.tif", *strokes), saved(tmp_path / "m.tif", *holes)
    for page, stroke, hole in zip(restore.complete(book, masks, "tap-mnist-25"), strokes, holes, strict=True):
        np.testing.assert_array_equal(np.asarray(page)[~hole], stroke[~hole])


def test_a_page_that_cannot_be_restored_is_named(strokes: list[np.ndarray], tmp_path: Path) -> None:
    noise = np.random.default_rng(0).random((28, 28)) < 0.5
    book = saved(tmp_path / "x.tif", strokes[0], noise, strokes[1])
    with pytest.raises(restore.RestoreError, match=r"x\.tif, page 2 of 3: tap-mnist-25 explains it no better"):
        restore.denoise(book, "tap-mnist-25", p=0.02)
    colour = np.random.default_rng(0).integers(0, 256, (28, 28, 3), dtype=np.uint8)
    with pytest.raises(restore.RestoreError, match=r"x\.tif, page 3 of 3: is in colour"):
        restore.denoise(saved(book, *strokes[:2], colour), "tap-mnist-25", p=0.02)
