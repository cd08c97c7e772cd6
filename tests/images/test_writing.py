"""Writing images: what must survive a round trip, and what a format would lose."""

from __future__ import annotations

from pathlib import Path

import bad_images
import numpy as np
import pytest
from bad_images import GREY, GREY16, HOLE, SHAPE
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from image_cases import check_message, quick, read

from restore.errors import OutputError, UsageError, shown
from restore.images import Picture, encode, format_of, to_levels

pytestmark = pytest.mark.usefixtures("silent")


@st.composite
def pictures(draw, *, dtypes=(np.uint8, np.uint16), with_alpha=True) -> Picture:
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(st.tuples(st.integers(1, 7), st.integers(1, 7)))
    levels = draw(arrays(dtype, shape))
    return Picture(levels, draw(st.none() | arrays(dtype, shape)) if with_alpha else None)


def check_round_trip(picture: Picture, format: str) -> None:
    again = read(encode(picture, picture.pixels, format=format))
    if again.inks is not None:  # of one level: the shape is in alpha
        bands = again.inks.bands
        again = Picture(bands[..., 0], bands[..., -1] if bands.shape[-1] in (2, 4) else again.alpha)
    assert again.levels.dtype == picture.levels.dtype
    np.testing.assert_array_equal(again.levels, picture.levels)
    if picture.alpha is not None:
        # WebP leaves an alpha away that hides nothing, which shows the same picture.
        nothing_hidden = again.alpha is None and format == "WEBP"
        alpha = np.full_like(picture.alpha, np.iinfo(picture.alpha.dtype).max) if nothing_hidden else again.alpha
        np.testing.assert_array_equal(alpha, picture.alpha)


@given(pictures())
@quick
def test_png_round_trip(picture):
    check_round_trip(picture, "PNG")


@given(pictures(dtypes=[np.uint8]))
@example(Picture(np.zeros((1, 1), np.uint8), np.full((1, 1), 255, np.uint8)))
@quick
def test_webp_round_trip(picture):
    check_round_trip(picture, "WEBP")


@given(pictures(with_alpha=False))
@quick
def test_tiff_and_pgm_round_trip(picture):
    check_round_trip(picture, "TIFF")
    check_round_trip(picture, "PPM")


@given(pictures(dtypes=[np.uint8], with_alpha=False))
@quick
def test_bmp_round_trip(picture):
    check_round_trip(picture, "BMP")


def test_tiff_round_trip_with_alpha():
    check_round_trip(Picture(GREY, GREY[::-1]), "TIFF")


def test_large_16_bit_alpha_survives_other_filters():
    # Ours is written without filters; one with the Paeth filter has to come through as well.
    channels = np.dstack([GREY16, GREY16[:, ::-1]])
    raw = channels.astype(">u2").reshape(SHAPE[0], -1).view(np.uint8).astype(int)
    filtered = raw.copy()
    filtered[:, 4:] -= raw[:, :-4]  # filter 1: difference to the pixel on the left
    rows = b"".join(b"\1" + row.tobytes() for row in (filtered % 256).astype(np.uint8))
    picture = read(bad_images.png(SHAPE[1], SHAPE[0], 16, 4, rows))
    np.testing.assert_array_equal(np.dstack([picture.levels, picture.alpha]), channels)


@given(pictures(), st.data())
@quick
def test_pixels_outside_the_hole_are_untouched(picture, data):
    shape = picture.levels.shape
    hidden = data.draw(arrays(bool, shape))
    restored = data.draw(arrays(np.float64, shape, elements=st.floats(-0.1, 1.1)))
    levels = to_levels(picture, restored, hidden)
    np.testing.assert_array_equal(levels[~hidden], picture.levels[~hidden])
    error = levels[hidden] / picture.white - np.clip(restored, 0, 1)[hidden]
    assert (np.abs(error) <= 0.5001 / picture.white).all()


@pytest.mark.parametrize("together", [1, 7, 100])
def test_large_images_are_turned_into_levels_part_by_part(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    picture, restored = Picture(draw.integers(0, 256, (9, 5), dtype=np.uint8)), draw.random((9, 5))
    hidden = draw.random((9, 5)) < 0.5
    whole = [to_levels(picture, restored, mask) for mask in (None, hidden)]
    monkeypatch.setattr("restore.images.writing.TOGETHER", together)
    for mask, expected in zip((None, hidden), whole, strict=True):
        np.testing.assert_array_equal(to_levels(picture, restored, mask), expected)
    with pytest.raises(OutputError, match="NaN"):
        to_levels(picture, np.where(np.arange(45).reshape(9, 5) == 44, np.nan, restored))


def test_row62_nan_is_never_saved():
    restored = Picture(GREY).pixels
    restored[0, 0] = np.nan
    with pytest.raises(OutputError) as caught:
        encode(Picture(GREY), restored, format="PNG", hidden=HOLE > 0, name="y.png")
    check_message(caught.value, "y.png")


def test_wrong_shape_is_refused():
    with pytest.raises(ValueError, match="shape"):
        to_levels(Picture(GREY), GREY16[1:] / 65535)


@pytest.mark.parametrize(
    ("suffix", "format"), [(".png", "PNG"), (".TIF", "TIFF"), (".webp", "WEBP"), (".pgm", "PPM"), (".pdf", "PDF")]
)
def test_format_of(suffix, format):
    assert format_of(Path("some.dir") / f"x{suffix}") == format


@pytest.mark.parametrize("name", ["x.jpg", "x.JPEG", "x.gif", "x.eps", "x", "x.p\nng"])
def test_format_that_would_lose_pixels(name):
    with pytest.raises(UsageError) as caught:
        format_of(name)
    check_message(caught.value, shown(name))
    assert str(caught.value).endswith("choose .png")


@pytest.mark.parametrize(
    ("picture", "format"),
    [
        (Picture(GREY16), "BMP"),
        (Picture(GREY16), "WEBP"),
        (Picture(GREY, GREY), "BMP"),
        (Picture(GREY, GREY), "PPM"),
        (Picture(GREY16, GREY16), "TIFF"),
    ],
)
def test_format_that_would_lose_depth_or_alpha(picture, format):
    with pytest.raises(UsageError) as caught:
        encode(picture, picture.pixels, format=format, name="y")
    check_message(caught.value, "y")


def test_too_large_for_the_format():
    with pytest.raises(OutputError) as caught:
        encode(Picture(np.zeros((1, 20000), np.uint8)), np.zeros((1, 20000)), format="WEBP", name="y.webp")
    check_message(caught.value, "y.webp")
