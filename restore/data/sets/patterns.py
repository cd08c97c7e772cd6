"""Small sets of black-and-white patterns, computed instead of read, by which learners of RBMs are judged exactly.

Each set is a whole distribution, every pattern as often as it is probable, so that training and test images are the
same, and no model has a mean log-likelihood above minus the entropy of that distribution, in nats:

- Bars & Stripes, 3x3 (MacKay, 2003): a colour is drawn for every row, and the picture is turned by 90 degrees or not.
  That is 16 equally probable draws of 14 distinct patterns, since a picture of one colour is its own rotation: twelve
  patterns of probability 1/16 and two of 1/8. Best: -(12/16) ln 16 - (2/8) ln 8 = -2.599. (Fourteen patterns of equal
  probability would have -ln 14 = -2.639; the bound of -41.59 = 16 · -2.599 in Melchior, Fischer & Wiskott, JMLR 2016,
  tells which of the two is meant in the literature.)
- Shifting Bar, nine pixels in a row, one of which is white, at any of nine places (ibid.). Best: -ln 9 = -2.197.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from restore.data.dataset import Images, Split
from restore.data.sets.named import NamedSet

_WHITE = np.uint8(255)


def bars_and_stripes(side: int) -> Images:
    """All 2^(side + 1) draws: the pictures with rows of one colour, then the same ones turned; (N, side, side)."""
    rows = (np.arange(2**side)[:, None] >> np.arange(side)) & 1
    stripes = np.repeat(rows[:, :, None], side, axis=2).astype(np.uint8)
    return np.concatenate([stripes, stripes.transpose(0, 2, 1)]) * _WHITE


def shifting_bar(size: int, length: int) -> Images:
    """A white bar of so many pixels at each of its cyclic places in a row; (size, 1, size)."""
    bar = (np.arange(size) < length).astype(np.uint8)
    return np.stack([np.roll(bar, place) for place in range(size)])[:, None, :] * _WHITE


def _read_bars_and_stripes(split: Split, paths: tuple[Path, ...]) -> Images:
    return bars_and_stripes(3)


def _read_shifting_bar(split: Split, paths: tuple[Path, ...]) -> Images:
    return shifting_bar(9, 1)


BARS_AND_STRIPES = NamedSet("bars-and-stripes", {"train": (), "test": ()}, _read_bars_and_stripes)
SHIFTING_BAR = NamedSet("shifting-bar", {"train": (), "test": ()}, _read_shifting_bar)
