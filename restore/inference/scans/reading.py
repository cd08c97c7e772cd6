"""Read a grey picture in black and white: two levels, a clear cut, or a scan whose levels say how certain they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from restore.channels.bit_flip import CERTAIN
from restore.errors import Foreign
from restore.images.tones import Tones, counted, has_third_tone
from restore.inference.damage import Observed, Pixels
from restore.inference.scans.sharpen import blur_of, sharpened
from restore.inference.scans.two_tones import tones_of
from restore.marginals import Status

# More pixels than this say nothing new of the levels of a picture.
ENOUGH = 2**20


@dataclass(frozen=True, eq=False)
class Cut:
    """A grey picture in black and white: 1 where it is lighter than a threshold in [0, 1], else 0."""

    grey: Pixels
    threshold: float

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.grey.shape)

    def __getitem__(self, where: tuple[slice, slice]) -> np.ndarray:
        return (self.grey[where] > self.threshold).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Reading:
    """A picture in black and white.

    Attributes:
        picture: its pixels are 0 and 1, and its damage says how certain they are.
        tones: the grey levels of black and of white in it, numbers or (H, W); None for 0 and 1.
        notes: what the user should know, one sentence each.
    """

    picture: Observed
    tones: tuple[Any, Any] | None = None
    notes: tuple[str, ...] = ()


def read(picture: Observed, threshold: float | None, *, careful: bool) -> Reading:
    """A grey picture in black and white.

    Args:
        picture: grey values (H, W), and its damage; p is "scan" if the caller says that it is one.
        threshold: where to cut it, in [0, 1]; None for Otsu's threshold.
        careful: refuse to cut off grey levels that say more than black and white.

    Raises:
        Foreign: if it is no picture in black and white, and `careful`, or called a scan.
    """
    damage = picture.damage
    if damage.scanned:
        return _scan(picture)
    step = 1 + int((picture.shape[0] * picture.shape[1] / ENOUGH) ** 0.5)
    sample = np.asarray(picture.pixels[::step, ::step])
    hidden = None if damage.hidden is None else damage.hidden[::step, ::step]
    grey = sample.ravel() if hidden is None or hidden.all() else sample[~hidden]
    low, high = float(grey.min()), float(grey.max())
    tones, notes = None, tuple[str, ...]()
    if bool(((grey == low) | (grey == high)).all()):
        at = (low + high) / 2 if low < high else 0.5
        tones = None if low == high or (low, high) == (0, 1) else (low, high)
    else:
        found = Tones.of(counted(np.rint(255 * grey.clip(0, 1)).astype(np.uint8)))
        at = (found.threshold + 0.5) / 255 if threshold is None else threshold
        parts, ends = (grey[grey <= at], grey[grey > at]), (0.0, 1.0)
        black, white = (float(np.median(part)) if part.size else end for part, end in zip(parts, ends, strict=True))
        if careful and has_third_tone(picture.pixels, at, damage.hidden):
            raise Foreign(Status.NOT_INK.sentence)
        if careful and not found.binary:
            return _scan(picture, even=True)
        notes = (f"has grey levels, which were cut to black and white at {round(255 * at)} of 255",)
        tones = (black, white) if damage.hidden is not None and not damage.touched else None
    whole = sample.shape == picture.shape
    cut = (sample > at).astype(np.float32) if whole else Cut(picture.pixels, at)
    return Reading(replace(picture, pixels=cut), tones, notes)


def _scan(picture: Observed, *, even: bool = False) -> Reading:
    """A scan as ink and paper, where the level of each pixel says how certain it is; refused if it is to be even."""
    values = picture.values().astype(np.float64)
    hidden = picture.damage.hidden
    if hidden is not None:
        values = np.where(hidden, 0.0 if hidden.all() else np.median(values[~hidden]), values)
    tones = tones_of(values)
    if tones is None or not tones.distinct or (even and not tones.even):
        raise Foreign(Status.NOT_INK.sentence)
    black, white = float(np.mean(tones.channel.black)), float(np.mean(tones.channel.white))
    note = f"read as a scan: black is {black:.2f}, white {white:.2f}, and the noise {tones.noise:.2f} of 1"
    blur = blur_of(values, tones)
    if blur:
        values = sharpened(values, blur)
        tones = tones_of(values) or tones
        note += f"; sharpened, as it was blurred by about {blur:g} pixels"
    odds = tones.channel.log_odds(values).clip(-CERTAIN, CERTAIN)
    p = 1 / (1 + np.exp(np.abs(odds)))
    read = Observed((odds > 0).astype(np.float64), replace(picture.damage, p=p))
    only_holes = hidden is not None and not picture.damage.touched
    return Reading(read, (tones.channel.black, tones.channel.white) if only_holes else None, (note,))
