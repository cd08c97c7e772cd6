"""What becomes of gathered images: one size, patches, levels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets import GREY, as_set, numbered, save
from hypothesis import given, settings
from hypothesis import strategies as st

from restore.channels.damage import Damage, Observed
from restore.data import Gathering, gather
from restore.data.fitting import drawn, patches, resized, spread
from restore.data.gathering import WINDOW_SIDE, WINDOWS, held_out_of
from restore.errors import TrainingError
from restore.images import shrink
from restore.inference.decision.rules import objection
from restore.inference.scans import reading
from restore.status import Status


def mixed(folder: Path) -> dict[str, np.ndarray]:
    """Thirty images of 12x10 pixels, ten of 20x14."""
    large = np.random.default_rng(1).integers(0, 256, (10, 20, 14), dtype=np.uint8)
    return numbered(GREY[:30]) | {f"large/{number}.png": pixels for number, pixels in enumerate(large)}


# --- one size ---


def test_resizing_is_what_restoring_does() -> None:
    image = GREY[0]
    for shape in ((5, 4), (6, 5), (20, 3), (24, 20)):
        np.testing.assert_allclose(resized(image, shape), shrink(image / 255, None, shape)[0] * 255, atol=0.5 + 1e-9)
    np.testing.assert_array_equal(resized(image, (12, 10)), image)
    np.testing.assert_array_equal(resized(np.kron(image, np.ones((3, 7), np.uint8)), (12, 10)), image)


def test_mixed_sizes_become_the_commonest_and_that_is_said(tmp_path: Path) -> None:
    images = mixed(tmp_path)
    gathered = gather(save(tmp_path, images))
    assert gathered.training.images.shape[1:] == gathered.held_out.images.shape[1:] == (12, 10)
    expected = as_set(np.stack([resized(pixels, (12, 10)) for pixels in images.values()]))
    assert as_set(gathered.training.images) | as_set(gathered.held_out.images) == expected
    assert any(note.startswith("10 of 40 images are not of 10x12 pixels") for note in gathered.notes)
    with pytest.raises(TrainingError):
        gather(tmp_path, Gathering(shape=(13, 10), patches=10))


def test_images_too_large_to_learn(tmp_path: Path) -> None:
    large = np.zeros((3, 129, 128), dtype=np.uint8)
    with pytest.raises(TrainingError):
        gather(large, Gathering(shape=(129, 128)))
    large[:, :60] = 255
    large[:, 0, :3] = np.diag([255, 255, 255])
    assert gather(large, Gathering(shape=(128, 128))).training.images.shape == (2, 128, 128)


def test_large_images_are_learnt_in_windows_if_nothing_is_said() -> None:
    halves = np.zeros((3, 41, 50), dtype=np.uint8)
    halves[:, :20] = 255
    halves[:, 20, :3] = np.diag([255, 255, 255])
    gathered = gather(halves)
    assert (gathered.patches, len(gathered.training.images)) == (WINDOWS, WINDOWS)
    assert gathered.training.images.shape[1:] == gathered.held_out.images.shape[1:] == (WINDOW_SIDE, WINDOW_SIDE)
    assert any("larger than 40 pixels are learnt in 1000 windows" in note for note in gathered.notes)
    for wanted in (Gathering(shape=(41, 50)), Gathering(shape=(20, 20))):
        assert gather(halves, wanted).patches == 0
    assert gather(halves[:, :40]).patches == 0
    # One is smaller than a window.
    assert gather([*halves, halves[0, :31]]).patches == 0


# --- patches ---


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(3, 20), st.integers(4, 20)), min_size=1, max_size=8), st.integers(0, 40), st.data()
)
def test_patches_are_parts_of_their_images(sizes: list[tuple[int, int]], count: int, data: st.DataObject) -> None:
    among = np.array(data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)).filter(any)))
    quotas = spread(count, among, 1)
    assert quotas.sum() == count and not quotas[~among].any()
    assert np.ptp(quotas[among]) <= 1
    places = drawn(quotas, np.array(sizes), (3, 4), seed=2)
    assert places.shape == (count, 2)
    for size, corners in zip(sizes, np.split(places, np.cumsum(quotas)[:-1]), strict=True):
        image = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
        for patch, (top, left) in zip(patches(image, corners, (3, 4)), corners, strict=True):
            np.testing.assert_array_equal(patch, image[top : top + 3, left : left + 4])


def test_every_place_is_as_probable_as_any_other() -> None:
    places = drawn(np.array([60_000]), np.array([[5, 4]]), (3, 3), seed=0)
    counts = np.bincount(places[:, 0] * 2 + places[:, 1], minlength=6)
    assert len(counts) == 6
    assert np.abs(counts - 10_000).max() < 5 * np.sqrt(60_000 * 5 / 36)


def test_patches_are_drawn_after_the_split(tmp_path: Path) -> None:
    # Every file has a level of its own.
    flat = {f"{number}.png": np.full((30 + number % 3, 40), 5 * number, dtype=np.uint8) for number in range(50)}
    gathered = gather(save(tmp_path, flat), Gathering(shape=(8, 6), patches=500, levels="grey", held_out=0.2))
    held = held_out_of(sorted(flat), 0.2, 0)
    level = np.array([int(name.removesuffix(".png")) * 5 for name in sorted(flat)])
    assert gathered.training.images.shape == (500, 8, 6)
    assert set(np.unique(gathered.training.images)) == set(level[~held])
    assert set(np.unique(gathered.held_out.images)) <= set(level[held])
    again = gather(tmp_path, Gathering(shape=(8, 6), patches=500, levels="grey", held_out=0.2))
    assert again.training.fingerprint == gathered.training.fingerprint
    other = gather(tmp_path, Gathering(shape=(8, 6), patches=500, levels="grey", held_out=0.2), seed=1)
    assert other.training.fingerprint != gathered.training.fingerprint


# --- levels ---


def test_levels_found_and_asked_for() -> None:
    chance = np.random.default_rng(0)
    ink = chance.random((50, 9, 9)) < 0.3
    soft = (np.where(ink, 240, 10) + chance.integers(-9, 10, ink.shape)).astype(np.uint8)
    gathered = gather(soft)
    assert gathered.levels == "binary" and 19 <= gathered.threshold < 231
    assert any(f"cut at level {gathered.threshold}" in note for note in gathered.notes)
    uniform = (
        np.tile(np.arange(256, dtype=np.uint8).reshape(1, 16, 16), (5, 1, 1))
        + np.arange(5, dtype=np.uint8)[:, None, None]
    )
    assert gather(uniform).levels == "grey"
    assert gather(soft, Gathering(levels="grey")).levels == "grey"
    asked = gather(uniform, Gathering(levels="binary"))
    assert (asked.levels, asked.threshold) == ("binary", gather(uniform).threshold)
    assert not any("taken for" in note for note in asked.notes)


def _no_page() -> Any:
    pytest.fail("a page")


def _read(grey: np.ndarray) -> reading.Reading | Status:
    """An icon in black and white, for which no prior of pages is asked."""
    found = reading.read(Observed(grey, Damage()), None, _no_page, None, lambda share: None, careful=True)
    return objection(found.facts) or found


def test_what_is_learnt_as_black_and_white_is_not_refused_by_restoring() -> None:
    """Icons with areas of a third tone, of few pixels each, and without."""
    icons = np.random.default_rng(0).choice(np.array([0, 255], np.uint8), (20, 8, 8)).repeat(2, 1).repeat(2, 2)
    shaded = icons.copy()
    shaded[:16, 2:5, 3:7] = 150
    for images, levels in ((icons, "binary"), (shaded, "grey")):
        gathered, kept = gather(images), 0
        for image in images:
            kept += isinstance(_read(image / 255), reading.Reading)
        assert gathered.levels == levels and (levels == "grey" or kept == 20)
        assert any("third tone" in note for note in gathered.notes)


def test_a_single_level_teaches_nothing() -> None:
    with pytest.raises(TrainingError):
        gather(np.full((9, 4, 4), 77, dtype=np.uint8))
