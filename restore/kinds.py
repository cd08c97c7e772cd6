"""The caller's own kind of image: in as grey values, and back as what came in.

PIL images, arrays, tensors, paths, and lists of them; a three-dimensional array is a batch.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from restore.errors import InputError, ModelError, UsageError
from restore.images import Picture, check_unit_range, encode, read_picture, to_levels

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class Item:
    """One image of the caller's.

    Attributes:
        pixels: grey values, (H, W), float64 in [0, 1].
        back: from restored grey values (H, W), and the pixels to replace (all if None), to the caller's kind.
        path: of the file it was read from; empty if it was not.
    """

    pixels: np.ndarray
    back: Callable[[np.ndarray, np.ndarray | None], Any]
    path: str = ""

    def unchanged(self) -> Any:
        """The image as it came, in the caller's kind."""
        return self.back(np.zeros(self.pixels.shape), np.zeros(self.pixels.shape, bool))


@dataclass(frozen=True, eq=False)
class Collection:
    """What the caller passed: its images, and how results for them are put together again."""

    items: list[Item]
    together: Callable[[list[Any]], Any]


def in_kind(values: np.ndarray, images: Any) -> Any:
    """Numbers about images: a tensor on their device if those, or the first of several, are tensors; else the array."""
    first = images[0] if isinstance(images, list | tuple) else images
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(first, torch.Tensor):
        return values
    return torch.from_numpy(values).to(first.device)


def unpack(images: Any, channel_axis: int | None = None, beyond: float = 0.0) -> Collection:
    """Take apart whatever holds one image or several.

    Args:
        images: a path, a PIL image, an (H, W) array or tensor, an (N, H, W) batch, or a list or tuple of these.
        channel_axis: the axis of an array that holds colour channels; they must be equal, as the priors know grey.
        beyond: by how much floats may lie outside [0, 1], as those of noisy images do.

    Raises:
        InputError: if an image cannot be read, has values outside its range, or there are none.
        ModelError: if an image is in colour.
        UsageError: if it is of no kind known here.
    """
    if isinstance(images, list | tuple):
        if not images:
            raise InputError("the list of images is empty; give at least one")
        parts = [unpack(image, channel_axis, beyond) for image in images]
        counts = [len(part.items) for part in parts]
        return Collection([item for part in parts for item in part.items], lambda found: _regroup(parts, counts, found))
    if isinstance(images, str | os.PathLike):
        picture = read_picture(Path(images), name=os.fspath(images))
        return _one(
            Item(picture.pixels, lambda values, replaced: _as_pil(picture, values, replaced), os.fspath(images))
        )
    if isinstance(images, Image.Image):
        stream = io.BytesIO()
        # TIFF takes the modes that PNG does not (CMYK, YCbCr, Lab, floating point).
        images.save(stream, "PNG" if images.mode in ("1", "L", "LA", "I;16", "P", "RGB", "RGBA") else "TIFF")
        stream.seek(0)
        picture = read_picture(stream, name="the image")
        return _one(Item(picture.pixels, lambda values, replaced: _as_pil(picture, values, replaced)))
    if isinstance(images, np.ndarray):
        return _unpack_array(images, channel_axis, beyond)
    if type(images).__module__.split(".")[0] == "torch":
        return _unpack_tensor(images, channel_axis, beyond)
    raise UsageError(f"{type(images).__name__} is no image; give a path, PIL image, array, tensor, or a list of them")


def unpack_masks(masks: Any, shapes: list[tuple[int, int]]) -> list[np.ndarray]:
    """Boolean masks, True = to fill, one per image; a single mask serves all images.

    Numbers count as True above half of their white, as in mask files.

    Raises:
        InputError: if a mask has another size than its image or would fill all of it, or their number differs.
    """
    found = [item.pixels > 0.5 for item in unpack(masks).items]
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


def _one(item: Item) -> Collection:
    return Collection([item], lambda found: found[0])


def _regroup(parts: list[Collection], counts: list[int], found: list[Any]) -> list[Any]:
    ends = np.cumsum(counts)
    return [
        part.together(found[end - count : end]) for part, count, end in zip(parts, counts, ends.tolist(), strict=True)
    ]


def _as_pil(picture: Picture, values: np.ndarray, replaced: np.ndarray | None) -> Image.Image:
    if picture.alpha is None:
        return Image.fromarray(to_levels(picture, values, replaced))
    image = Image.open(io.BytesIO(encode(picture, values, format="PNG", hidden=replaced)))
    image.load()
    return image


def _unpack_tensor(images: torch.Tensor, channel_axis: int | None, beyond: float) -> Collection:
    import torch

    # Numpy has no bfloat16; float32 holds all its values.
    known = images.float() if images.dtype == torch.bfloat16 else images
    inner = _unpack_array(known.detach().cpu().numpy(), channel_axis, beyond)

    def together(found: list[Any]) -> Any:
        return torch.from_numpy(np.ascontiguousarray(inner.together(found))).to(images)

    return Collection(inner.items, together)


def _unpack_array(images: np.ndarray, channel_axis: int | None, beyond: float) -> Collection:
    white = _white(images)
    if channel_axis is not None:
        if not -images.ndim <= channel_axis < images.ndim:
            raise UsageError(f"channel_axis {channel_axis} is no axis of an array of shape {images.shape}")
        channels = np.moveaxis(images, channel_axis, 0)
        if not len(channels) or (channels != channels[0]).any():
            raise ModelError("the array is in colour, and the priors know grey images; convert it to greyscale first")
        grey = _unpack_array(channels[0], None, beyond)

        def together(found: list[Any]) -> Any:
            return np.stack([grey.together(found)] * len(channels), axis=channel_axis)

        return Collection(grey.items, together)
    if images.ndim not in (2, 3) or 0 in images.shape:
        raise InputError(f"an array of shape {images.shape} holds no images; give (H, W), or (N, H, W) for a batch")
    batch = images if images.ndim == 3 else images[None]
    if images.dtype.kind == "f":
        check_unit_range(images, name="the array", beyond=beyond)
    items = [Item(image / np.float64(white), _array_back(image, white)) for image in batch]
    return Collection(items, lambda found: np.stack(found) if images.ndim == 3 else found[0])


def _array_back(original: np.ndarray, white: int) -> Callable[[np.ndarray, np.ndarray | None], np.ndarray]:
    def back(values: np.ndarray, replaced: np.ndarray | None) -> np.ndarray:
        scaled = values > 0.5 if original.dtype == bool else values * white
        levels = (np.rint(scaled) if original.dtype.kind == "u" else scaled).astype(original.dtype)
        return levels if replaced is None else np.where(replaced, levels, original)

    return back


def _white(images: np.ndarray) -> int:
    """The value of white by type, as in scikit-image: the largest of an unsigned integer, 1 for bool and float."""
    if images.dtype in (np.uint8, np.uint16):
        return int(np.iinfo(images.dtype).max)
    if images.dtype == bool or images.dtype.kind == "f":
        return 1
    raise UsageError(f"arrays of {images.dtype} have no defined white; give uint8, uint16, bool, or floats in [0, 1]")
