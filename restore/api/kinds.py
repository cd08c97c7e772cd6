"""Images of the caller's own kind: PIL images, arrays, tensors, paths, and lists of them; results have the same kind.

A three-dimensional array is a batch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from restore.errors import InputError, RestoreError, UsageError, reason, require, shown
from restore.images.colours import LUMINANCE, picture_of
from restore.images.masks import Mask, mask_of
from restore.images.pages import Book, page_name
from restore.images.picture import BY_LUMINANCE, Picture, check_unit_range, plain
from restore.images.reading import DEFAULT_MAX_PIXELS, pillow, read_content, read_picture, too_large
from restore.images.writing import as_pil
from restore.sizes import size_text

if TYPE_CHECKING:
    import torch

_NUMBERS = "give uint8, uint16, bool, or floats in [0, 1]"
# The numbers of channels of an image with an axis of colours.
_CHANNELS = (1, 3, 4)


@dataclass(frozen=True, eq=False)
class Item:
    """One image of the caller: its file, if any, and notes.

    Its pixels are float64 in [0, 1], (H, W) or in colour (H, W, 3), converted part by part. `back` turns restored
    values of this shape, and the pixels to replace (all if None), into the caller's kind.
    """

    pixels: Picture | Values
    back: Callable[[np.ndarray, np.ndarray | None], Any]
    path: str = ""
    notes: tuple[str, ...] = ()

    def values(self) -> np.ndarray:
        """All its pixels, in memory."""
        return self.pixels[:, :]


@dataclass(frozen=True, eq=False)
class Values:
    """The pixels of an array (H, W) or (H, W, 3), which as float64 may take eight times its memory.

    Attributes:
        image: the array.
        white: the value of white.
        beyond: how far they may lie outside [0, 1].
        grey: True to read the luminance of colours.
    """

    image: np.ndarray
    white: int
    beyond: float
    grey: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self.image.shape[:2] if self.grey else self.image.shape

    @property
    def colours(self) -> np.ndarray | None:
        """The colours whose luminance is read."""
        return self.image if self.grey else None

    def __getitem__(self, where: tuple[slice, slice]) -> np.ndarray:
        pixels = (self.image[where].astype(np.float64) / self.white).clip(-self.beyond, 1 + self.beyond)
        return pixels @ LUMINANCE if self.grey else pixels


@dataclass(frozen=True, eq=False)
class Collection:
    """The caller's images, and how their results are put together."""

    items: list[Item]
    together: Callable[[list[Any]], Any]


@dataclass(frozen=True)
class _Reading:
    """How images are read; see `unpack`."""

    channel_axis: int | None
    beyond: float
    max_pixels: int
    colour: bool
    mask: bool


def unpack(
    images: Any,
    channel_axis: int | None = None,
    beyond: float = 0.0,
    max_pixels: int = DEFAULT_MAX_PIXELS,
    colour: bool = False,
    mask: bool = False,
) -> Collection:
    """Take apart whatever holds one image or several; raises InputError or UsageError for what holds none.

    Args:
        images: a path, a PIL image, an (H, W) array or tensor, an (N, H, W) batch, or a sequence of these. The
            pages of a TIFF or PDF, if there are several, come back as a list.
        channel_axis: the axis of an array that holds colour channels, if it has more than two axes: 1, 3, or 4 with
            opacity, which is kept.
        beyond: how far floats may lie outside [0, 1], as in noisy images.
        max_pixels: refuse larger images before decoding them.
        colour: keep colours; else they are read by their luminance, and restored pixels become grey.
        mask: take integers of 0 and 1 for black and white.

    >>> unpack([np.zeros((28, 28), np.uint8)] * 2).items[0].pixels.shape
    (28, 28)
    """
    try:
        return _unpack(images, _Reading(channel_axis, beyond, max_pixels, colour, mask))
    except RecursionError:
        raise UsageError("the list of images contains itself; give a list of images") from None


def unpack_masks(masks: Any, shapes: Sequence[tuple[int, ...]], max_pixels: int = DEFAULT_MAX_PIXELS) -> list[Mask]:
    """One mask for each picture of these shapes, or one for all; raises InputError as `read_mask` does."""
    try:
        items = unpack(masks, max_pixels=max_pixels, mask=True).items
    except RestoreError as fault:
        raise type(fault)(f"the mask: {fault}") from fault
    items *= len(shapes) if len(items) == 1 else 1
    if len(items) != len(shapes):
        raise InputError(f"there are {len(items)} masks for {len(shapes)} images; give one for each, or one for all")
    return [mask_of(item.values(), shape, item.notes) for item, shape in zip(items, shapes, strict=True)]


def is_sequence(images: Any) -> bool:
    """True for a list, a tuple or another sequence of images."""
    return isinstance(images, Sequence) and not isinstance(images, str | bytes | bytearray)


def _unpack(images: Any, how: _Reading) -> Collection:
    torch = sys.modules.get("torch")
    if is_sequence(images):
        if not images:
            raise InputError("the list of images is empty; give at least one")
        parts = [_unpack(image, how) for image in images]

        def together(results: list[Any]) -> list[Any]:
            rest = iter(results)
            return [part.together(list(islice(rest, len(part.items)))) for part in parts]

        return Collection([item for part in parts for item in part.items], together)
    if isinstance(images, str | os.PathLike):
        return _unpack_file(os.fspath(images), how)
    if isinstance(images, Image.Image):
        return _unpack_pil(images, how)
    if isinstance(images, np.ndarray):
        return _unpack_array(plain(images), how)
    if torch is not None and isinstance(images, torch.Tensor):
        return _unpack_tensor(images, how)
    raise UsageError(f"{type(images).__name__} is no image; give a path, PIL image, array, tensor, or a list of them")


def _unpack_file(path: str, how: _Reading) -> Collection:
    content = read_content(path, shown(path), how.max_pixels)
    most = how.max_pixels
    items = list[Item]()
    with closing(Book.of(content, path, most)) as book:
        for page in range(book.count):
            name, frame = (path, None) if book.count == 1 else (page_name(path, page, book.count), page)
            picture = read_picture(book.source, name=name, frame=frame, max_pixels=most, colour=how.colour)
            items.append(_item_of(picture.as_mask if how.mask else picture, name))
    return Collection(items, itemgetter(0) if book.count == 1 else list)


def _item_of(picture: Picture, path: str = "") -> Item:
    return Item(picture, lambda values, replaced: as_pil(picture, values, replaced), path, picture.notes)


def _unpack_pil(image: Image.Image, how: _Reading) -> Collection:
    """Read a PIL image; its result has its resolution, its colour profile and its other facts."""
    require(0 not in image.size, f"the image has no pixels ({size_text((image.height, image.width))}); give an image")
    if image.width * image.height > how.max_pixels:
        raise too_large("the image", how.max_pixels)
    with pillow("the image", how.max_pixels):
        image.load()
    info = {key: value for key, value in image.info.items() if key != "transparency"}
    if image.mode != "F":
        picture = picture_of(image, "the image", colour=how.colour)
        picture = replace(picture.as_mask if how.mask else picture, bits=image.mode == "1", info=info)
        return Collection([_item_of(picture)], itemgetter(0))
    floats = _unpack_array(np.asarray(image), replace(how, channel_axis=None))

    def together(results: list[Any]) -> Image.Image:
        result = Image.fromarray(floats.together(results))
        result.info = info
        return result

    return Collection(floats.items, together)


def _unpack_tensor(images: torch.Tensor, how: _Reading) -> Collection:
    import torch

    try:
        # Numpy has no bfloat16; float32 holds all its values.
        values = (images.float() if images.dtype == torch.bfloat16 else images).cpu().resolve_neg().numpy()
    except (TypeError, RuntimeError, NotImplementedError) as fault:  # gradients, sparse, quantised, on the device meta
        why = f"the tensor of {images.dtype} does not become an array ({reason(fault)})"
        raise UsageError(f"{why}; give image.detach(), dense, with pixels; {_NUMBERS}") from fault
    inner = _unpack_array(values, how)

    def together(results: list[Any]) -> Any:
        return torch.from_numpy(np.ascontiguousarray(inner.together(results))).to(images)

    return Collection(inner.items, together)


def _unpack_array(images: np.ndarray, how: _Reading) -> Collection:
    if how.mask and images.dtype.kind in "iu" and images.size and images.min() >= 0 and images.max() <= 1:
        images = images == 1
    axis = _axis_of_colours(images, how.channel_axis)
    _check_white(images)
    if axis is not None:
        images = np.moveaxis(images, axis, -1)
    single = images.ndim == (2 if axis is None else 3)
    items = [_array_item(image, how) for image in (images[None] if single else images)]

    def together(results: list[Any]) -> Any:
        whole = results[0] if single else np.stack(results)
        return whole if axis is None else np.moveaxis(whole, -1, axis)

    return Collection(items, together)


def _axis_of_colours(images: np.ndarray, named: int | None) -> int | None:
    """The axis of colours, if any, of an image or a batch; raises UsageError for what is neither."""
    shape = images.shape
    axis = named if len(shape) > 2 else None
    if axis is None and len(shape) == 4 and shape[1] == 1:  # (N, 1, H, W), as of networks
        axis = 1
    if 0 in shape or len(shape) not in ((2, 3) if axis is None else (3, 4)):
        raise UsageError(f"an array of shape {shape} holds no images; give (H, W), (N, H, W) or (N, 1, H, W)")
    if axis is None and len(shape) == 3 and shape[2] in _CHANNELS and min(shape[:2]) > 4:
        fault = f"an array of shape {shape} seems to be one image with an axis of colours, not a batch"
        raise UsageError(f"{fault}; give channel_axis=-1, or the images of a batch as a list")
    if axis is not None and (not -len(shape) <= axis < len(shape) or shape[axis] not in _CHANNELS):
        raise UsageError(f"channel_axis {axis} is no axis of 1, 3 or 4 colours of shape {shape}")
    return axis


def _check_white(images: np.ndarray) -> None:
    """Raise UsageError for an array whose type has no white, or a far larger one than its values."""
    white = _white(images)
    largest = images.max()
    least, kind = (1, "bool") if largest <= 1 else (255, "np.uint8")
    if white > least and 0 < largest <= least:
        fault = f"the array is of {images.dtype}, in which {white} is white, and holds no value above {least}"
        raise UsageError(f"{fault}; if that is its white, give array.astype({kind})")


def _array_item(image: np.ndarray, how: _Reading) -> Item:
    """An image (H, W), or (H, W, C) with 1, 3 or 4 channels."""
    white, image = _white(image), np.array(image)  # a copy, as the caller may change it before an answer is shown
    if image.dtype.kind == "f":
        check_unit_range(image, name="the array", beyond=how.beyond)
    colours = image[..., :3] if image.ndim == 3 else image
    if image.ndim == 3 and (colours == colours[..., :1]).all():
        colours = colours[..., 0]
    by_luminance = colours.ndim == 3 and not how.colour

    def back(values: np.ndarray, replaced: np.ndarray | None) -> np.ndarray:
        # An unbounded pixel may end beyond black or white.
        scaled = values > 0.5 if image.dtype == bool else values.clip(0, 1) * white
        levels = (np.rint(scaled) if image.dtype.kind == "u" else scaled).astype(image.dtype)
        where = np.ones(image.shape[:2], bool) if replaced is None else replaced
        if replaced is None and image.shape[2:] == (4,):  # what is fully transparent stays
            where = image[..., 3] > 0
        result = image.copy()
        if image.ndim == 2:
            result[where] = levels[where]
        else:
            result[where, :3] = levels[where] if levels.ndim == 3 else levels[where][:, None]
        return result

    notes = (BY_LUMINANCE,) if by_luminance else ()
    return Item(Values(colours, white, how.beyond, by_luminance), back, notes=notes)


def _white(images: np.ndarray) -> int:
    """The value of white by type, as in scikit-image: the largest of an unsigned integer, 1 for bool and float."""
    kind = images.dtype.newbyteorder("=")
    if kind in (np.uint8, np.uint16):
        return int(np.iinfo(kind).max)
    if kind.kind in "bf":
        return 1
    raise UsageError(f"arrays of {shown(str(images.dtype))} have no defined white; {_NUMBERS}")
