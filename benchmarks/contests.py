"""The measures of the DIBCO contests of document binarisation, for pages of ink, booleans (H, W).

F-measure and PSNR are as everywhere; DRD is the distance reciprocal distortion of Lu, Kot & Shi (2004).
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import convolve

# A wrong pixel counts the more the more pixels around it were to be different, weighted by their nearness.
REACH = 2
BLOCK = 8


def f_measure(found: np.ndarray, truth: np.ndarray) -> float:
    """Twice the ink that was found, as a share of the ink found and the ink there is."""
    return float(2 * (found & truth).sum() / max(1, found.sum() + truth.sum()))


def psnr(found: np.ndarray, truth: np.ndarray) -> float:
    """In decibels; infinite if nothing is wrong."""
    wrong = float((found != truth).mean())
    return -10 * np.log10(wrong) if wrong else np.inf


def drd(found: np.ndarray, truth: np.ndarray) -> float:
    """The distortion of all wrong pixels, per block of 8x8 pixels that is neither all ink nor all paper."""
    away = np.hypot(*np.mgrid[-REACH : REACH + 1, -REACH : REACH + 1])
    nearness = np.divide(1, away, out=np.zeros_like(away), where=away > 0)
    nearness /= nearness.sum()
    # Beyond the edges the page is as it is found, so that nothing differs there.
    ink = convolve(truth.astype(float), nearness, mode="constant")
    paper = convolve((~truth).astype(float), nearness, mode="constant")
    distortion = np.where(found, paper, ink)[found != truth].sum()
    rows, columns = (size // BLOCK * BLOCK for size in truth.shape)
    blocks = truth[:rows, :columns].reshape(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK).mean((1, 3))
    return float(distortion / max(1, ((blocks > 0) & (blocks < 1)).sum()))
