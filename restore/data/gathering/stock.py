"""The images of a source, of whatever sizes, with their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Images, as_grey
from restore.data.gathering.pictures import PictureFile, levels_of, some
from restore.errors import InputError, RestoreError, TrainingError
from restore.images import check_together


@dataclass(frozen=True, eq=False)
class Stock:
    """The images of a source, in the order of their names.

    Attributes:
        label: the source's name for messages.
        names: each image's name within its folder, or the number of its row.
        images: grey levels, (H, W) each, uint8.
        notes: what a user should know about the source, one sentence each.
    """

    label: str
    names: tuple[str, ...]
    images: Sequence[Images] | Images
    notes: tuple[str, ...] = ()

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Height and width of each image, (N, 2)."""
        return np.array([image.shape for image in self.images], dtype=np.intp).reshape(-1, 2)

    def noting(self, notes: tuple[str, ...]) -> Stock:
        """The same images with these notes before the others."""
        return replace(self, notes=(*notes, *self.notes))


def of_rows(images: Sequence[Images] | Images, label: str, notes: tuple[str, ...] = ()) -> Stock:
    """Take images, an array (N, H, W) or arrays (H, W), that have numbers for names."""
    return Stock(label, tuple(map(str, range(len(images)))), images, notes)


def of_arrays(arrays: Sequence[NDArray[Any]], label: str) -> Stock:
    """Take arrays (H, W) of any sizes and one type, which `as_grey` takes.

    Raises:
        InputError: if they are not such arrays.
    """
    if any(array.ndim != 2 for array in arrays) or len({array.dtype for array in arrays}) > 1:
        raise InputError(f"{label}: hold arrays of several types, or of another shape than (H, W); give them one type")
    values = np.concatenate([array.ravel() for array in arrays]) if arrays else np.empty(0, np.uint8)
    levels, notes = as_grey(values, label)
    parts = np.split(levels, np.cumsum([array.size for array in arrays])[:-1])
    return of_rows([part.reshape(array.shape) for part, array in zip(parts, arrays, strict=False)], label, notes)


def of_files(files: Iterable[PictureFile], label: str, max_bad: int, max_pixels: int) -> Stock:
    """Read picture files; those that cannot be used are skipped, each with a note.

    Args:
        files: of a folder or an archive.
        label: its name for messages.
        max_bad: how many unusable files are skipped.
        max_pixels: the most pixels of one; all of them together may have twenty times as many.

    Raises:
        TrainingError: if more are unusable, or all.
        InputError: if their archive is damaged, or they have too many pixels together.
    """
    found: dict[str, Images] = {}
    faults: dict[str, RestoreError] = {}
    said: Counter[str] = Counter()
    pixels = 0
    for file in files:
        try:
            levels, notes = levels_of(file, max_pixels)
        except RestoreError as fault:
            faults[file.name] = fault
            continue
        pixels += levels.size
        check_together(pixels, label, max_pixels)
        found[file.name] = levels
        said.update(notes)
    total = len(found) + len(faults)
    if faults and not found:
        raise TrainingError(
            f"{label}: none of its {total} images can be used; the first: {next(iter(faults.values()))}"
        )
    if len(faults) > max_bad:
        raise TrainingError(
            f"{label}: {len(faults)} of {total} images cannot be used ({some(faults)}); "
            f"remove them, or skip them with --max-bad {len(faults)}"
        )
    names = tuple(sorted(found))
    skipped = (f"skipped {fault}" for fault in faults.values())
    counted = (f"{note} ({count} images)" for note, count in said.items())
    return Stock(label, names, [found[name] for name in names], (*skipped, *counted))
