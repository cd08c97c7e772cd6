"""Reading images and masks: every row of the table of bad images."""

from __future__ import annotations

import io

import bad_images
import bad_outputs
import numpy as np
import pytest
from bad_images import COLOUR, GREY, GREY16, HOLE, SHAPE, SOFT, encoded, flipped
from hypothesis import example, given
from hypothesis import strategies as st
from image_cases import cases, check_message, read
from PIL import Image, ImageFile

from restore.errors import InputError, ModelError, shown
from restore.images import Mask, check_unit_range, read_mask, read_picture

pytestmark = pytest.mark.usefixtures("silent")

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
    assert bits.stored.bits


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


def test_row28_one_coloured_pixel_of_a_small_picture_is_colour():
    almost = np.dstack([GREY] * 3)
    np.testing.assert_array_equal(read(encoded(almost)).levels, GREY)
    almost[3, 4] = 200, 0, 0
    with pytest.raises(ModelError):
        read(encoded(almost))
    with pytest.raises(ModelError):
        read(encoded(COLOUR, "JPEG"))


def test_row56_names(tmp_path):
    for name in bad_outputs.ODD_NAMES.values():
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


def test_row33_a_mask_that_may_be_inverted_gets_a_note():
    mask = read_mask(io.BytesIO(encoded(255 - HOLE)), name="m", shape=SHAPE)
    assert np.array_equal(mask.hidden, HOLE == 0)
    assert mask.notes == ("the mask marks 85 % of the image; white is what is filled, not what is kept",)


def test_row33_threshold_is_half_of_white():
    mask = read_mask(io.BytesIO(encoded(SOFT)), name="m", shape=SHAPE)
    np.testing.assert_array_equal(mask.hidden, SOFT == 128)
    deep = np.where(HOLE > 0, 32768, 32767).astype(np.uint16)
    assert isinstance(mask, Mask)
    np.testing.assert_array_equal(read_mask(io.BytesIO(encoded(deep)), name="m", shape=SHAPE).hidden, HOLE > 0)
