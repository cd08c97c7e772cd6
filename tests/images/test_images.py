"""Reading, writing and resizing images: every row of the table of bad images, and what must survive a round trip."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import bad_images
import numpy as np
import pytest
from bad_images import COLOUR, GREY, GREY16, HOLE, SHAPE, SOFT, Case, encoded, flipped
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageFile

from restore.errors import InputError, ModelError, OutputError, RestoreError, UsageError, shown
from restore.images import (
    Mask,
    Picture,
    check_unit_range,
    encode,
    enlarge,
    format_of,
    read_mask,
    read_picture,
    shrink,
    to_binary,
    to_levels,
)

quick = settings(max_examples=40, deadline=None)


def cases(table: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", table, ids=lambda case: case.row)


def read(data: bytes, **options: int) -> Picture:
    return read_picture(io.BytesIO(data), name="x.png", **options)


def check_message(fault: RestoreError, name: object) -> None:
    message = str(fault)
    assert message.isprintable()
    assert message.startswith(f"{name}: ")
    assert "; " in message, "no remedy"


@pytest.fixture(autouse=True)
def silent(capfd):
    """Whatever happens, Pillow and its libraries say nothing of their own."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------------------------------------------------ reading


@cases(bad_images.IMAGES)
def test_image(case, tmp_path):
    if not case.possible:
        pytest.skip("the system does not let this fault happen")
    path = case.write(tmp_path)
    if case.error is None:
        picture = read_picture(path, name=str(path))
        assert picture.levels.dtype in (np.uint8, np.uint16)
        assert picture.levels.ndim == 2
        assert picture.pixels.min() >= 0
        assert picture.pixels.max() <= 1
        if picture.alpha is not None:
            assert (picture.alpha.shape, picture.alpha.dtype) == (picture.levels.shape, picture.levels.dtype)
        return
    with pytest.raises(case.error) as caught:
        read_picture(path, name=str(path))
    assert type(caught.value) is case.error
    check_message(caught.value, path)
    assert case.says in str(caught.value)


@pytest.mark.parametrize("row", [case.row for case in bad_images.IMAGES if case.error is None])
def test_stream_and_path_agree(row, tmp_path):
    path = next(case for case in bad_images.IMAGES if case.row == row).write(tmp_path)
    with path.open("rb") as stream:
        from_stream = read_picture(stream, name="-")
    np.testing.assert_array_equal(from_stream.levels, read_picture(path, name="x").levels)


def test_row09_no_flipped_bit_of_the_pixels_goes_unnoticed():
    # Pillow itself lets some of these through, with other pixels.
    data = encoded(np.where(GREY > 250, 255, 0).astype(np.uint8))
    start = data.index(b"IDAT")
    end = data.index(b"IEND") - 4
    for position in range(start, end):
        for bit in range(8):
            with pytest.raises(InputError):
                read(flipped(data, position, bit))


@pytest.mark.parametrize("format", ["PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP", "PPM"])
def test_row08_no_truncation_changes_pixels(format):
    data = encoded(GREY, format, lossless=True)  # of these, WebP alone takes the option
    whole = read(data).levels
    for length in range(1, len(data), 3):
        try:
            picture = read(data[:length])
        except InputError as fault:
            check_message(fault, "x.png")
        else:  # only what follows the pixels is gone
            np.testing.assert_array_equal(picture.levels, whole)


def test_row08_setting_of_pillow_does_not_matter(monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    with pytest.raises(InputError):
        read(encoded(GREY, "JPEG")[:-30])
    assert ImageFile.LOAD_TRUNCATED_IMAGES


def test_row12_limit_is_ours_and_exact():
    before = Image.MAX_IMAGE_PIXELS
    assert read(encoded(GREY), max_pixels=120).levels.shape == SHAPE
    with pytest.raises(InputError, match="more than 119 pixels; raise --max-pixels"):
        read(encoded(GREY), max_pixels=119)
    with pytest.raises(InputError, match="more than 59 pixels"):
        read(encoded(GREY), max_pixels=59)
    assert before == Image.MAX_IMAGE_PIXELS


def test_row12_limit_holds_for_later_pages():
    large = Image.fromarray(np.zeros((40, 40), np.uint8))
    data = encoded(GREY, "TIFF", save_all=True, append_images=[large])
    with pytest.raises(InputError, match="--max-pixels"):
        read(data, frame=1, max_pixels=500)


def test_row12_endless_stream_ends():
    class Endless(io.RawIOBase):
        def read(self, size=-1):
            return bytes(size)

    with pytest.raises(InputError, match="longer than an image of 1 pixels"):
        read_picture(Endless(), name="-", max_pixels=1)


@pytest.mark.parametrize("format", ["PNG", "TIFF", "PPM"])
def test_row15_16_bit_levels_are_exact(format):
    np.testing.assert_array_equal(read(encoded(GREY16, format)).levels, GREY16)


def test_row15_big_endian_and_reversed_16_bit_tiff():
    big = Image.frombytes("I;16B", SHAPE[::-1], GREY16.astype(">u2").tobytes())
    np.testing.assert_array_equal(read(encoded(big, "TIFF")).levels, GREY16)
    for levels in (GREY, GREY16):
        negative = read(bad_images.retagged(encoded(levels, "TIFF"), 262, 0))
        np.testing.assert_array_equal(negative.levels, ~levels)


def test_row16_and_17_expansion():
    np.testing.assert_array_equal(read(encoded(Image.fromarray(GREY).convert("P"))).levels, GREY)
    np.testing.assert_array_equal(read(encoded(GREY, "GIF")).levels, GREY)
    bits = read(encoded(Image.fromarray(GREY > 99)))
    np.testing.assert_array_equal(bits.levels, np.where(GREY > 99, 255, 0))
    assert bits.notes


def test_row18_alpha_is_kept_aside():
    picture = read(encoded(np.dstack([GREY, 255 - GREY])))
    np.testing.assert_array_equal(picture.levels, GREY)
    np.testing.assert_array_equal(picture.alpha, 255 - GREY)
    deep = read(bad_images.png16(np.dstack([GREY16, GREY16[::-1]]), 4))
    np.testing.assert_array_equal(deep.levels, GREY16)
    np.testing.assert_array_equal(deep.alpha, GREY16[::-1])
    key = read(bad_images.with_key("I;16"))
    np.testing.assert_array_equal(key.alpha, np.where(GREY16 == 5, 0, 65535))


@pytest.mark.parametrize("row", ["row19-cmyk", "row19-ycbcr", "row19-lab"])
def test_row19_conversion_is_close_and_noted(row, tmp_path):
    picture = read_picture(next(case for case in bad_images.IMAGES if case.row == row).write(tmp_path), name="x")
    assert np.abs(picture.levels.astype(int) - GREY).max() <= 3
    assert "converted" in picture.notes[0]


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
@pytest.mark.parametrize(("orientation", "upright"), [(1, GREY), (3, GREY[::-1, ::-1]), (6, np.rot90(GREY, -1))])
def test_row20_orientation(format, orientation, upright):
    picture = read(bad_images.oriented(format, orientation))
    np.testing.assert_array_equal(picture.levels, upright)
    assert len(picture.notes) == (orientation != 1)


@pytest.mark.parametrize(
    ("format", "options"), [("GIF", {}), ("PNG", {}), ("WEBP", {"lossless": True}), ("TIFF", {})], ids=str
)
def test_row21_22_chosen_frame(format, options):
    data = bad_images.pages(format, **options)
    assert [read(data, frame=frame).levels[0, 0] for frame in range(3)] == [0, 128, 255]
    for frame in (-1, 3):
        with pytest.raises(InputError, match="--frame"):
            read(data, frame=frame)


def test_row21_frame_of_a_still_image():
    np.testing.assert_array_equal(read(encoded(GREY), frame=0).levels, GREY)
    with pytest.raises(InputError, match="only 0"):
        read(encoded(GREY), frame=1)


def test_row24_float_levels_are_rounded_to_16_bits():
    values = np.linspace(0, 1, GREY.size, dtype=np.float32).reshape(SHAPE)
    picture = read(encoded(values, "TIFF"))
    np.testing.assert_allclose(picture.pixels, values, atol=0.51 / 65535)
    with pytest.raises(InputError, match=r"outside \[0, 1\]"):
        check_unit_range(values * 255, name="array")


def test_row28_one_coloured_pixel_is_colour():
    almost = np.dstack([GREY] * 3)
    np.testing.assert_array_equal(read(encoded(almost)).levels, GREY)
    almost[3, 4, 0] ^= 1
    with pytest.raises(ModelError):
        read(encoded(almost))
    with pytest.raises(ModelError):
        read(encoded(COLOUR, "JPEG"))


def test_row56_names(tmp_path):
    for name in bad_images.ODD_NAMES.values():
        path = tmp_path / name
        path.write_bytes(encoded(GREY))
        np.testing.assert_array_equal(read_picture(path, name=name).levels, GREY)
        path.write_bytes(b"")
        with pytest.raises(InputError) as caught:
            read_picture(path, name=name)
        check_message(caught.value, shown(name))


@given(st.text(st.characters(codec=None)))
@example("a\u2028b\u202e")
@example("\udcff\n\x1b[31m")
def test_row56_shown_is_one_printable_line(name):
    assert shown(name).isprintable()
    shown(name).encode()
    if name.isprintable():
        assert shown(name) == name


# -------------------------------------------------------------------------------------------------------------- masks


@cases(bad_images.MASKS)
def test_mask(case, tmp_path):
    path = case.write(tmp_path)
    if case.error is None:
        mask = read_mask(path, name=str(path), shape=SHAPE)
        assert mask.hidden.dtype == bool
        np.testing.assert_array_equal(mask.hidden, (HOLE > 0) & ("empty" not in case.row))
        assert len(mask.notes) == bool(case.says)
        assert case.says in " ".join(mask.notes)
        return
    with pytest.raises(case.error) as caught:
        read_mask(path, name=str(path), shape=SHAPE)
    check_message(caught.value, path)
    assert case.says in str(caught.value)


def test_row33_threshold_is_half_of_white():
    mask = read_mask(io.BytesIO(encoded(SOFT)), name="m", shape=SHAPE)
    np.testing.assert_array_equal(mask.hidden, SOFT == 128)
    deep = np.where(HOLE > 0, 32768, 32767).astype(np.uint16)
    assert isinstance(mask, Mask)
    np.testing.assert_array_equal(read_mask(io.BytesIO(encoded(deep)), name="m", shape=SHAPE).hidden, HOLE > 0)


# ------------------------------------------------------------------------------------------------------------ writing


@st.composite
def pictures(draw, *, dtypes=(np.uint8, np.uint16), with_alpha=True) -> Picture:
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(st.tuples(st.integers(1, 7), st.integers(1, 7)))
    levels = draw(arrays(dtype, shape))
    return Picture(levels, draw(st.none() | arrays(dtype, shape)) if with_alpha else None)


def check_round_trip(picture: Picture, format: str) -> None:
    again = read(encode(picture, picture.pixels, format=format))
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


def test_row62_nan_is_never_saved():
    restored = Picture(GREY).pixels
    restored[0, 0] = np.nan
    with pytest.raises(OutputError) as caught:
        encode(Picture(GREY), restored, format="PNG", hidden=HOLE > 0, name="y.png")
    check_message(caught.value, "y.png")


def test_wrong_shape_is_refused():
    with pytest.raises(ValueError, match="shape"):
        to_levels(Picture(GREY), GREY16[1:] / 65535)


@pytest.mark.parametrize(("suffix", "format"), [(".png", "PNG"), (".TIF", "TIFF"), (".webp", "WEBP"), (".pgm", "PPM")])
def test_format_of(suffix, format):
    assert format_of(Path("some.dir") / f"x{suffix}") == format


@pytest.mark.parametrize("name", ["x.jpg", "x.JPEG", "x.gif", "x.pdf", "x", "x.p\nng"])
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


# ----------------------------------------------------------------------------------------------- greys and resizing

sizes = st.tuples(st.integers(1, 9), st.integers(1, 9))


@given(sizes, sizes, st.floats(0, 1), st.data())
@quick
def test_constant_stays_constant(old, new, value, data):
    hidden = data.draw(st.none() | arrays(bool, old))
    small, small_hidden = shrink(np.full(old, value), hidden, new)
    if hidden is None or not hidden.all():
        np.testing.assert_allclose(small, value, atol=1e-9)
    else:
        assert small_hidden.all()
    np.testing.assert_allclose(enlarge(np.full(old, value), new), value, atol=1e-6)


@given(sizes, sizes, st.data())
@quick
def test_resized_stays_in_range_and_ignores_hidden(old, new, data):
    pixels = data.draw(arrays(np.float64, old, elements=st.floats(0, 1)))
    hidden = data.draw(arrays(bool, old))
    small, small_hidden = shrink(pixels, hidden, new)
    assert small.shape == small_hidden.shape == new
    assert small_hidden.dtype == bool
    assert small.min() >= 0
    assert small.max() <= 1
    large = enlarge(small, old)
    assert large.shape == old
    assert large.min() >= 0
    assert large.max() <= 1
    changed = shrink(np.where(hidden, np.nan, pixels), hidden, new)
    np.testing.assert_array_equal(changed[0], small)
    np.testing.assert_array_equal(changed[1], small_hidden)


@given(arrays(np.float64, sizes, elements=st.floats(0, 1)))
@quick
def test_same_size_changes_nothing(pixels):
    small, hidden = shrink(pixels, None, pixels.shape)
    np.testing.assert_allclose(small, pixels, atol=1e-12)
    assert not hidden.any()
    np.testing.assert_allclose(enlarge(pixels, pixels.shape), pixels, atol=1e-6)


def test_shrink_averages_area():
    pixels = np.array([[0.0, 1.0, 0.5]])
    np.testing.assert_allclose(shrink(pixels, None, (1, 2))[0], [[1 / 3, 2 / 3]])
    np.testing.assert_allclose(shrink(pixels, np.array([[False, True, False]]), (1, 2))[0], [[0.0, 0.5]])
    np.testing.assert_allclose(shrink(pixels, None, (2, 6))[0], np.repeat(np.repeat(pixels, 2, axis=0), 2, axis=1))


def test_more_than_half_hidden_is_hidden():
    hidden = np.zeros((4, 4), bool)
    hidden[:2, :1] = True  # half of the first cell
    hidden[2:, :2] = [[True, True], [True, False]]
    np.testing.assert_array_equal(shrink(np.zeros((4, 4)), hidden, (2, 2))[1], [[False, False], [True, False]])


def test_to_binary_is_strict():
    np.testing.assert_array_equal(to_binary(np.array([0.0, 0.5, 0.6]), 0.5), [False, False, True])
    for threshold in (-0.1, 1.1, float("nan")):
        with pytest.raises(UsageError):
            to_binary(GREY / 255, threshold)
