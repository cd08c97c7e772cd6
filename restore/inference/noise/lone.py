"""Find how many pixels of a picture are flipped, and where, by its lone pixels.

A pixel whose eight neighbours have one colour has this colour but for flips, or because it was drawn so. The share of
lone pixels among those that are surrounded is the rate of flips, whatever else is drawn: no prior is asked, which would
take for noise what it does not know, and leave noise that looks like what it knows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from restore.channels.bit_flip import LEVELS
from restore.inference.scans.local import Local
from restore.marginals import NoiseLevel

# Fewer surrounded pixels tell too little.
ENOUGH = 100

# Both colours flip at one rate if their rates differ by no more than this share of it, beside so many standard errors.
ALIKE, ERRORS = 0.3, 4.0

# Standard errors by which there is more in an image than independent pixels.
ERRORS_OF_ALL = 6.0

# Standard deviation, in pixels, of the Gaussian over which pixels count for a place; and how many surrounded ones there
# are, of the rate of the whole image, beside those that are seen.
REACH, DRAWN = 16.0, 20.0

# Flips differ if they are so frequent where they are frequent, and less than this share of it where they are rare: the
# rates that a twentieth of all places exceed, and fall short of. By chance, equal rates differ less.
FREQUENT, RARE, OUTER = 0.03, 0.25, 0.05


@dataclass(frozen=True, eq=False)
class Flips:
    """The flips of an image.

    Attributes:
        rate: their share, within the levels that are tried.
        alike: whether both colours are known to flip at this rate.
        drawn: whether there is more than them in it. Amid one colour, independent pixels have the other one as often as
            anywhere.
        places: the rate at every pixel, (H, W), where it differs from place to place; else None.
    """

    rate: float
    alike: bool
    drawn: bool
    places: np.ndarray | None

    @property
    def level(self) -> NoiseLevel:
        return level_of(self.rate)

    @property
    def note(self) -> str:
        """What the user should know of places."""
        assert self.places is not None
        return f"flips differ from place to place: p from {self.places.min():.2g} to {self.places.max():.2g}"


def level_of(rate: float) -> NoiseLevel:
    """A rate of flips of both colours as the level of an image; no evidence was asked for it."""
    tried = np.asarray(LEVELS.levels)
    unasked = np.full((1, len(tried)), -np.inf)
    return NoiseLevel(np.array([rate]), tried, unasked, np.ones(unasked.shape, bool), np.full((1, 2), rate))


def flips_of(white: np.ndarray, seen: np.ndarray) -> Flips | None:
    """The flips of an image; None if too few pixels tell.

    Args:
        white: where the image looks white, boolean (H, W).
        seen: the pixels that count, boolean (H, W).

    >>> drawn, everywhere = np.arange(200)[:, None] % 20 < np.full(200, 8), np.ones((200, 200), bool)
    >>> draw = np.random.default_rng(0).random(drawn.shape)
    >>> found = flips_of(drawn ^ (draw < 0.1), everywhere)
    >>> round(found.rate, 2), found.alike, found.places
    (0.1, True, None)
    >>> half = flips_of(drawn ^ (draw < 0.2 * (np.arange(200) > 100)), everywhere)
    >>> half.places[:, 20].mean().round(2), half.places[:, 180].mean().round(1)
    (np.float32(0.0), np.float32(0.2))
    """
    surrounded, lone = _lone(white, seen)
    count = int(surrounded.sum())
    if count < ENOUGH:
        return None
    colours = [surrounded & (white == lone), surrounded & (white != lone)]
    each = np.array([part.sum() for part in colours])
    shares = np.array([(part & lone).sum() for part in colours]) / each.clip(1)
    share = int(lone.sum()) / count
    errors = float(np.sqrt(share * (1 - share) * (1 / each.clip(1)).sum()))
    alike = bool(each.min() >= ENOUGH and abs(shares[0] - shares[1]) <= ALIKE * share + ERRORS * errors)
    others = np.array([(white & seen).sum(), (~white & seen).sum()]) / seen.sum()
    apart = ERRORS_OF_ALL * np.sqrt(others * (1 - others) / each.clip(1))
    drawn = bool(((each >= ENOUGH) & (others - shares > apart)).any())
    rate = float(np.clip(share, LEVELS.levels[0], LEVELS.levels[-1]))
    return Flips(rate, alike, drawn, _in_places(surrounded, lone, share))


def _lone(white: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pixels whose eight neighbours are seen and have one colour, and those of them that have the other, (H, W)."""
    height, width = white.shape
    surrounded = np.zeros(white.shape, bool)
    if min(height, width) < 3:
        return surrounded, surrounded
    inner, first = seen[1:-1, 1:-1].copy(), white[:-2, :-2]
    for down, right in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 2)):
        near = slice(down, down + height - 2), slice(right, right + width - 2)
        inner &= (white[near] == first) & seen[near]
    surrounded[1:-1, 1:-1] = inner
    lone = np.zeros(white.shape, bool)
    lone[1:-1, 1:-1] = inner & (white[1:-1, 1:-1] != first)
    return surrounded, lone


def _in_places(surrounded: np.ndarray, lone: np.ndarray, share: float) -> np.ndarray | None:
    """The share of lone pixels around every pixel, (H, W); None if it is much the same everywhere."""
    local = Local(surrounded.shape, REACH)
    known, flipped = (local.sums(each.astype(np.float32)) for each in (surrounded, lone))
    rates = (flipped + DRAWN * share) / (known + DRAWN)
    low, high = np.quantile(rates, (OUTER, 1 - OUTER))
    if high < FREQUENT or low >= RARE * high:
        return None
    return local.image(rates).clip(LEVELS.levels[0], LEVELS.levels[-1]).astype(np.float32)
