"""Pictures in colour: read as grey levels with a note, or kept, and given back in their colours."""

from __future__ import annotations

import io

import numpy as np
import pytest
from bad_images import COLOUR, GREY, encoded, quick, read
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from restore.images import as_pil, encode

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
    assert not read(encoded(COLOUR)).classes and not read(encoded(GREY)).classes
    assert not read(encoded(colours[classes % 4]), colour=True).classes
    icon = Image.fromarray(np.dstack([np.full((*GREY.shape, 3), 9, np.uint8), GREY]))
    assert not read(encoded(icon)).classes
