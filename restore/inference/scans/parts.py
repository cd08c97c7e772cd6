"""Which parts of a grey page are no ink on paper: photographs, grey areas and screens, as a prior of pages tells."""

from __future__ import annotations

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.inference.candidates import Prior
from restore.inference.engine import PictureEngine

# The prior sees the averages of squares of so many pixels a side.
SCALE = 4


def other_parts(values: np.ndarray, engine: PictureEngine) -> np.ndarray:
    """Where a page is no ink on paper, boolean (H, W).

    Args:
        values: grey levels of dark ink on light paper, (H, W) in [0, 1].
        engine: the prior that tells, a conditional machine that sees the page at a quarter of its size.
    """
    small = _averaged(values)
    page = Prior(engine).posterior(Observed(small, Damage()), lambda share: None).means[0] > 0.5
    return np.asarray(~page.repeat(SCALE, 0).repeat(SCALE, 1)[: values.shape[0], : values.shape[1]])


def _averaged(values: np.ndarray) -> np.ndarray:
    """Averages over squares, those at the lower and right edge over what is there."""
    starts = (np.arange(0, size, SCALE) for size in values.shape)
    ones = (np.diff([*range(0, size, SCALE), size]) for size in values.shape)
    rows, columns = starts
    sums = np.add.reduceat(np.add.reduceat(values, rows, 0), columns, 1)
    return np.asarray(sums / np.outer(*ones), np.float32)
