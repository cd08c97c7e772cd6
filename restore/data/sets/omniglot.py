"""Omniglot: handwritten characters of many alphabets (Lake, Salakhutdinov & Tenenbaum, 2015), as 28x28 images.

The two small "background" archives are read, each with five alphabets and twenty drawings of every character, 105x105,
black on white. Greek and Latin are in both, so that 4,840 of the 5,840 drawings are different; repetitions are left
out. Images are white on black like MNIST's: a pixel's grey level is the share of its area that is ink. These archives
have no published split; a quarter of the drawings, drawn by a fixed permutation, is for testing, so that both parts
hold drawings of the same characters.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from restore.data.dataset import Images, Split, fixed_order
from restore.data.fitting import resized
from restore.data.sets.download import RemoteFile
from restore.data.sets.named import NamedSet
from restore.data.stock import pictures_in

_MIRRORS = (
    "https://raw.githubusercontent.com/brendenlake/omniglot/master/python/",
    "https://github.com/brendenlake/omniglot/raw/master/python/",
)
_FILES = tuple(
    RemoteFile(f"images_background_small{number}.zip", sha256, _MIRRORS)
    for number, sha256 in (
        (1, "f38eb80f801274ac2b4dff5b24289016bfaba4a7d5bb50deebf27104ad6cb8a4"),
        (2, "3ccaa407515a8778e5d0861875af38b17e418f301ad5bb3b5a6b65d901a41c7f"),
    )
)
# How many drawings there are; and the seed of the order in which they are split, for ever.
_DRAWINGS, _SEED = 4_840, 0
_TESTED = _DRAWINGS // 4
# The side of a drawing in its file, and in the data set, in pixels.
_SIDE, _SHOWN_SIDE = 105, 28

# The path of a drawing in an archive: folder, then what names it: alphabet, character, drawing.
_DRAWING = re.compile(r"images_background_small\d/([^/]+/character\d+/\d{4}_\d\d)\.png")


def rows_of(split: Split) -> np.ndarray:
    """The drawings, sorted by alphabet, character and number, that make up a split, in the split's order."""
    order = fixed_order(_DRAWINGS, _SEED)
    return order[_TESTED:] if split == "train" else order[:_TESTED]


def ink(drawing: Images) -> Images:
    """Turn a drawing (105, 105), black on white, into (28, 28): the share of each pixel that is ink, times 255."""
    return resized(np.where(drawing < 128, np.uint8(255), np.uint8(0)), (_SHOWN_SIDE, _SHOWN_SIDE))


def _read(split: Split, paths: tuple[Path, ...]) -> Images:
    drawings = [*pictures_in(paths, _DRAWING, _DRAWINGS, (_SIDE, _SIDE)).values()]
    return np.stack([ink(drawings[row]) for row in rows_of(split)])


OMNIGLOT = NamedSet("omniglot", {"train": _FILES, "test": _FILES}, _read)
