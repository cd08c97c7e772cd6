"""Pages with nothing on them, with nothing but noise, turned, of one pixel, and in unusual colours and depths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import Run, fault
from PIL import Image

import restore

ASSETS = Path(__file__).parents[2] / "assets"
PAGE = np.asarray(Image.open(ASSETS / "page-noisy.png").convert("L"))[20:84, 20:116]
WORDS = ("--model", "tap-text")


def restored(run: Run, image: Image.Image, path: Path, *words: object) -> np.ndarray:
    """What becomes of an image on the command line."""
    image.save(path)
    assert run("denoise", path, *(words or WORDS), "-o", path.with_name("out.png"), "--overwrite") == 0
    return np.asarray(Image.open(path.with_name("out.png")))


@pytest.mark.parametrize(("level", "shape"), [(0, (40, 60)), (255, (40, 60)), (0, (1, 1)), (255, (1, 1))])
def test_row14_what_is_blank_stays_blank(level: int, shape: tuple[int, int], run: Run, tmp_path: Path) -> None:
    blank = np.full(shape, level, np.uint8)
    found = restored(run, Image.fromarray(blank), tmp_path / "x.png", *WORDS, "--p", "0.1")
    np.testing.assert_array_equal(found, blank)


@pytest.mark.thorough
def test_grey_paper_becomes_black_or_white(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for level, becomes in ((200, 255), (60, 0)):
        grey = Image.fromarray(np.full((40, 60), level, np.uint8))
        found = restored(run, grey, tmp_path / "x.png", *WORDS, "--p", "0.1")
        assert (found == becomes).all()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_row72_pure_noise_is_refused(seed: int, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw = np.random.default_rng(seed)
    bits = Image.fromarray(draw.random((64, 64)) < 0.5)
    for image in (bits, Image.fromarray(draw.integers(0, 256, (64, 64), dtype=np.uint8))):
        image.save(tmp_path / "x.png")
        assert run("denoise", tmp_path / "x.png", *WORDS) == 4
        assert "x.png" in fault(capsys) and not (tmp_path / "x.restored.png").exists()
    with pytest.raises(restore.Foreign):
        restore.denoise(bits, "tap-text")
    # Who says that it is meant gets an answer.
    assert run("denoise", tmp_path / "x.png", *WORDS, "--p", 0.49) == 0


@pytest.mark.thorough
def test_row20_turned_pages(run: Run, tmp_path: Path) -> None:
    upright = restored(run, Image.fromarray(PAGE), tmp_path / "x.png")
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = Image.fromarray(np.rot90(PAGE).copy())
    turned.save(tmp_path / "y.png", exif=exif)
    assert run("denoise", tmp_path / "y.png", *WORDS, "-o", tmp_path / "z.png") == 0
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "z.png")), upright)
    # One that does not say so comes back as it lies. The prior has learnt upright print, so it says less about it.
    found = restored(run, turned, tmp_path / "x.png")
    assert found.shape == turned.size[::-1]
    assert 0 < (np.rot90(found, -1) != upright).mean() < 0.05


@pytest.mark.thorough
def test_row15_19_24_depths_and_colours_of_one_page(run: Run, tmp_path: Path) -> None:
    grey = Image.fromarray(PAGE)
    ink = restored(run, grey, tmp_path / "x.png") > 127
    kinds = {
        "a.png": Image.fromarray(PAGE.astype(np.uint16) * 257),
        "b.tif": Image.fromarray((PAGE / 255).astype(np.float32)),
        "c.tif": grey.convert("RGB").convert("CMYK"),
        "d.jpg": grey.convert("RGB").convert("CMYK"),
        "e.png": Image.fromarray(np.where(PAGE[..., None] > 127, (250, 240, 200), (30, 40, 160)).astype(np.uint8)),
    }
    for name, image in kinds.items():
        found = restored(run, image, tmp_path / name)
        light = found[..., 0] > 127 if found.ndim == 3 else found > found.max() / 2
        np.testing.assert_array_equal(light, ink)


def test_row24_hdr_floats_are_refused(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Image.fromarray((PAGE / 64).astype(np.float32)).save(tmp_path / "x.tif")
    assert run("denoise", tmp_path / "x.tif", *WORDS) == 3
    assert "[0, 1]" in fault(capsys)


def test_row28_noise_in_colour_is_refused(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    colours = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    Image.fromarray(colours).convert("CMYK").save(tmp_path / "x.tif")
    assert run("denoise", tmp_path / "x.tif", *WORDS) == 4
    assert "x.tif" in fault(capsys)
