"""Small computed sets of black-and-white patterns, for exact tests of learners.

Each set is a whole distribution, every pattern as often as it is probable. So training and test images are the same,
and no model's mean log-likelihood exceeds minus the entropy of the distribution, in nats:

- Bars & Stripes, 3x3 (MacKay, 2003): every row gets a random colour, and the picture is turned by 90 degrees or not.
  These are 16 equally probable draws of 14 distinct patterns, since a picture of one colour is its own rotation: twelve
  patterns of probability 1/16 and two of 1/8. Best: -(12/16) ln 16 - (2/8) ln 8 = -2.599. (Fourteen equally probable
  patterns would have -ln 14 = -2.639; the bound of -41.59 = 16 · -2.599 in Melchior, Fischer & Wiskott, JMLR 2016,
  shows which of the two the literature means.)
- Shifting Bar, nine pixels in a row, one of them white, at any of nine places (ibid.). Best: -ln 9 = -2.197.
"""

from __future__ import annotations

import numpy as np

from restore.data.dataset import Images
from restore.data.sets.named import NamedSet

_WHITE = np.uint8(255)


def bars_and_stripes(side: int) -> Images:
    """All 2^(side + 1) draws: the pictures with rows of one colour, then the same ones turned; (N, side, side)."""
    rows = (np.arange(2**side)[:, None] >> np.arange(side)) & 1
    stripes = np.repeat(rows[:, :, None], side, axis=2).astype(np.uint8)
    return np.concatenate([stripes, stripes.transpose(0, 2, 1)]) * _WHITE


BARS_AND_STRIPES = NamedSet("bars-and-stripes", {"train": (), "test": ()}, lambda split, paths: bars_and_stripes(3))
SHIFTING_BAR = NamedSet(
    "shifting-bar", {"train": (), "test": ()}, lambda split, paths: np.eye(9, dtype=np.uint8)[:, None] * _WHITE
)
