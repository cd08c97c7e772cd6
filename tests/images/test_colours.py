"""Pictures that are black and white, or grey, but for their colours: understood, and given back in them (row 28)."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pytest
from bad_images import GREY, encoded
from hypothesis import given
from hypothesis import strategies as st
from image_cases import quick, read
from PIL import Image, ImageDraw, ImageFilter, ImageFont

import restore
from restore.errors import ModelError
from restore.images import as_pil, encode

BLACK, WHITE, BLUE, RED = (0, 0, 0), (255, 255, 255), (30, 40, 160), (200, 30, 30)
Colour = tuple[int, int, int]


def page(ink: Colour = BLACK, paper: Colour = WHITE, stamp: Colour | None = None) -> Image.Image:
    """A page of print, with soft edges, and perhaps a word in another ink."""
    image = Image.new("RGB", (320, 240), paper)
    draw = ImageDraw.Draw(image)
    for top in range(10, 200, 20):
        draw.text((12, top), "The quick brown fox jumps over the lazy dog", ink, ImageFont.load_default(13))
    if stamp is not None:
        draw.text((200, 205), "PAID", stamp, ImageFont.load_default(24))
    return image


def jpeg(image: Image.Image, quality: int) -> bytes:
    return encoded(image, "JPEG", quality=quality)


def pixels(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(int)


# --- nearly grey ---


def tinted() -> bytes:
    return encoded((np.asarray(page()) * np.array([1, 0.97, 0.92])).astype(np.uint8))


def on_cream() -> bytes:
    """Shaded and noisy, so that it has no two inks."""
    light = np.linspace(1.0, 0.6, 320)[:, None] * np.array([255, 253, 208]) / 255
    noise = np.random.default_rng(0).normal(0, 6, (240, 320, 3))
    return encoded(np.clip(np.asarray(page()) * light + noise, 0, 255).astype(np.uint8))


def noisy() -> bytes:
    noise = np.random.default_rng(0).normal(0, 15, (240, 320, 3))
    return encoded(np.clip(0.9 * np.asarray(page()) + noise, 0, 255).astype(np.uint8))


def fringed() -> bytes:
    """As a scanner whose red line is read a pixel late leaves it: single pixels differ by more than 100 levels."""
    values = np.asarray(page()).copy()
    values[:, 1:, 0] = values[:, :-1, 0]
    return encoded(np.asarray(Image.fromarray(values).filter(ImageFilter.GaussianBlur(0.7))))


@pytest.mark.parametrize("make", [tinted, noisy, fringed, lambda: jpeg(page(), 40)])
def test_what_is_nearly_grey_is_read_as_its_luminance_and_written_in_rgb(make: Callable[[], bytes]) -> None:
    content = make()
    picture = read(content)
    luminance = pixels(content) @ (0.299, 0.587, 0.114)
    assert np.abs(picture.levels - luminance).max() <= 1  # rounding
    again = Image.open(io.BytesIO(encode(picture, picture.pixels, format="PNG")))
    assert again.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(again), np.dstack([picture.levels] * 3))


def test_paper_of_one_hue_is_white_and_comes_back() -> None:
    picture = read(on_cream())
    assert any("paper of one hue" in note for note in picture.notes)
    blank = np.asarray(as_pil(picture, np.ones(picture.levels.shape)))
    # The colour of the paper, as light as it can be: blue is the weakest band, by 208 to 255.
    assert (blank == blank[0, 0]).all() and blank[0, 0, 2] / blank[0, 0, 0] == pytest.approx(208 / 255, abs=0.02)


def test_equal_bands_come_back_as_they_were_and_without_a_note() -> None:
    picture = read(encoded(np.dstack([GREY] * 3)))
    assert picture.notes == ()
    np.testing.assert_array_equal(picture.levels, GREY)
    np.testing.assert_array_equal(np.asarray(as_pil(picture, picture.pixels)), np.dstack([GREY] * 3))


# --- two colours ---


@given(st.tuples(*[st.integers(0, 255)] * 3), st.tuples(*[st.integers(0, 255)] * 3), st.integers(0, 99))
@quick
def test_two_colours_are_black_and_white_and_come_back(one: Colour, other: Colour, seed: int) -> None:
    ink = np.random.default_rng(seed).random((9, 11, 1)) < 0.3
    image = np.where(ink, one, other).astype(np.uint8)
    picture = read(encoded(image))
    again = np.asarray(as_pil(picture, picture.pixels))
    if (np.ptp([one, other], axis=1) <= 24).all():  # they are nearly grey, and come back as greys
        np.testing.assert_array_equal(again[..., 0], np.asarray(Image.fromarray(image).convert("L")))
        return
    np.testing.assert_array_equal(again, image)
    assert one == other or set(np.unique(picture.levels)) <= {0, 255}


def test_the_darker_colour_is_black_also_of_a_palette() -> None:
    ink = GREY > 150
    image = Image.fromarray(ink.astype(np.uint8)).convert("P")
    image.putpalette([*WHITE, *BLUE])
    picture = read(encoded(image))
    np.testing.assert_array_equal(picture.levels, np.where(ink, 0, 255))
    np.testing.assert_array_equal(
        pixels(encode(picture, picture.pixels, format="PNG")), np.where(ink[..., None], BLUE, WHITE)
    )


@pytest.mark.parametrize("quality", [60, 75, 95])
@pytest.mark.parametrize(
    ("ink", "paper"), [(BLUE, WHITE), (RED, WHITE), (BLACK, (230, 210, 160)), (RED, (255, 240, 120))]
)
def test_two_inks_are_recognised_after_jpeg(ink: Colour, paper: Colour, quality: int) -> None:
    clean = page(ink, paper)
    picture = read(jpeg(clean, quality))
    assert picture.inks is not None
    # The paper is flat, and comes back nearly as it was. Compression blends thin strokes with it, so the ink keeps its
    # hue: the direction in which it lies from the paper.
    assert np.abs(picture.inks.light - paper).max() <= 4
    found, true = picture.inks.dark - picture.inks.light, np.subtract(ink, paper)
    assert found @ true / np.linalg.norm(found) / np.linalg.norm(true) > 0.97
    # What was ink is black: all but the pixels of soft edges.
    full = (np.asarray(clean) == ink).all(-1)
    assert (picture.pixels[full] < 0.5).mean() > 0.97
    assert (picture.pixels[(np.asarray(clean) == paper).all(-1)] > 0.5).mean() > 0.99


def test_only_filled_pixels_change_their_colour() -> None:
    content = jpeg(page(BLUE), 60)
    picture, hole = read(content), np.zeros((240, 320), bool)
    hole[50:90, 100:160] = True
    filled = np.zeros(hole.shape)
    found = pixels(encode(picture, filled, format="PNG", hidden=hole))
    np.testing.assert_array_equal(found[~hole], pixels(content)[~hole])
    assert picture.inks is not None
    np.testing.assert_array_equal(found[hole], np.tile(np.rint(picture.inks.dark), (hole.sum(), 1)))


def test_probabilities_are_mixtures_of_the_two_colours() -> None:
    picture = read(encoded(np.where(GREY[..., None] > 150, BLUE, WHITE).astype(np.uint8)))
    half = np.asarray(as_pil(picture, np.full(GREY.shape, 0.5)))
    np.testing.assert_allclose(half[0, 0], np.add(BLUE, WHITE) / 2, atol=1)


# --- colour ---


def photograph() -> Image.Image:
    data = pytest.importorskip("skimage.data")
    return Image.fromarray(data.astronaut())


def marked() -> Image.Image:
    image = page()
    ImageDraw.Draw(image).rectangle((40, 60, 120, 72), fill=(255, 255, 120))
    return image


def dotted() -> Image.Image:
    image = page()
    ImageDraw.Draw(image).rectangle((300, 220, 308, 228), fill=RED)
    return image


@pytest.mark.parametrize(
    "make",
    [photograph, marked, dotted, lambda: page(stamp=RED), lambda: page(stamp=BLUE), lambda: page(BLUE, stamp=RED)],
    ids=["photograph", "marked", "dotted", "black-and-red", "black-and-blue", "blue-and-red"],
)
def test_row28_other_colours_are_refused(make: Callable[[], Image.Image]) -> None:
    for content in (encoded(make()), jpeg(make(), 75)):
        with pytest.raises(ModelError, match=r"is in colour, .* convert a copy of it to greyscale first") as caught:
            read(content)
        assert caught.value.exit_code == 4


# --- transparency ---


def icon(mode: str, ground: int = 0) -> tuple[Image.Image, np.ndarray]:
    """A white, red or grey disc with a soft edge on nothing, whose hidden pixels are of any colour."""
    shape = np.asarray(Image.new("L", (40, 30)))
    image = Image.fromarray(shape.copy())
    ImageDraw.Draw(image).ellipse((8, 5, 28, 25), fill=255)
    alpha = np.asarray(image.filter(ImageFilter.GaussianBlur(1)))
    paint = {"LA": (90,), "RGBA": RED, "white": WHITE}[mode]
    bands = np.where(alpha[..., None] > 0, paint, ground).astype(np.uint8)
    return Image.fromarray(np.dstack([bands, alpha])), alpha


@pytest.mark.parametrize("mode", ["LA", "RGBA", "white"])
@pytest.mark.parametrize("ground", [0, 77])
def test_row18_a_shape_in_alpha_alone_is_what_is_restored(mode: str, ground: int) -> None:
    image, alpha = icon(mode, ground)
    for format in ("PNG", "TIFF", "WEBP"):
        picture = read(encoded(image, format, lossless=True, exact=True))
        np.testing.assert_array_equal(picture.levels, alpha)
        assert picture.alpha is None and "transparency" in picture.notes[-1]
        again = Image.open(io.BytesIO(encode(picture, 1 - picture.pixels, format=format)))
        # Pillow reads the WebP of a grey picture with alpha as colour.
        assert again.mode == image.mode or format == "WEBP"
        np.testing.assert_array_equal(np.asarray(again.convert("RGBA"))[..., 3], 255 - alpha)
        # What becomes opaque has the colour of what was.
        assert len(np.unique(np.asarray(again.convert("RGBA"))[..., :3].reshape(-1, 3), axis=0)) == 1


def test_row18_a_shape_in_the_alpha_of_16_bits() -> None:
    alpha = np.where(GREY > 99, 65535, 0).astype(np.uint16)
    from bad_images import png16

    picture = read(png16(np.dstack([np.full_like(alpha, 1234), alpha]), 4))
    np.testing.assert_array_equal(picture.levels, alpha)
    again = read(encode(picture, 1 - picture.pixels, format="PNG"))
    np.testing.assert_array_equal(again.levels, 65535 - alpha)


def test_row18_what_is_drawn_under_an_alpha_is_restored_and_the_alpha_kept() -> None:
    alpha = np.where(np.arange(12) < 9, 255, 0).astype(np.uint8) * np.ones((10, 1), np.uint8)
    for bands in ([GREY], [GREY] * 3):
        picture = read(encoded(np.dstack([*bands, alpha])))
        np.testing.assert_array_equal(picture.levels, GREY)
        np.testing.assert_array_equal(picture.alpha, alpha)


def test_row18_colours_that_nobody_sees_do_not_count() -> None:
    colour = np.dstack([np.where(GREY > 99, 255, 0).astype(np.uint8)] * 3)
    alpha = np.full(GREY.shape, 255, np.uint8)
    colour[2:5], alpha[2:5] = RED, 0
    picture = read(encoded(np.dstack([colour, alpha])))
    assert picture.mode == "RGBA"
    np.testing.assert_array_equal(picture.levels[5:], colour[5:, :, 0])


# --- in Python ---


def test_a_pil_image_in_colours_comes_back_in_its_mode() -> None:
    stroke = np.zeros((28, 28, 1), bool)
    stroke[5:23, 13:15] = True
    blue = Image.fromarray(np.where(stroke, WHITE, BLUE).astype(np.uint8))
    found = restore.denoise(blue, "tap-mnist-25", p=0.02)
    assert found.mode == "RGB"
    assert {tuple(colour) for colour in np.asarray(found).reshape(-1, 3).tolist()} == {WHITE, BLUE}
    bits = Image.fromarray(stroke[..., 0])
    assert restore.denoise(bits, "tap-mnist-25", p=0.02).mode == "1"
