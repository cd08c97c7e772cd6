"""Read a grey picture in black and white: two levels, a clear cut, or a scan whose levels say how certain they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from restore.channels.damage import Damage, Observed, Pixels
from restore.channels.flips import CERTAIN_FIELD
from restore.images.tones import Tones, counted, faint, has_third_tone
from restore.inference.candidates import Prior
from restore.inference.engine import Posterior
from restore.inference.scans.sheet import Sheet
from restore.inference.tiles.blend import Watch
from restore.status import Status

# More pixels than this say nothing new of the levels of a picture.
ENOUGH = 2**20

# The least side of a page, in pixels: smaller pictures show no paper around their ink.
LEAST_PAGE = 48


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
        cut: the threshold where it has other levels too, in [0, 1]; else None.
        drawn: True if these are soft edges, and no grain.
        page, sheet: of a grey page its ink and paper, as a prior reads them, and their levels.
        notes: what the user should know, one sentence each.
    """

    picture: Observed
    tones: tuple[Any, Any] | None = None
    cut: float | None = None
    drawn: bool = False
    notes: tuple[str, ...] = ()
    page: Posterior | None = None
    sheet: Sheet | None = None


def step_of(picture: Observed) -> int:
    """Every how many rows and columns of a picture are enough to count its levels, however large it is."""
    return 1 + int((picture.shape[0] * picture.shape[1] / ENOUGH) ** 0.5)


def read(
    picture: Observed, threshold: float | None, reader: Callable[[], Prior], watch: Watch, *, careful: bool
) -> Reading | Status:
    """A grey picture in black and white, or why it is none.

    Args:
        picture: grey values (H, W), and its damage; p is "scan" if the caller says that it is one.
        threshold: where to cut it, in [0, 1]; None for Otsu's threshold.
        reader: opens the prior that reads grey pages.
        watch: receives the share that is done of a page.
        careful: refuse to cut off grey levels that say more than black and white.
    """
    damage = picture.damage
    if damage.scanned:
        return _page(picture, reader(), watch, careful=False)
    step = step_of(picture)
    sample = np.asarray(picture.pixels[::step, ::step])
    hidden = None if damage.hidden is None else damage.hidden[::step, ::step]
    grey = sample.ravel() if hidden is None or hidden.all() else sample[~hidden]
    low, high = float(grey.min()), float(grey.max())
    tones, level, drawn = None, None, False
    if careful and getattr(picture.pixels, "classes", False):
        return Status.CLASSES
    if bool(((grey == low) | (grey == high)).all()):
        cutoff = (low + high) / 2 if low < high else 0.5
        tones = None if low == high or (low, high) == (0, 1) else (low, high)
    else:
        split = Tones.of(counted(np.rint(255 * grey.clip(0, 1)).astype(np.uint8)))
        cutoff = (split.threshold + 0.5) / 255 if threshold is None else threshold
        parts, ends = (grey[grey <= cutoff], grey[grey > cutoff]), (0.0, 1.0)
        black, white = (float(np.median(part)) if part.size else end for part, end in zip(parts, ends, strict=True))
        known = damage.touched and damage.unknown is None
        if careful and not (known or split.drawn) and min(picture.shape) >= LEAST_PAGE:
            return _page(picture, reader(), watch, careful=True)
        if careful and (not split.binary or has_third_tone(picture.pixels, cutoff, damage.hidden)):
            return Status.NOT_INK
        if careful and faint(black, white):
            return Status.FAINT
        level, tones, drawn = cutoff, (black, white), split.drawn
    whole = sample.shape == picture.shape
    cut = (sample > cutoff).astype(np.float32) if whole else Cut(picture.pixels, cutoff)
    return Reading(replace(picture, pixels=cut), tones, level, drawn)


def _page(picture: Observed, reader: Prior, watch: Watch, *, careful: bool) -> Reading | Status:
    """A grey page as ink and paper, as a prior of pages reads it, or why it is none.

    If `careful`, ink has to be clear of its paper, and the page no photograph. Ink is light if the reader inverts.
    """
    hidden, values = picture.damage.hidden, picture.values().astype(np.float32)
    if hidden is not None:
        values = np.where(hidden, 0.0 if hidden.all() else np.median(values[~hidden]), values)
    posterior = reader.posterior(Observed(values, Damage(hidden=hidden)), watch)

    def turned(levels: Any) -> Any:
        """What is dark on light as it is in the picture, or the other way."""
        return 1 - levels if reader.invert else levels

    sheet = Sheet.of(turned(values), turned(posterior.means[0]), hidden)
    refusal = sheet.refusal if careful else None
    if refusal is not None:
        return refusal
    black, white = (float(np.mean(turned(level))) for level in (sheet.black, sheet.white))
    note = f"read as a page: ink is {black:.2f}, paper {white:.2f}, and the noise {sheet.noise:.2f} of 1"
    # Other priors judge for themselves what is ink.
    odds = sheet.log_odds(turned(values.astype(np.float64))).clip(-CERTAIN_FIELD, CERTAIN_FIELD)
    odds = -odds if reader.invert else odds
    read = Observed((odds > 0).astype(np.float64), replace(picture.damage, p=1 / (1 + np.exp(np.abs(odds)))))
    dark, light = (sheet.white, sheet.black) if reader.invert else (sheet.black, sheet.white)
    return Reading(read, (turned(dark), turned(light)), notes=(note,), page=posterior, sheet=sheet)
