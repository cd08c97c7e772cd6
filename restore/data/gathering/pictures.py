"""Find the picture files of a folder or an archive, and read their grey levels."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple, get_args

import numpy as np

from restore.data.archives import members, readable
from restore.data.dataset import Images, Split
from restore.errors import InputError, TrainingError, shown
from restore.images import read_picture
from restore.images.outputs import IMAGE_SUFFIXES

_NAMES_SHOWN = 5


class PictureFile(NamedTuple):
    """A picture in a folder or an archive.

    Attributes:
        name: its name in the folder or archive, with slashes; the same in a folder and in an archive of it.
        label: its name for messages.
        open: returns what `read_picture` reads; in an archive, call it before asking for the next one.
    """

    name: str
    label: str
    open: Callable[[], Path | BinaryIO]


def in_folder(folder: Path, split: Split) -> tuple[Iterable[PictureFile], tuple[str, ...]]:
    """Find the pictures of a folder and its subfolders, by their endings; hidden files are left out.

    If it has folders named train and test, only those in the split's folder.

    Returns:
        The pictures, in the order of their names, and notes on their choice.

    Raises:
        TrainingError: if there are none.
    """
    with readable(folder):
        names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    chosen, notes = _chosen(names, folder, "", split)
    return (PictureFile(name, str(folder / path), partial(Path, folder / path)) for path, name in chosen), notes


def in_archive(path: Path, split: Split) -> tuple[Iterable[PictureFile], tuple[str, ...]]:
    """Find the pictures of an archive as `in_folder` does; a folder that holds all of them counts as the archive.

    Raises:
        InputError: if the archive is damaged or dangerous, as in `restore.data.archives.members`.
        TrainingError: if there are none.
    """
    names = [member.name for member in members(path)]
    folders = {name[: name.find("/") + 1] for name in names if _is_picture(name)}
    chosen, notes = _chosen(names, path, folders.pop() if len(folders) == 1 else "", split)
    wanted = dict(chosen)

    def each() -> Iterator[PictureFile]:
        for member in members(path):
            if member.name in wanted:
                label = f"{path}: {member.name}"
                yield PictureFile(wanted[member.name], label, partial(_in_memory, member.read, label))

    return each(), notes


def levels_of(file: PictureFile, max_pixels: int) -> tuple[Images, tuple[str, ...]]:
    """Read the grey levels (H, W) of a picture, with the notes made while reading it.

    Raises:
        RestoreError: if it cannot be read, is in colour, or has more than `max_pixels` pixels.
    """
    picture = read_picture(file.open(), name=file.label, max_pixels=max_pixels)
    notes = picture.notes if picture.alpha is None else (*picture.notes, "transparency is ignored")
    levels = picture.levels if picture.white == 255 else np.rint(picture.pixels * 255).astype(np.uint8)
    return levels, notes


def pictures_in(
    archives: Iterable[Path], pattern: re.Pattern[str], count: int, shape: tuple[int, int]
) -> dict[str, Images]:
    """Read the pictures of a published set from its archives.

    Args:
        archives: the files.
        pattern: for the full names of its pictures; the first group is a picture's name. Other members are left out.
        count: how many different names there are.
        shape: height and width of every picture.

    Returns:
        Grey levels by name, in the order of the names.

    Raises:
        InputError: if an archive is damaged, or holds anything else.
    """
    found: dict[str, Images] = {}
    for path in archives:
        for member in members(path):
            name = pattern.fullmatch(member.name)
            if name is None or name[1] in found:
                continue
            label = f"{path}: {member.name}"
            found[name[1]], _ = levels_of(PictureFile(name[1], label, partial(_in_memory, member.read, label)), 1 << 20)
            if found[name[1]].shape != shape:
                raise InputError(f"{shown(label)}: is not of {shape[1]}x{shape[0]} pixels; get the file again")
    if len(found) != count:
        places = " and ".join(map(shown, archives))
        raise InputError(f"{places}: holds {len(found)} different pictures instead of {count}; get the file again")
    return dict(sorted(found.items()))


def some(names: Iterable[str]) -> str:
    """List the first few names, and how many more there are."""
    every = [shown(name) for name in names]
    more = f" and {len(every) - _NAMES_SHOWN} more" if len(every) > _NAMES_SHOWN else ""
    return ", ".join(every[:_NAMES_SHOWN]) + more


def _chosen(names: list[str], place: Path, top: str, split: Split) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """The pictures below a folder `top`, each with its name there, and notes; of those of a split if there are any."""
    splits = [f"{top}{part}/" for part in get_args(Split)]
    notes: tuple[str, ...] = ()
    if all(any(name.startswith(part) for name in names) for part in splits):
        top, notes = f"{top}{split}/", (f"only the images in its folder {split} are used",)
    found = [(name, name.removeprefix(top)) for name in names if name.startswith(top) and _is_picture(name)]
    if not found:
        endings = ", ".join(sorted(IMAGE_SUFFIXES))
        raise TrainingError(f"{shown(place)}: the data set is empty; put images ({endings}) into it")
    return found, notes


def _is_picture(name: str) -> bool:
    path = PurePosixPath(name)
    return path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".")


def _in_memory(read: Callable[[], bytes], label: str) -> BinaryIO:
    with readable(label):
        return io.BytesIO(read())
