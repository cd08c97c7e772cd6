"""Scales: the levels of noise to compare when the level is unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from restore.channels.noise import WIDTH

# How many levels are compared; the best one is found between them.
COUNT = 40


@dataclass(frozen=True)
class Scale:
    """Levels of noise to compare.

    Attributes:
        level: maps positions on the scale to levels, increasing.
        first, last: the positions between which levels are compared, evenly spaced.
        guess: the level under which a picture is predicted while its own is unknown.
        near: levels in this range are near the guess; under others it is predicted once more
            (`benchmarks/choices/levels_found.py`).
    """

    level: Callable[[np.ndarray], np.ndarray]
    first: float
    last: float
    guess: float
    near: tuple[float, float]

    @property
    def positions(self) -> np.ndarray:
        return np.linspace(self.first, self.last, COUNT)

    @property
    def levels(self) -> np.ndarray:
        return self.level(self.positions)

    @classmethod
    def of_probabilities(cls, low: float, high: float) -> Scale:
        """Probabilities, evenly spaced in log-odds."""
        first, last = np.log(low / (1 - low)), np.log(high / (1 - high))
        return cls(lambda odds: 1 / (1 + np.exp(-odds)), first, last, guess=0.13, near=(0.04, 0.16))


# The standard deviation of what rounding to a resolution of grey levels adds.
ROUNDING_ERROR = WIDTH / 12**0.5

# Of flips: from one or two pixels of a small image to nearly half, as with more an image is the inverse of one with
# fewer. Of salt and pepper: they may well cover most of an image. Of Gaussian noise: less cannot be told from none, and
# with more of it little of an image is left, and solvers take ever longer.
FLIPS = Scale.of_probabilities(0.002, 0.48)
IMPULSES = Scale.of_probabilities(0.002, 0.9)
NOISE = Scale(np.exp, np.log(ROUNDING_ERROR), np.log(0.5), guess=0.2, near=(0.1, 0.4))  # even in logarithms
