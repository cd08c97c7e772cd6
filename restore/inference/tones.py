"""Tell pictures in black and white, whose edges may be soft, from those with grey levels all over, as photographs."""

from __future__ import annotations

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


def middle_tones(grey: np.ndarray) -> float:
    """The share of pixels (H, W) that are neither dark nor light, for the picture they are in.

    >>> middle_tones(np.array([[0.2, 0.2, 0.8], [0.8, 0.2, 0.8]]))
    0.0
    >>> round(middle_tones(np.linspace(0, 1, 1000)[None]), 2)
    0.49
    """
    step = 1 + int((grey.size / ENOUGH) ** 0.5)
    values = np.asarray(grey[::step, ::step], np.float64)
    low, high = np.percentile(values, (STRAY, 100 - STRAY))
    if high <= low:
        return 0.0
    place = (values - low) / (high - low)
    return float(((place > MIDDLE[0]) & (place < MIDDLE[1])).mean())


def objection_to(grey: np.ndarray) -> str:
    """Why a picture whose damage nobody described is not restored in black and white; empty if it may be."""
    share = middle_tones(grey)
    if share <= MOST:
        return ""
    return (
        f"{share:.0%} of its pixels are neither dark nor light, as in a photograph or a shaded scan, and would be cut "
        "to black and white; name a prior of grey images and give --sigma, or give --p to cut them all the same"
    )
