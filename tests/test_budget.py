"""Small files with large contents (row 66): refused before memory is taken for what they promise."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
from bad_images import GREY, chunk, encoded, pages, png
from measured import attacked, linux
from short_files import huge_tile, many_pages, tiff

from restore.errors import InputError
from restore.images import read_picture

READ = "from restore.images import read_picture"
# What a fault that holds up before anything is decoded may take; what it holds up here takes two thousand.
MEGABYTES = 1 << 20


def refused(path: Path, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        read_picture(path, name="x")
    assert caught.value.exit_code == 3


# --- one image ---


@linux
@pytest.mark.parametrize("compression", [5, 8], ids=["lzw", "deflate"])
def test_row66_a_tile_of_a_tiff(tmp_path: Path, compression: int) -> None:
    harmless, bomb = tmp_path / "a.tif", tmp_path / "b.tif"
    harmless.write_bytes(encoded(GREY, "TIFF", compression="tiff_lzw"))
    bomb.write_bytes(huge_tile(compression))
    assert len(bomb.read_bytes()) < 250
    said, grown = attacked("read_picture(path, name='x')", harmless, bomb, READ)
    assert said == "InputError x: has more than 50000000 pixels; raise --max-pixels if this is meant"
    assert grown < 100 * MEGABYTES


def test_row66_a_strip_of_a_tiff_is_no_longer_than_the_image(tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    path.write_bytes(tiff(12, 10, [zlib.compress(GREY.tobytes())], compression=8, rows=46_000**2))
    np.testing.assert_array_equal(read_picture(path, name="x").levels, GREY)


def test_row66_the_pages_of_a_tiff_are_counted_in_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    path.write_bytes(many_pages(40_000))
    # Pillow would compare each page with each before it: 800 million comparisons, half a minute.
    refused(path, "holds 40000 frames or pages; choose one with --frame 0 to 39999")
    assert read_picture(path, name="x", frame=39_999).levels.shape == (1, 1)


def test_pages_of_a_tiff_that_go_round_in_a_circle_or_out_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.tif"
    content = many_pages(3)
    last = len(content) - 4
    path.write_bytes(content[:last] + (8).to_bytes(4, "little"))
    refused(path, "holds 3 frames")
    for place in (len(content), 2**32 - 1):
        path.write_bytes(content[:last] + place.to_bytes(4, "little"))
        refused(path, "lies outside the file")


@pytest.mark.parametrize("format", ["GIF", "PNG", "WEBP"])
def test_row66_frames_before_the_one_that_is_chosen_count_too(format: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(pages(format, **({"lossless": True} if format == "WEBP" else {})))
    assert read_picture(path, name="x", frame=2, max_pixels=3 * GREY.size).levels[0, 0] == 255
    with pytest.raises(InputError, match=f"more than {3 * GREY.size - 1} pixels"):
        read_picture(path, name="x", frame=2, max_pixels=3 * GREY.size - 1)
    assert read_picture(path, name="x", frame=0, max_pixels=GREY.size).levels[0, 0] == 0


@linux
@pytest.mark.parametrize("depth", [1, 8, 16])
def test_row66_rows_of_a_png_that_never_end(tmp_path: Path, depth: int) -> None:
    harmless, bomb = tmp_path / "a.png", tmp_path / "b.png"
    rows = b"".join(bytes(1 + -(-12 * depth // 8)) for _ in range(10))
    harmless.write_bytes(png(12, 10, depth, 0, rows))
    packer = zlib.compressobj(9)
    packed = b"".join([packer.compress(bytes(1 << 24)) for _ in range(32)]) + packer.flush()
    start = harmless.read_bytes().index(b"IDAT") - 4
    bomb.write_bytes(harmless.read_bytes()[:start] + chunk(b"IDAT", packed) + chunk(b"IEND", b""))
    said, grown = attacked("read_picture(path, name='x')", harmless, bomb, READ)
    assert said == "accepted"
    assert grown < 100 * MEGABYTES
