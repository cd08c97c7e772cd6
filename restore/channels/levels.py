"""Scales: the levels of noise to try when the level is unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Scale:
    """Levels of noise to try.

    Attributes:
        level: maps places on the scale to levels, increasing.
        places: evenly spaced; at least three.
    """

    level: Callable[[np.ndarray], np.ndarray]
    places: np.ndarray

    @property
    def levels(self) -> np.ndarray:
        return self.level(self.places)

    @classmethod
    def of_probabilities(cls, low: float, high: float, count: int) -> Scale:
        """Probabilities, evenly spaced in log-odds."""
        return cls(
            lambda log_odds: 1 / (1 + np.exp(-log_odds)),
            np.linspace(np.log(low / (1 - low)), np.log(high / (1 - high)), count),
        )

    @classmethod
    def of_sizes(cls, low: float, high: float, count: int) -> Scale:
        """Positive numbers, evenly spaced in their logarithms."""
        return cls(np.exp, np.linspace(np.log(low), np.log(high), count))
