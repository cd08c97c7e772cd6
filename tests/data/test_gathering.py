"""Gathering images of one's own: which are held out, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from cbcl_data import cbcl, needs_cbcl
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import GREY, as_set, mixed, numbered, save
from PIL import Image
from silhouette_data import needs_silhouettes, silhouettes

from restore.data import Wanted, gather, load
from restore.data.gathering.holding_out import held_out_of
from restore.data.gathering.near_duplicates import nearly_same, thumbnails
from restore.data.gathering.stock import of_arrays, quartered
from restore.errors import RestoreError, TrainingError, UsageError

# --- which are held out ---


@pytest.mark.thorough
@settings(max_examples=30)
@given(
    st.sets(st.text(max_size=4), min_size=3, max_size=20),
    st.floats(0.01, 0.99),
    st.integers(0, 2**40),
    st.randoms(use_true_random=False),
)
def test_the_split_depends_on_name_and_seed_alone(names: set[str], share: float, seed: int, chance: object) -> None:
    ordered = sorted(names)
    held = dict(zip(ordered, held_out_of(ordered, share, seed), strict=True))
    assert 1 <= sum(held.values()) <= len(names) - 2
    chance.shuffle(ordered)  # type: ignore[attr-defined]
    assert dict(zip(ordered, held_out_of(ordered, share, seed), strict=True)) == held


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
    other = gather(tmp_path / "first", Wanted(seed=1, held_out=0.5))
    assert not as_set(other.training.images) & as_set(other.held_out.images)
    assert as_set(other.held_out.images) != as_set(first.held_out.images)


def test_rows_are_split_by_their_numbers() -> None:
    found = gather(GREY, Wanted(held_out=0.25))
    held = held_out_of([str(row) for row in range(40)], 0.25, 0)
    np.testing.assert_array_equal(found.training.images, GREY[~held])
    np.testing.assert_array_equal(found.held_out.images, GREY[held])
    for same in (list(GREY), GREY / 255, [image / np.float32(255) for image in GREY]):
        np.testing.assert_array_equal(gather(same, Wanted(held_out=0.25)).training.images, GREY[~held])


def test_what_is_set_aside_for_testing_is_neither_learnt_nor_held_out(tmp_path: Path) -> None:
    save(tmp_path / "train", numbered(GREY[:30]))
    save(tmp_path / "test", numbered(GREY[30:]))
    found = gather(tmp_path)
    assert as_set(found.training.images) | as_set(found.held_out.images) == as_set(GREY[:30])
    assert "only the images in its folder train are used" in found.notes
    named = gather("shapes")
    seen = as_set(named.training.images) | as_set(named.held_out.images)
    assert not seen & as_set(load("shapes", split="test").images)


def test_a_name_wins_over_a_path_in_text_and_not_over_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "shapes", numbered(GREY))
    monkeypatch.chdir(tmp_path)
    assert gather("shapes").training.images.shape[1:] == (16, 16)
    assert gather(Path("shapes")).training.images.shape[1:] == (12, 10)


# --- near-duplicates ---


def test_row_47_near_duplicates_across_the_split_are_left_out_and_reported(tmp_path: Path) -> None:
    names = list(numbered(GREY))
    held = held_out_of(names, 0.2, 0)
    first, second, third = np.flatnonzero(held)[:3]
    learnt = np.flatnonzero(~held)
    images = GREY.copy()
    images[first] = images[learnt[4]]
    noise = np.random.default_rng(1).integers(-4, 5, images.shape[1:])
    images[second] = (images[learnt[7]] + noise).clip(0, 255)
    found = gather(save(tmp_path, numbered(images)), Wanted(held_out=0.2))
    assert as_set(found.held_out.images) == as_set(images[held]) - as_set(images[[first, second]])
    np.testing.assert_array_equal(found.training.images, images[~held])
    pairs = f"{names[first]} is like {names[learnt[4]]}, {names[second]} is like {names[learnt[7]]}"
    assert any(f"2 of {held.sum()} held-out" in note and pairs in note for note in found.notes)
    assert as_set(images[[third]]) <= as_set(found.held_out.images)


def test_row_47_a_copy_of_another_size_is_found_before_patches_are_drawn(tmp_path: Path) -> None:
    images = mixed(tmp_path)
    held = dict(zip(sorted(images), held_out_of(sorted(images), 0.2, 0), strict=True))
    copy = next(name for name, is_held in held.items() if is_held and "large" not in name)
    original = next(name for name, is_held in held.items() if not is_held and "large" not in name)
    images[copy] = np.kron(images[original], np.ones((2, 2), dtype=np.uint8))
    images[copy][0, 0] ^= 1
    found = gather(save(tmp_path, images), Wanted(held_out=0.2, shape=(4, 4), patches=400))
    assert any(
        f"1 of {sum(held.values())} held-out" in note and f"{copy} is like {original}" in note for note in found.notes
    )


def test_row_47_if_all_held_out_images_are_copies_they_stay_and_that_is_said() -> None:
    found = gather(np.concatenate([GREY[:2]] * 10))
    assert len(found.held_out.images) >= 1
    assert any("no score tells how well new images are restored" in note for note in found.notes)


@settings(max_examples=20)
@given(st.integers(1, 12), st.integers(2, 30), st.integers(0, 2**32), st.integers(1, 50))
def test_the_nearest_is_found_in_blocks_as_in_one(held: int, known: int, seed: int, together: int) -> None:
    from restore.data.gathering import near_duplicates

    chance = np.random.default_rng(seed)
    looks = chance.random((known, 144), dtype=np.float32)
    asked = np.concatenate([looks[chance.integers(0, known, held)] + np.float32(0.01), chance.random((held, 144))])
    asked = asked.astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_duplicates, "_TOGETHER", together)
        found = nearly_same(asked, looks)
    difference = ((asked[:, None].astype(np.float64) - looks) ** 2).sum(2)
    bound = 0.005 * 2 * looks.astype(np.float64).var(0).sum()
    expected = np.where(difference.min(1) <= bound, difference.argmin(1), -1)
    # Where float32 cannot tell on which side of the bound it is, either is right.
    clear = np.abs(difference.min(1) - bound) > 1e-3
    np.testing.assert_array_equal(found[clear], expected[clear])
    assert (found[:held] >= 0).any() or bound < 0.02


def test_thumbnails_do_not_depend_on_the_size() -> None:
    large = np.kron(GREY[:3], np.ones((1, 3, 3), dtype=np.uint8))
    np.testing.assert_allclose(thumbnails(large), thumbnails(GREY[:3]), atol=1e-6)


# --- bad sources ---


@pytest.mark.parametrize(
    ("count", "says"), [(0, "the data set is empty"), (1, "one image is not enough"), (2, "two images are not enough")]
)
def test_row_45_too_few(tmp_path: Path, count: int, says: str) -> None:
    (tmp_path / "folder").mkdir()
    save(tmp_path / "folder", numbered(GREY[:count]))
    np.save(tmp_path / "a.npy", GREY[:count])
    for source in (tmp_path / "folder", tmp_path / "a.npy", GREY[:count], list(GREY[:count])):
        with pytest.raises(TrainingError, match=says) as caught:
            gather(source)  # type: ignore[arg-type]
        assert caught.value.exit_code == 7
    assert len(gather(GREY[:3]).training.images) == 2


def test_one_large_image_is_learnt_in_quarters(tmp_path: Path) -> None:
    """Some of it can then be held out."""
    page = np.random.default_rng(0).integers(0, 2, (101, 120), dtype=np.uint8) * 255
    found = gather([page])
    assert len(found.training.images) == 1000 and any("each is cut into four" in note for note in found.notes)
    parts = quartered(of_arrays([page, page.T], "it"))
    cut = [page] * 8
    for numbers, images in parts.batches():
        for number, image in zip(numbers, images, strict=True):
            cut[number] = image
    assert [list(image.shape) for image in cut] == parts.sizes.tolist()
    np.testing.assert_array_equal(np.block([cut[0:2], cut[2:4]]), page)
    np.testing.assert_array_equal(np.block([cut[4:6], cut[6:8]]), page.T)
    with pytest.raises(TrainingError, match="one image is not enough"):
        gather([page], Wanted(shape=(28, 28)))


def test_row_45_no_pixels() -> None:
    with pytest.raises(TrainingError, match="the data set is empty"):
        gather(np.empty((5, 0, 3), dtype=np.uint8))


def test_row_45_all_corrupt(tmp_path: Path) -> None:
    for name in ("a.png", "b.png", "c.png"):
        (tmp_path / name).write_bytes(b"hello")
    with pytest.raises(TrainingError, match="none of its 3 images can be used") as caught:
        gather(tmp_path, max_bad=9)
    assert caught.value.exit_code == 7


def test_row_46_some_corrupt(tmp_path: Path) -> None:
    save(tmp_path, numbered(GREY))
    (tmp_path / "bad[x].png").write_bytes(b"hello")
    Image.fromarray(GREY[:3].transpose(1, 2, 0).copy()).save(tmp_path / "colour.png")
    with pytest.raises(TrainingError, match=r"2 of 42 images .*bad\[x\]\.png, colour\.png.*--max-bad 2"):
        gather(tmp_path, max_bad=1)
    found = gather(tmp_path, max_bad=2)
    held = held_out_of(list(numbered(GREY)), 0.1, 0)
    np.testing.assert_array_equal(found.training.images, GREY[~held])
    skipped = [note for note in found.notes if note.startswith("skipped ")]
    assert len(skipped) == 2 and "bad[x].png" in skipped[0] and "colour" in skipped[1]


@pytest.mark.parametrize("name", ["[x].png", "a\nb.png", "-a.png", b"\xff.png", "a" * 251 + ".png"], ids=ascii)
def test_row_56_odd_names(tmp_path: Path, name: str | bytes) -> None:
    save(tmp_path, numbered(GREY))
    try:
        with open(os.path.join(os.fsencode(tmp_path), os.fsencode(name)), "wb") as stream:  # noqa: PTH118, PTH123
            Image.fromarray(255 - GREY[0]).save(stream, "PNG")
    except OSError:
        pytest.skip("this file system has no such names")
    for seed in range(3):
        found = gather(tmp_path, Wanted(seed=seed, held_out=0.5))
        assert (255 - GREY[0]).tobytes() in as_set(found.training.images) | as_set(found.held_out.images)
    # And where it is said.
    (tmp_path / "0000.png").write_bytes((tmp_path / os.fsdecode(name)).read_bytes())
    said = [note for seed in range(3) for note in gather(tmp_path, Wanted(seed=seed, held_out=0.5)).notes]
    assert all(note.isprintable() for note in said)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"shape": (0, 3)}, "0x3 has no pixels"),
        ({"fit": "tile"}, "fit must be one of error, crop, resize"),
        ({"levels": "colour"}, "levels must be one of auto, binary, grey"),
        ({"patches": 9}, "patches need a shape"),
        ({"patches": -1, "shape": (2, 2)}, "patches must be 0, or 2 and more"),
        ({"patches": 1, "shape": (2, 2)}, "patches must be 0, or 2 and more"),
        ({"held_out": 0.0}, "between 0 and 1"),
        ({"held_out": 1.0}, "between 0 and 1"),
        ({"held_out": float("nan")}, "between 0 and 1"),
        ({"seed": -1}, "seed"),
    ],
)
def test_settings_out_of_range(options: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        gather(GREY, Wanted(**options))  # type: ignore[arg-type]


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


# --- real images ---


@needs_silhouettes
def test_silhouettes_in_a_folder_are_binary(tmp_path: Path) -> None:
    images = silhouettes("train").images[:300]
    found = gather(save(tmp_path, numbered(images)))
    assert (found.levels, found.threshold) == ("binary", 127)
    assert any("dark shapes on a light ground" in note for note in found.notes)
    assert 15 <= len(found.held_out.images) <= 45
    assert not as_set(found.training.images) & as_set(found.held_out.images)
    # At half the size they are still black and white.
    assert gather(tmp_path, Wanted(shape=(14, 14))).levels == "binary"


@needs_cbcl
def test_faces_in_a_folder_are_grey(tmp_path: Path) -> None:
    images = cbcl("train").images[:300]
    found = gather(save(tmp_path, numbered(images)))
    assert found.levels == "grey"
    assert found.training.images.shape[1:] == (19, 19)
    assert any("taken for grey" in note for note in found.notes)
    assert not as_set(found.training.images) & as_set(found.held_out.images)
