"""Omniglot: handwritten characters of many alphabets (Lake, Salakhutdinov & Tenenbaum, 2015), as 28x28 images.

The two small "background" archives are read, each with five alphabets and twenty drawings of every character, 105x105,
black on white. Greek and Latin are in both, so that 4,840 of the 5,840 drawings are different; repetitions are left
out. Images are white on black like MNIST's: a pixel's grey level is the share of its area that is ink. These archives
have no published split; a quarter of the drawings, drawn by a fixed permutation, is for testing, so that both parts
hold drawings of the same characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from restore.data.dataset import Images, Split, fixed_order
from restore.data.gathering.archive import grey_levels, members_of
from restore.data.sets.download import RemoteFile
from restore.data.sets.named import NamedSet
from restore.errors import InputError, shown
from restore.images.resizing import shrink

_MIRRORS = (
    "https://raw.githubusercontent.com/brendenlake/omniglot/master/python/",
    "https://github.com/brendenlake/omniglot/raw/master/python/",
)
_FILES = (
    RemoteFile(
        "images_background_small1.zip",
        1_319_022,
        "f38eb80f801274ac2b4dff5b24289016bfaba4a7d5bb50deebf27104ad6cb8a4",
        _MIRRORS,
    ),
    RemoteFile(
        "images_background_small2.zip",
        1_580_917,
        "3ccaa407515a8778e5d0861875af38b17e418f301ad5bb3b5a6b65d901a41c7f",
        _MIRRORS,
    ),
)
_DRAWINGS = 4_840
_TESTED = _DRAWINGS // 4
_SEED = 0
_SIDE, _SHOWN_SIDE = 105, 28

# The path of a drawing in an archive: folder, alphabet, character, drawing; an alphabet cannot be "." or "..".
_DRAWING = re.compile(r"images_background_small\d/((?!\.{1,2}/)[^/]+)/(character\d+)/(\d{4}_\d\d\.png)")


def rows_of(split: Split) -> np.ndarray:
    """The drawings, sorted by alphabet, character and number, that make up a split, in the split's order."""
    order = fixed_order(_DRAWINGS, _SEED)
    return order[_TESTED:] if split == "train" else order[:_TESTED]


def drawings_of(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name ("alphabet/character/drawing") and content of each drawing in an archive, see `members_of`."""
    for found, content in members_of(path, _DRAWING, "drawing of Omniglot"):
        yield "/".join(found.groups()), content


def ink(content: bytes, where: str) -> Images:
    """A drawing as grey levels (28, 28): the share of each pixel that is ink, times 255.

    Args:
        content: an image file, 105x105, black on white.
        where: the drawing's name for messages.

    Raises:
        InputError: if it is not such a file.
    """
    black = grey_levels(content, _SIDE, where, "drawing") < 128
    share, _ = shrink(black.astype(np.float64), None, (_SHOWN_SIDE, _SHOWN_SIDE))
    return np.rint(share * 255).astype(np.uint8)


def _read(split: Split, paths: tuple[Path, ...]) -> Images:
    found: dict[str, tuple[Path, bytes]] = {}
    for path in paths:
        for name, content in drawings_of(path):
            found.setdefault(name, (path, content))
    if len(found) != _DRAWINGS:
        places = " and ".join(shown(path) for path in paths)
        raise InputError(f"{places}: hold {len(found)} different drawings instead of {_DRAWINGS}; get the files again")
    names = sorted(found)
    wanted = [names[row] for row in rows_of(split)]
    return np.stack([ink(found[name][1], f"{shown(found[name][0])}: {shown(name)}") for name in wanted])


OMNIGLOT = NamedSet("omniglot", {"train": _FILES, "test": _FILES}, _read)
