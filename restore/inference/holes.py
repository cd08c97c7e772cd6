"""Fill holes of pictures of which nothing else is told: in their own black and white, or as in a photograph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from restore.inference.damage import Damage
from restore.inference.noise.lone import flips_of
from restore.inference.pictures import Restored
from restore.inference.scans.reading import Scan, scan_of
from restore.inference.tones import MOST, Pixels, middle_tones
from restore.zoo.automatic import PHOTOGRAPHS
from restore.zoo.description import Description

# Levels that differ less are the same.
PLAIN = 0.02

# Rates of flips among visible pixels that are worth a word.
NOISY = 0.01


def in_photograph(grey: Pixels, hidden: np.ndarray) -> bool:
    """Whether a picture, (H, W) or in colour (H, W, 3), is one with grey levels all over, and no scan.

    Args:
        grey: the picture.
        hidden: the pixels to fill, boolean (H, W), of which levels say nothing.
    """
    if len(grey.shape) > 2:
        return True
    values = _evened(grey, hidden)
    if middle_tones(values) <= MOST:
        return False
    from restore.inference.scans.classes import tones_of

    tones = tones_of(values)
    return tones is None or not tones.distinct


def scan_around(grey: Pixels, damage: Damage) -> Scan | None:
    """A picture (H, W) with holes that is a scan, read as one, so that its ink and its paper fill them; else None.

    Args:
        grey: its grey levels.
        damage: its holes.
    """
    assert damage.hidden is not None
    return scan_of(_evened(grey, np.asarray(damage.hidden[0])), damage, assumed=True, force=True)


def painted(found: Restored, grey: Pixels, hidden: np.ndarray, about: Description, scan: Scan | None) -> Restored:
    """A picture with its holes filled in its own black and white, and no other pixel replaced, and notes on that.

    Args:
        found: what a prior made of it.
        grey: the picture, (H, W), or in colour (H, W, 3).
        hidden: what was to be filled, boolean (H, W).
        about: the prior.
        scan: what the picture shows, if it was read as a scan.
    """
    if about.grey:
        return _noted(found, f"is filled as a photograph, by {about.name}") if about.mixture else found
    if scan is not None:
        return replace(found, replaced=hidden, tones=(scan.black, scan.white))
    values = np.asarray(grey[slice(None), slice(None)])
    white = about.as_known(values) > 0
    seen = ~hidden
    black, bright = (_median(values[part & seen], plain) for part, plain in ((~white, 0.0), (white, 1.0)))
    flips = flips_of(white, seen)
    if flips is not None and flips.rate >= NOISY:
        found = _noted(
            found, f"about {flips.rate:.1%} of the visible pixels look flipped; --p auto restores them as well"
        )
    off = np.abs(values - np.where(white, bright, black))[seen]
    if np.median(off) > PLAIN:
        what = f"has grey levels, of which two, {black:.2f} and {bright:.2f}, fill the hole"
        found = _noted(found, f"{what}; if it is a photograph, give --model {PHOTOGRAPHS}")
    tones = None if (black, bright) == (0, 1) else (black, bright)
    return replace(found, tones=tones)


def _noted(found: Restored, note: str) -> Restored:
    return replace(found, notes=(*found.notes, note))


def _evened(grey: Pixels, hidden: np.ndarray) -> np.ndarray:
    """The picture with its median in its holes."""
    values = np.asarray(grey[slice(None), slice(None)])
    return np.where(hidden, np.median(values[~hidden]), values)


def _median(values: np.ndarray, plain: float) -> float:
    found = float(np.median(values)) if values.size else plain
    return plain if abs(found - plain) < PLAIN else found
