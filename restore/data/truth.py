"""Pages with their truth as one picture: levels of 7 bits, and in the lowest bit whether a pixel is paper.

Whatever changes a page has to take its two planes apart first.
"""

from __future__ import annotations

import numpy as np

from restore.data.dataset import Images

# What follows the name of a page in that of its truth.
TRUTH = ".truth"


def joined(pages: Images, truth: Images) -> Images:
    """Pages and their truth, of one shape, as one; a level of the truth above 127 is paper.

    >>> joined(np.array([[200]], np.uint8), np.array([[255]], np.uint8)).tolist()
    [[201]]
    """
    return np.asarray(pages & 0xFE | (truth > 127))


def planes(images: Images) -> tuple[Images, Images]:
    """Pages, and their truth in black and white.

    >>> [plane.tolist() for plane in planes(np.array([[201, 200]], np.uint8))]
    [[[200, 200]], [[255, 0]]]
    """
    return images & np.uint8(0xFE), (images & np.uint8(1)) * np.uint8(255)
