"""Find the picture files of a folder or an archive, and read them one after another."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, get_args

import numpy as np

from restore.data.dataset import Images, Split
from restore.data.gathering.packed import members
from restore.errors import RestoreError, TrainingError, shown
from restore.images import read_picture
from restore.images.outputs import IMAGE_SUFFIXES

_NAMES_SHOWN = 5


@dataclass(frozen=True)
class PictureFile:
    """A picture in a folder or an archive.

    Attributes:
        name: its name in the folder or archive, with slashes; the same in a folder and in an archive of it.
        label: its name for messages.
        open: returns what `read_picture` reads; in an archive, call it before asking for the next one.
    """

    name: str
    label: str
    open: Callable[[], Path | BinaryIO]


@dataclass(frozen=True)
class PictureFiles:
    """The pictures of a folder or an archive.

    Attributes:
        label: its name for messages.
        each: starts again at every call, always in the same order.
        notes: what a user should know about their choice.
    """

    label: str
    each: Callable[[], Iterator[PictureFile]]
    notes: tuple[str, ...] = ()


def in_folder(folder: Path, split: Split) -> PictureFiles:
    """The picture files of a folder and its subfolders, by their endings; hidden files are left out.

    If it has folders named train and test, only those in the split's folder.

    Raises:
        TrainingError: if there are none.
    """
    notes: tuple[str, ...] = ()
    if all((folder / name).is_dir() for name in get_args(Split)):
        folder, notes = folder / split, _only(split)
    found = (path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
    files = tuple(
        PictureFile(path.relative_to(folder).as_posix(), str(path), partial(Path, path))
        for path in sorted(found)
        if not path.name.startswith(".")
    )
    if not files:
        raise _empty(folder)
    return PictureFiles(shown(folder), lambda: iter(files), notes)


def in_archive(path: Path, split: Split) -> PictureFiles:
    """The picture files of an archive, by their endings; hidden ones are left out.

    A folder that holds all of them counts as the archive itself. If there are folders named train and test, only the
    pictures in the split's folder are taken.

    Raises:
        InputError: if the archive is damaged or dangerous, as in `members`.
        TrainingError: if there are none.
    """
    names = [member.name for member in members(path) if _is_picture(member.name)]
    if not names:
        raise _empty(path)
    top = _common_folder(names)
    notes: tuple[str, ...] = ()
    if all(any(name.startswith(f"{top}{part}/") for name in names) for part in get_args(Split)):
        top, notes = f"{top}{split}/", _only(split)

    def each() -> Iterator[PictureFile]:
        for member in members(path):
            if _is_picture(member.name) and member.name.startswith(top):
                yield PictureFile(
                    member.name.removeprefix(top), f"{path}: {member.name}", partial(_in_memory, member.read)
                )

    return PictureFiles(shown(path), each, notes)


def levels_of(source: Path | BinaryIO, label: str, max_pixels: int) -> tuple[Images, tuple[str, ...]]:
    """Grey levels (H, W) of a picture, and the notes made while reading it.

    Args:
        source: what `PictureFile.open` gave.
        label: its name for messages.
        max_pixels: the most pixels it may have.

    Raises:
        RestoreError: if it cannot be read or is in colour, as in `restore.images.read_picture`.
    """
    picture = read_picture(source, name=label, max_pixels=max_pixels)
    notes = picture.notes if picture.alpha is None else (*picture.notes, "transparency is ignored")
    levels = picture.levels if picture.white == 255 else np.rint(picture.pixels * 255).astype(np.uint8)
    return levels, notes


def skipped(label: str, faults: dict[str, RestoreError], total: int, max_bad: int) -> tuple[str, ...]:
    """A note for every picture that cannot be used.

    Args:
        label: name of the folder or archive.
        faults: what is wrong, by the name of the picture.
        total: number of pictures.
        max_bad: how many may be unusable.

    Raises:
        TrainingError: if there are more, or no other picture is left.
    """
    if len(faults) == total:
        first = next(iter(faults.values()))
        raise TrainingError(f"{label}: none of its {total} images can be used; the first: {first}")
    if len(faults) > max_bad:
        raise TrainingError(
            f"{label}: {len(faults)} of {total} images cannot be used ({some(faults)}); "
            f"remove them, or skip them with --max-bad {len(faults)}"
        )
    return tuple(f"skipped {fault}" for fault in faults.values())


def some(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    every = [shown(name) for name in names]
    more = f" and {len(every) - _NAMES_SHOWN} more" if len(every) > _NAMES_SHOWN else ""
    return ", ".join(every[:_NAMES_SHOWN]) + more


def counted(notes: Counter[str]) -> tuple[str, ...]:
    """One sentence for each note, with the number of its images."""
    return tuple(f"{note} ({count} images)" for note, count in notes.items())


def _only(split: Split) -> tuple[str, ...]:
    return (f"only the images in its folder {split} are used",)


def _is_picture(name: str) -> bool:
    path = PurePosixPath(name)
    return path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".")


def _common_folder(names: list[str]) -> str:
    """The folder, with its slash, in which all names are; empty if there is none."""
    top = names[0].partition("/")[0] + "/"
    return top if all(name.startswith(top) for name in names) and top[:-1] not in get_args(Split) else ""


def _in_memory(read: Callable[[], bytes]) -> BinaryIO:
    return io.BytesIO(read())


def _empty(place: Path) -> TrainingError:
    endings = ", ".join(sorted(IMAGE_SUFFIXES))
    return TrainingError(f"{shown(place)}: the data set is empty; put images ({endings}) into it")
