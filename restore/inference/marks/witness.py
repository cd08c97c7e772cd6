"""What a prior says of pixels that it does not see: by windows around pieces, or over a whole picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from restore.channels.damage import Damage
from restore.channels.values import log_odds_of
from restore.inference.candidates import Prior
from restore.inference.marks.pieces import Pieces

# Pixels that a window shows on each side of a piece, at least; sides of windows are multiples of `STEP`; and how many
# are solved at a time. Log-odds are .7 nats from those of wider windows, and .5 to .9 from those of windows that begin
# a pixel or two further (`conv-text`, root mean square, by hand).
SEEN, STEP, AT_ONCE = 10, 4, 128


@dataclass(frozen=True, eq=False)
class Witness:
    """A prior, in the polarity of a picture; most clean pictures have nothing to ask it about, so that none is chosen.

    Attributes:
        choice: gives the prior; None if none knows such pictures, to whose content then every piece belongs.
    """

    choice: Callable[[], Prior | None]

    @cached_property
    def prior(self) -> Prior | None:
        return self.choice()

    def expected(self, light: bool, ink: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """The probability of ink, (H, W), on light or dark ground, some of which is hidden; 0 if no prior knows it."""
        if self.prior is None:
            return np.zeros(ink.shape)
        means = self.prior.solve((ink != light).astype(np.float32)[None], Damage(hidden=hidden[None])).means[0]
        return np.asarray(1 - means if light else means)

    def log_odds(self, white: np.ndarray, pieces: Pieces, together: bool = False) -> np.ndarray:
        """The log-odds of the colour of each piece of a picture (H, W), the mean over it.

        It alone is hidden, or all are that are near, together, so that none of a heap speaks for another.
        """
        if self.prior is None:
            return np.full(pieces.count, np.inf)
        found = np.zeros(pieces.count)
        for which, corners, side in _windows(pieces, white.shape):
            rows, columns = (corners[:, axis, None] + np.arange(side[axis]) for axis in (0, 1))
            where = rows[:, :, None], columns[:, None, :]
            seen, own = white[where], pieces.labels[where] == which[:, None, None]
            hidden = pieces.labels[where] >= 0 if together else own
            means = self.prior.solve(seen.astype(np.float32), Damage(hidden=hidden)).means
            odds = log_odds_of(means.astype(np.float64))
            sums = np.where(own, np.where(seen, odds, -odds), 0).sum((1, 2))
            found[which] = sums / pieces.sizes[which]
        return found


def _windows(pieces: Pieces, shape: tuple[int, ...]) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Pieces by number, the upper left corners of windows around them, and their common height and width."""
    low, high = pieces.boxes[:, :2], pieces.boxes[:, 2:]
    wanted = -(-(high - low + 2 * SEEN) // STEP) * STEP
    for side in np.unique(wanted, axis=0):
        every = np.flatnonzero((wanted == side).all(1))
        side = np.minimum(side, shape)
        corners = ((low[every] + high[every] - side) // 2).clip(0, np.subtract(shape, side))
        for start in range(0, len(every), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            yield every[part], corners[part], side
