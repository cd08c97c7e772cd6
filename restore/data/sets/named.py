"""Data sets known by name: the contract each of them fulfils, and where its files are looked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import Images, Split
from restore.data.sets.download import RemoteFile, fetch
from restore.errors import InputError, shown

VARIABLE = "RESTORE_DATA"


# Class of each image, (N,).
Labels: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class LabelSource:
    """Where the labels of a published data set are.

    Attributes:
        files: the files the labels of each split are read from.
        read: from the paths of those files to the labels of the split's images, in their order; raises InputError if
            they hold anything else.
    """

    files: Mapping[Split, tuple[RemoteFile, ...]]
    read: Callable[[Split, tuple[Path, ...]], Labels]


@dataclass(frozen=True)
class NamedSet:
    """A published data set.

    Attributes:
        name: what users call it; also the name of its folder under RESTORE_DATA, where "_" may stand for "-", and in
            the cache.
        files: the files each split is read from; none for a set that is computed.
        read: from the paths of those files to images (N, H, W); raises InputError if they hold anything else.
        labels: where their labels are; None for a set without.
    """

    name: str
    files: Mapping[Split, tuple[RemoteFile, ...]]
    read: Callable[[Split, tuple[Path, ...]], Images]
    labels: LabelSource | None = None


def read_named(known: NamedSet, split: Split, root: Path | None = None) -> Images:
    """The images of one split, from the user's own copy, else from the cache, else downloaded into the cache.

    Args:
        known: the data set.
        split: "train" or "test".
        root: the folder that holds one folder per data set; by default the environment variable RESTORE_DATA.

    Raises:
        InputError: if a file is nowhere to be had or does not hold what it should.
        OutputError: if the cache cannot be written.
    """
    return known.read(split, tuple(_locate(file, known.name, root) for file in known.files[split]))


def read_labels(known: NamedSet, split: Split, root: Path | None = None) -> Labels:
    """The labels of the images of one split, looked for as `read_named` does.

    Raises:
        InputError: if the set has none; as `read_named` otherwise.
        OutputError: if the cache cannot be written.
    """
    if known.labels is None:
        raise InputError(f"{known.name}: is a data set without labels; choose one that has them")
    return known.labels.read(split, tuple(_locate(file, known.name, root) for file in known.labels.files[split]))


def folders(root: Path, name: str) -> list[Path]:
    """The folders of a named set below another folder, as far as there are any."""
    return [folder for folder in (root / name, root / name.replace("-", "_")) if folder.is_dir()]


def _locate(file: RemoteFile, name: str, root: Path | None) -> Path:
    own = root or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    if own is not None:
        # Copies of the user's own may be packed differently or not at all, so they are judged by their content only.
        for folder in folders(own, name):
            for candidate in (folder / file.name, folder / file.name.removesuffix(".gz")):
                if candidate.is_file():
                    return candidate
    try:
        return fetch(file, _cache() / name)
    except InputError as fault:
        place = shown(own / name) if own is not None else f"a folder {name} below the folder that {VARIABLE} names"
        raise InputError(f"{name}: {fault}; put the file into {place}") from fault


def _cache() -> Path:
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("restore"))
