"""The noise of grey pictures, measured where they are smooth."""

from __future__ import annotations

import numpy as np

from restore.channels.damage import Observed

# The side of a block in which noise is measured, in pixels; the share of the blocks that is called quiet, and of pixels
# that may be hidden, black or white in one that counts; and the least noise that quiet blocks of white noise have, as a
# share of it (by hand).
QUIET_SIDE, QUIET, QUIET_NOISE = 16, 0.05, 0.84

# So many parts, spread over a large picture, tell what all are like.
MEASURED_PARTS = 400


def quietest(picture: Observed) -> float:
    """The most Gaussian noise that a grey picture can have: that of its quietest blocks; infinite if it has none.

    The mixed second difference of a smooth block is its noise (Immerkær, CVIU 64, 1996). Saturated blocks have less,
    and flat ones, as of a frame, were made so.

    >>> from restore.channels import Damage
    >>> noise = np.random.default_rng(0).normal(0.5, 0.05, (200, 200))
    >>> noise[:100] += np.random.default_rng(1).normal(0, 0.2, (100, 200))  # texture
    >>> bool(0.05 < quietest(Observed(noise, Damage())) < 0.06)
    True
    """
    strip = QUIET_SIDE + 2
    tops = range(0, picture.shape[0] - strip + 1, QUIET_SIDE)
    blocks = [np.zeros(0)]
    # Strip by strip, as a picture may be large; of a huge one some are enough.
    for top in tops[:: 1 + len(tops) // MEASURED_PARTS]:
        part = picture.part(slice(top, top + strip), slice(0, picture.shape[1]))
        blocks.append(_usable_blocks(part.values(), part.visible))
    squares = np.concatenate(blocks)
    return float(np.quantile(squares, QUIET) ** 0.5) / QUIET_NOISE if squares.size else np.inf


def _usable_blocks(values: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """The mean square of the noise in each block of a strip, (QUIET_SIDE + 2, W), but for those that say nothing."""
    down = np.diff(values, 2, 0)
    across = np.diff(values, 2, 1)
    inner = values[1:-1, 1:-1]
    second = np.diff(down, 2, 1) / 6
    flat = (second == 0) & (down[:, 1:-1] == 0) & (across[1:-1] == 0)
    usable = (inner > 0) & (inner < 1) & ~flat & visible[1:-1, 1:-1]
    return _means(second**2)[_means(usable) >= 1 - QUIET]


def _means(strip: np.ndarray) -> np.ndarray:
    width = strip.shape[1] // QUIET_SIDE * QUIET_SIDE
    return np.asarray(strip[:, :width].reshape(QUIET_SIDE, -1, QUIET_SIDE).mean((0, 2)))
