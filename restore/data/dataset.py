"""A data set in memory: checks for common faults, and conversion to black and white."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from restore.errors import InputError, TrainingError, require
from restore.images import check_unit_range

Split: TypeAlias = Literal["train", "test"]
Images: TypeAlias = NDArray[np.uint8]

# Values that are drawn or converted together, to limit memory.
VALUES_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Dataset:
    """Grey images of one size.

    Attributes:
        images: shape (N, H, W), 0 = black to 255 = white.
        name: the name or path it was loaded by.
        split: "train" or "test".
        notes: what a user should know about the data (files skipped, duplicates, ...), one sentence each.

    >>> blank = Dataset(np.zeros((5, 28, 28), np.uint8), "blank", "train")
    >>> blank.first(2).images.shape, blank.fingerprint == blank.first(5).fingerprint
    ((2, 28, 28), True)
    """

    images: Images
    name: str
    split: Split
    notes: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) of shape and pixels: equal exactly for the same images in the same order."""
        digest = hashlib.sha256(repr(self.images.shape).encode())
        digest.update(np.ascontiguousarray(self.images).data)
        return digest.hexdigest()

    def first(self, count: int) -> Dataset:
        """Keep the first `count` images; 0 means all. Raises TrainingError if there are fewer."""
        if count > len(self.images):
            raise TrainingError(f"holds {len(self.images)} images, not {count}; lower count", self.name)
        return replace(self, images=self.images[:count]) if count else self


def checked(images: Images, name: str, split: Split, notes: tuple[str, ...] = ()) -> Dataset:
    """Make a data set, with notes on constant images, duplicates and constant pixels, which are valid data.

    Raises TrainingError if there is no image, no pixel, or a single image to train on.
    """
    if images.size == 0:
        raise TrainingError(f"the data set is empty (images of shape {images.shape}); give it some images", name)
    if split == "train" and len(images) == 1:
        raise TrainingError("one image is not enough to train on; give at least two", name)
    flat = _flat(images)
    counted = (
        (int((flat == flat[:, :1]).all(axis=1).sum()), f"of {len(flat)} images have the same value in every pixel"),
        (len(flat) - len(np.unique(_rows(images))), f"of {len(flat)} images repeat an earlier one"),
        (int((flat == flat[:1]).all(axis=0).sum()), f"of {flat.shape[1]} pixels have the same value in every image"),
    )
    return Dataset(images, name, split, notes + tuple(f"{count} {what}" for count, what in counted if count))


def binarise(images: Images, threshold: int = 127) -> NDArray[np.float32]:
    """Convert to black and white: 1 where a pixel is brighter than the threshold, else 0.

    Args:
        images: shape (N, H, W), uint8.
        threshold: 0 to 254; the default is that of the papers.

    Returns:
        Shape (N, H·W), float32, rows in reading order.

    Raises:
        UsageError: if the threshold would make every image black.

    >>> binarise(np.array([[[0, 127], [128, 255]]], np.uint8)).tolist()
    [[0.0, 0.0, 1.0, 1.0]]
    """
    require(0 <= threshold <= 254, f"the threshold must lie in 0..254, not {threshold}")
    return (_flat(images) > threshold).astype(np.float32)


def as_pixels(
    images: Images, manner: Literal["threshold", "sampled", "grey"], threshold: int, seed: int
) -> NDArray[np.float32]:
    """Convert images (N, H, W) to pixels to learn from, (N, H·W), float32, rows in reading order.

    They are thresholded, binarised at random by a seed, or grey levels from 0 to 1.

    >>> levels = np.array([[[0, 51, 255]]], np.uint8)
    >>> [round(float(value), 2) for value in as_pixels(levels, "grey", threshold=127, seed=0)[0]]
    [0.0, 0.2, 1.0]
    """
    if manner == "grey":
        return _flat(images).astype(np.float32) / np.float32(255)
    return sample_binary(images, seed) if manner == "sampled" else binarise(images, threshold)


def sample_binary(images: Images, seed: int) -> NDArray[np.float32]:
    """Binarise images at random: each pixel is 1 with probability grey level / 255, independently.

    Salakhutdinov & Murray, ICML 2008. Numpy promises the raw bits drawn here for all its versions.

    Args:
        images: shape (N, H, W), uint8.
        seed: the same images and seed give the same bits, also for the first images of a set alone.

    Returns:
        Shape (N, H·W), float32, rows in reading order.

    >>> bits = sample_binary(np.full((1, 100, 100), 51, np.uint8), seed=0)  # grey level 51 of 255
    >>> round(float(bits.mean()), 2)
    0.2
    """
    flat = _flat(images).ravel()
    bits = np.random.PCG64(seed)
    binary = np.empty(flat.shape, dtype=np.float32)
    for first in range(0, len(flat), VALUES_AT_ONCE):
        part = flat[first : first + VALUES_AT_ONCE]
        binary[first : first + VALUES_AT_ONCE] = fractions(bits, part.shape) < part / 255
    return binary.reshape(_flat(images).shape)


def fractions(bits: np.random.PCG64, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Draw numbers in [0, 1) from raw bits, which numpy promises for all its versions."""
    return (bits.random_raw(shape) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def fixed_order(count: int, seed: int) -> NDArray[np.intp]:
    """Permute 0 ... count - 1, the same in all versions of numpy."""
    return np.argsort(np.random.PCG64(seed).random_raw(count), kind="stable")


def as_grey(values: NDArray[Any], name: str) -> tuple[Images, tuple[str, ...]]:
    """Convert bool, uint8, or floats in [0, 1] to uint8 grey levels, with a note if that needed a decision.

    Raises InputError for any other type, or a value out of range, including NaN.
    """
    if values.dtype == np.bool_:
        return values.astype(np.uint8) * np.uint8(255), ()
    if values.dtype == np.uint8:
        if values.size and values.max() == 1:
            # As grey levels, 0 and 1 would both be black; nobody means that.
            return values * np.uint8(255), ("its values are 0 and 1: read as black and white",)
        return np.array(values), ()
    if not np.issubdtype(values.dtype, np.floating):
        raise InputError(f"pixels are {values.dtype}; store them as uint8, bool, or floats in [0, 1]", name)
    check_unit_range(values, name=name)
    return np.rint(values.clip(0, 1) * 255).astype(np.uint8), ()


def _flat(images: Images) -> Images:
    return images.reshape(len(images), math.prod(images.shape[1:]))


def _rows(images: Images) -> NDArray[Any]:
    """Make one opaque value of each image, so that numpy can sort and compare whole images."""
    flat = np.ascontiguousarray(_flat(images))
    return flat.view(np.dtype((np.void, flat.shape[1]))).ravel()
