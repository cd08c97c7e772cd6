"""Read a scan: what each pixel's grey level says about black and white, whatever the light, the paper and the ink."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from restore.channels.bit_flip import CERTAIN
from restore.errors import Foreign
from restore.inference.damage import Damage
from restore.inference.tones import MOST, Pixels, middle_tones

# The same distance where the caller says that it is a scan: more than noise on a blank page is split into.
TOLD_APART = 2.0


def scan_of(grey: Pixels, damage: Damage, *, assumed: bool, force: bool = False) -> Scan | None:
    """Read a picture (H, W) as a scan, if it is to be one; None if it is not.

    Args:
        grey: its grey levels, in [0, 1].
        damage: what is known of it. The caller may say that it is a scan.
        assumed: whether the caller said nothing; then it is one if it has grey levels all over.
        force: then it may also be none.

    Raises:
        Foreign: if its levels do not fall into two classes, or on an even ground if nobody said that it is a scan.
    """
    share = middle_tones(grey)
    if not (damage.scanned or (assumed and share > MOST)):
        return None
    # Most pictures are none.
    from restore.inference.scans.classes import tones_of
    from restore.inference.scans.sharpening import sharpened_if_blurred

    values = np.asarray(grey[:, :])
    tones = tones_of(values)
    if tones is None or not (tones.distinct or (damage.scanned and tones.separation >= TOLD_APART)):
        if assumed and force:
            return None
        raise Foreign(
            f"its grey levels are not those of ink on paper: {share:.0%} of its pixels are neither dark nor light, as "
            "in a photograph, or it is blank; give --sigma, the standard deviation of its noise, to restore it as a "
            "photograph, or --p to cut it to black and white all the same"
        )
    sharper = sharpened_if_blurred(values)
    if sharper is not None and (clearer := tones_of(sharper)) is not None:
        values, tones = sharper, clearer
    odds = tones.channel.log_odds(values).clip(-CERTAIN, CERTAIN)
    black, white = float(np.mean(tones.channel.black)), float(np.mean(tones.channel.white))
    note = f"read as a scan: black is {black:.2f}, white {white:.2f}, and the noise {tones.noise:.2f} of 1"
    note += "; it is blurred, and was sharpened first" * (sharper is not None)
    p = 1 / (1 + np.exp(np.abs(odds)))
    shown, levels = (odds > 0).astype(np.float64), values.astype(np.float32)
    classes = tones.channel.black, tones.channel.white
    return Scan(shown, replace(damage, p=p), note, levels, odds, *classes, sharper is not None)


@dataclass(frozen=True, eq=False)
class Scan:
    """A scan that was read: what it shows in black and white, and how certain that is.

    Attributes:
        pixels: what each pixel is by itself, 0 or 1, (H, W).
        damage: the probability that this is wrong, for each pixel, and what else was known.
        note: the tones that were found, in a sentence.
        levels: its grey levels, (H, W), sharpened if it is blurred.
        log_odds: what each says for white by itself, (H, W).
        black, white: the levels of ink and paper there, (H, W).
        sharpened: whether its levels are.
    """

    pixels: np.ndarray
    damage: Damage
    note: str
    levels: np.ndarray
    log_odds: np.ndarray
    black: np.ndarray
    white: np.ndarray
    sharpened: bool = False
