"""Data sets from files and folders."""

from __future__ import annotations

import gzip
import math
import tracemalloc
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from data_sets import IMAGES, idx_bytes, overlap, write
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from refusals import refused

from restore.data import Dataset, Split, binarise, load, sample_binary
from restore.data.arrays import read_idx
from restore.data.sets.patterns import bars_and_stripes
from restore.errors import InputError, TrainingError, UsageError


def save_pictures(folder: Path, images: np.ndarray) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, pixels in enumerate(images):
        Image.fromarray(pixels).save(folder / f"{number:03}.png")
    return folder


# --- the data set itself ---


def test_binarise_is_strictly_above_the_threshold() -> None:
    images = np.array([[[0, 127], [128, 255]]], dtype=np.uint8)
    result = binarise(images)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [[0, 0, 1, 1]])
    np.testing.assert_array_equal(binarise(images, 0), [[0, 1, 1, 1]])
    for threshold in (-1, 255):
        with pytest.raises(UsageError):
            binarise(images, threshold)


def test_fingerprint_tells_any_change() -> None:
    pixel = IMAGES.copy()
    pixel[3, 2, 1] ^= 1
    variants = [IMAGES, pixel, IMAGES[::-1], IMAGES[:-1], IMAGES.reshape(7, 4, 5)]
    prints = {Dataset(images, "x", "train").fingerprint for images in variants}
    assert len(prints) == len(variants)
    assert Dataset(IMAGES.copy(), "y", "test", ("note",)).fingerprint == Dataset(IMAGES, "x", "train").fingerprint


def test_the_first_images_of_a_set() -> None:
    whole = Dataset(IMAGES, "x", "train", ("note",))
    assert whole.first(0) is whole
    few = whole.first(2)
    assert np.array_equal(few.images, IMAGES[:2]) and few.notes == ("note",) and few.fingerprint != whole.fingerprint
    with pytest.raises(TrainingError):
        whole.first(len(IMAGES) + 1)


# --- idx files ---


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["", "gz"])
def test_idx_and_npy_files_are_read_whatever_their_name(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    np.save(tmp_path / "a.npy", IMAGES)
    for content in (idx_bytes(IMAGES), (tmp_path / "a.npy").read_bytes()):
        np.testing.assert_array_equal(load(str(write(tmp_path / "digits", pack(content)))).images, IMAGES)


BAD_IDX = {
    "no-bytes": b"",
    "text": b"hello, world",
    "header-cut": idx_bytes(IMAGES)[:9],
    "truncated": idx_bytes(IMAGES)[:-1],
    "padded": idx_bytes(IMAGES) + b"x",
    "labels": idx_bytes(np.zeros(9, dtype=np.uint8)),
    "floats": b"\0\0\x0d\3" + bytes(40),
    "gzip-truncated": gzip.compress(idx_bytes(IMAGES))[:-12],
    "gzip-bad-checksum": gzip.compress(idx_bytes(IMAGES))[:-8] + bytes(8),
    "gzip-flipped": gzip.compress(idx_bytes(IMAGES))[:14] + bytes(60),
    "gzip-padded": gzip.compress(idx_bytes(IMAGES) + bytes(10**6)),
}


@pytest.mark.parametrize("name", BAD_IDX)
def test_bad_idx_files_are_refused_by_name(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "x-idx3-ubyte", BAD_IDX[name])
    with refused(InputError, path):
        read_idx(path)


# --- .npy files ---


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (IMAGES, IMAGES),
        (np.asfortranarray(IMAGES), IMAGES),
        (IMAGES > 99, np.where(IMAGES > 99, 255, 0)),
        ((IMAGES > 99).astype(np.uint8), np.where(IMAGES > 99, 255, 0)),
        (IMAGES / 255, IMAGES),
        ((IMAGES / 255).astype(np.float32), IMAGES),
    ],
    ids=["uint8", "fortran", "bool", "uint8-01", "float64", "float32"],
)
def test_npy_types(tmp_path: Path, values: np.ndarray, expected: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", values)
    images = load(str(tmp_path / "a.npy")).images
    assert images.dtype == np.uint8
    np.testing.assert_array_equal(images, expected)


@pytest.mark.parametrize(
    "values",
    [
        IMAGES / 240,
        np.where(IMAGES > 200, np.nan, 0.5),
        IMAGES.astype(np.int64),
        IMAGES[0],
        IMAGES.astype(object),
        np.zeros((2, 3, 3), [("a", "u1")]),
    ],
    ids=["range", "nan", "int64", "one-image", "pickle", "table"],
)
def test_bad_npy_is_refused(tmp_path: Path, values: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", values)
    with refused(InputError, "a.npy"):
        load(str(tmp_path / "a.npy"))


def test_truncated_npy_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IMAGES)
    whole = (tmp_path / "a.npy").read_bytes()
    for length in (6, 8, 60, len(whole) - IMAGES.size + 1, len(whole) - 1):
        with pytest.raises(InputError):
            load(str(write(tmp_path / "b.npy", whole[:length])))


def test_the_only_images_of_a_npz_file_or_those_of_the_split(tmp_path: Path) -> None:
    labels = np.arange(7)
    np.savez(tmp_path / "one.npz", y=labels, x=IMAGES)
    np.savez_compressed(tmp_path / "two.npz", x_train=IMAGES / 255, y_train=labels, x_test=IMAGES[::-1] / 255)
    np.testing.assert_array_equal(load(str(tmp_path / "one.npz")).images, IMAGES)
    np.testing.assert_array_equal(load(str(tmp_path / "two.npz")).images, IMAGES)
    np.testing.assert_array_equal(load(str(tmp_path / "two.npz"), split="test").images, IMAGES[::-1])
    np.savez(tmp_path / "none.npz", labels)
    np.savez(tmp_path / "many.npz", IMAGES, IMAGES)
    for name in ("none.npz", "many.npz"):
        with pytest.raises(InputError):
            load(str(tmp_path / name))


def test_an_array_of_floats_takes_the_memory_of_its_grey_levels(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", np.zeros((12, 1000, 1000)))
    tracemalloc.start()
    load(str(tmp_path / "x.npz"), split="test")
    # 12 million bytes, as much again for what `checked` compares, and a part of 1 million floats; not 96 million.
    assert tracemalloc.get_traced_memory()[1] < 40_000_000
    tracemalloc.stop()


# --- folders of images ---


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    save_pictures(tmp_path / "b", IMAGES[:3])
    save_pictures(tmp_path / "a", IMAGES[3:])
    write(tmp_path / "README.txt", b"not an image")
    write(tmp_path / "a" / "._000.png", b"what a file manager leaves")
    dataset = load(str(tmp_path))
    np.testing.assert_array_equal(dataset.images, np.concatenate([IMAGES[3:], IMAGES[:3]]))
    assert dataset.notes == ()


@pytest.mark.parametrize("split", ["train", "test"])
def test_sources_without_images_are_refused(tmp_path: Path, split: str) -> None:
    np.save(tmp_path / "none.npy", IMAGES[:0])
    write(tmp_path / "none.idx", idx_bytes(IMAGES[:0]))
    (tmp_path / "folder").mkdir()
    np.save(tmp_path / "one.npy", IMAGES[:1])
    for name in ("none.npy", "none.idx", "folder", *["one.npy"] * (split == "train")):
        with pytest.raises(TrainingError):
            load(str(tmp_path / name), split=split)  # type: ignore[arg-type]
    assert len(load(str(tmp_path / "one.npy"), split="test").images) == 1


def test_as_many_corrupt_images_as_allowed_are_left_out(tmp_path: Path) -> None:
    save_pictures(tmp_path, IMAGES)
    write(tmp_path / "bad[x].png", b"not a picture")
    broken = (tmp_path / "000.png").read_bytes()
    write(tmp_path / "cut.png", broken[: len(broken) // 2])
    with pytest.raises(TrainingError):
        load(str(tmp_path), max_bad=1)
    dataset = load(str(tmp_path), max_bad=2)
    np.testing.assert_array_equal(dataset.images, IMAGES)
    assert len(dataset.notes) == 2
    assert "bad[x].png" in dataset.notes[0]
    assert "cut.png" in dataset.notes[1]
    Image.fromarray(IMAGES[0].T).save(tmp_path / "turned.png")
    with pytest.raises(TrainingError):  # of another size
        load(str(tmp_path), max_bad=2)


# --- what a source may be ---


@pytest.mark.parametrize("source", ["", "no/such/file", "x" * 300, "nul\0byte"])
def test_unknown_sources(source: str) -> None:
    with pytest.raises(InputError):
        load(source)


def test_bad_arguments() -> None:
    with pytest.raises(UsageError):
        load("mnist", split="valid")  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        load("mnist", max_bad=-1)


# --- patterns ---


BEST = {"bars-and-stripes": -2.5993, "shifting-bar": -2.1972}


def counts(images: np.ndarray) -> Counter[bytes]:
    return Counter(image.tobytes() for image in images)


def test_bars_and_stripes_are_what_the_recipe_of_the_literature_draws() -> None:
    wanted: Counter[bytes] = Counter()
    for colours in product((0, 255), repeat=3):
        rows = np.repeat(np.array(colours, dtype=np.uint8)[:, None], 3, axis=1)
        wanted.update([rows.tobytes(), np.rot90(rows).tobytes()])
    # Turning by 90 degrees reverses columns that transposing leaves in order: the same pictures altogether.
    assert counts(bars_and_stripes(3)) == wanted
    assert (len(wanted), sorted(wanted.values())) == (14, [1] * 12 + [2] * 2)


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("name", BEST)
def test_computed_sets_are_loaded_by_name_and_have_the_published_bound(name: str, split: Split) -> None:
    dataset = load(name, split=split)
    shares = [count / len(dataset.images) for count in counts(dataset.images).values()]
    assert sum(share * math.log(share) for share in shares) == pytest.approx(BEST[name], abs=1e-4)
    assert set(np.unique(dataset.images)) == {0, 255}


def test_shapes_are_split_without_a_picture_in_both() -> None:
    train, test = load("shapes"), load("shapes", split="test")
    assert (train.images.shape, test.images.shape) == ((4000, 16, 16), (1000, 16, 16))
    for part in (train, test):
        assert set(np.unique(part.images)) == {0, 255}
        assert max(counts(part.images).values()) == 1
    assert overlap(train, test) == 0
    # From the smallest triangle to the largest disc, to within the pixels of their outlines.
    white = (train.images > 0).sum((1, 2))
    assert white.min() == pytest.approx(4**2 * 3 * np.sqrt(3) / 4, abs=6)
    assert white.max() == pytest.approx(7**2 * np.pi, abs=6)
    assert test.images.mean() == pytest.approx(train.images.mean(), rel=0.05)


def test_pixels_are_one_as_often_as_they_are_bright() -> None:
    levels = np.arange(256, dtype=np.uint8)
    count = 20_000
    images = np.broadcast_to(levels, (count, 1, 256))
    drawn = sample_binary(images, 3)
    assert (drawn.shape, drawn.dtype) == ((count, 256), np.float32)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    p = levels / 255
    assert (np.abs(drawn.mean(0) - p) <= 5 * np.sqrt(p * (1 - p) / count)).all()
    # Independent: no pair of pixels is correlated beyond chance.
    inner = drawn[:, 1:-1]
    correlation = np.corrcoef(inner.T)[~np.eye(254, dtype=bool)]
    assert np.abs(correlation).max() < 6 / math.sqrt(count)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(0, 2500))
def test_draws_depend_on_the_seed_and_the_place_only(seed: int, count: int) -> None:
    images = np.random.default_rng(0).integers(0, 256, (2500, 2, 2), dtype=np.uint8)
    whole = sample_binary(images, seed)
    np.testing.assert_array_equal(sample_binary(images[:count], seed), whole[:count])
    assert (sample_binary(images, seed + 1) != whole).any()


def test_draws_never_change() -> None:
    drawn = sample_binary(np.full((1, 4, 8), 128, dtype=np.uint8), 0)
    assert "".join(str(int(value)) for value in drawn[0]) == "01110000000101010011110001000001"
