"""Images in memory of any kind: read as they are and given back in it, or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bad_images import COLOUR, GREY, GREY16, encoded
from PIL import Image
from scipy.sparse import csr_array

from restore.api.kinds import unpack, unpack_masks
from restore.errors import InputError, RestoreError, UsageError
from restore.images import read_mask

UNIT = GREY / 255


def back(images: Any) -> Any:
    """What comes back of images that are restored to themselves."""
    taken = unpack(images)
    return taken.together([item.back(item.values(), None) for item in taken.items])


# --- arrays ---


STRIPED = np.zeros((20, 24), np.uint8)
STRIPED[::2, ::2] = GREY


LAYOUTS = {
    "big-endian": GREY16.astype(">u2"),
    "big-endian-float": UNIT.astype(">f4"),
    "half": UNIT.astype(np.float16),
    "long-double": UNIT.astype(np.longdouble),
    "reversed": GREY[::-1, ::-1],
    "strided": STRIPED[::2, ::2],
    "fortran": np.asfortranarray(GREY16),
    "broadcast": np.broadcast_to(GREY[:1], GREY.shape),
    "matrix": np.asmatrix(GREY),
}


@pytest.mark.parametrize("array", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts_do_not_matter(array: np.ndarray) -> None:
    white = np.iinfo(array.dtype).max if array.dtype.kind == "u" else 1
    (item,) = unpack(array).items
    assert item.values().dtype == np.float64
    np.testing.assert_array_equal(item.values(), np.asarray(array, dtype=np.float64) / white)
    found = back(array)
    assert found.dtype == array.dtype
    np.testing.assert_allclose(found.astype(np.float64), np.asarray(array, np.float64), atol=1e-3 if white == 1 else 0)


def test_what_rounding_carried_out_of_range_is_cut() -> None:
    """Resizing gives 1.0000001, which no picture should be refused for."""
    (item,) = unpack(np.array([[0.0, 1 + 1e-6], [-1e-3, 0.5]])).items
    np.testing.assert_array_equal(item.values(), [[0, 1], [0, 0.5]])
    with pytest.raises(InputError):
        unpack(np.array([[0.0, 1.01]]))


REFUSED: dict[str, tuple[Any, type[RestoreError]]] = {
    "empty": (np.zeros((0, 0)), UsageError),
    "no-images": (np.zeros((0, 5, 5), np.uint8), UsageError),
    "no-dimension": (np.array(0.5), UsageError),
    "object": (GREY.astype(object), UsageError),
    "structured": (np.zeros((3, 3), [("a\n", "u1"), ("b", "f4")]), UsageError),
    "complex": (GREY.astype(complex), UsageError),
    "text": (GREY.astype(str), UsageError),
    "signed": (GREY.astype(np.int16), UsageError),
    "wide": (GREY.astype(np.uint32), UsageError),
    "zeros-and-ones": (np.uint8(GREY > 9), UsageError),
    "eight-bits-in-sixteen": (GREY.astype(np.uint16), UsageError),
    "colours-last": (COLOUR, UsageError),
    "masked": (np.ma.masked_less(GREY, 9), UsageError),
    "scipy-sparse": (csr_array(GREY), UsageError),
    "nan": (np.where(GREY > 9, UNIT, np.nan), InputError),
    "out-of-range": (GREY.astype(float), InputError),
    "sparse-tensor": (torch.tensor(UNIT).to_sparse(), UsageError),
    "csr-tensor": (torch.tensor(UNIT).to_sparse_csr(), UsageError),
    "meta": (torch.zeros(3, 3, device="meta"), UsageError),
    "quantised": (torch.quantize_per_tensor(torch.tensor(UNIT).float(), 0.1, 0, torch.quint8), UsageError),
    "gradients": (torch.tensor(UNIT, requires_grad=True), UsageError),
    "complex-tensor": (torch.tensor(UNIT) * 1j, UsageError),
    "integer-tensor": (torch.zeros(3, 3, dtype=torch.int64), UsageError),
    "empty-tensor": (torch.zeros(0, 0), UsageError),
    "no-tensor": (torch.float32, UsageError),
    "empty-picture": (Image.new("L", (0, 0)), UsageError),
    "picture-without-rows": (Image.new("RGB", (5, 0)), UsageError),
    "integers": (Image.fromarray(GREY.astype(np.int32)), InputError),
    "floats-out-of-range": (Image.fromarray(GREY.astype(np.float32)), InputError),
    "nothing": (None, UsageError),
    "empty-list": ([], InputError),
}


@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # torch's own, of sparse tensors
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    images, error = REFUSED[name]
    for given in (images, [images]) if not isinstance(images, list) else (images,):
        with pytest.raises(error) as caught:
            unpack(given)
        assert type(caught.value) is error and str(caught.value).isprintable()


def test_masks() -> None:
    hidden = GREY > 99
    for mask in (
        hidden,
        hidden.astype(np.uint8),
        hidden.astype(np.int64),
        np.uint8(hidden) * 255,
        torch.tensor(hidden),
        torch.tensor(hidden).byte(),
        [hidden.astype(np.uint8)],
        Image.fromarray(hidden.astype(np.uint8)),
    ):
        (found,) = unpack_masks(mask, [hidden.shape])
        np.testing.assert_array_equal(found.hidden, hidden)
    for mask in (np.ma.masked_less(GREY, 9) > 9, torch.tensor(UNIT, requires_grad=True), 7 * hidden.astype(np.int64)):
        with pytest.raises(UsageError):
            unpack_masks(mask, [hidden.shape])
    with pytest.raises(InputError):  # a painting, which is no mask
        unpack_masks(Image.fromarray(COLOUR), [hidden.shape])
    assert [mask.hidden.tolist() for mask in unpack_masks(hidden, [hidden.shape] * 2)] == [hidden.tolist()] * 2
    for masks in ([hidden] * 3, [hidden[1:]], [np.ones_like(hidden)], GREY // 3):
        with pytest.raises(InputError):
            unpack_masks(masks, [hidden.shape] * 2)


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("colour", [False, True])
def test_an_axis_of_colours_stays_where_it_is(axis: int, colour: bool) -> None:
    for channels in (COLOUR, np.dstack([COLOUR, GREY]), np.dstack([GREY] * 3), GREY[..., None]):
        images = np.stack([np.moveaxis(channels, -1, axis)] * 2) if axis == -1 else np.moveaxis(channels, -1, axis)
        taken = unpack(images, axis, colour=colour)
        item = taken.items[0]
        grey = (channels[..., :3] == channels[..., :1]).all()
        assert item.values().shape == (GREY.shape if grey or not colour else COLOUR.shape)
        assert bool(item.notes) == (not grey and not colour)
        hole = np.zeros(GREY.shape, bool)
        hole[1, 2] = True
        found = taken.together([item.back(item.values(), hole) for item in taken.items])
        assert found.shape == images.shape and found.dtype == images.dtype
        last = np.moveaxis(found, axis, -1)
        np.testing.assert_array_equal(last[..., ~hole, :], np.moveaxis(images, axis, -1)[..., ~hole, :])
        np.testing.assert_array_equal(last[..., 3:], np.moveaxis(images, axis, -1)[..., 3:])


def test_lists_keep_their_shape(tmp_path: Any) -> None:
    Image.fromarray(GREY).save(tmp_path / "x.png")
    images = [GREY, [np.stack([GREY, GREY]), tmp_path / "x.png"]]
    one, (batch, picture) = back(images)
    np.testing.assert_array_equal(one, GREY)
    assert batch.shape == (2, *GREY.shape)
    np.testing.assert_array_equal(np.asarray(picture), GREY)


def test_tensors_come_back_as_they_are() -> None:
    for tensor in (torch.tensor(UNIT), torch.tensor(UNIT).bfloat16(), torch.tensor(GREY16), torch.tensor(GREY > 99)):
        found = back(tensor)
        assert found.dtype == tensor.dtype and torch.equal(found, tensor)
    negative = torch.view_as_complex(torch.tensor(np.dstack([UNIT, -UNIT]))).conj().imag  # its sign is a flag
    assert negative.is_neg()
    np.testing.assert_array_equal(unpack(negative).items[0].values(), UNIT)


# --- PIL images ---


def with_alpha(mode: str) -> Image.Image:
    pair = Image.fromarray(np.dstack([GREY, 255 - GREY]))
    return {"LA": lambda: pair, "PA": lambda: pair.convert("PA"), "RGBA": lambda: pair.convert("RGBA")}[mode]()


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
    "HSV": (lambda: Image.fromarray(np.dstack([GREY] * 3)).convert("HSV"), GREY),
    "P": (lambda: Image.fromarray(GREY).convert("P"), GREY),
    "P-transparent-bytes": (lambda: palette(bytes(range(256))), GREY),
    "I;16": (lambda: Image.fromarray(GREY16), GREY16),
    "F": (lambda: Image.fromarray(UNIT.astype(np.float32)), GREY),
}


GREY_PROFILE = bytes(16) + b"GRAY"


def fits(image: Image.Image) -> bool:
    """A profile of greys is wrong for colours, which a palette has too."""
    return not image.mode.startswith(("RGB", "P"))


@pytest.mark.parametrize("mode", PICTURES)
def test_modes_of_pictures(mode: str) -> None:
    make, expected = PICTURES[mode]
    image = make()
    image.info |= {"dpi": (72, 36), "icc_profile": GREY_PROFILE, "exif": b"some"}
    taken = unpack(image)
    (item,) = taken.items
    white = 65535 if expected is GREY16 else 255
    np.testing.assert_allclose(item.values(), expected / white, atol=1e-7)
    found = taken.together([item.back(item.values(), None)])
    assert isinstance(found, Image.Image) and found.size == (12, 10)
    kept_facts = {"dpi": (72, 36), "exif": b"some"} | ({"icc_profile": GREY_PROFILE} if fits(found) else {})
    assert {key: found.info[key] for key in found.info if key != "transparency"} == kept_facts
    kept_as_is = taken.together([item.back(0 * item.values(), np.zeros(item.values().shape[:2], bool))])
    kept = {"HSV": "L", "PA": "LA", "P-transparent-bytes": "P"}.get(mode, mode)
    assert found.mode == kept
    assert bool(item.notes) == (mode in ("PA", "HSV"))  # what does not come back as it was
    np.testing.assert_array_equal(np.asarray(kept_as_is.convert(found.mode)), np.asarray(found))
    if mode == "P-transparent-bytes":
        np.testing.assert_array_equal(np.asarray(found.convert("RGBA"))[..., 3], GREY)


@pytest.mark.parametrize("mode", ["La", "RGBa"])
def test_colours_that_are_multiplied_by_their_alpha(mode: str) -> None:
    (item,) = unpack(with_alpha("LA" if mode == "La" else "RGBA").convert(mode)).items
    opaque = GREY < 64  # whose alpha is above 191: what is divided by it again is rounded to a level or two
    assert np.abs(item.values() * 255 - GREY)[opaque].max() <= 2


def test_a_damaged_or_too_large_file_that_pil_has_opened(tmp_path: Any) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(encoded(GREY)[:-40])
    with Image.open(path) as image, pytest.raises(InputError):
        unpack(image)
    for given in (path, image):
        with pytest.raises(InputError):
            unpack(given, max_pixels=119)


def test_what_is_transparent_in_a_mask_is_not_filled_however_it_is_given(tmp_path: Path) -> None:
    marked = np.zeros((12, 15), bool)
    marked[2:7, 3:9] = True
    opacity = np.full(marked.shape, 255, np.uint8)
    opacity[5:] = 0
    mask = Image.fromarray(np.dstack([marked * np.uint8(255)] * 3 + [opacity]), "RGBA")
    mask.save(path := tmp_path / "mask.png")
    for given in (mask, str(path)):
        np.testing.assert_array_equal(unpack_masks(given, [marked.shape])[0].hidden, marked & (opacity > 0))
    read = read_mask(path, name="mask.png", shape=marked.shape)
    np.testing.assert_array_equal(read.hidden, marked & (opacity > 0))
