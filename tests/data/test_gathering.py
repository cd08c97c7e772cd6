"""Gathering images of one's own: which are held out, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets import GREY, as_set, numbered, save
from PIL import Image

from restore.data import Gathering, gather, load
from restore.data.gathering import held_out_of
from restore.data.loading import open_stock
from restore.data.truth import planes
from restore.errors import RestoreError, TrainingError, UsageError

# --- which are held out ---


def test_an_image_keeps_its_side_when_others_come() -> None:
    names = [f"{number}.png" for number in range(1000)]
    few, many = held_out_of(names[:500], 0.2, 3), held_out_of(names, 0.2, 3)
    np.testing.assert_array_equal(few, many[:500])
    # Five standard deviations of a binomial.
    assert abs(many.sum() - 200) < 5 * np.sqrt(1000 * 0.2 * 0.8)
    assert (held_out_of(names, 0.2, 4) != many).any()
    # A larger share holds out all that a smaller one does.
    assert not (many & ~held_out_of(names, 0.5, 3)).any()


def test_the_split_never_changes() -> None:
    names = [f"{number}.png" for number in range(40)]
    assert np.flatnonzero(held_out_of(names, 0.1, 0)).tolist() == [0, 17, 23]
    # One is held out at least, and two are not.
    assert [held_out_of(names[:3], share, 0).sum() for share in (0.001, 0.999)] == [1, 1]


def test_a_folder_is_split_by_the_names_in_it(tmp_path: Path) -> None:
    first = gather(save(tmp_path / "first", numbered(GREY)))
    # Made in another order, and elsewhere.
    second = gather(save(tmp_path / "second", dict(reversed(numbered(GREY).items()))))
    np.testing.assert_array_equal(first.training.images, second.training.images)
    np.testing.assert_array_equal(first.held_out.images, second.held_out.images)
    held = held_out_of(list(numbered(GREY)), 0.1, 0)
    np.testing.assert_array_equal(first.training.images, GREY[~held])
    np.testing.assert_array_equal(first.held_out.images, GREY[held])
    assert f"{held.sum()} of 40 images are held out, by their names and seed 0" in first.notes
    other = gather(tmp_path / "first", Gathering(held_out=0.5), seed=1)
    assert not as_set(other.training.images) & as_set(other.held_out.images)
    assert as_set(other.held_out.images) != as_set(first.held_out.images)


def test_rows_are_split_by_their_numbers() -> None:
    gathered = gather(GREY, Gathering(held_out=0.25))
    held = held_out_of([str(row) for row in range(40)], 0.25, 0)
    np.testing.assert_array_equal(gathered.training.images, GREY[~held])
    np.testing.assert_array_equal(gathered.held_out.images, GREY[held])
    for same in (list(GREY), GREY / 255, [image / np.float32(255) for image in GREY]):
        np.testing.assert_array_equal(gather(same, Gathering(held_out=0.25)).training.images, GREY[~held])


def test_what_is_set_aside_for_testing_is_neither_learnt_nor_held_out(tmp_path: Path) -> None:
    save(tmp_path / "train", numbered(GREY[:30]))
    save(tmp_path / "test", numbered(GREY[30:]))
    gathered = gather(tmp_path)
    assert as_set(gathered.training.images) | as_set(gathered.held_out.images) == as_set(GREY[:30])
    assert "only the images in its folder train are used" in gathered.notes
    named = gather("shapes")
    seen = as_set(named.training.images) | as_set(named.held_out.images)
    assert not seen & as_set(load("shapes", split="test").images)


def test_a_name_wins_over_a_path_in_text_and_not_over_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "shapes", numbered(GREY))
    monkeypatch.chdir(tmp_path)
    assert gather("shapes").training.images.shape[1:] == (16, 16)
    assert gather(Path("shapes")).training.images.shape[1:] == (12, 10)


# --- repetitions ---


def test_images_that_are_learnt_from_are_no_held_out_ones_and_that_is_said(tmp_path: Path) -> None:
    held = held_out_of(list(numbered(GREY)), 0.2, 0)
    first, second = np.flatnonzero(held)[:2]
    images = GREY.copy()
    images[[first, second]] = images[np.flatnonzero(~held)[[4, 7]]]
    images[second, 0, 0] ^= 1
    gathered = gather(save(tmp_path, numbered(images)), Gathering(held_out=0.2))
    assert as_set(gathered.held_out.images) == as_set(images[held]) - as_set(images[[first]])
    np.testing.assert_array_equal(gathered.training.images, images[~held])
    assert f"1 of {held.sum()} held-out images are also learnt from and are left out" in gathered.notes
    # No patch is cut out of it either; these are as large as the images.
    parts = gather(tmp_path, Gathering(held_out=0.2, shape=GREY.shape[1:], patches=100))
    assert as_set(parts.held_out.images) == as_set(gathered.held_out.images)


def test_if_all_held_out_images_are_learnt_from_they_stay_and_that_is_said() -> None:
    gathered = gather(np.concatenate([GREY[:2]] * 10))
    assert len(gathered.held_out.images) >= 1
    assert any("no score tells how well new images are restored" in note for note in gathered.notes)


# --- bad sources ---


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_images_are_refused(tmp_path: Path, count: int) -> None:
    (tmp_path / "folder").mkdir()
    save(tmp_path / "folder", numbered(GREY[:count]))
    np.save(tmp_path / "a.npy", GREY[:count])
    for source in (tmp_path / "folder", tmp_path / "a.npy", GREY[:count], list(GREY[:count])):
        with pytest.raises(TrainingError) as caught:
            gather(source)  # type: ignore[arg-type]
        assert caught.value.exit_code == 7
    assert len(gather(GREY[:3]).training.images) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"shape": (0, 3)},
        {"levels": "colour"},
        {"patches": 9},
        {"patches": -1, "shape": (2, 2)},
        {"patches": 1, "shape": (2, 2)},
        {"held_out": 0.0},
        {"held_out": 1.0},
        {"held_out": float("nan")},
    ],
)
def test_settings_out_of_range(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Gathering(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"seed": -1}, {"gathering": Gathering(levels="")}])
def test_what_cannot_be_gathered(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        gather(GREY, **options)


@pytest.mark.parametrize(
    "images",
    [
        GREY[0],
        GREY.astype(np.int64),
        GREY / 200,
        np.where(GREY > 9, np.nan, 0.5),
        [GREY[0], GREY[1] / 255, GREY[2]],
        [GREY] * 3,
    ],
    ids=["one", "int64", "range", "nan", "two-types", "batches"],
)
def test_arrays_that_are_no_images(images: object) -> None:
    with pytest.raises(RestoreError) as caught:
        gather(images)  # type: ignore[arg-type]
    assert caught.value.exit_code == 3 and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "gathering",
    [
        Gathering("pairs", (64, 64)),
        Gathering("pairs", (32, 32)),
        Gathering("pairs", (48, 40)),
        Gathering("pairs", (32, 32), patches=20),
    ],
)
def test_pages_of_another_size_keep_their_truth(gathering: Gathering, tmp_path: Path) -> None:
    for number in range(6):
        paper = np.kron(np.random.default_rng(number).random((8, 8)) < 0.5, np.ones((8, 8), bool))
        Image.fromarray(np.where(paper, 190, 60).astype(np.uint8)).save(tmp_path / f"{number}.png")
        Image.fromarray(paper).save(tmp_path / f"{number}.truth.png")
    page, truth = planes(gather(tmp_path, gathering).training.images)
    assert ((page > 125) == (truth > 127)).mean() > 0.98


def test_hidden_folders_are_not_learnt_from(tmp_path: Path) -> None:
    for name in ("a.png", "b.png", "c.png", "in/d.png", ".thumbs/a.png", "in/.ipynb_checkpoints/d.png", ".e.png"):
        (tmp_path / "x" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(GREY[0]).save(tmp_path / "x" / name)
    archive = Path(shutil.make_archive(str(tmp_path / "x"), "zip", tmp_path / "x"))
    for source in (tmp_path / "x", archive):
        assert open_stock(source).names == ("a.png", "b.png", "c.png", "in/d.png")


def test_photographs_with_several_pictures_are_learnt_from(tmp_path: Path) -> None:
    """Of an MPO, as telephones write them, the first one is it."""
    for number in range(3):
        first, other = (Image.fromarray(np.full((16, 16), level + number, np.uint8)) for level in (40, 200))
        first.save(tmp_path / f"{number}.{'jpg' if number else 'mpo'}", "MPO", save_all=True, append_images=[other])
    stock = open_stock(tmp_path)
    assert [int(image.mean()) for image in stock.images] == [40, 41, 42] and "first" in " ".join(stock.notes)
