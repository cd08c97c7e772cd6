"""Undo the blur of a scan that a prior has restored: pixels of which each level tells in part.

The prior takes levels for the pixels' own (`restore.inference.scans`), which is wrong beside edges. Its answer is good
enough to find the blur, the levels of ink and paper, and the noise; what it knows of a pixel beside the levels then
joins what all levels around the pixel say of it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from restore.channels.blurred_tones import ENDS, BlurredTones, bell, smoothed
from restore.channels.values import SURE, log_odds_of, probability_of
from restore.inference.pictures import Restored
from restore.inference.scans import Local, Scan
from restore.marginals import Status

# Widths of blur to try first, in pixels, and those around the best of them.
WIDTHS, AROUND = (0.0, 0.3, 0.45, 0.6, 0.8, 1.0, 1.25, 1.5), (-0.15, 0.0, 0.15)

# A narrower blur is none: a pixel's own weight is then more than 0.97.
LEAST = 0.3

# How often the blur is found at most, each time from the answer before; by how little it then changes; and the noise
# around an answer that is no better than the one before.
ROUNDS, NEAR, WORSE = 6, 0.015, 1.005

# Share of the other colour around a pixel that its level does not tell.
EVEN = 0.01

# Share of the pixels within reach by which contrast is drawn to its mean over the scan.
DRAWN = 0.001

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
    note = f"it is blurred by a Gaussian of {last.blur:.2f} pixels, which was undone"
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


def tones_through(
    levels: np.ndarray, white: np.ndarray, seen: np.ndarray, local: Local, widths: tuple[float, ...] = WIDTHS
) -> BlurredTones | None:
    """The blur, the levels and the noise under which a scan is most probable; None if it has no blur.

    Args:
        levels: grey levels (H, W).
        white: the probability of white of every pixel, (H, W).
        seen: 1 for pixels whose level is known, else 0, (H, W).
        local: sums over a neighbourhood in which levels hardly change.
        widths: those to try.
    """
    fits = [_fit(levels, white, seen, local, width) for width in widths]
    best = min(range(len(fits)), key=lambda index: fits[index].noise)
    if 0 < best < len(fits) - 1:
        # The vertex of the parabola through the best width and its neighbours.
        near = slice(best - 1, best + 2)
        curve, slope, _ = np.polyfit(widths[near], [fit.noise**2 for fit in fits[near]], 2)
        if curve > 0:
            fits.append(_fit(levels, white, seen, local, float(-slope / (2 * curve))))
            best = len(fits) - 1
    found = fits[best]
    # Where contrast has no sign, nothing was told apart.
    return None if found.blur < LEAST or (found.white <= found.black).any() else found


def _fit(levels: np.ndarray, white: np.ndarray, seen: np.ndarray, local: Local, width: float) -> BlurredTones:
    """Least squares, expected over what is not certain, for levels that are linear in the blurred white around."""
    through, left = smoothed(white, width), _variance(white * (1 - white), width)
    square = through**2 + left
    ones, whites, squares, greys, products = (
        local.sums(seen * part) for part in (np.ones_like(white), through, square, levels, through * levels)
    )
    count = ones.sum()
    spread, joint = squares - whites**2 / ones, products - whites * greys / ones
    mean = float((products.sum() - whites.sum() * greys.sum() / count) / (squares.sum() - whites.sum() ** 2 / count))
    contrast = (joint + DRAWN * ones * mean) / (spread + DRAWN * ones)
    black = (greys - contrast * whites) / ones
    slope, floor = local.image(contrast), local.image(black)
    off = (levels - floor - slope * through) ** 2 + slope**2 * left
    return BlurredTones(floor, floor + slope, float(((off * seen).sum() / seen.sum()) ** 0.5), width)


def _variance(each: np.ndarray, width: float) -> np.ndarray:
    """The variance of an image of independent pixels after a Gaussian; the square of one is one, narrower by root 2."""
    if not width:
        return each
    return smoothed(each, width / 2**0.5) * np.float32((bell(width) ** 2).sum() ** 2)
