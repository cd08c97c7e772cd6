"""Photographs in colour: restored plane by plane, in a space of one light plane and two of opponent colours.

The three axes are orthonormal, so that Gaussian noise has the same sigma in every plane, and the planes are nearly
independent in photographs (Ruderman, Cronin & Chiao, J. Opt. Soc. Am. A 15, 1998).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from restore.errors import ModelError
from restore.inference.damage import Damage
from restore.inference.pictures import PictureEngine, Restored
from restore.inference.tones import Pixels
from restore.inference.windows.choosing.survey import Choice
from restore.inference.windows.large import restore_large
from restore.marginals import Status

# Rows are light, red against blue, and green against both; the middle grey is the centre of every plane.
AXES = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])
MIDDLE = 0.5


def restore_colour(
    engines: Sequence[PictureEngine],
    pixels: Pixels,
    damage: Damage,
    *,
    invert: bool = False,
    force: bool = False,
    watch: Callable[[float], None] = lambda share: None,
) -> tuple[Choice, Restored]:
    """As `restore_large`, for pixels (H, W, 3); prior and level are chosen, and judged, by the light plane.

    Raises:
        ModelError: if no prior is one of photographs.
    """
    suited = [engine for engine in engines if engine.description.mixture]
    if not suited:
        raise ModelError(
            f"{engines[0].description.name} knows no colours; leave the model out, or convert a copy to greyscale first"
        )
    planes = MIDDLE + (pixels[slice(None), slice(None)] - MIDDLE) @ AXES.T

    def part(number: int) -> Callable[[float], None]:
        return lambda share: watch((number + share) / 3)

    choice, light = restore_large(suited, planes[..., 0], damage, invert=invert, force=force, watch=part(0))
    found = [light]
    for number in (1, 2):
        # A plane without colour is explained as well by independent pixels.
        _, plane = restore_large([choice.engine], planes[..., number], choice.damage, force=True, watch=part(number))
        found.append(plane)
    if light.shortfall and not force:
        found = [replace(light, means=planes[..., number], deviations=0 * planes[..., number]) for number in range(3)]
    means = MIDDLE + (np.stack([plane.means for plane in found], -1) - MIDDLE) @ AXES
    deviations = np.sqrt(np.stack([plane.deviations**2 for plane in found], -1) @ AXES**2)
    worst = max(found, key=lambda plane: plane.status == Status.DIVERGED)
    return choice, replace(light, estimate=means, means=means, deviations=deviations, status=worst.status)
