"""Which parts of a grey page are no ink on paper: photographs, grey areas and screens, as a prior of pages tells."""

from __future__ import annotations

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.components import components
from restore.images.tones import SCALE, averages
from restore.inference.candidates import Prior
from restore.inference.engine import PictureEngine
from restore.inference.scans.sheet import largest

# A part has a core, as far as this to all sides of a square, of squares that are no page with this probability: most
# stains and thick strokes have none (`benchmarks/choices/page_parts.py`).
CORE_REACH, SURE = 8, 0.75


def other_parts(values: np.ndarray, engine: PictureEngine) -> np.ndarray:
    """Where a page is no ink on paper, boolean (H, W).

    Args:
        values: grey levels of dark ink on light paper, (H, W) in [0, 1].
        engine: the prior that tells, a conditional machine that sees the page at a quarter of its size.
    """
    small = averages(values, SCALE).astype(np.float32)
    page = Prior(engine).posterior(Observed(small, Damage()), lambda share: None).means[0]
    other = _parts(1 - page)
    return np.asarray(other.repeat(SCALE, 0).repeat(SCALE, 1)[: values.shape[0], : values.shape[1]])


def _parts(other: np.ndarray) -> np.ndarray:
    """The parts that are likelier than not and have a sure core, each made convex, of probabilities (h, w).

    Photographs and boxes of grey are convex, and what a prior misses of them is enclosed or lies at their edges. What
    is cut off by the edge of the picture may as well be the table that the page lies on.

    >>> part = np.zeros((40, 40))
    >>> part[5:25, 5:25], part[9:35, 30:32] = 0.6, 1.0
    >>> bool(_parts(part).any())
    False
    >>> part[7:24, 7:24], part[12:16, 5:7] = 0.95, 0.1
    >>> int(_parts(part).sum())
    400
    """
    likelier = other > 0.5
    core = largest(-largest(-(other > SURE).astype(np.int8), CORE_REACH), CORE_REACH) > 0
    numbers = components(likelier)
    parts = np.isin(numbers, np.unique(numbers[core & likelier]))
    if not parts.any():
        return parts
    from skimage.morphology import convex_hull_object  # they load much, for pages alone that have such parts
    from skimage.segmentation import clear_border

    return np.asarray(parts | convex_hull_object(clear_border(parts)))
