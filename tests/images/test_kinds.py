"""Images in memory of any kind: read as they are, or refused with a sentence that says what to give (row 75)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from bad_images import COLOUR, GREY, GREY16, encoded
from PIL import Image
from scipy.sparse import csr_array

import restore
from restore.data import gather
from restore.errors import InputError, ModelError, RestoreError, UsageError, in_python
from restore.images.kinds import unpack

UNIT = GREY / 255


def back(images: Any) -> Any:
    """What comes back of images that are restored to themselves."""
    taken = unpack(images)
    return taken.together([item.back(item.pixels, None) for item in taken.items])


# --- arrays ---


STRIPED = np.zeros((20, 24), np.uint8)
STRIPED[::2, ::2] = GREY


@pytest.mark.parametrize(
    "array",
    [
        GREY16.astype(">u2"),
        UNIT.astype(">f4"),
        UNIT.astype(np.float16),
        UNIT.astype(np.longdouble),
        GREY[::-1, ::-1],
        STRIPED[::2, ::2],
        np.asfortranarray(GREY16),
        np.broadcast_to(GREY[:1], GREY.shape),
        np.asmatrix(GREY),
    ],
    ids=[
        "big-endian",
        "big-endian-float",
        "half",
        "long-double",
        "reversed",
        "strided",
        "fortran",
        "broadcast",
        "matrix",
    ],
)
def test_row75_layouts_do_not_matter(array: np.ndarray) -> None:
    white = np.iinfo(array.dtype).max if array.dtype.kind == "u" else 1
    (item,) = unpack(array).items
    assert item.pixels.dtype == np.float64
    np.testing.assert_array_equal(item.pixels, np.asarray(array, dtype=np.float64) / white)
    found = back(array)
    assert found.dtype == array.dtype
    np.testing.assert_allclose(found.astype(np.float64), np.asarray(array, np.float64), atol=1e-3 if white == 1 else 0)


def test_what_rounding_carried_out_of_range_is_cut() -> None:
    """Resizing gives 1.0000001, which no picture should be refused for."""
    (item,) = unpack(np.array([[0.0, 1 + 1e-6], [-1e-3, 0.5]])).items
    np.testing.assert_array_equal(item.pixels, [[0, 1], [0, 0.5]])
    with pytest.raises(InputError, match=r"outside \[0, 1\]"):
        unpack(np.array([[0.0, 1.01]]))


REFUSED: dict[str, tuple[Any, type[RestoreError], str]] = {
    "empty": (np.zeros((0, 0)), InputError, "holds no images"),
    "no-rows": (np.zeros((0, 5), np.uint8), InputError, "holds no images"),
    "no-images": (np.zeros((0, 5, 5), np.uint8), InputError, "holds no images"),
    "one-dimension": (np.zeros(5), InputError, "holds no images"),
    "no-dimension": (np.array(0.5), InputError, "holds no images"),
    "object": (GREY.astype(object), UsageError, "give uint8"),
    "structured": (np.zeros((3, 3), [("a\n", "u1"), ("b", "f4")]), UsageError, "give uint8"),
    "record": (np.rec.array(np.zeros((3, 3), [("a", "u1")])), UsageError, "give uint8"),
    "complex": (GREY.astype(complex), UsageError, "give uint8"),
    "dates": (GREY.astype("M8[s]"), UsageError, "give uint8"),
    "differences": (GREY.astype("m8[s]"), UsageError, "give uint8"),
    "text": (GREY.astype(str), UsageError, "give uint8"),
    "bytes": (GREY.astype("S3"), UsageError, "give uint8"),
    "void": (np.zeros((3, 3), "V4"), UsageError, "give uint8"),
    "signed": (GREY.astype(np.int16), UsageError, "give uint8"),
    "wide": (GREY.astype(np.uint32), UsageError, "give uint8"),
    "zeros-and-ones": (np.uint8(GREY > 9), UsageError, r"255 is white, and holds no value above 1; .*astype\(bool\)"),
    "eight-bits-in-sixteen": (
        GREY.astype(np.uint16),
        UsageError,
        r"65535 is white, .* above 255; .*astype\(np.uint8\)",
    ),
    "colours-last": (COLOUR, UsageError, "channel_axis=-1"),
    "masked": (np.ma.masked_less(GREY, 9), UsageError, r"array\.filled\(0\)"),
    "masked-nowhere": (np.ma.array(UNIT), UsageError, r"array\.filled\(0\)"),
    "scipy-sparse": (csr_array(GREY), UsageError, "csr_array is no image"),
    "sparse-tensor": (torch.tensor(UNIT).to_sparse(), UsageError, "to_dense"),
    "csr-tensor": (torch.tensor(UNIT).to_sparse_csr(), UsageError, "to_dense"),
    "meta": (torch.zeros(3, 3, device="meta"), UsageError, "device meta"),
    "quantised": (
        torch.quantize_per_tensor(torch.tensor(UNIT).float(), 0.1, 0, torch.quint8),
        UsageError,
        "dequantize",
    ),
    "gradients": (torch.tensor(UNIT, requires_grad=True), UsageError, "detach"),
    "gradients-of-others": (torch.tensor(UNIT, requires_grad=True) * 2, UsageError, "detach"),
    "parameter": (torch.nn.Parameter(torch.tensor(UNIT)), UsageError, "detach"),
    "complex-tensor": (torch.tensor(UNIT) * 1j, UsageError, "give uint8"),
    "conjugate-tensor": ((torch.tensor(UNIT) * 1j).conj(), UsageError, "give uint8"),
    "eight-bit-float-tensor": (torch.tensor(UNIT).to(torch.float8_e4m3fn), UsageError, "give uint8"),
    "integer-tensor": (torch.zeros(3, 3, dtype=torch.int64), UsageError, "give uint8"),
    "empty-tensor": (torch.zeros(0, 0), InputError, "holds no images"),
    "no-tensor": (torch.float32, UsageError, "dtype is no image"),
    "empty-picture": (Image.new("L", (0, 0)), InputError, "no pixels"),
    "picture-without-rows": (Image.new("RGB", (5, 0)), InputError, "no pixels"),
    "integers": (Image.fromarray(GREY.astype(np.int32)), InputError, "white is not defined"),
    "floats-out-of-range": (Image.fromarray(GREY.astype(np.float32)), InputError, r"outside \[0, 1\]"),
    "colour": (Image.fromarray(COLOUR), ModelError, "greyscale"),
    "nothing": (None, UsageError, "NoneType is no image"),
    "empty-list": ([], InputError, "empty"),
}


@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # torch's own, of sparse tensors
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_row75_what_is_refused_says_what_to_give(name: str) -> None:
    images, error, says = REFUSED[name]
    for given in (images, [images]) if not isinstance(images, list) else (images,):
        with pytest.raises(error, match=says) as caught:
            restore.denoise(given, "tap-mnist-25", p=0.1)
        assert str(caught.value).isprintable()
        assert "--" not in str(caught.value)


@pytest.mark.parametrize("name", ["masked", "masked-nowhere", "complex", "object", "dates", "structured", "empty"])
def test_row75_images_to_learn_are_refused_for_the_same_faults(name: str) -> None:
    images, _, _ = REFUSED[name]
    for given in ([images] * 3, np.ma.stack([images] * 3) if name.startswith("masked") else np.stack([images] * 3)):
        with pytest.raises(RestoreError) as caught:
            gather(given)
        assert str(caught.value).isprintable()


def test_row75_a_mask_that_would_be_lost_is_refused_too() -> None:
    for mask in (np.ma.masked_less(GREY, 9) > 9, torch.tensor(UNIT, requires_grad=True)):
        with pytest.raises(UsageError):
            restore.complete(np.zeros((28, 28)), mask, "tap-mnist-25")


def test_integers_of_0_and_1_are_a_mask() -> None:
    hidden = np.arange(784).reshape(28, 28) % 5 == 0
    torn = np.where(hidden, 0.0, np.arange(28) > 9)
    whole = restore.complete(torn, hidden, "tap-mnist-25", force=True)
    for kind in (np.uint8, np.int64):
        same = restore.complete(torn, hidden.astype(kind), "tap-mnist-25", force=True)
        np.testing.assert_array_equal(same, whole)
    with pytest.raises(UsageError, match=r"^the mask: "):
        restore.complete(torn, 7 * hidden.astype(np.int64), "tap-mnist-25")


def test_tensors_come_back_as_they_are() -> None:
    for tensor in (torch.tensor(UNIT), torch.tensor(UNIT).bfloat16(), torch.tensor(GREY16), torch.tensor(GREY > 99)):
        found = back(tensor)
        assert found.dtype == tensor.dtype and torch.equal(found, tensor)
    negative = torch.view_as_complex(torch.tensor(np.dstack([UNIT, -UNIT]))).conj().imag  # its sign is a flag
    assert negative.is_neg()
    np.testing.assert_array_equal(unpack(negative).items[0].pixels, UNIT)


# --- PIL images ---


def with_alpha(mode: str) -> Image.Image:
    pair = Image.fromarray(np.dstack([GREY, 255 - GREY]))
    return {"LA": lambda: pair, "PA": lambda: pair.convert("PA"), "RGBA": lambda: pair.convert("RGBA")}[mode]()


def big_endian() -> Image.Image:
    return Image.frombytes("I;16B", GREY16.shape[::-1], GREY16.astype(">u2").tobytes())


def palette(transparency: object) -> Image.Image:
    image = Image.fromarray(GREY).convert("P")
    image.info["transparency"] = transparency
    return image


PICTURES: dict[str, tuple[Callable[[], Image.Image], np.ndarray]] = {
    "1": (lambda: Image.fromarray(GREY > 99), np.where(GREY > 99, 255, 0)),
    "L": (lambda: Image.fromarray(GREY), GREY),
    "LA": (lambda: with_alpha("LA"), GREY),
    "PA": (lambda: with_alpha("PA"), GREY),
    "RGBA": (lambda: with_alpha("RGBA"), GREY),
    "RGBX": (lambda: Image.fromarray(np.dstack([GREY] * 3)).convert("RGBX"), GREY),
    "HSV": (lambda: Image.fromarray(np.dstack([GREY] * 3)).convert("HSV"), GREY),
    "P": (lambda: Image.fromarray(GREY).convert("P"), GREY),
    "P-transparent-level": (lambda: palette(5), GREY),
    "P-transparent-bytes": (lambda: palette(bytes(range(256))), GREY),
    "I;16": (lambda: Image.fromarray(GREY16), GREY16),
    "I;16B": (big_endian, GREY16),
    "F": (lambda: Image.fromarray(UNIT.astype(np.float32)), GREY),
}


@pytest.mark.parametrize("mode", PICTURES)
def test_row75_modes_of_pictures(mode: str) -> None:
    make, expected = PICTURES[mode]
    (item,) = unpack(make()).items
    white = 65535 if expected is GREY16 else 255
    np.testing.assert_allclose(item.pixels, expected / white, atol=0.51 / 65535 if mode == "F" else 0)
    found = item.back(item.pixels, None)
    assert isinstance(found, Image.Image) and found.size == (12, 10)
    if mode == "P-transparent-bytes":
        np.testing.assert_array_equal(np.asarray(found.convert("RGBA"))[..., 3], GREY)


@pytest.mark.parametrize("mode", ["La", "RGBa"])
def test_row75_colours_that_are_multiplied_by_their_alpha(mode: str) -> None:
    (item,) = unpack(with_alpha("LA" if mode == "La" else "RGBA").convert(mode)).items
    opaque = GREY < 64  # whose alpha is above 191: what is divided by it again is rounded to a level or two
    assert np.abs(item.pixels * 255 - GREY)[opaque].max() <= 2


def test_row75_a_damaged_file_that_pil_has_opened(tmp_path: Any) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(encoded(GREY)[:-40])
    with Image.open(path) as image, pytest.raises(InputError, match="cannot be decoded"):
        unpack(image)


def test_row66_a_picture_that_is_too_large_is_not_decoded(tmp_path: Any) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(encoded(GREY))
    for image in (path, Image.open(path), [path]):
        with pytest.raises(InputError, match="more than 119 pixels; raise max_pixels if this is meant"):
            restore.denoise(image, "tap-mnist-25", p=0.1, max_pixels=119)
        with pytest.raises(InputError, match="more than 119 pixels; raise max_pixels if this is meant"):
            restore.complete(np.zeros((10, 12)), image, "tap-mnist-25", max_pixels=119)


# --- how Python is spoken ---


def test_messages_speak_of_arguments() -> None:
    spoken = {
        "has more than 9 pixels; raise --max-pixels if this is meant": "raise max_pixels if",
        "give --fit resize or another model": 'give fit="resize" or another model',
        "give a smaller --shape, such as --shape 28x28": "give a smaller shape, such as shape=(28, 28)",
        "skip them with --max-bad 3": "skip them with max_bad=3",
        "give --p 0.1.": "give p=0.1.",
        "choose one with --frame 0 to 2": "open it with PIL, seek one of 0 to 2, and give that",
        "give --engine torch, or --solver mean_field": 'give engine="torch", or solver="mean_field"',
        "give --model tap-mnist --fit resize": 'give model="tap-mnist" fit="resize"',
        "--sigma (or sigma=) is for": "sigma= is for",
        "leave --solver out": "leave solver out",
        "such as --sigma 0.1 (or sigma=0.1)": "such as sigma=0.1",
        "raise the limit (--max-memory or max_memory=)": "raise the limit (max_memory=)",
        "--levels grey learns grey levels": 'levels="grey" learns grey levels',
    }
    for told, expected in spoken.items():
        assert expected in in_python(told)
        assert "--" not in in_python(told)
    assert in_python("x--y: is empty -- or not") == "x--y: is empty -- or not"
    command = "get both again, or make it anew with `restore export X --beside --overwrite`, or give --p"
    assert in_python(command) == command.replace("give --p", "give p")


def test_a_message_keeps_its_kind_and_its_cause(tmp_path: Any) -> None:
    with pytest.raises(InputError, match="does not exist") as caught:
        restore.denoise(tmp_path / "missing.png", "tap-mnist-25", p=0.1)
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    assert restore.denoise.__name__ == "denoise"
