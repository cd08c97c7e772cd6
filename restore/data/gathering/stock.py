"""The images of a source: their names and sizes, and the images themselves, as often as needed.

Images need not fit into memory together: those of files are kept while they are few or small, and else read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Images, as_grey
from restore.data.gathering.pictures import PictureFiles, counted, levels_of, skipped
from restore.errors import InputError, RestoreError, shown
from restore.images import check_together

# How many pixels (bytes) of file images are kept, and how many are passed on together.
_KEPT = 1 << 28
_TOGETHER = 1 << 24

# Numbers of images, (n,), and the images, (n, H, W).
Batch: TypeAlias = tuple[NDArray[np.intp], Images]


@dataclass(frozen=True, eq=False)
class Stock:
    """The images of a source, in the order of their names.

    Attributes:
        label: the source's name for messages.
        names: each image's name within its folder, or the number of its row.
        sizes: height and width of each, shape (N, 2).
        batches: gives all images, each once, in batches of one size; starts again at every call.
        notes: what a user should know about the source, one sentence each.
    """

    label: str
    names: tuple[str, ...]
    sizes: NDArray[np.intp]
    batches: Callable[[], Iterator[Batch]]
    notes: tuple[str, ...] = ()


def of_rows(images: Images, label: str, notes: tuple[str, ...] = ()) -> Stock:
    """The stock of images of one size, (N, H, W)."""
    sizes = np.broadcast_to(np.array(images.shape[1:], dtype=np.intp), (len(images), 2))
    return Stock(label, _numbers(len(images)), sizes, partial(_slices, images), notes)


def of_arrays(arrays: Sequence[NDArray[Any]], label: str) -> Stock:
    """The stock of arrays (H, W) of any sizes and one type, which `as_grey` takes.

    Raises:
        InputError: if they are not such arrays.
    """
    if any(array.ndim != 2 for array in arrays) or len({array.dtype for array in arrays}) > 1:
        raise InputError(f"{label}: hold arrays of several types, or of another shape than (H, W); give them one type")
    values = np.concatenate([array.ravel() for array in arrays]) if arrays else np.empty(0, np.uint8)
    levels, notes = as_grey(values, label)
    parts = np.split(levels, np.cumsum([array.size for array in arrays])[:-1])
    images = [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)] if arrays else []
    sizes = np.array([image.shape for image in images], dtype=np.intp).reshape(-1, 2)
    return Stock(label, _numbers(len(images)), sizes, lambda: _batched(enumerate(images)), notes)


def of_files(files: PictureFiles, max_bad: int, max_pixels: int) -> Stock:
    """The stock of picture files; all of them are read now.

    Args:
        files: of a folder or an archive.
        max_bad: how many unusable files are skipped.
        max_pixels: the most pixels of one; all of them together may have twenty times as many.

    Raises:
        TrainingError: if more are unusable, or all.
        InputError: if their archive is damaged, or they have too many pixels together.
    """
    found: list[tuple[str, int, tuple[int, ...]]] = []
    kept: dict[int, Images] = {}
    faults: dict[str, RestoreError] = {}
    said: Counter[str] = Counter()
    room, position, pixels = _KEPT, -1, 0
    for position, file in enumerate(files.each()):
        source = file.open()
        try:
            levels, notes = levels_of(source, file.label, max_pixels)
        except RestoreError as fault:
            faults[file.name] = fault
            continue
        pixels += levels.size
        check_together(pixels, files.label, max_pixels)
        found.append((file.name, position, levels.shape))
        said.update(notes)
        if levels.size <= room:
            kept[position] = levels
            room -= levels.size
    lost = skipped(files.label, faults, position + 1, max_bad)
    found.sort()
    numbers = {position: number for number, (_, position, _) in enumerate(found)}
    sizes = np.array([size for _, _, size in found], dtype=np.intp).reshape(-1, 2)

    def originals() -> Iterator[tuple[int, Images]]:
        yield from ((numbers[position], levels) for position, levels in kept.items())
        if len(kept) < len(found):
            for position, file in enumerate(files.each()):
                if position in numbers and position not in kept:
                    number = numbers[position]
                    levels, _ = levels_of(file.open(), file.label, max_pixels)
                    if levels.shape != tuple(sizes[number]):
                        raise InputError(f"{shown(file.label)}: changed while it was read; begin again")
                    yield number, levels

    names = tuple(name for name, _, _ in found)
    return Stock(files.label, names, sizes, lambda: _batched(originals()), files.notes + lost + counted(said))


def quartered(stock: Stock) -> Stock:
    """The quarters of each image, of 2x2 pixels or more, as images of their own."""
    halves = stock.sizes // 2
    # Of odd sides the first half is the smaller one.
    sides = np.stack([halves, stock.sizes - halves])
    places = [(down, right) for down in range(2) for right in range(2)]
    sizes = np.stack([np.stack([sides[down, :, 0], sides[right, :, 1]], 1) for down, right in places], 1)

    def batches() -> Iterator[Batch]:
        for numbers, images in stock.batches():
            height, width = (side // 2 for side in images.shape[1:])
            rows, columns = (slice(height), slice(height, None)), (slice(width), slice(width, None))
            for place, (down, right) in enumerate(places):
                yield 4 * numbers + place, images[:, rows[down], columns[right]]

    names = tuple(f"{name}, quarter {place + 1}" for name in stock.names for place in range(4))
    return Stock(stock.label, names, sizes.reshape(-1, 2), batches, stock.notes)


def whole(stock: Stock, shape: tuple[int, int]) -> Images:
    """All images of a stock in which all have this size, (N, H, W), in its order."""
    images = np.empty((len(stock.names), *shape), dtype=np.uint8)
    for numbers, batch in stock.batches():
        images[numbers] = batch
    return images


def first_of(stock: Stock, count: int) -> list[Images]:
    """The first images of a stock, each (H, W), in its order."""
    found: dict[int, Images] = {}
    for numbers, batch in stock.batches():
        # Copied, so that the rest of a batch can go.
        found.update(
            (int(number), image.copy()) for number, image in zip(numbers, batch, strict=True) if number < count
        )
    return [found[number] for number in sorted(found)]


def some_of(stock: Stock, wanted: np.ndarray) -> tuple[Images, ...]:
    """The images of a stock with these numbers, (H, W) each."""
    found = {
        number: image
        for numbers, batch in stock.batches()
        for number, image in zip(numbers, batch, strict=True)
        if number in wanted
    }
    return tuple(found[number] for number in wanted)


def _numbers(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def _slices(images: Images) -> Iterator[Batch]:
    count = max(1, _TOGETHER // max(1, images[:1].size))
    for first in range(0, len(images), count):
        part = images[first : first + count]
        yield np.arange(first, first + len(part)), part


def _batched(originals: Iterable[tuple[int, Images]]) -> Iterator[Batch]:
    """Batches of images of one size; images wait for others of their size until too many pixels are waiting."""
    waiting: dict[tuple[int, ...], list[tuple[int, Images]]] = {}
    pixels = 0
    for number, image in originals:
        waiting.setdefault(image.shape, []).append((number, image))
        pixels += image.size
        if pixels >= _TOGETHER:
            yield from map(_together, waiting.values())
            waiting, pixels = {}, 0
    yield from map(_together, waiting.values())


def _together(group: list[tuple[int, Images]]) -> Batch:
    return np.array([number for number, _ in group]), np.stack([image for _, image in group])
