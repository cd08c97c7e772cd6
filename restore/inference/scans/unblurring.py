"""Undo the blur of a scan that a prior has restored: pixels of which each level tells in part.

The prior takes levels for the pixels' own (`restore.inference.scans`), which is wrong beside edges. Its answer is good
enough to find the blur, the levels of ink and paper, and the noise; what it knows of a pixel beside the levels then
joins what all levels around the pixel say of it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from restore.channels.blurred_tones import ENDS, BlurredTones, smoothed
from restore.channels.values import SURE, log_odds_of, probability_of
from restore.inference.pictures import Restored
from restore.inference.scans.blur import AROUND, WIDTHS, tones_through
from restore.inference.scans.local import Local
from restore.inference.scans.reading import Scan
from restore.marginals import Status

# How often the blur is found at most, each time from the answer before; by how little it then changes; and the noise
# around an answer that is no better than the one before.
ROUNDS, NEAR, WORSE = 6, 0.015, 1.005

# Share of the other colour around a pixel that its level does not tell.
EVEN = 0.01

# Pixels that are solved together.
TOGETHER = 2**20


def unblurred(scan: Scan, found: Restored, hidden: np.ndarray | None = None) -> Restored:
    """A restored scan without its blur; as it is if it has none, or was not restored.

    Args:
        scan: the scan.
        found: what a prior made of it.
        hidden: the pixels to fill, boolean (H, W); None for none.
    """
    if found.status is Status.DIVERGED or np.isin(found.means, (0, 1)).all():
        return found
    seen = np.ones(found.means.shape, np.float32) if hidden is None else (~hidden).astype(np.float32)
    others = (log_odds_of(found.means) - seen * scan.log_odds).clip(-SURE, SURE).astype(np.float32)
    white = found.means.astype(np.float32)
    local, last, answer = Local(white.shape), None, None
    widths: tuple[float, ...] = WIDTHS
    for _ in range(ROUNDS):
        channel = tones_through(scan.levels, white, seen, local, widths)
        # Under wide blur, or a prior that knows little, an answer may explain the levels less well than that before it.
        if channel is None or (last is not None and channel.noise > WORSE * last.noise):
            break
        if last is not None:
            answer = white
            if abs(channel.blur - last.blur) < NEAR:
                break
        white = _solved(channel, scan.levels, others, seen, white)
        last, widths = channel, tuple(max(0.0, channel.blur + each) for each in AROUND)
    if last is None or answer is None:
        return found
    white = answer
    what = "sharpened, it is still" if scan.sharpened else "it is"
    note = f"{what} blurred by a Gaussian of {last.blur:.2f} pixels, which was undone"
    return replace(
        found,
        estimate=(white > 0.5).astype(found.estimate.dtype),
        means=white.astype(found.means.dtype),
        deviations=np.sqrt(white * (1 - white)).astype(found.deviations.dtype),
        notes=(*found.notes, note),
    )


def _solved(
    channel: BlurredTones, levels: np.ndarray, others: np.ndarray, seen: np.ndarray, white: np.ndarray
) -> np.ndarray:
    """The probability of white of every pixel, (H, W), where it was `white` before.

    Levels amid one colour are left out, and so are pixels whose own level is. Messages take much memory, so that it is
    done strip by strip.
    """
    through = smoothed(white, channel.blur)
    tells = (through > EVEN) & (through < 1 - EVEN) & (seen > 0)
    noise = np.where(tells, channel.noise, np.inf)
    # Beyond so many rows, what levels say has faded.
    margin, rows = 4 * int(np.ceil(ENDS * channel.blur)), max(1, TOGETHER // levels.shape[1])
    found = white.copy()
    for first in range(0, len(levels), rows):
        top, last = max(0, first - margin), min(len(levels), first + rows)
        strip = slice(top, min(len(levels), last + margin))
        part = replace(channel, black=channel.black[strip], white=channel.white[strip], noise=noise[strip])
        log_odds = (part.log_odds(levels[strip], others[strip]) + others[strip])[first - top : last - top]
        found[first:last] = np.where(tells[first:last], probability_of(log_odds), white[first:last])
    return found
