"""Which parts of a grey page are no ink on paper: photographs, grey areas and screens, as a prior of pages tells."""

from __future__ import annotations

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.components import components
from restore.images.tones import SCALE, averages
from restore.inference.candidates import Prior
from restore.inference.engine import PictureEngine
from restore.inference.scans.sheet import largest

# A part has a core, as far as this to all sides of a square, of squares that are no page with this probability: stains
# and thick strokes have none (`benchmarks/choices/page_parts.py`).
CORE_REACH, SURE = 6, 0.9


def other_parts(values: np.ndarray, engine: PictureEngine) -> np.ndarray:
    """Where a page is no ink on paper, boolean (H, W).

    Args:
        values: grey levels of dark ink on light paper, (H, W) in [0, 1].
        engine: the prior that tells, a conditional machine that sees the page at a quarter of its size.
    """
    small = averages(values, SCALE).astype(np.float32)
    page = Prior(engine).posterior(Observed(small, Damage()), lambda share: None).means[0]
    other = _with_core(1 - page)
    return np.asarray(other.repeat(SCALE, 0).repeat(SCALE, 1)[: values.shape[0], : values.shape[1]])


def _with_core(other: np.ndarray) -> np.ndarray:
    """The parts that are likelier than not and have a sure core, with what they enclose, of probabilities (h, w).

    >>> part = np.zeros((40, 40))
    >>> part[5:25, 5:25], part[9, 30:] = 0.6, 1.0
    >>> bool(_with_core(part).any())
    False
    >>> part[8:21, 8:21] = 0.95
    >>> int(_with_core(part).sum())
    400
    """
    sure = (other > SURE).astype(np.int8)
    core = largest(-largest(-sure, CORE_REACH), CORE_REACH) > 0
    numbers = components(other > 0.5)
    parts = np.isin(numbers, np.unique(numbers[core & (other > 0.5)]))
    around = components(parts)
    border = np.concatenate([around[0], around[-1], around[:, 0], around[:, -1]])
    return parts | ~np.isin(around, border)
