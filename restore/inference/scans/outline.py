"""The outline of a sheet of paper in a photograph: what it lies on is neither its ink nor its paper."""

from __future__ import annotations

import numpy as np

from restore.components import components
from restore.images.tones import SCALE, Tones, averages, counted, enlarged, paper_and_contrast
from restore.inference.scans.sheet import grown, largest

# A sheet and the quadrilateral between its outermost points share so much of what either covers: nine sheets in real
# photographs .98 at least, a page but for a stain .90, most discs .94 at most, one that borders cut .976 (by hand).
FOUR_SIDED = 0.965


def beside_sheet(levels: np.ndarray) -> np.ndarray | None:
    """What a photograph shows beside a sheet of paper, boolean (H, W); None where all is one page.

    A sheet is light, has four straight sides, and what lies around it, at its sharp edge and in all, is darker by half
    of the contrast of its ink.

    Args:
        levels: of dark ink on light paper, (H, W); of colours the least of red, green and blue, as paper is white.

    >>> table = np.full((400, 400), 0.3)
    >>> table[40:360, 80:300] = 0.9  # a sheet
    >>> table[100:104, 100:250] = 0.1  # ink
    >>> beside = beside_sheet(table)
    >>> int(beside[:36].sum()), int(beside[52:340, 92:280].sum())
    (14400, 0)
    """
    squares = averages(levels, SCALE)
    ground = -largest(-largest(squares, 1), 1)  # without lines that run across a sheet
    sheet = _lightest_part(ground)
    inside = ~grown(~sheet, 1)
    outside = ~grown(sheet, 1)
    if not (inside.any() and outside.any()):
        return None
    _, contrast = paper_and_contrast(squares[inside])
    paper = np.median(ground[inside & grown(~sheet, 2)])
    darker = (np.median(ground[part]) < paper - contrast / 2 for part in (outside, outside & grown(sheet, 2)))
    if not (all(darker) and _four_sided(sheet)):
        return None
    return enlarged(~inside, SCALE, levels.shape)


def _lightest_part(ground: np.ndarray) -> np.ndarray:
    """The largest part that is lighter than Otsu's threshold, and what it encloses, boolean (h, w)."""
    lowest = float(ground.min())
    scale = 255 / max(float(ground.max()) - lowest, 1e-6)
    levels = np.rint(scale * (ground - lowest)).astype(np.uint8)
    light = levels > Tones.of(counted(levels)).threshold
    if not light.any():
        return light
    numbers = components(light)
    part = numbers == np.bincount(numbers[light]).argmax()
    around = components(~np.pad(part, 1))
    return np.asarray(around[1:-1, 1:-1] != around[0, 0])


def _four_sided(part: np.ndarray) -> bool:
    """True if a part is nearly a quadrilateral: the largest whose corners are outermost in four crossed directions."""
    # As complex numbers: the imaginary part of a product with a conjugate is the cross product.
    places = np.tensordot(np.array([1, 1j]), np.indices(part.shape), 1)
    edge = grown(~np.pad(part, 1), 1)[1:-1, 1:-1]
    points = places[part & edge]
    angles = np.radians(np.arange(90)[:, None] + 90 * np.arange(4))
    along = (np.exp(-1j * angles)[..., None] * points).real
    corners = points[along.argmax(-1)]
    sides = np.roll(corners, -1, 1) - corners
    best = (corners.conj() * sides).imag.sum(1).argmax()
    beside = sides[best].conj() * (places[..., None] - corners[best])
    inside = (beside.imag >= -np.abs(sides[best]) / 2).all(-1)  # half a square beyond the middles of the outermost
    return bool((part & inside).sum() > FOUR_SIDED * (part | inside).sum())
