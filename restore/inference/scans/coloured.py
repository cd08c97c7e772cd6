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
    apart_squared = np.zeros(light.shape)
    for band in (0, 2):  # green follows from red and blue
        hue = squares[..., band] - light
        shift = hue - _slope(hue, light) * light  # however the light falls
        apart_squared += (shift - _slope(shift, darker) * darker) ** 2
    apart = np.sqrt(apart_squared) / contrast
    numbers = components(apart > COLOURED / 2)
    parts = np.isin(numbers, numbers[apart > COLOURED])
    other = largest(parts.astype(np.int8), 1) > 0  # what a square has of their edges
    return np.asarray(other.repeat(SCALE, 0).repeat(SCALE, 1)[: colours.shape[0], : colours.shape[1]])


def _slope(values: np.ndarray, against: np.ndarray) -> float:
    """The slope of a line through 0 by least absolute deviations (Boscovich): few outliers matter."""
    some = against > 0
    slopes = values[some] / against[some]
    order = slopes.argsort()
    until = against[some][order].cumsum()
    return float(slopes[order][np.searchsorted(until, until[-1] / 2)]) if len(until) else 0.0
