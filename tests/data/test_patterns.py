"""The computed sets, and images binarised by chance."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from data_sets import overlap
from hypothesis import given, settings
from hypothesis import strategies as st

from restore.data import Split, load, sample_binary
from restore.data.sets.patterns import bars_and_stripes

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
