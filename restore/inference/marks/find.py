"""Find marks on a black and white picture: masks by kind. What is done about them is another question."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from restore.inference.marks.kinds import KINDS
from restore.inference.marks.pieces import around
from restore.inference.marks.scene import Mark, Scene
from restore.inference.marks.witness import Witness

# Gives a prior, in the polarity of a picture, for (its values, the pixels to leave out).
Call = Callable[[np.ndarray, np.ndarray], Witness]

# Pixels by which masks grow into the soft edges of marks on a grey picture, and how much darker or lighter than ground
# these are, of 1.
RIM, SOFT = 2, 0.04


def find(white: np.ndarray, kinds: Sequence[str], call: Call, most: int | None = None, told: bool = True) -> list[Mark]:
    """The marks of a black and white picture, of every kind that has some; ground is the colour of most of it.

    Args:
        white: True for white, boolean (H, W).
        kinds: which, names of `KINDS`; they are looked for in their order there.
        call: gives a prior for specks; it is asked once, and only if there are pieces.
        most: pixels of the largest speck; None to find it.
        told: True if the caller says that there are some.
    """
    light = bool(white.mean() >= 0.5)
    scene, found = Scene(white != light, light, np.zeros(white.shape, bool), call, most, told), list[Mark]()
    for kind in kinds:
        mark = KINDS[kind](scene)
        if mark is not None:
            found.append(mark)
            scene = scene.without(mark.mask)
    return found


def with_soft_edges(mask: np.ndarray, white: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A mask of marks on a picture with grey levels, with the pixels around them that are neither ground nor ink.

    Args:
        mask: boolean (H, W).
        white: the picture in black and white.
        values: its grey levels.
    """
    rim = (around(mask, RIM) > 0) & ~mask
    if not rim.any():
        return mask
    light = bool(white.mean() >= 0.5)
    ground = float(np.median(values[white == light]))
    return np.asarray(mask | rim & (white == light) & (np.abs(values - ground) > SOFT))
