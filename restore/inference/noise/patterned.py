"""Tell whether what was changed in a picture may have been flips, which are independent of each other.

Where it is fine lines or dots of the picture that were changed, one tells of the next: they lie beside each other, or
in steps. The share that this adds to pairs of changed pixels is their autocorrelation.
"""

from __future__ import annotations

import numpy as np

# Pairs of pixels that are compared: down, and to the right.
STEPS = ((0, 1), (1, 0), (1, 1), (1, -1), (0, 2), (2, 0), (2, 2), (2, -2), (0, 3), (3, 0), (0, 4), (4, 0))

# Changed pixels lie in a pattern if their autocorrelation is that much for one of these steps, and more than so many
# standard errors, and one.
MUCH, ERRORS = 0.05, 6.0

NOTE = (
    "what was changed lies in a pattern, as flips do not: fine lines or dots of the image may be lost, so compare the "
    "result with it"
)


def patterned(changed: np.ndarray, rates: np.ndarray) -> bool:
    """Whether changed pixels are more often together than independent ones.

    Args:
        changed: boolean (H, W).
        rates: how probable that is of each pixel, (H, W).

    >>> flips = np.random.default_rng(0).random((200, 200)) < 0.1
    >>> lines = np.arange(200)[:, None] % 10 == np.zeros(200)
    >>> [patterned(each, np.full(each.shape, 0.1)) for each in (flips, lines)]
    [False, True]
    """
    height, width = changed.shape
    spread = float((rates * (1 - rates)).sum())
    for down, right in STEPS:
        if down >= height or abs(right) >= width:
            continue
        upper, lower = slice(0, height - down), slice(down, None)
        left, shifted = slice(max(0, -right), width - max(0, right)), slice(max(0, right), width - max(0, -right))
        expected = float((rates[upper, left] * rates[lower, shifted]).sum())
        more = int((changed[upper, left] & changed[lower, shifted]).sum()) - expected
        if more > MUCH * spread and more > ERRORS * (1 + expected**0.5):
            return True
    return False


def shares(changed: np.ndarray, white: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """How probable it is of each seen pixel that it was changed, by its colour, (H, W); 0 for others."""
    found = np.zeros(changed.shape)
    for colour in (seen & white, seen & ~white):
        if colour.any():
            found[colour] = changed[colour].mean()
    return found
