"""Writing images: what survives a round trip, and what a format would lose."""

from __future__ import annotations

import io

import numpy as np
import pytest
from bad_images import GREY, GREY16, HOLE, check_message, encoded, quick, read
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageCms

from restore.api.kinds import unpack
from restore.errors import OutputError, UsageError
from restore.images import FORMATS, Picture, encode, to_levels

pytestmark = pytest.mark.usefixtures("silent")
WRITTEN = [(name, mode) for name, format in FORMATS.items() if name != "PDF" for mode in format.modes.split()]


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    shape = draw(st.tuples(st.integers(1, 7), st.integers(1, 7)))
    return Picture(draw(arrays(draw(st.sampled_from((np.uint8, np.uint16))), shape)))


@pytest.mark.parametrize(("format", "mode"), WRITTEN)
def test_every_mode_of_the_table_survives_a_round_trip(format: str, mode: str) -> None:
    image = Image.fromarray(GREY16 if mode == "I;16" else GREY).convert(mode if mode != "I;16" else None)
    if "A" in mode:
        image.putalpha(Image.fromarray(np.arange(120, dtype=np.uint8).reshape(10, 12)))
    picture = read(encoded(image, "TIFF" if mode == "I;16" else "PNG"))
    with Image.open(io.BytesIO(encode(picture, picture.pixels, format=format))) as again:
        if format == "WEBP":
            again = again.convert("RGBA" if "A" in mode else "RGB")
            image = image.convert(again.mode)
        assert again.mode in (image.mode, "I", "RGB") or (format, mode) == ("BMP", "P")  # greys are read as L
        np.testing.assert_array_equal(np.asarray(again), np.asarray(image))


@given(pictures(), st.data())
@quick
def test_pixels_outside_the_hole_are_untouched(picture: Picture, data: st.DataObject) -> None:
    shape = picture.levels.shape
    hidden = data.draw(arrays(bool, shape))
    restored = data.draw(arrays(np.float64, shape, elements=st.floats(-0.1, 1.1)))
    levels = to_levels(picture, restored, hidden)
    np.testing.assert_array_equal(levels[~hidden], picture.levels[~hidden])
    error = levels[hidden] / picture.white - np.clip(restored, 0, 1)[hidden]
    assert (np.abs(error) <= 0.5001 / picture.white).all()


ICON = np.dstack([GREY, GREY // 2, 255 - GREY])
PAINTED = {
    "grey": np.dstack([GREY, 255 * (GREY > 99)]),
    "colours": np.dstack([ICON, 255 * (GREY > 99)]),
    "two colours": np.dstack([np.where(ICON > 120, 200, 10), 255 * (GREY > 99)]),
    "icon": np.dstack([np.where(GREY[..., None] > 99, 30, ICON), 255 * (GREY > 99)]),
}


@pytest.mark.parametrize("image", PAINTED.values(), ids=PAINTED)
def test_what_is_fully_transparent_keeps_its_colour(image: np.ndarray) -> None:
    image = image.astype(np.uint8)
    clear = image[..., -1] == 0
    assert clear.any() and not clear.all()
    for colour in (False, True):
        picture = read(encoded(image), colour=colour)
        with Image.open(io.BytesIO(encode(picture, 0.5 * picture.pixels, format="PNG"))) as again:
            result = np.asarray(again)
        np.testing.assert_array_equal(result[clear], image[clear])
        assert (result[~clear] != image[~clear]).any()
    if image.shape[2] == 4:
        (item,) = unpack(image, -1).items
        back = item.back(0.5 * item.values(), None)
        np.testing.assert_array_equal(back[clear], image[clear])
        # What a mask marks is filled, be it seen or not.
        assert (item.back(0.5 * item.values(), clear)[clear] != image[clear]).any()


def test_nan_is_never_saved() -> None:
    restored = Picture(GREY).pixels
    restored[0, 0] = np.nan
    with pytest.raises(OutputError) as caught:
        encode(Picture(GREY), restored, format="PNG", hidden=HOLE > 0, name="y.png")
    check_message(caught.value, "y.png")


@pytest.mark.parametrize(
    ("picture", "format"),
    [(Picture(GREY16), "BMP"), (Picture(GREY16), "WEBP"), (Picture(GREY, GREY), "BMP"), (Picture(GREY, GREY), "PPM")],
)
def test_a_format_that_would_lose_depth_or_alpha(picture: Picture, format: str) -> None:
    with pytest.raises(UsageError) as caught:
        encode(picture, picture.pixels, format=format, name="y")
    check_message(caught.value, "y")


def test_too_large_for_the_format() -> None:
    with pytest.raises(OutputError) as caught:
        encode(Picture(np.zeros((1, 20000), np.uint8)), np.zeros((1, 20000)), format="WEBP", name="y.webp")
    check_message(caught.value, "y.webp")


def test_resolution_and_profile_survive_where_they_fit() -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    colour = np.dstack([GREY] * 3)
    for format in ("PNG", "TIFF", "WEBP"):
        picture = read(encoded(colour, "PNG", dpi=(200, 100), icc_profile=profile))
        info = Image.open(io.BytesIO(encode(picture, picture.pixels, format=format))).info
        assert info["icc_profile"] == profile
        assert format == "WEBP" or info["dpi"] == pytest.approx((200, 100), rel=1e-3)
    # A profile of colours is wrong for greys that are in no palette.
    picture = read(encoded(Image.fromarray(GREY).quantize(4), icc_profile=profile))
    for values, stays in ((picture.pixels, True), (picture.pixels / 3, False)):
        assert ("icc_profile" in Image.open(io.BytesIO(encode(picture, values, format="PNG"))).info) == stays
