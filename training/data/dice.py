"""Random choices from raw bits, which numpy promises for all its versions: what is drawn by code depends on these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from restore.data.dataset import fractions

Item = TypeVar("Item")


class Dice:
    """The choices for one picture.

    Args:
        seed, number: of the set, and of the picture in it.
    """

    def __init__(self, seed: int, number: int) -> None:
        self._bits = np.random.PCG64([seed, number])

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * (self._bits.random_raw() >> 11) * 2.0**-53

    def by_factors(self, low: float, high: float) -> float:
        """Between two positive numbers, uniform in the logarithm: small ones are more frequent."""
        return math.exp(self.between(math.log(low), math.log(high)))

    def below(self, count: int) -> int:
        return int(self.between(0, count))

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def chance(self, probability: float) -> bool:
        return self.between(0, 1) < probability

    def field(self, height: int, width: int) -> NDArray[np.float64]:
        """Independent numbers in [0, 1), (height, width)."""
        return fractions(self._bits, (height, width))
