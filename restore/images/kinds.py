"""Images of the caller's own kind: PIL images, arrays, tensors, paths, and lists of them; results have the same kind.

A three-dimensional array is a batch.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from restore.errors import InputError, ModelError, RestoreError, UsageError, shown
from restore.images import (
    DEFAULT_MAX_PIXELS,
    Picture,
    as_pil,
    check_unit_range,
    page_count,
    page_name,
    picture_of,
    plain,
    read_raster,
)
from restore.images.raster import Raster

if TYPE_CHECKING:
    import torch


# Modes that PNG stores; TIFF stores others (CMYK, YCbCr, Lab, floating point), and some are converted first.
_PNG_MODES = ("1", "L", "LA", "I;16", "P", "RGB", "RGBA")
_SAVED_AS = {"La": "LA", "RGBa": "RGBA", "HSV": "RGB", "RGBX": "RGB", "I;16N": "I;16"}

# It is empty, however often it is asked.
NO_HOLES: Iterator[np.ndarray] = iter(())

# Numbers of colour channels, as of grey, of colours, and of colours with transparency.
_CHANNELS = (1, 3, 4)

_NUMBERS = "give uint8, uint16, bool, or floats in [0, 1]"


@dataclass(frozen=True, eq=False)
class Item:
    """One image of the caller.

    Attributes:
        pixels: grey values, (H, W), or in colour (H, W, 3); float64 in [0, 1].
        back: turns restored values of this shape, and the pixels to replace (all if None), into the caller's kind.
        path: the file it was read from; empty if none.
    """

    pixels: np.ndarray
    back: Callable[[np.ndarray, np.ndarray | None], Any]
    path: str = ""

    def unchanged(self) -> Any:
        """The image as it came, in the caller's kind."""
        return self.back(np.zeros(self.pixels.shape), np.zeros(self.pixels.shape[:2], bool))


@dataclass(frozen=True, eq=False)
class Collection:
    """The caller's images, and how their results are put together."""

    items: list[Item]
    together: Callable[[list[Any]], Any]


def in_kind(values: np.ndarray, images: Any) -> Any:
    """Return numbers about images as a tensor if the images are tensors, on the same device; else as an array."""
    first = images[0] if isinstance(images, list | tuple) else images
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(first, torch.Tensor):
        return values
    return torch.from_numpy(values).to(first.device)


def unpack(
    images: Any,
    channel_axis: int | None = None,
    beyond: float = 0.0,
    max_pixels: int = DEFAULT_MAX_PIXELS,
    colour: bool = False,
    holes: Iterator[np.ndarray] = NO_HOLES,
) -> Collection:
    """Take apart whatever holds one image or several.

    Args:
        images: a path, a PIL image, an (H, W) array or tensor, an (N, H, W) batch, or a list or tuple of these. The
            pages of a TIFF or PDF, if there are several, come back as a list.
        channel_axis: the axis of an array that holds colour channels; they must be equal unless colours are kept.
        beyond: how far floats may lie outside [0, 1], as in noisy images.
        max_pixels: refuse larger images before decoding them.
        colour: whether images may be in colour.
        holes: of each image the pixels whose colours count for nothing, boolean (H, W), as far as they are known.

    Raises:
        InputError: if an image cannot be read or is too large, has values outside its range, or there are none.
        ModelError: if an image is in colour and may not be.
        UsageError: if its kind is unknown, or it holds what would be lost: a mask, gradients.
    """
    if isinstance(images, list | tuple):
        if not images:
            raise InputError("the list of images is empty; give at least one")
        parts = [unpack(image, channel_axis, beyond, max_pixels, colour, holes) for image in images]
        counts = [len(part.items) for part in parts]
        return Collection([item for part in parts for item in part.items], lambda found: _regroup(parts, counts, found))
    if isinstance(images, str | os.PathLike):
        return _unpack_file(os.fspath(images), max_pixels, colour, holes)
    if isinstance(images, Image.Image):
        return _one(_item_of(_picture_of(images, max_pixels, colour, holes)))
    torch = sys.modules.get("torch")
    found = None
    if isinstance(images, np.ndarray):
        found = _unpack_array(plain(images), channel_axis, beyond, colour)
    elif torch is not None and isinstance(images, torch.Tensor):
        found = _unpack_tensor(images, channel_axis, beyond, colour)
    if found is not None:
        for _ in found.items:
            next(holes, None)
        return found
    raise UsageError(f"{type(images).__name__} is no image; give a path, PIL image, array, tensor, or a list of them")


def unpack_masks(masks: Any, max_pixels: int = DEFAULT_MAX_PIXELS) -> list[np.ndarray]:
    """Boolean masks, True = to fill.

    Numbers count as True above half of their white, as in mask files; integers, too, if they are 0 and 1.

    Raises:
        RestoreError: as `unpack`, saying that it is about the mask.
    """
    if isinstance(masks, np.ndarray) and masks.dtype.kind in "iu" and masks.size and masks.min() >= 0:
        masks = masks == 1 if masks.max() == 1 else masks
    try:
        return [item.pixels > 0.5 for item in unpack(masks, max_pixels=max_pixels).items]
    except RestoreError as fault:
        raise type(fault)(f"the mask: {fault}") from fault


def fitted_masks(masks: Sequence[np.ndarray], shapes: list[tuple[int, int]]) -> list[np.ndarray]:
    """One mask for each image; a single one is used for all images.

    Raises:
        InputError: if a mask has another size than its image or would fill all of it, or their number differs.
    """
    found = list(masks)
    if len(found) == 1:
        found *= len(shapes)
    if len(found) != len(shapes):
        raise InputError(f"there are {len(found)} masks for {len(shapes)} images; give one for each, or one for all")
    for mask, shape in zip(found, shapes, strict=True):
        if mask.shape != shape:
            raise InputError(f"the mask has shape {mask.shape} and its image {shape}; give a mask of the same size")
        if mask.all():
            raise InputError("the mask covers the whole image; leave some pixels visible (False or black)")
    return found


def _unpack_file(path: str, max_pixels: int, colour: bool, holes: Iterator[np.ndarray]) -> Collection:
    count = page_count(path, name=path, max_pixels=max_pixels)
    if count == 1:
        return _one(_item_of(_seen(read_raster(path, name=path, max_pixels=max_pixels), path, colour, holes), path))
    items = []
    for page in range(count):
        name = page_name(path, page, count)
        raster = read_raster(path, name=name, frame=page, max_pixels=max_pixels)
        items.append(_item_of(_seen(raster, name, colour, holes), name))
    return Collection(items, list)


def _seen(raster: Raster, name: str, colour: bool, holes: Iterator[np.ndarray]) -> Picture:
    """The picture of a file, whose next hole has no colour."""
    hidden = next(holes, None)
    fits = hidden is not None and hidden.shape == raster.levels.shape[:2]
    return picture_of(raster, shown(name), colour=colour, hidden=hidden if fits else None)


def _item_of(picture: Picture, path: str = "") -> Item:
    return Item(picture.pixels, lambda values, replaced: as_pil(picture, values, replaced), path)


def _one(item: Item) -> Collection:
    return Collection([item], lambda found: found[0])


def _regroup(parts: list[Collection], counts: list[int], found: list[Any]) -> list[Any]:
    ends = np.cumsum(counts)
    return [
        part.together(found[end - count : end]) for part, count, end in zip(parts, counts, ends.tolist(), strict=True)
    ]


def _picture_of(image: Image.Image, max_pixels: int, colour: bool, holes: Iterator[np.ndarray]) -> Picture:
    """Read a PIL image as if it were a file."""
    if 0 in image.size:
        raise InputError(f"the image has no pixels ({image.width}x{image.height}); give an image")
    if image.width * image.height > max_pixels:
        raise InputError(f"the image has more than {max_pixels} pixels; raise --max-pixels if this is meant")
    stream = io.BytesIO()
    try:
        known = image.convert(_SAVED_AS[image.mode]) if image.mode in _SAVED_AS else image
        if known.mode in _PNG_MODES:
            known.save(stream, "PNG")
        else:
            known.save(stream, "TIFF", compression="raw")
    except RestoreError:
        raise
    except Exception as fault:  # an image opened from a file is decoded here, and decoders raise nearly anything
        reason = shown(str(fault)) or type(fault).__name__
        raise InputError(
            f"the image, of mode {image.mode}, cannot be decoded ({reason}); give an intact one"
        ) from fault
    stream.seek(0)
    return _seen(read_raster(stream, name="the image", max_pixels=max_pixels), "the image", colour, holes)


def _unpack_tensor(images: torch.Tensor, channel_axis: int | None, beyond: float, colour: bool) -> Collection:
    import torch

    if images.requires_grad:
        raise UsageError("the tensor carries gradients, which restoring does not pass on; give image.detach()")
    if images.layout is not torch.strided or images.is_nested:
        raise UsageError("the tensor is sparse, or nested; give a dense one, as of image.to_dense()")
    if images.is_quantized:
        raise UsageError("the tensor is quantised; give image.dequantize()")
    if images.is_meta:
        raise UsageError("the tensor is on the device meta, and holds no pixels; give one that does")
    # Numpy has no bfloat16; float32 holds all its values.
    known = images.float() if images.dtype == torch.bfloat16 else images
    try:
        values = known.cpu().resolve_neg().numpy()
    except (TypeError, RuntimeError, NotImplementedError) as fault:
        raise UsageError(f"tensors of {images.dtype} have no defined white; {_NUMBERS}") from fault
    inner = _unpack_array(values, channel_axis, beyond, colour)

    def together(found: list[Any]) -> Any:
        return torch.from_numpy(np.ascontiguousarray(inner.together(found))).to(images)

    return Collection(inner.items, together)


def _unpack_array(images: np.ndarray, channel_axis: int | None, beyond: float, colour: bool = False) -> Collection:
    white = _white(images)
    least, kind = (1, "bool") if not images.size or images.max() <= 1 else (255, "np.uint8")
    if white > least and images.size and 0 < images.max() <= least:
        raise UsageError(
            f"the array is of {images.dtype}, in which {white} is white, and holds no value above {least}; if that is "
            f"its white, give array.astype({kind})"
        )
    if channel_axis is None and images.ndim == 3 and images.shape[2] in _CHANNELS and min(images.shape[:2]) > 4:
        raise UsageError(
            f"an array of shape {images.shape} seems to be one image with an axis of colours, not a batch; give "
            "channel_axis=-1, or the images of a batch as a list"
        )
    if channel_axis is not None:
        if not -images.ndim <= channel_axis < images.ndim:
            raise UsageError(f"channel_axis {channel_axis} is no axis of an array of shape {images.shape}")
        channels = np.moveaxis(images, channel_axis, 0)
        if not len(channels) or (channels != channels[0]).any():
            if colour and len(channels) == 3:
                return _unpack_colours(np.moveaxis(channels, 0, -1), channel_axis, beyond, white)
            raise ModelError(
                "the array is in colour, and the priors know grey images; if it is a photograph with noise, give "
                "--sigma, or else convert it to greyscale first"
            )
        grey = _unpack_array(channels[0], None, beyond)

        def together(found: list[Any]) -> Any:
            return np.stack([grey.together(found)] * len(channels), axis=channel_axis)

        return Collection(grey.items, together)
    if images.ndim not in (2, 3) or 0 in images.shape:
        raise InputError(f"an array of shape {images.shape} holds no images; give (H, W), or (N, H, W) for a batch")
    batch = images if images.ndim == 3 else images[None]
    if images.dtype.kind == "f":
        check_unit_range(images, name="the array", beyond=beyond)
    items = [_array_item(image, white, beyond) for image in batch]
    return Collection(items, lambda found: np.stack(found) if images.ndim == 3 else found[0])


def _unpack_colours(images: np.ndarray, channel_axis: int, beyond: float, white: int) -> Collection:
    """The images of an array (H, W, 3) or (N, H, W, 3); results have the axis of colours where it was."""
    # Shape and range are checked as those of a grey array.
    _unpack_array(images[..., 0], None, beyond)
    if images.dtype.kind == "f":
        check_unit_range(images, name="the array", beyond=beyond)
    batch = images if images.ndim == 4 else images[None]
    items = [_array_item(image, white, beyond) for image in batch]

    def together(found: list[Any]) -> Any:
        return np.moveaxis(np.stack(found) if images.ndim == 4 else found[0], -1, channel_axis)

    return Collection(items, together)


def _array_item(image: np.ndarray, white: int, beyond: float) -> Item:
    return Item((image.astype(np.float64) / white).clip(-beyond, 1 + beyond), _array_back(image, white))


def _array_back(original: np.ndarray, white: int) -> Callable[[np.ndarray, np.ndarray | None], np.ndarray]:
    def back(values: np.ndarray, replaced: np.ndarray | None) -> np.ndarray:
        # An unbounded pixel may end beyond black or white.
        scaled = values > 0.5 if original.dtype == bool else values.clip(0, 1) * white
        levels = (np.rint(scaled) if original.dtype.kind == "u" else scaled).astype(original.dtype)
        if replaced is None:
            return levels
        return np.where(replaced if original.ndim == 2 else replaced[..., None], levels, original)

    return back


def _white(images: np.ndarray) -> int:
    """The value of white by type, as in scikit-image: the largest of an unsigned integer, 1 for bool and float."""
    kind = images.dtype.newbyteorder("=")
    if kind in (np.uint8, np.uint16):
        return int(np.iinfo(kind).max)
    if kind.kind in "bf":
        return 1
    raise UsageError(f"arrays of {shown(str(images.dtype))} have no defined white; {_NUMBERS}")
