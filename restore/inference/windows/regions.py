"""Restore a picture of several kinds, such as text with figures, by two priors, each where it knows the picture better.

How well a prior knows a place is told by what it predicts of pixels around it that are held out, as where one prior is
chosen for all (`restore.inference.windows.choosing.survey`). The answer is the mixture of both priors' answers,
weighted by how probable each prior is there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from restore.channels.values import SURE
from restore.inference.damage import Damage
from restore.inference.explained import ODDS
from restore.inference.noise.held_out import FOLDS, folds, log_p_of_seen
from restore.inference.pictures import PictureEngine
from restore.inference.scans.local import Local
from restore.inference.windows.moments import Turned
from restore.inference.windows.tally import Tally

# Nats per pixel held out by which a prior of windows has to predict them better than a convolutional one, to be taken
# instead: what they predict of noisy pixels differs less than what they restore.
LEAD = 0.005

# Nats by which a prior is clearly ahead in a crop. Between one fold of it and the average of four, leads differ by 7.0
# (standard deviation, 192 pictures of six families).
CLEAR = 10.0

# Folds of pixels that are held out in every place.
HELD_OUT = 2

# Ranks, from the plainest to the richest, of the crops that tell whether an image is of several kinds.
WIDE = (0.4, 0.55, 0.7, 0.85, 0.95, 1.0)

# Standard deviation, in pixels, of the Gaussian over which held-out pixels count for a place. Of 10, 16 and 24 pixels,
# pages with figures were best by it, and other pictures hardly worse than by one prior.
REACH = 16.0


@dataclass(frozen=True, eq=False)
class Both:
    """A prior of windows and a convolutional one, that restore a picture together.

    Attributes:
        windows, places: the two.
        favoured: which of them knows the picture better as a whole; the other has to be clearly better in its places.
    """

    windows: Turned
    places: Turned
    favoured: Turned

    @property
    def engine(self) -> PictureEngine:
        """Of the prior of windows, which asks for more around a block."""
        return self.windows.engine

    @property
    def engines(self) -> tuple[PictureEngine, ...]:
        """All that restore an image, the favoured one first."""
        other = self.places if self.favoured is self.windows else self.windows
        return (self.favoured.engine, other.engine)

    @property
    def note(self) -> str:
        """What the user should know of how an image is restored."""
        names = f"{self.windows.name} and {self.places.name}"
        return f"is of several kinds: {names} restored it, each where it predicts pixels better"

    def moments(self, grey: np.ndarray, damage: Damage, tally: Tally) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of every pixel of an image (H, W), as `Turned.moments`."""
        around = Local(grey.shape, REACH)
        nats = around.image(around.sums(self._leads(grey, damage))) * FOLDS / HELD_OUT
        nats += np.log(ODDS) if self.favoured is self.windows else -np.log(ODDS)
        share = 1 / (1 + np.exp(-nats.clip(-SURE, SURE)))
        mean, square = np.zeros(grey.shape), np.zeros(grey.shape)
        for prior, weight in ((self.windows, share), (self.places, 1 - share)):
            own, variance = prior.moments(grey, damage, tally)
            mean += weight * own
            square += weight * (variance + own**2)
        return mean, square - mean**2

    def _leads(self, grey: np.ndarray, damage: Damage) -> np.ndarray:
        """By how many nats the prior of windows predicts pixels better, (H, W); 0 for those that are not held out."""
        hidden = np.zeros(grey.shape, bool) if damage.hidden is None else np.asarray(damage.hidden)
        fold, found = folds(grey.shape), np.zeros(grey.shape)
        for number in range(HELD_OUT):
            out = (fold == number) & ~hidden
            told = damage.covering(hidden | out)
            found[out] = (_foretold(self.windows, grey, told) - _foretold(self.places, grey, told) - LEAD)[out]
        return np.nan_to_num(found)


def _foretold(prior: Turned, grey: np.ndarray, damage: Damage) -> np.ndarray:
    """log p of what was seen of every pixel, (H, W), as a prior predicts it where it is hidden."""
    mean, _ = prior.moments(grey, damage, Tally())
    return log_p_of_seen(mean, prior.engine.description.as_known(grey) > 0, damage.rates)
