"""Gathering a user's images: split by name, one size, patches, near-duplicates, levels (rows 45-47 and 56)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from cbcl_data import cbcl, needs_cbcl
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from silhouette_data import needs_silhouettes, silhouettes

from restore.data import gather, load, stock
from restore.data.fitting import averaged, commonest, cropped, drawn, resized, spread
from restore.data.holding_out import held_out_of
from restore.data.levels import counted_levels, extremes, on_light_ground, threshold_of
from restore.data.near_duplicates import nearly_same, thumbnails
from restore.data.shapes import shapes
from restore.errors import InputError, RestoreError, TrainingError, UsageError
from restore.images import shrink

GREY = np.random.default_rng(0).integers(0, 256, (40, 12, 10), dtype=np.uint8)


def save(folder: Path, images: dict[str, np.ndarray]) -> Path:
    for name, pixels in images.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path, "PNG")
    return folder


def numbered(images: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{number:04}.png": pixels for number, pixels in enumerate(images)}


def as_set(images: np.ndarray) -> set[bytes]:
    return {image.tobytes() for image in images}


# --- which are held out ---


@settings(deadline=None, max_examples=30)
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
    other = gather(tmp_path / "first", seed=1, held_out=0.5)
    assert not as_set(other.training.images) & as_set(other.held_out.images)
    assert as_set(other.held_out.images) != as_set(first.held_out.images)


def test_rows_are_split_by_their_numbers() -> None:
    found = gather(GREY, held_out=0.25)
    held = held_out_of([str(row) for row in range(40)], 0.25, 0)
    np.testing.assert_array_equal(found.training.images, GREY[~held])
    np.testing.assert_array_equal(found.held_out.images, GREY[held])
    for same in (list(GREY), GREY / 255, [image / np.float32(255) for image in GREY]):
        np.testing.assert_array_equal(gather(same, held_out=0.25).training.images, GREY[~held])


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


# --- one size ---


@settings(deadline=None, max_examples=50)
@given(st.tuples(*[st.integers(1, 30)] * 4), st.integers(1, 3), st.integers(0, 2**32))
def test_resizing_is_what_restoring_does(sizes: tuple[int, int, int, int], count: int, seed: int) -> None:
    height, width, *shape = sizes
    images = np.random.default_rng(seed).integers(0, 256, (count, height, width), dtype=np.uint8)
    found = averaged(images, tuple(shape))
    for image, small in zip(images, found, strict=True):
        np.testing.assert_allclose(small / 255, shrink(image / 255, None, tuple(shape))[0], atol=1e-5)
    assert resized(images, tuple(shape)).shape == (count, *shape)
    np.testing.assert_array_equal(resized(images, (height, width)), images)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 5), st.integers(1, 5))
def test_the_middle_is_as_far_from_either_border(more: int, wide: int, rows: int, columns: int) -> None:
    image = np.arange((rows + more) * (columns + wide), dtype=np.uint8).reshape(1, rows + more, columns + wide)
    found = cropped(image, (rows, columns))
    assert found.shape == (1, rows, columns)
    assert found[0, 0, 0] == image[0, more // 2, wide // 2]
    assert found[0, -1, -1] == image[0, more // 2 + rows - 1, wide // 2 + columns - 1]


def test_the_commonest_size() -> None:
    assert commonest(np.array([[9, 9], [3, 4], [9, 9]])) == (9, 9)
    assert commonest(np.array([[9, 9], [3, 4], [4, 3], [4, 3], [3, 4]])) == (3, 4)


def mixed(folder: Path) -> dict[str, np.ndarray]:
    """Thirty images of 12x10 pixels, ten of 20x14."""
    large = np.random.default_rng(1).integers(0, 256, (10, 20, 14), dtype=np.uint8)
    return numbered(GREY[:30]) | {f"large/{number}.png": pixels for number, pixels in enumerate(large)}


@pytest.mark.parametrize("fit", ["crop", "resize"])
def test_row_47_mixed_sizes_become_the_commonest_and_that_is_said(tmp_path: Path, fit: str) -> None:
    images = mixed(tmp_path)
    found = gather(save(tmp_path, images), fit=fit)  # type: ignore[arg-type]
    assert found.training.images.shape[1:] == found.held_out.images.shape[1:] == (12, 10)
    change = cropped if fit == "crop" else resized
    expected = as_set(np.stack([change(pixels[None], (12, 10))[0] for pixels in images.values()]))
    assert as_set(found.training.images) | as_set(found.held_out.images) == expected
    done = "cut down to its middle" if fit == "crop" else "resized to it"
    assert f"10 of 40 images are not of 12x10 pixels, the most common size, and are {done}" in found.notes


def test_row_47_mixed_sizes_are_an_error_where_asked(tmp_path: Path) -> None:
    save(tmp_path, mixed(tmp_path))
    with pytest.raises(TrainingError, match=r"10 of 40 images are not of 12x10 .*\(20x14\); use --fit crop"):
        gather(tmp_path, fit="error")
    with pytest.raises(TrainingError, match=r"40 of 40 images are not of 9x9 .*\(12x10, 20x14\)"):
        gather(tmp_path, fit="error", shape=(9, 9))
    assert gather(GREY, fit="error").training.images.shape[1:] == (12, 10)


def test_row_47_images_too_small_to_cut_are_named(tmp_path: Path) -> None:
    save(tmp_path, mixed(tmp_path))
    with pytest.raises(
        TrainingError, match=r"30 images are smaller than 13x10 \(0000\.png.*and 25 more\).*--fit resize"
    ):
        gather(tmp_path, fit="crop", shape=(13, 10))
    assert gather(tmp_path, fit="resize", shape=(13, 10)).training.images.shape[1:] == (13, 10)


def test_arrays_of_several_sizes() -> None:
    arrays = [np.full((size, size), size / 20) for size in range(5, 15)]
    found = gather(arrays, shape=(6, 6), levels="grey")
    assert set(np.unique(found.training.images)) | set(np.unique(found.held_out.images)) == {
        round(size / 20 * 255) for size in range(5, 15)
    }


def test_images_too_large_to_learn(tmp_path: Path) -> None:
    large = np.zeros((3, 129, 128), dtype=np.uint8)
    with pytest.raises(TrainingError, match=r"129x128 pixels are too large .*--shape 28x28.*--patches"):
        gather(large)
    large[:, :60] = 255
    large[:, 0, :3] = np.diag([255, 255, 255])
    assert gather(large, shape=(128, 128), fit="crop").training.images.shape == (2, 128, 128)


# --- patches ---


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.integers(3, 20), st.integers(4, 20)), min_size=1, max_size=8), st.integers(0, 40), st.data()
)
def test_patches_are_parts_of_their_images(sizes: list[tuple[int, int]], count: int, data: st.DataObject) -> None:
    among = np.array(data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)).filter(any)))
    quotas = spread(count, among, 1)
    assert quotas.sum() == count and not quotas[~among].any()
    assert np.ptp(quotas[among]) <= 1
    places = drawn(quotas, np.array(sizes), (3, 4), seed=2)
    np.testing.assert_array_equal(np.bincount(places.image, minlength=len(sizes)), quotas)
    images = {number: np.random.default_rng(number).integers(0, 256, size) for number, size in enumerate(sizes)}
    for number, image in images.items():
        which, cut = places.cut((np.array([number]), image[None].astype(np.uint8)))
        np.testing.assert_array_equal(which, np.flatnonzero(places.image == number))
        for patch, top, left in zip(cut, places.top[which], places.left[which], strict=True):
            np.testing.assert_array_equal(patch, image[top : top + 3, left : left + 4])


def test_a_batch_gives_the_patches_that_its_images_give_one_by_one() -> None:
    places = drawn(np.full(40, 3), np.full((40, 2), (12, 10)), (5, 5), seed=0)
    order = np.random.default_rng(0).permutation(40)[:25]
    which, cut = places.cut((order, GREY[order]))
    assert len(which) == 75
    for row, patch in zip(which, cut, strict=True):
        one, single = places.cut((places.image[row : row + 1], GREY[places.image[row : row + 1]]))
        np.testing.assert_array_equal(single[one == row][0], patch)


def test_every_place_is_as_probable_as_any_other() -> None:
    places = drawn(np.array([60_000]), np.array([[5, 4]]), (3, 3), seed=0)
    counts = np.bincount(places.top * 2 + places.left, minlength=6)
    assert len(counts) == 6
    assert np.abs(counts - 10_000).max() < 5 * np.sqrt(60_000 * 5 / 36)


def test_patches_are_drawn_after_the_split(tmp_path: Path) -> None:
    # Every file has a level of its own.
    flat = {f"{number}.png": np.full((30 + number % 3, 40), 5 * number, dtype=np.uint8) for number in range(50)}
    found = gather(save(tmp_path, flat), shape=(8, 6), patches=500, levels="grey", held_out=0.2)
    held = held_out_of(sorted(flat), 0.2, 0)
    level = np.array([int(name.removesuffix(".png")) * 5 for name in sorted(flat)])
    assert found.training.images.shape == (500, 8, 6)
    assert set(np.unique(found.training.images)) == set(level[~held])
    assert set(np.unique(found.held_out.images)) <= set(level[held])
    again = gather(tmp_path, shape=(8, 6), patches=500, levels="grey", held_out=0.2)
    assert again.training.fingerprint == found.training.fingerprint
    other = gather(tmp_path, shape=(8, 6), patches=500, levels="grey", held_out=0.2, seed=1)
    assert other.training.fingerprint != found.training.fingerprint


def test_patches_of_images_too_small_for_them(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"40 images are smaller than 13x4 .*smaller --shape$"):
        gather(GREY, shape=(13, 4), patches=10)


def test_images_that_memory_does_not_hold_are_read_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, mixed(tmp_path))
    asked = [{}, {"shape": (5, 4), "patches": 200}]
    held = [gather(tmp_path, **options) for options in asked]  # type: ignore[arg-type]
    for kept in (0, 700):
        monkeypatch.setattr(stock, "_KEPT", kept)
        monkeypatch.setattr(stock, "_TOGETHER", 500)
        for options, expected in zip(asked, held, strict=True):
            found = gather(tmp_path, **options)  # type: ignore[arg-type]
            assert found.training.fingerprint == expected.training.fingerprint
            assert found.held_out.fingerprint == expected.held_out.fingerprint
            assert found.notes == expected.notes


def test_a_file_that_changes_meanwhile_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, numbered(GREY[:5]))
    monkeypatch.setattr(stock, "_KEPT", 0)
    opened = stock.of_files(stock_files(tmp_path), 0)
    Image.fromarray(GREY[0].T).save(tmp_path / "0003.png")
    with pytest.raises(InputError, match=r"0003\.png: changed while it was read"):
        list(opened.batches())


def stock_files(folder: Path) -> stock.PictureFiles:
    from restore.data.pictures import in_folder

    return in_folder(folder, "train")


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
    found = gather(save(tmp_path, numbered(images)), held_out=0.2)
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
    found = gather(save(tmp_path, images), held_out=0.2, shape=(4, 4), patches=400)
    assert any(
        f"1 of {sum(held.values())} held-out" in note and f"{copy} is like {original}" in note for note in found.notes
    )


def test_row_47_if_all_held_out_images_are_copies_they_stay_and_that_is_said() -> None:
    found = gather(np.concatenate([GREY[:2]] * 10))
    assert len(found.held_out.images) >= 1
    assert any("no score tells how well new images are restored" in note for note in found.notes)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 12), st.integers(2, 30), st.integers(0, 2**32), st.integers(1, 50))
def test_the_nearest_is_found_in_blocks_as_in_one(held: int, known: int, seed: int, together: int) -> None:
    from restore.data import near_duplicates

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


# --- levels ---


def test_two_levels_are_cut_in_the_middle() -> None:
    for dark, bright in ((0, 255), (10, 11), (254, 255), (0, 1)):
        counts = counted_levels(np.array([[dark, bright, bright]], dtype=np.uint8))
        threshold = threshold_of(counts)
        assert dark <= threshold < bright and 0 <= threshold <= 254
        assert extremes(counts) == ("binary", 1.0, (dark, bright))
    assert threshold_of(counted_levels(np.array([[0, 255]], dtype=np.uint8))) == 127


@settings(deadline=None, max_examples=25)
@given(st.dictionaries(st.integers(0, 255), st.integers(1, 10**6), min_size=3, max_size=40))
def test_the_threshold_is_the_one_that_parts_the_levels_best(present: dict[int, int]) -> None:
    counts = np.zeros(256, dtype=np.int64)
    counts[list(present)] = list(present.values())
    levels = np.arange(256)

    def within(threshold: int) -> float:
        parts = (levels <= threshold, levels > threshold)
        return sum(
            float((counts[part] * (levels[part] - np.average(levels[part], weights=counts[part])) ** 2).sum())
            for part in parts
        )

    low, high = min(present), max(present)
    best = min(map(within, range(low, high)))
    assert within(threshold_of(counts)) == pytest.approx(best, rel=1e-6, abs=1e-3)


def test_levels_found_and_asked_for() -> None:
    chance = np.random.default_rng(0)
    ink = chance.random((50, 9, 9)) < 0.3
    soft = (np.where(ink, 240, 10) + chance.integers(-9, 10, ink.shape)).astype(np.uint8)
    found = gather(soft)
    assert found.levels == "binary" and 19 <= found.threshold < 231
    assert any(f"cut at level {found.threshold}" in note and "near black (level 10)" in note for note in found.notes)
    uniform = (
        np.tile(np.arange(256, dtype=np.uint8).reshape(1, 16, 16), (5, 1, 1))
        + np.arange(5, dtype=np.uint8)[:, None, None]
    )
    assert extremes(counted_levels(uniform))[1] == pytest.approx(0.75, abs=0.01)
    assert gather(uniform).levels == "grey"
    assert gather(soft, levels="grey").levels == "grey"
    asked = gather(uniform, levels="binary")
    assert (asked.levels, asked.threshold) == ("binary", gather(uniform).threshold)
    assert not any("taken for" in note for note in asked.notes)


def test_polarity_is_said_and_not_changed() -> None:
    images = shapes(100, 1)
    says = "dark shapes on a light ground"
    assert not any(says in note for note in gather(images).notes)
    inverted = gather(255 - images)
    assert any(says in note for note in inverted.notes)
    np.testing.assert_array_equal(inverted.training.images, 255 - gather(images).training.images)
    assert on_light_ground(255 - images, 127) and not on_light_ground(images, 127)


def test_row_47_a_single_level_teaches_nothing() -> None:
    with pytest.raises(TrainingError, match="the same grey level"):
        gather(np.full((9, 4, 4), 77, dtype=np.uint8))


def test_row_47_constant_images_pixels_and_duplicates_are_noted(tmp_path: Path) -> None:
    images = GREY.copy()
    learnt = np.flatnonzero(~held_out_of([str(row) for row in range(40)], 0.1, 0))
    images[learnt[2]], images[learnt[5]] = 9, images[learnt[6]]
    images[:, 0, 0] = 9
    notes = gather(images).notes
    assert f"1 of {len(learnt)} images have the same value in every pixel" in notes
    assert f"1 of {len(learnt)} images repeat an earlier one" in notes
    assert "1 of 120 pixels have the same value in every image" in notes


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
        found = gather(tmp_path, seed=seed, held_out=0.5)
        assert (255 - GREY[0]).tobytes() in as_set(found.training.images) | as_set(found.held_out.images)
    # And where it is said.
    (tmp_path / "0000.png").write_bytes((tmp_path / os.fsdecode(name)).read_bytes())
    said = [note for seed in range(3) for note in gather(tmp_path, seed=seed, held_out=0.5).notes]
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
        gather(GREY, **options)  # type: ignore[arg-type]


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
    assert gather(tmp_path, shape=(14, 14)).levels == "binary"


@needs_cbcl
def test_faces_in_a_folder_are_grey(tmp_path: Path) -> None:
    images = cbcl("train").images[:300]
    found = gather(save(tmp_path, numbered(images)))
    assert found.levels == "grey"
    assert found.training.images.shape[1:] == (19, 19)
    assert any("taken for grey" in note for note in found.notes)
    assert not as_set(found.training.images) & as_set(found.held_out.images)
