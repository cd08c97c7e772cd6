"""Holes of pictures of which nothing else is told: what fills photographs, scans and noisy drawings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

import restore
from restore.errors import ModelError
from training.data.photographs import photograph

CROP = (slice(60, 160), slice(180, 290))


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    return np.asarray(photograph("camera.png")[CROP])


@pytest.fixture(scope="module")
def scratched(clean: np.ndarray) -> np.ndarray:
    hidden = np.zeros(clean.shape, bool)
    hidden[::9] = hidden[:, ::11] = True
    return hidden


def print_of(height: int = 120, width: int = 220) -> np.ndarray:
    """A page of print, white being True."""
    page = Image.new("1", (width, height), 1)
    for top in range(8, height - 16, 18):
        ImageDraw.Draw(page).text((8, top), "the quick brown fox jumps over", 0, ImageFont.load_default(13))
    return np.asarray(page)


PAGE = print_of()
SCRATCH = np.zeros(PAGE.shape, bool)
SCRATCH[40:42] = SCRATCH[:, 70:72] = True


def errors(found: np.ndarray, clean: np.ndarray, hidden: np.ndarray) -> float:
    return float(((found[hidden].astype(float) - clean[hidden]) ** 2).mean())


def test_holes_of_a_photograph_are_filled_as_in_one(clean: np.ndarray, scratched: np.ndarray) -> None:
    torn = np.where(scratched, 255, clean).astype(np.uint8)
    whole, solution = restore.complete(torn, scratched, return_solution=True)
    assert solution.model == "em-photographs" and "is filled as a photograph" in solution.notes[0][-1]
    np.testing.assert_array_equal(whole[~scratched], clean[~scratched])
    # Better than any one level is.
    assert errors(whole, clean, scratched) < 0.2 * clean[scratched].var()


def test_holes_of_a_photograph_in_colour_are_filled_plane_by_plane(clean: np.ndarray, scratched: np.ndarray) -> None:
    colours = np.stack([clean, clean[::-1], clean[:, ::-1]], -1)
    torn = np.where(scratched[..., None], [255, 0, 0], colours).astype(np.uint8)
    whole = np.asarray(restore.complete(Image.fromarray(torn), scratched))
    np.testing.assert_array_equal(whole[~scratched], colours[~scratched])
    assert errors(whole, colours, scratched) < 0.3 * colours[scratched].var(0).mean()


def test_holes_of_a_scan_are_filled_with_its_ink_and_paper() -> None:
    draw = np.random.default_rng(0)
    light = np.linspace(1.0, 0.6, PAGE.shape[1])
    grey = np.where(PAGE, 0.8, 0.2) * light + draw.normal(0, 0.04, PAGE.shape)
    torn = np.where(SCRATCH, 1.0, grey).clip(0, 1)
    whole, solution = restore.complete(torn, SCRATCH, return_solution=True)
    np.testing.assert_array_equal(whole[~SCRATCH], torn[~SCRATCH])
    assert any("read as a scan" in note for note in solution.notes[0])
    # Every filled pixel has the level of ink or of paper in its place, which are .6 of the light apart.
    levels = np.stack([0.2 * light, 0.8 * light])[:, None] * np.ones((1, *PAGE.shape))
    assert np.abs(whole - levels).min(0)[SCRATCH].mean() < 0.05
    assert (np.abs(whole - levels).argmin(0) != PAGE)[SCRATCH].mean() < 0.1


def test_two_flat_greys_fill_holes_with_themselves() -> None:
    torn = np.where(SCRATCH, 255, np.where(PAGE, 170, 50)).astype(np.uint8)
    whole = restore.complete(torn, SCRATCH)
    assert set(np.unique(whole[SCRATCH])) == {50, 170}


def test_what_lies_under_a_mask_has_no_colour(tmp_path: Path) -> None:
    for paint in ((255, 255, 255), (230, 20, 20)):
        torn = np.where(SCRATCH[..., None], paint, 255 * PAGE[..., None]).astype(np.uint8)
        Image.fromarray(torn).save(tmp_path / f"{paint[1]}.png")
    plain, red = (np.asarray(restore.complete(tmp_path / name, SCRATCH)) for name in ("255.png", "20.png"))
    np.testing.assert_array_equal(plain, red)
    pictures = [Image.open(tmp_path / "20.png"), Image.open(tmp_path / "255.png")]
    for whole in restore.complete(pictures, [SCRATCH, SCRATCH]):
        np.testing.assert_array_equal(np.asarray(whole), plain)


def test_greys_that_pass_for_black_and_white_are_told_of() -> None:
    """A dark coat before a sky has few middle tones."""
    even = np.where(PAGE, 0.75, 0.15)
    uneven = even + 0.1 * np.sin(np.arange(PAGE.shape[1]) / 9)
    for picture, told in ((even, False), (uneven, True)):
        _, solution = restore.complete(picture, SCRATCH, "tap-text", return_solution=True)
        assert any('give model="em-photographs"' in note for note in solution.notes[0]) == told


def test_flips_beside_a_hole_are_told_of() -> None:
    noisy = PAGE ^ (np.random.default_rng(0).random(PAGE.shape) < 0.07)
    for picture, told in ((PAGE, False), (noisy, True)):
        _, solution = restore.complete(picture, SCRATCH, return_solution=True)
        assert any("visible pixels look flipped" in note for note in solution.notes[0]) == told


def test_photographs_and_drawings_are_completed_apart(clean: np.ndarray, scratched: np.ndarray) -> None:
    with pytest.raises(ModelError, match="image 1 of 2, from 0, is a photograph, and image 0 is in black and white"):
        restore.complete([PAGE.astype(np.uint8) * 255, clean], [SCRATCH, scratched])
