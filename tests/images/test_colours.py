"""Colours and tones of pictures."""

from __future__ import annotations

import io

import numpy as np
import pytest
from bad_images import COLOUR, GREY, encoded, quick, read
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from restore.images import as_pil, encode
from restore.images.tones import THIRD, Tones, counted, third_tone

Colour = tuple[int, int, int]


def test_other_colours_are_read_by_luminance_and_untouched_pixels_keep_theirs() -> None:
    picture = read(encoded(COLOUR))
    assert np.abs(picture.levels - COLOUR @ [0.299, 0.587, 0.114]).max() <= 1 and len(picture.notes) == 1
    hidden = np.zeros(GREY.shape, bool)
    hidden[2:5, 3:9] = True
    again = np.asarray(Image.open(io.BytesIO(encode(picture, picture.pixels, format="PNG", hidden=hidden))))
    np.testing.assert_array_equal(again[~hidden], COLOUR[~hidden])
    np.testing.assert_array_equal(again[hidden], np.repeat(picture.levels[hidden][:, None], 3, axis=1))


def test_colours_are_kept_for_who_wants_them() -> None:
    picture = read(encoded(COLOUR), colour=True)
    assert picture.notes == ()
    np.testing.assert_array_equal(picture.levels, COLOUR)
    np.testing.assert_array_equal(np.asarray(as_pil(picture, picture.pixels)), COLOUR)
    assert read(encoded(np.dstack([GREY] * 3)), colour=True).levels.ndim == 2


@given(st.tuples(*[st.integers(0, 255)] * 3), st.tuples(*[st.integers(0, 255)] * 3), st.integers(0, 99))
@quick
def test_two_colours_are_black_and_white_and_come_back(one: Colour, other: Colour, seed: int) -> None:
    ink = np.random.default_rng(seed).random((9, 11, 1)) < 0.3
    image = np.where(ink, one, other).astype(np.uint8)
    picture = read(encoded(image))
    np.testing.assert_array_equal(np.asarray(as_pil(picture, picture.pixels)), image)
    if np.ptp([one, other], axis=1).any() and one != other:
        assert set(np.unique(picture.levels)) <= {0, 255}
        darker = np.array(one) @ [0.299, 0.587, 0.114] < np.array(other) @ [0.299, 0.587, 0.114]
        np.testing.assert_array_equal(picture.levels == 0, ink[..., 0] == darker)


@pytest.mark.parametrize("mode", ["LA", "RGBA"])
def test_a_shape_in_alpha_alone_is_what_is_restored(mode: str) -> None:
    icon = Image.new(mode, (12, 10), (40,) if mode == "LA" else (30, 40, 160))
    icon.putalpha(Image.fromarray(GREY))
    picture = read(encoded(icon))
    np.testing.assert_array_equal(picture.levels, GREY)
    assert picture.alpha is None and len(picture.notes) == 1
    again = as_pil(picture, 1 - picture.pixels)
    assert again.mode == mode
    np.testing.assert_array_equal(np.asarray(again)[..., -1], 255 - GREY)
    np.testing.assert_array_equal(np.asarray(again)[..., 0], np.asarray(icon)[..., 0])


def test_few_colours_are_classes_and_others_are_not() -> None:
    dice = np.random.default_rng(0)
    colours = dice.integers(0, 256, (17, 3), dtype=np.uint8)
    # A picture too large to be looked at pixel by pixel, of which one shows a last colour.
    for count, expected in ((2, False), (3, True), (16, True), (17, False)):
        classes = dice.integers(0, min(count, 16), (600, 500))
        classes[301, 401] = count - 1
        assert read(encoded(colours[classes])).classes == expected
    # Two classes are black and white.
    assert [read(encoded(dice.integers(0, count, (20, 20), np.uint8) * 5)).classes for count in (2, 3)] == [False, True]
    assert not read(encoded(COLOUR)).classes and not read(encoded(GREY)).classes
    assert not read(encoded(colours[classes % 4]), colour=True).classes
    icon = Image.fromarray(np.dstack([np.full((*GREY.shape, 3), 9, np.uint8), GREY]))
    assert not read(encoded(icon)).classes
    # Greys have an order, as in a page of two bits that is stored in colour.
    greys = np.repeat(np.array([0, 62, 126, 190, 254], np.uint8)[dice.integers(0, 5, (60, 50))][..., None], 3, -1)
    assert not read(encoded(greys)).classes
    assert read(encoded(np.where(greys, greys, [0, 0, 9]).astype(np.uint8))).classes
    # Numbers of classes; and a picture of 0 and 1.
    for most, expected in ((2, False), (3, True), (16, True), (17, False)):
        numbers = np.arange(3000, dtype=np.uint8).reshape(60, 50) % most
        assert read(encoded(numbers)).classes == expected


# --- tones ---


def tones(levels: np.ndarray) -> Tones:
    return Tones.of(counted(levels.astype(np.uint8)))


def test_two_levels_are_cut_in_the_middle() -> None:
    for dark, light in ((0, 255), (10, 11), (254, 255), (0, 1)):
        found = tones(np.array([[dark, light, light]]))
        assert dark <= found.threshold < light
        assert found.middle == 0 and found.binary
    assert tones(np.array([0, 255])).threshold == 127


@settings(max_examples=25)
@given(st.dictionaries(st.integers(0, 255), st.integers(1, 10**6), min_size=2, max_size=40))
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

    best = min(map(within, range(min(present), max(present))))
    assert within(Tones.of(counts).threshold) == pytest.approx(best, rel=1e-6, abs=1e-3)


def test_soft_edges_are_no_grey() -> None:
    ink = np.where(np.arange(12) < 6, 60, 200)[None].repeat(10, 0)
    ink[:, 6] = 130
    assert 0 < tones(ink).middle < 0.1 and tones(ink).binary
    assert tones(np.full((3, 3), 7)).binary


def three_tones(grey: float, share: float, speckled: bool = False) -> np.ndarray:
    """A picture of black and white halves and an area of grey, even or alternating by a 255th from pixel to pixel."""
    picture = np.zeros((100, 100))
    picture[:, 50:] = 1
    rows = round(share * 100 * 100 / 40)
    picture[10 : 10 + rows, 5:45] = grey
    if speckled:
        picture[10 : 10 + rows, 5:45] += np.indices((rows, 40)).sum(0) % 2 / 255
    return picture


@pytest.mark.parametrize("turned", [False, True])
def test_a_third_tone_is_even_grey_off_black_and_white_over_a_share_of_the_picture(turned: bool) -> None:
    def toned(grey: float, share: float, speckled: bool = False, hidden: np.ndarray | None = None) -> bool:
        picture = three_tones(grey, share, speckled)
        return third_tone(1 - picture if turned else picture, 0.5, hidden) > THIRD

    # More than a hundredth of the picture, but for the area's first row and column.
    assert toned(0.3, 0.016) and not toned(0.3, 0.008)
    assert toned(0.13, 0.1) and not toned(0.12, 0.1)
    assert toned(0.8, 0.1)
    assert not toned(0.3, 0.2, speckled=True)
    hidden = three_tones(0.3, 0.1) == 0.3
    assert not toned(0.3, 0.1, hidden=hidden) and toned(0.3, 0.1, hidden=~hidden & False)
    ramp = three_tones(0.3, 0.0)
    ramp[10:50, 5:45] = np.linspace(0.2, 0.45, 40)
    assert not any(third_tone(picture, 0.5) > THIRD for picture in (ramp, ramp.T))  # even along one side alone
    # By how much grey is off is in parts of the distance of black and white.
    faint = 0.4 + 0.2 * three_tones(0.3, 0.1)
    assert third_tone(1 - faint if turned else faint, 0.5) > THIRD
