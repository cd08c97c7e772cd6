"""Data sets known by name: their contract, and the search for their files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from restore.data.dataset import Images, Split
from restore.data.sets.download import RemoteFile, fetch
from restore.errors import InputError, shown

VARIABLE = "RESTORE_DATA"


@dataclass(frozen=True)
class NamedSet:
    """A published data set: its name, the files of each split (none if it is computed), and their reader.

    The name is also that of its folder in the cache and under RESTORE_DATA, where "_" may stand for "-".
    """

    name: str
    files: Mapping[Split, tuple[RemoteFile, ...]]
    read: Callable[[Split, tuple[Path, ...]], Images]


def read_named(known: NamedSet, split: Split, root: Path | None = None) -> Images:
    """Read the images of one split: from the user's own copy, else from the cache, else downloaded into the cache.

    `root` holds one folder per data set; by default it is the environment variable RESTORE_DATA.
    """
    return known.read(split, tuple(_locate(file, known.name, root) for file in known.files[split]))


def folders(root: Path, name: str) -> list[Path]:
    """List the existing folders of a named set below another folder."""
    return [folder for folder in (root / name, root / name.replace("-", "_")) if folder.is_dir()]


def own_split(name: str, split: Split, root: Path | None = None) -> Path | None:
    """Find a split among a user's own data sets: the array NAME/train.npy, or the folder NAME/train of images."""
    return _of_user(name, f"{split}.npy", root) or _of_user(name, split, root)


def _of_user(name: str, file: str, root: Path | None) -> Path | None:
    """A file of a named set below the user's folder; None if it is not there."""
    parent = _parent(root)
    try:
        paths = [folder / file for folder in folders(parent, name)] if parent else []
        return next((path for path in paths if path.exists()), None)
    except (OSError, ValueError):  # a name that no file can have
        return None


def _parent(root: Path | None) -> Path | None:
    return root or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)


def _locate(file: RemoteFile, name: str, root: Path | None) -> Path:
    # A user's own copies may be packed differently, or unpacked, so only their content counts.
    path = _of_user(name, file.name, root) or _of_user(name, file.name.removesuffix(".gz"), root)
    if path is not None:
        return path
    from platformdirs import user_cache_dir

    try:
        return fetch(file, Path(user_cache_dir("restore")) / name)
    except InputError as fault:
        parent = _parent(root)
        there = f"a folder {name} below the folder that {VARIABLE} names" if parent is None else shown(parent / name)
        raise InputError(f"{fault}; put the file into {there}", name) from fault
