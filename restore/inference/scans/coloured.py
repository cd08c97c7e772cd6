"""Where a page has a colour that is neither that of its ink nor that of its paper: stamps, charts, coloured prints."""

from __future__ import annotations

import numpy as np

from restore.components import components
from restore.images.colours import LUMINANCE
from restore.images.tones import SCALE, averages, paper_and_contrast
from restore.inference.scans.sheet import REACH, largest

# A part has a colour of its own if that of a square of it is further than this from those that lie between ink and
# paper, as a share of their contrast; it ends where colours are half as far from them (the stamps of
# `benchmarks/choices/page_parts.py`; by hand, on 60 coloured pages, maps and photographs).
COLOURED = 0.3

# Paper is as near as this to every stroke, in squares.
NEAR = int(REACH) // SCALE


def coloured_parts(colours: np.ndarray) -> np.ndarray:
    """Where a page has colours that are no mixture of its ink and its paper, boolean (H, W).

    Args:
        colours: red, green and blue, (H, W, 3), in any unit.

    >>> page = np.full((40, 60, 3), 250.0)
    >>> page[5:10, 5:50] = 10  # ink
    >>> page[20:30, 20:40] = [220, 30, 30]
    >>> bool(coloured_parts(page)[20:30, 20:40].all()), bool(coloured_parts(page)[:12].any())
    (True, False)
    """
    squares = np.stack([averages(colours[..., band], SCALE) for band in range(3)], -1)
    light = squares @ LUMINANCE
    contrast = paper_and_contrast(light)[1]
    darker = largest(light, NEAR) - light
    hues = squares[..., ::2] - light[..., None]  # of red and of blue, as green follows from them
    of_paper = _off_line(hues, light)  # however the light falls
    of_ink = _off_line(of_paper, darker)
    apart, at_all = (np.hypot(each[..., 0], each[..., 1]) / contrast for each in (of_ink, of_paper))
    sure = apart > COLOURED
    numbers = components(np.maximum(apart, at_all) > COLOURED / 2)  # near paper a colour may be taken for the ink's
    parts = np.isin(numbers, numbers[sure])
    other = largest(parts.astype(np.int8), 1) > 0  # what a square has of their edges
    return np.asarray(other.repeat(SCALE, 0).repeat(SCALE, 1)[: colours.shape[0], : colours.shape[1]])


def _off_line(values: np.ndarray, against: np.ndarray) -> np.ndarray:
    """Values (H, W, 2) off the line through 0 that fits most, by least absolute deviations: few outliers matter."""
    some = against > 0
    if not some.any():
        return values
    slopes = values[some] / against[some][:, None]
    order = slopes.argsort(0)
    until = against[some][order].cumsum(0)
    middle = (until < until[-1] / 2).sum(0)
    slope = slopes[order[middle, [0, 1]], [0, 1]]
    return np.asarray(values - against[..., None] * slope)
