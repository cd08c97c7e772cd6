"""The images of a folder, an archive or arrays, of any sizes, with their names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from restore.data.archives import members, readable
from restore.data.dataset import Images, Split, as_grey
from restore.data.truth import TRUTH, joined
from restore.errors import InputError, RestoreError, TrainingError, option, require, shown, some
from restore.images import DEFAULT_MAX_PIXELS, check_together, plain, read_picture
from restore.images.outputs import IMAGE_SUFFIXES
from restore.images.tones import stretched
from restore.sizes import size_text


@dataclass(frozen=True, eq=False)
class Stock:
    """The images of a source, (H, W) each, uint8, in the order of their names; label and notes are for messages.

    A name is that within the folder, or the number of a row.
    """

    label: str
    names: tuple[str, ...]
    images: Sequence[Images] | Images
    notes: tuple[str, ...] = ()

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Height and width of each image, (N, 2)."""
        return np.array([image.shape for image in self.images], dtype=np.intp).reshape(-1, 2)


@dataclass(frozen=True)
class Limits:
    """Limits on reading a source.

    Attributes:
        root: the folder to search first for named sets; None for the one in the environment variable RESTORE_DATA.
        max_bad: maximum number of unusable images of a folder or an archive to skip.
        max_pixels: the most pixels of one image; all of them together may have twenty times as many.
    """

    root: Path | None = None
    max_bad: int = 0
    max_pixels: int = DEFAULT_MAX_PIXELS

    def __post_init__(self) -> None:
        require(self.max_bad >= 0, f"{option('max_bad')} must not be negative, not {self.max_bad}")
        require(self.max_pixels >= 1, f"{option('max_pixels')} must be at least 1, not {self.max_pixels}")


class PictureFile(NamedTuple):
    """A picture in a folder or an archive: its name, which is the same in both, and a label for messages.

    `read` gives its path, or its content.
    """

    name: str
    label: str
    read: Callable[[], Path | bytes]


def of_rows(images: Sequence[Images] | Images, label: str, notes: tuple[str, ...] = ()) -> Stock:
    """Make a stock of an array (N, H, W) or arrays (H, W), with numbers as names."""
    return Stock(label, tuple(map(str, range(len(images)))), images, notes)


def paired(stock: Stock, *, stretch: bool) -> Stock:
    """Pages with their truth, NAME.truth.png beside NAME.png, as one picture each, see `restore.data.truth`.

    Args:
        stock: both.
        stretch: give pages the contrast at which they are read, see `restore.images.tones`.

    Raises:
        TrainingError: if a page has no truth, or one of another size.
    """
    names = (PurePosixPath(name).with_suffix("").as_posix() for name in stock.names)
    images = dict(zip(names, stock.images, strict=True))
    pages = sorted(name for name in images if not name.endswith(TRUTH))
    images_of = list[Images]()
    for name in pages:
        page = images[name]
        truth = images.get(f"{name}{TRUTH}")
        if truth is None or truth.shape != page.shape:
            raise TrainingError(
                f"has no truth of its size; put one beside it, {name}{TRUTH}.png", f"{stock.label}: {name}"
            )
        levels = np.rint(255 * stretched(page / 255)).astype(np.uint8) if stretch else page
        images_of.append(joined(levels, truth))
    return Stock(stock.label, tuple(pages), images_of, stock.notes)


def of_arrays(arrays: NDArray[Any] | Sequence[NDArray[Any]], label: str) -> Stock:
    """Make a stock of arrays (H, W) of any sizes and one type, see `as_grey`, or of one array (N, H, W)."""
    if isinstance(arrays, np.ndarray):
        if arrays.ndim != 3:
            raise InputError(f"have shape {arrays.shape}; give (N, H, W)", label)
        levels, notes = as_grey(plain(arrays), label)
        return of_rows(levels, label, notes)
    arrays = [plain(array) for array in arrays]
    if any(array.ndim != 2 for array in arrays) or len({array.dtype for array in arrays}) > 1:
        raise InputError("hold arrays of several types, or of another shape than (H, W); give them one type", label)
    values = np.concatenate([array.ravel() for array in arrays]) if arrays else np.empty(0, np.uint8)
    levels, notes = as_grey(values, label)
    parts = np.split(levels, np.cumsum([array.size for array in arrays])[:-1])
    return of_rows([part.reshape(array.shape) for part, array in zip(parts, arrays, strict=False)], label, notes)


def of_folder(folder: Path, split: Split, limits: Limits) -> Stock:
    """Read the pictures of a folder and its subfolders, by their endings; hidden files and folders are left out.

    If it has folders named train and test, only those in the split's folder. Each skipped one gets a note.
    """
    with readable(folder):
        names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    chosen, notes = _chosen(names, folder, "", split)
    files = (PictureFile(name, str(folder / path), partial(Path, folder / path)) for path, name in chosen)
    return _read(files, shown(folder), notes, limits)


def of_archive(path: Path, split: Split, limits: Limits) -> Stock:
    """Read the pictures of an archive as `of_folder` does; a folder that holds all of them counts as the archive."""
    names = [name for name, _ in members(path)]
    folders = {name[: name.find("/") + 1] for name in names if _is_picture(name)}
    chosen, notes = _chosen(names, path, folders.pop() if len(folders) == 1 else "", split)
    short = dict(chosen)
    files = (file._replace(name=short[file.name]) for file in _members(path, short.__contains__))
    return _read(files, shown(path), notes, limits)


def pictures_in(
    archives: Iterable[Path], pattern: re.Pattern[str], count: int, shape: tuple[int, int]
) -> dict[str, Images]:
    """Read the pictures of a published set from its archives: grey levels by name, in the order of the names.

    The first group of the pattern for full names is a picture's name; other members are left out. Raises InputError
    if there are not `count` different names, or a picture has another shape.
    """
    pictures: dict[str, Images] = {}
    for path in archives:
        for file in _members(path, lambda name: pattern.fullmatch(name) is not None):
            name = pattern.sub(r"\1", file.name)
            if name in pictures:
                continue
            pictures[name], _ = _levels_of(file, 1 << 20)
            if pictures[name].shape != shape:
                raise InputError(f"is not of {size_text(shape)} pixels; get the file again", file.label)
    if len(pictures) != count:
        places = " and ".join(map(shown, archives))
        raise InputError(f"holds {len(pictures)} different pictures instead of {count}; get the file again", places)
    return dict(sorted(pictures.items()))


def _members(path: Path, wanted: Callable[[str], bool]) -> Iterator[PictureFile]:
    for name, read in members(path):
        if wanted(name):
            yield PictureFile(name, f"{path}: {name}", read)


def _levels_of(file: PictureFile, max_pixels: int) -> tuple[Images, tuple[str, ...]]:
    """The grey levels (H, W) of a picture, with the notes made while reading it."""
    with readable(file.label):
        picture = read_picture(file.read(), name=file.label, max_pixels=max_pixels)
    notes = picture.notes if picture.alpha is None else (*picture.notes, "transparency is ignored")
    levels = picture.levels if picture.white == 255 else np.rint(picture.pixels * 255).astype(np.uint8)
    return levels, notes


def _read(files: Iterable[PictureFile], label: str, notes: tuple[str, ...], limits: Limits) -> Stock:
    pictures: dict[str, Images] = {}
    faults: dict[str, RestoreError] = {}
    counts: Counter[str] = Counter()
    pixels = 0
    for file in files:
        try:
            levels, remarks = _levels_of(file, limits.max_pixels)
        except RestoreError as fault:
            faults[file.name] = fault
            continue
        pixels += levels.size
        check_together(pixels, label, limits.max_pixels)
        pictures[file.name] = levels
        counts.update(remarks)
    _check_faults(faults, len(pictures), label, limits)
    names = tuple(sorted(pictures))
    skipped = (f"skipped {fault}" for fault in faults.values())
    counted = (f"{note} ({count} images)" for note, count in counts.items())
    return Stock(label, names, [pictures[name] for name in names], (*notes, *skipped, *counted))


def _check_faults(faults: Mapping[str, RestoreError], read: int, label: str, limits: Limits) -> None:
    """Raise TrainingError if more images cannot be used than may be skipped."""
    total = read + len(faults)
    if faults and not read:
        first = next(iter(faults.values()))
        raise TrainingError(f"none of its {total} images can be used; the first: {first}", label)
    if len(faults) > limits.max_bad:
        why = f"{len(faults)} of {total} images cannot be used ({some(faults)})"
        raise TrainingError(f"{why}; remove them, or skip them with {option('max_bad', len(faults))}", label)


def _chosen(names: list[str], path: Path, top: str, split: Split) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """The pictures below a folder `top`, with their names there and notes; if there are splits, only one split."""
    splits = [f"{top}{part}/" for part in get_args(Split)]
    notes: tuple[str, ...] = ()
    if all(any(name.startswith(part) for name in names) for part in splits):
        top, notes = f"{top}{split}/", (f"only the images in its folder {split} are used",)
    pictures = [(name, name.removeprefix(top)) for name in names if name.startswith(top) and _is_picture(name)]
    if not pictures:
        endings = ", ".join(sorted(IMAGE_SUFFIXES))
        raise TrainingError(f"the data set is empty; put images ({endings}) into it", path)
    return pictures, notes


def _is_picture(name: str) -> bool:
    path = PurePosixPath(name)
    return path.suffix.lower() in IMAGE_SUFFIXES and not any(part.startswith(".") for part in path.parts)
