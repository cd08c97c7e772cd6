"""Which parts of a grey page are no ink on paper: photographs, grey areas and screens, as a prior of pages tells."""

from __future__ import annotations

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.images.tones import SCALE, averages, enlarged
from restore.inference.candidates import Prior
from restore.inference.engine import PictureEngine
from restore.inference.marks.pieces import Pieces, around

# A part has a core: a pixel as far as this around which, in a square, so many are likelier part than page. Most stains
# and thick strokes have none (`benchmarks/choices/page_parts.py`, pages of groups B and D).
CORE_REACH, CORE_SHARE = 10, 0.9

# A part that fills more than this share of its bounding box is that box (the same pages).
BOXED = 0.67


def other_parts(values: np.ndarray, engine: PictureEngine, beside: np.ndarray | None = None) -> np.ndarray:
    """Where a page is no ink on paper, boolean (H, W).

    Args:
        values: grey levels of dark ink on light paper, (H, W) in [0, 1].
        engine: the prior that tells, a conditional machine that sees the page at a quarter of its size.
        beside: what the prior sees, but is no part of the page, boolean (H, W), or None.
    """
    small = averages(values, SCALE).astype(np.float32)
    page = Prior(engine).posterior(Observed(small, Damage()), lambda share: None).means[0]
    likely = 1 - page if beside is None else np.where(averages(beside, SCALE) > 0, 0, 1 - page)
    other = _parts(likely)
    return enlarged(other, SCALE, values.shape)


def _parts(other: np.ndarray) -> np.ndarray:
    """The parts that are likelier than not and have a core, of probabilities (h, w).

    Photographs and boxes of grey are rectangles, and what a prior misses of them lies inside or at their edges. The
    table that a page lies on fills little of the box around it.

    >>> part = np.zeros((40, 40))
    >>> part[5:30, 5:30], part[9:35, 32:35] = 0.9, 1.0
    >>> part[5:9, 5:9] = part[20:22, 10:12] = 0.1
    >>> int(_parts(part).sum())
    625
    """
    likelier = other > 0.5
    core = around(likelier, CORE_REACH) > CORE_SHARE * (2 * CORE_REACH + 1) ** 2
    pieces = Pieces.of(likelier, likelier.size)
    found = pieces.chosen(pieces.dark & (pieces.mean(core) > 0))
    parts = found.inside.copy()
    for (top, left, bottom, right), size in zip(found.boxes.tolist(), found.sizes.tolist(), strict=True):
        parts[top:bottom, left:right] |= size > BOXED * (bottom - top) * (right - left)
    return parts
