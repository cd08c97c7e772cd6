"""Where a page has a colour that is neither that of its ink nor that of its paper: stamps, charts, coloured prints."""

from __future__ import annotations

import numpy as np

from restore.components import components
from restore.images.colours import LUMINANCE
from restore.images.tones import SCALE, averages, enlarged, paper_and_contrast
from restore.inference.scans.sheet import REACH, grown, largest

# A part has a colour of its own if that of a square of it is further than this from those that lie between ink and
# paper, as a share of their contrast; it ends where colours are half as far from them (the stamps of
# `benchmarks/choices/page_parts.py`; by hand, on 60 coloured pages, maps and photographs).
COLOURED = 0.25

# Paper is as near as this to every stroke, in squares.
NEAR = int(REACH) // SCALE

# The side of squares of which files keep one colour.
FINE = SCALE // 2


def coloured_parts(colours: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where a page has colours that are no mixture of its ink and its paper.

    Args:
        colours: red, green and blue, (H, W, 3), in any unit.

    Returns:
        The parts that have such a colour, and which pixels of these have another one than paper, boolean (H, W) each.

    >>> page = np.full((40, 60, 3), 250.0)
    >>> page[5:10, 5:50] = 10  # ink
    >>> page[20:30, 20:40] = [220, 30, 30]
    >>> parts, tinted = coloured_parts(page)
    >>> int(parts.sum()), int(tinted.sum())
    (560, 200)
    """
    light, hues = _light_and_hues(colours, SCALE)
    contrast = paper_and_contrast(light)[1]
    darker = largest(light, NEAR) - light
    of_paper = _slope(hues, light)
    shift = hues - of_paper * light[..., None]  # however the light falls
    apart = _length(shift - _slope(shift, darker) * darker[..., None]) / contrast
    # Near paper a colour may be taken for the ink's. Letters and words of one colour are a part.
    weak = grown(np.maximum(apart, _length(shift) / contrast) > COLOURED / 2, 1)
    sure = apart > COLOURED
    if not sure.any():  # as on most pages: nothing is looked at more finely
        return np.zeros(colours.shape[:2], bool), np.zeros(colours.shape[:2], bool)
    numbers = components(weak)
    parts = enlarged(np.isin(numbers, numbers[sure]), SCALE, colours.shape)
    light, hues = _light_and_hues(colours, FINE)
    tinted = _length(hues - of_paper * light[..., None]) > COLOURED / 2 * contrast
    return parts, parts & enlarged(tinted, FINE, colours.shape)


def _light_and_hues(colours: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Luminance of squares of a picture, (h, w), and red and blue less that, (h, w, 2), from which green follows."""
    squares = np.stack([averages(colours[..., band], side) for band in range(3)], -1)
    light = squares @ LUMINANCE
    return light, squares[..., ::2] - light[..., None]


def _length(hues: np.ndarray) -> np.ndarray:
    return np.asarray(np.hypot(hues[..., 0], hues[..., 1]))


def _slope(values: np.ndarray, against: np.ndarray) -> np.ndarray:
    """Of values (H, W, 2) the slopes of lines through 0, (2,), by least absolute deviations: few outliers matter."""
    some = against > 0
    if not some.any():
        return np.zeros(2)
    slopes = values[some] / against[some][:, None]
    order = slopes.argsort(0)
    until = against[some][order].cumsum(0)
    middle = (until < until[-1] / 2).sum(0)
    return np.asarray(slopes[order[middle, [0, 1]], [0, 1]])
