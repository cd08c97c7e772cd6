"""Which parts of a grey page are no ink on paper: photographs, grey areas and screens, as a prior of pages tells."""

from __future__ import annotations

import math

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

# The share of its bounding box that an ellipse fills.
ELLIPSE = math.pi / 4


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
    """The parts that are likelier than not and have a sure core, in their own shapes, of probabilities (h, w).

    Photographs and boxes of grey are rectangles or convex at least, and what a prior misses of them lies inside or at
    their edges: a part that fills its bounding box more than an ellipse does is that box. What the edge of the picture
    cuts off may as well be the table that the page lies on, and is made no more convex than that.

    >>> part = np.zeros((40, 40))
    >>> part[5:25, 5:25], part[9:35, 30:32] = 0.6, 1.0
    >>> bool(_parts(part).any())
    False
    >>> part[5:9, 5:9], part[7:24, 7:24] = 0.1, 0.95
    >>> int(_parts(part).sum())
    400
    """
    likelier = other > 0.5
    core = largest(-largest(-(other > SURE).astype(np.int8), CORE_REACH), CORE_REACH) > 0
    numbers = components(likelier)
    parts = np.isin(numbers, np.unique(numbers[core & likelier]))
    if not parts.any():
        return parts
    from skimage.measure import label, regionprops  # they load much, for pages alone that have such parts
    from skimage.morphology import convex_hull_object
    from skimage.segmentation import clear_border

    convex = np.asarray(parts | convex_hull_object(clear_border(parts)))
    for part in regionprops(label(convex)):
        if part.area > ELLIPSE * part.area_bbox:
            convex[part.slice] = True
    return convex
