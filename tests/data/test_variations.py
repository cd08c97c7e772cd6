"""Variations of training images: what they are, and who learns from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lessons import GOOD, assert_refused, write
from machines import bars_and_stripes

import restore
from restore.data import varied
from restore.data.gathering import gather
from restore.data.truth import joined, planes
from restore.learning.recipe.recipe import read_recipe
from restore.learning.recipe.spec import Variations

IMAGES = np.random.default_rng(0).integers(90, 160, (300, 5, 7), dtype=np.uint8)
STILL: dict[str, Any] = {"copies": 2, "shift": 0, "mirror": False, "contrast": (1.0, 1.0), "seed": 3}


def test_shifts_repeat_the_border_and_all_of_them_come_about_as_often() -> None:
    variants = varied(IMAGES, **STILL | {"copies": 9, "shift": 1}).reshape(9, *IMAGES.shape)
    padded = np.pad(IMAGES, ((0, 0), (1, 1), (1, 1)), mode="edge")
    moved = np.stack(
        [padded[:, 1 - down : 6 - down, 1 - right : 8 - right] for down in (-1, 0, 1) for right in (-1, 0, 1)]
    )
    same = (variants[:, None] == moved[None]).all((-2, -1))
    assert same.any(1).all()
    shares = same.mean((0, 2))
    assert (np.abs(shares - 1 / 9) < 5 * np.sqrt(8 / 81 / 2700)).all()


def test_every_other_image_is_mirrored() -> None:
    variants = varied(IMAGES, **STILL | {"mirror": True}).reshape(2, *IMAGES.shape)
    mirrored, left = ((variants == images).all((-2, -1)) for images in (IMAGES[..., ::-1], IMAGES))
    assert (mirrored ^ left).all()
    assert abs(mirrored.mean() - 0.5) < 5 * np.sqrt(1 / 4 / 600)


def test_contrast_is_about_the_mean_of_each_image() -> None:
    variants = varied(IMAGES, **STILL | {"copies": 1, "contrast": (0.4, 1.1)}).astype(float)
    apart = IMAGES - IMAGES.mean((1, 2), keepdims=True)
    factors = (variants * apart).sum((1, 2)) / (apart**2).sum((1, 2))
    # Each grey level is rounded, and so are the factors found.
    np.testing.assert_allclose(variants, IMAGES.mean((1, 2), keepdims=True) + factors[:, None, None] * apart, atol=1)
    assert 0.38 < factors.min() < 0.45
    assert 1.05 < factors.max() < 1.12
    assert abs(factors.mean() - 0.75) < 5 * 0.7 / np.sqrt(12 * 300)


@pytest.mark.parametrize("across", [False, True], ids=["down", "sideways"])
def test_bent_images_move_smoothly_and_as_far_as_said(across: bool) -> None:
    """On a slope of 5 levels a pixel the grey level says where a pixel came from."""
    slope, bend = np.broadcast_to(np.arange(40, dtype=np.uint8) * 5, (200, 30, 40)), 1.5
    images = slope if across else slope.swapaxes(1, 2)[:, :30]
    variants = varied(images, **STILL | {"copies": 1, "bend": bend}).astype(float)
    moves = ((variants - images) / 5)[:, 4:-4, 4:-4]
    # Each place is moved by as much either way, and cubic curves reach a little beyond their ends.
    assert 1.1 * bend < np.abs(moves).max() < 1.6 * bend
    assert np.abs(moves.mean((1, 2))).mean() > 0.1 and abs(moves.mean()) < 5 * bend / np.sqrt(3 * 200)
    # Between places, which are some ten pixels apart, a move changes slowly; levels are rounded.
    for axis in (1, 2):
        assert np.abs(np.diff(moves, axis=axis)).max() < 3 * bend / 9 + 1 / 5
    assert (varied(images, **STILL | {"copies": 1, "bend": 1e-6}) == images).all()


def test_grey_levels_do_not_wrap_around() -> None:
    stark = np.zeros((50, 2, 2), np.uint8)
    stark[:, 0, 0] = 255
    variants = varied(stark, **STILL | {"contrast": (1.0, 3.0)})
    assert set(np.unique(variants)) == {0, 255}


def test_draws_are_those_of_the_seed_and_no_others() -> None:
    settings = STILL | {"shift": 2, "mirror": True, "contrast": (0.5, 1.0)}
    bent = settings | {"bend": 1.0}
    assert (varied(IMAGES, **bent) == varied(IMAGES, **bent)).all()
    first = varied(IMAGES, **settings)
    assert (first == varied(IMAGES, **settings)).all()
    assert (first != varied(IMAGES, **settings | {"seed": 4})).any()
    # Written down once: a recipe has to lead to the same images with every version of numpy.
    small = np.arange(12, dtype=np.uint8).reshape(1, 3, 4) * 20
    assert varied(small, **settings | {"copies": 1}).tolist() == PINNED


PINNED = [[[84, 95, 95, 95], [127, 138, 138, 138], [170, 181, 181, 181]]]


# --- recipes ---


VARIED = GOOD + "\n[data.variations]\ncopies = 3\nshift = 1\nmirror = true\ncontrast = [0.5, 1]\n"


def test_a_recipe_says_how_images_vary(tmp_path: Path) -> None:
    recipe = read_recipe(write(tmp_path, VARIED))
    assert recipe.data.variations == Variations(3, 1, True, (0.5, 1.0))


def test_no_variations_are_the_same_written_out_or_not(tmp_path: Path) -> None:
    plain = read_recipe(write(tmp_path, GOOD))
    assert read_recipe(write(tmp_path, GOOD + "\n[data.variations]\ncopies = 0\n")).digest == plain.digest
    assert read_recipe(write(tmp_path, VARIED)).digest != plain.digest


BENDS = [f"copies = 2\nbend = {bend}" for bend in ("-1", "nan", "inf", "true")]


@pytest.mark.parametrize(
    "line", ["copies = -1", "shift = -1", "shift = 0.5", "shift = 1", "copies = 2", "copys = 2", *BENDS]
)
def test_variations_that_are_none(line: str, tmp_path: Path) -> None:
    assert_refused(write(tmp_path, f"{GOOD}\n[data.variations]\n{line}\n"), "[data.variations]")


@pytest.mark.parametrize("contrast", ["[0.5]", "[1, 0.5]", "[0, 1]", "[0.5, nan]", "0.5"])
def test_contrast_that_is_none(contrast: str, tmp_path: Path) -> None:
    assert_refused(write(tmp_path, f"{GOOD}\n[data.variations]\ncopies = 2\ncontrast = {contrast}\n"), "contrast")


# --- learners ---


def test_python_learns_from_variations() -> None:
    bars = (bars_and_stripes(4).view(-1, 4, 4).numpy() * 255).astype(np.uint8)
    settings: dict[str, Any] = {"hidden": 3, "epochs": 1, "inference": {"modes": 0, "starts": 1}}
    plain = restore.train(bars, **settings).engine.trained.pixel_means
    variations = {"copies": 20, "shift": 2}
    moved = restore.train(bars, **settings, data={"variations": variations}).engine.trained.pixel_means
    learnt_from = varied(gather(bars).training.images, copies=20, shift=2, mirror=False, contrast=(1, 1), seed=0) > 127
    wanted = torch.from_numpy(learnt_from.reshape(len(learnt_from), -1)).float()
    assert torch.allclose(moved, (wanted.sum(0) + 0.5) / (len(wanted) + 1))
    assert not torch.allclose(moved, plain, atol=1e-3)


@pytest.mark.parametrize(
    "settings",
    [
        {"shift": 3, "mirror": False, "contrast": (1, 1)},
        {"shift": 0, "mirror": True, "contrast": (0.5, 1.5)},
        {"shift": 2, "mirror": True, "contrast": (0.7, 1.1), "bend": 2.0},
    ],
)
def test_truth_moves_with_its_page(settings: dict[str, Any]) -> None:
    """It stays black and white, where the page is dark and light: at contours alone they may differ."""
    paper = np.kron(np.random.default_rng(0).random((20, 6, 6)) < 0.5, np.ones((8, 8), bool))
    pages = joined(np.where(paper, 200, 60).astype(np.uint8), np.where(paper, 255, 0).astype(np.uint8))
    made = varied(pages, copies=3, seed=4, pairs=True, **settings)
    page, truth = planes(made)
    assert set(np.unique(truth)) == {0, 255} and made.shape == (60, 48, 48)
    middle = (page.reshape(60, -1).max(1) / 2 + page.reshape(60, -1).min(1) / 2)[:, None, None]
    assert ((page > middle) == (truth > 127)).mean() > 0.99
    assert not (made[:20] == pages).all()
