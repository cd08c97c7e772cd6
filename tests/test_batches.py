"""`restore.batches`: rows of any size, restored as `restore.denoise` does; none is lost, whatever it holds."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import QUICK
from PIL import Image
from processes import HANG

import restore
from restore.api import given
from restore.errors import RestoreWarning, UsageError

RNG = np.random.default_rng(0)
NOISE = RNG.random((28, 28)) < 0.5


def stroke(column: int, height: int = 28) -> np.ndarray:
    values = np.zeros((height, 28), bool)
    values[5:23, column : column + 2] = True
    return values


def column(*images: object) -> np.ndarray:
    """A column as programs give it: an array of images, or of arrays if their shapes differ."""
    made = np.empty(len(images), object)
    made[:] = images
    return made


def test_rows_are_what_denoise_makes_of_each_and_other_columns_stay() -> None:
    images = np.stack([stroke(8), stroke(13)]) ^ (RNG.random((2, 28, 28)) < 0.05)
    batch = restore.batches(QUICK, p=0.05)({"image": images, "path": ["a", "b"]})
    assert batch["path"] == ["a", "b"] and batch["status"] == ["restored"] * 2 and len(batch["notes"]) == 2
    assert batch["image"].dtype == bool and batch["image"].shape == images.shape
    for image, restored in zip(images, batch["image"], strict=True):
        np.testing.assert_array_equal(restored, restore.denoise(image, QUICK, p=0.05))


def test_images_of_any_size_kind_and_colours_go_in_one_batch() -> None:
    levels = np.where(stroke(8, 40), 255, 0).astype(np.uint8)
    colours, floats = np.stack([levels] * 3, axis=-1), levels / 255
    given = column(levels, colours, floats, Image.fromarray(levels))
    batch = restore.batches(QUICK, p=0.05)({"image": given})
    assert batch["image"].dtype == object and "failed" not in batch["status"]
    grey, coloured, real, picture = batch["image"]
    np.testing.assert_array_equal(grey, restore.denoise(levels, QUICK, p=0.05))
    assert coloured.shape == colours.shape and (coloured == grey[..., None]).all()
    assert real.dtype == float and (real * 255 == grey).all() and (np.asarray(picture) == grey).all()


def test_a_column_of_pictures_stays_one() -> None:
    pictures = [Image.fromarray(stroke(8)), Image.fromarray(stroke(13))]
    batch = restore.batches(QUICK, p=0.05)({"image": column(*pictures)})
    assert batch["image"].dtype == object and all(isinstance(image, Image.Image) for image in batch["image"])


def test_a_refused_or_unreadable_image_stays_as_it_is_with_the_reason(tmp_path: Path) -> None:
    """One by one, among others that are restored."""
    bad = [NOISE, "nothing.png", np.zeros((0, 3)), np.full((4, 4), np.nan), None, np.zeros((2, 4, 28, 28))]
    batch = restore.batches(QUICK)({"image": [stroke(13), *bad, stroke(14)]})
    assert batch["status"] == ["clean", "not sure", *["failed"] * 5, "clean"]
    assert all(restored is image for restored, image in zip(batch["image"][2:7], bad[1:], strict=True))
    np.testing.assert_array_equal(batch["image"][1], NOISE)
    assert all(batch["notes"][1:7]) and "nothing.png" in batch["notes"][2]
    with pytest.warns(RestoreWarning):
        _, alone = restore.denoise(NOISE, QUICK, return_solution=True)
    assert alone.reason and alone.reason in batch["notes"][1] and alone.remedy in batch["notes"][1]
    np.testing.assert_array_equal(batch["image"][7], restore.denoise(stroke(14), QUICK))


def test_one_that_fails_among_images_restored_together_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    together = given.restore

    def fault(pictures: list[restore.Restorer], *given: object) -> object:
        if any(picture.values()[0, 0] for picture in pictures):  # type: ignore[attr-defined]
            raise restore.ModelError("no")
        return together(pictures, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(given, "restore", fault)
    marked = stroke(8)
    marked[0, 0] = True
    batch = restore.batches(QUICK, p=0.05)({"image": [stroke(8), marked, stroke(13)]})
    assert batch["status"] == ["restored", "failed", "clean"]


def test_pages_need_a_row_each(tmp_path: Path) -> None:
    pages = [Image.fromarray(stroke(column)) for column in (8, 13)]
    pages[0].save(tmp_path / "book.tif", save_all=True, append_images=pages[1:])
    assert restore.batches(QUICK)({"image": [tmp_path / "book.tif"]})["status"] == ["failed"]


def test_a_list_gives_rows_and_an_empty_batch_nothing() -> None:
    restored = restore.batches(QUICK, p=0.05)
    (row,) = restored(iter([stroke(8)]))
    assert set(row) == {"image", "status", "notes"} and row["status"] == "restored"
    np.testing.assert_array_equal(row["image"], restore.denoise(stroke(8), QUICK, p=0.05))
    assert restored([]) == []
    assert restored({"image": []}) == {"image": [], "status": [], "notes": []}


def test_a_column_that_is_missing_is_named() -> None:
    for how, batch, missing in (
        ({}, {"picture": [NOISE]}, "image"),
        ({"mask": "hole"}, {"image": [NOISE]}, "hole"),
        ({}, {}, "image"),
    ):
        with pytest.raises(UsageError) as caught:
            restore.batches(QUICK, **how)(batch)
        assert caught.value.subject == missing and all(name in str(caught.value) for name in batch)


def test_masks_are_a_column() -> None:
    holes = np.zeros((2, 28, 28), bool)
    holes[:, 12:16, 6:20] = True
    images = np.stack([stroke(8), stroke(13)])
    batch = restore.batches(QUICK, column="scan", mask="hole")({"scan": images & ~holes, "hole": holes})
    np.testing.assert_array_equal(batch["scan"], restore.complete(images & ~holes, holes, QUICK))
    full = restore.batches(QUICK, mask="hole")({"image": images, "hole": np.stack([holes[0], ~holes[1] | holes[1]])})
    assert full["status"] == ["restored", "failed"] and (full["image"][1] == images[1]).all()
    small = restore.batches(QUICK, mask="hole")({"image": images, "hole": [holes[0], holes[1, :4]]})
    assert small["status"] == ["restored", "failed"]


def test_what_is_wrong_with_all_is_said_before_any_batch() -> None:
    with pytest.raises(restore.ModelError):
        restore.batches("no-such-prior")
    for how in ({"p": 2}, {"max_pixels": 0}, {"sigma": 0.1}):
        with pytest.raises(restore.UsageError):
            restore.batches(QUICK, **how)  # type: ignore[arg-type]
    with pytest.raises(restore.UsageError):
        restore.batches("crbm-bp-mnist-flip10", mask="mask")


def test_a_prior_that_cannot_be_opened_fails_no_images_one_by_one() -> None:
    with pytest.raises(restore.UsageError):
        restore.batches("tap-mnist", engine="onnx", solver="mean_field")([stroke(8)])


# Restores with a pickle from stdin, twice, and counts how often a prior is opened.
ELSEWHERE = """
import pickle, sys
content = sys.stdin.buffer.read()
from restore.inference import open
opened, load = [], open.open_engine
open.open_engine = lambda *given: opened.append(given) or load(*given)
for _ in range(3):
    restored, images = pickle.loads(content)
    statuses = restored({"image": images})["status"]
print(len(opened), *statuses, "torch" in sys.modules)
"""


def test_a_process_that_unpickles_it_again_and_again_loads_the_prior_once() -> None:
    content = pickle.dumps((restore.batches(QUICK, p=0.05), [stroke(8), stroke(13)]))
    assert len(content) < 10_000
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], input=content, capture_output=True, timeout=HANG)
    assert done.stdout.decode().split() == ["1", "restored", "clean", "False"], done.stderr
