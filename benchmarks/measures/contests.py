"""The measures of the DIBCO contests of document binarisation, for pages of ink, booleans (H, W).

F-measure and PSNR are as everywhere; DRD is the distance reciprocal distortion of Lu, Kot & Shi (2004). Pseudo-F is
that of Ntirogiannis, Gatos & Pratikakis (2013). No contest has four more measures: F that forgives one pixel, how wide
strokes are, how much faint ink is found, and how many marks are no ink.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import (
    binary_dilation,
    binary_erosion,
    convolve,
    distance_transform_cdt,
    distance_transform_edt,
    gaussian_filter,
    label,
    mean,
)
from skimage.morphology import skeletonize

# A wrong pixel counts the more the more pixels around it were to be different, weighted by their nearness.
REACH = 2
BLOCK = 8

# Ink this far from a stroke, in pixels, is not part of it.
BESIDE = 3

# Ink is faint if its contrast is at most this share of the darkest, which is exceeded by the share after it. So many
# pixels of it there must be. The ground is a Gaussian of the paper around, of so many pixels.
FAINT, DARKEST, FEWEST, GROUND = 1 / 3, 0.01, 20, 12.0


def f_measure(found: np.ndarray, truth: np.ndarray) -> float:
    """Twice the ink that was found, as a share of the ink found and the ink there is."""
    return float(2 * (found & truth).sum() / max(1, found.sum() + truth.sum()))


def forgiving_f_measure(found: np.ndarray, truth: np.ndarray) -> float:
    """The F-measure where ink within one pixel of ink is right: contests differ in where an edge lies."""
    box = np.ones((3, 3))
    precision = (found & binary_dilation(truth, box)).sum() / max(1, found.sum())
    recall = (truth & binary_dilation(found, box)).sum() / max(1, truth.sum())
    return float(2 * precision * recall / max(1e-9, precision + recall))


def false_marks(found: np.ndarray, truth: np.ndarray) -> float:
    """The pixels of connected marks that touch no ink, nor come within one pixel of it, by those of the ink."""
    box = np.ones((3, 3))
    marks, count = label(found, box)
    true = np.zeros(count + 1, bool)
    true[np.unique(marks[binary_dilation(truth, box)])] = True
    true[0] = True
    return float(np.count_nonzero(~true[marks]) / max(1, truth.sum()))


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


def pseudo_f_measure(found: np.ndarray, truth: np.ndarray) -> float:
    """The F-measure in which ink weighs by how deep in its stroke it is, and false ink by how far from one it is.

    Contours weigh nothing, and across each stroke the weights of recall sum to one, whatever its width (eqs. 2, 3).
    False ink weighs as much as true ink, and more within a stroke's width of ink: twice as much at that distance, or
    in the middle between two parts of the ink (eqs. 10, 11). Skeletons are those of skimage, so that figures differ a
    little from those of the contests' programs.
    """
    if not truth.any() or not found.any():
        return 0.0
    contour = truth & ~binary_erosion(truth, border_value=0)
    depth = distance_transform_cdt(~contour, "chessboard")
    middle = skeletonize(truth)
    # A part that is thinned to nothing has its contour for a middle.
    parts, count = label(truth, np.ones((3, 3)))
    has_middle = np.isin(parts, np.unique(parts[middle]))
    middle |= contour & ~has_middle
    deep = np.where(middle, np.maximum(depth, 1), depth) * truth
    from_middle = distance_transform_cdt(~middle, "chessboard")
    nearest = _nearest(middle)
    # A stroke of an even number of pixels has two in its middle.
    owner = np.ravel_multi_index(nearest, truth.shape)
    farthest = np.zeros(truth.size, int)
    inside = truth & (deep > 0)
    np.maximum.at(farthest, owner[inside], from_middle[inside])
    even = farthest.reshape(truth.shape)[nearest] >= deep[nearest]
    half = np.maximum(deep[nearest], deep)
    of_recall = np.where(truth, deep / (half * (half + even)).clip(1), 0.0)
    # The width of strokes of each connected part of the ink, over all pixels that are nearest to it.
    widths = np.concatenate([[0.0], mean(2.0 * (deep + 1) - 1, np.where(middle, parts, 0), np.arange(1, count + 1))])
    nearest_part = parts[_nearest(truth)]
    width = widths[nearest_part]
    away = distance_transform_cdt(~truth, "chessboard")
    reach = width
    meeting = (nearest_part != np.roll(nearest_part, 1, 0)) | (nearest_part != np.roll(nearest_part, 1, 1))
    meeting[0] = meeting[:, 0] = False
    if meeting.any():
        near = distance_transform_cdt(~meeting, "chessboard") <= width - away
        reach = np.where(near, np.minimum(away[_nearest(meeting)], width), width)
    more = np.where(~truth & (away <= width), np.minimum(away / np.maximum(reach, 1), 2), 0.0)
    recall = of_recall[found].sum() / of_recall.sum()
    precision = (found & truth).sum() / (1 + more[found]).sum()
    return float(2 * recall * precision / max(1e-9, recall + precision))


def width_of_strokes(found: np.ndarray, truth: np.ndarray) -> float:
    """The mean width of the strokes that were found, of that of the same strokes in truth: 1 if right, less if thin.

    Strokes whose skeleton, that of the truth, was not found do not count. Nor does ink away from strokes.
    """
    middle = skeletonize(truth)
    if not (middle & found).any():
        return np.nan
    kept = found[_nearest(middle)]
    beside = distance_transform_edt(~truth) <= BESIDE
    return float((found & kept & beside).sum() / (truth & kept).sum())


def recall_of_faint(found: np.ndarray, truth: np.ndarray, grey: np.ndarray) -> float:
    """The share found of faint ink, in the middle of strokes; not a number if a page has none.

    Args:
        found, truth: ink.
        grey: levels of the page, dark for ink.
    """
    paper = distance_transform_edt(~truth) > BESIDE
    share = gaussian_filter(paper.astype(float), GROUND)
    ground = gaussian_filter(np.where(paper, grey, 0.0), GROUND) / np.maximum(share, 1e-6)
    # Noise of single pixels is not faint ink.
    contrast = ground - gaussian_filter(grey.astype(float), 0.7)
    middle = skeletonize(truth) & (share > 0.01)
    if not middle.any():
        return np.nan
    faint = middle & (contrast <= FAINT * np.quantile(contrast[middle], 1 - DARKEST))
    return float(found[faint].mean()) if faint.sum() >= FEWEST else np.nan


def _nearest(mask: np.ndarray) -> tuple[np.ndarray, ...]:
    """The place of the pixel of a mask that is nearest to each pixel."""
    return tuple(distance_transform_edt(~mask, return_distances=False, return_indices=True))
