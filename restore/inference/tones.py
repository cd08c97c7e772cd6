"""Tell pictures in black and white, whose edges may be soft, from those with grey levels all over, as photographs."""

from __future__ import annotations

from typing import Protocol

import numpy as np

# Of the range between the darkest and the lightest pixels, the middle half; and the share of pixels that may lie there.
# More than the soft edges of a digit take, and less than the middle tones of photographs; tests/inference/test_tones.py
# compares MNIST's test digits and photographs of scikit-image.
MIDDLE = (0.25, 0.75)
MOST = 0.2

# The darkest and the lightest pixels, in percent, that say nothing of the range.
STRAY = 1.0

# More pixels than this say nothing new.
ENOUGH = 2**20


class Pixels(Protocol):
    """Grey values (H, W) that may be computed where they are asked for: an array, or what is like one."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, where: tuple[slice, slice], /) -> np.ndarray: ...


def middle_tones(grey: Pixels) -> float:
    """The share of pixels (H, W) that are neither dark nor light, for the picture they are in.

    >>> middle_tones(np.array([[0.2, 0.2, 0.8], [0.8, 0.2, 0.8]]))
    0.0
    >>> round(middle_tones(np.linspace(0, 1, 1000)[None]), 2)
    0.49
    """
    height, width = grey.shape
    step = 1 + int((height * width / ENOUGH) ** 0.5)
    values = np.asarray(grey[::step, ::step], np.float64)
    low, high = np.percentile(values, (STRAY, 100 - STRAY))
    if high <= low:
        return 0.0
    place = (values - low) / (high - low)
    return float(((place > MIDDLE[0]) & (place < MIDDLE[1])).mean())
