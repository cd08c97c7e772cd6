"""Borders: dark areas along the sides of a picture, as at the edges of a scan, that are no writing."""

from __future__ import annotations

import numpy as np

from restore.inference.marks.pieces import around

# A border has ink in a band of so many pixels along so large a part of a side, and a rim that is rough by half of that.
BAND, ALONG = 5, 0.6

# It ends before this part of the picture: else the ground of a small page of light ink would be one.
WITHIN = 1 / 3


def border(ink: np.ndarray) -> np.ndarray:
    """The pixels of borders, boolean (H, W)."""
    mask = np.zeros(ink.shape, bool)
    solid = _solid(ink)
    for side in range(4):
        turned, found = np.rot90(solid, side), np.rot90(mask, side)
        depth = np.where(turned.all(0), turned.shape[0], turned.argmin(0))
        usual = int(np.median(depth))
        deep = depth >= BAND
        most = WITHIN * turned.shape[0]
        if deep.mean() < ALONG or usual > most:
            continue
        found |= np.arange(turned.shape[0])[:, None] < np.where(deep, depth, 0).clip(max=most)
    if not mask.any():
        return mask
    return np.asarray(ink & (around(mask, BAND // 2) > 0) & ~_drawn_beside(ink, mask))


def _solid(ink: np.ndarray) -> np.ndarray:
    """Ink without what is thin: an opening by squares of `BAND` pixels; outside the picture all is ink."""
    half = BAND // 2
    padded = np.pad(ink, 2 * half, constant_values=True)
    opened = around(around(~padded, half) == 0, half) > 0
    inner = slice(2 * half, -2 * half)
    return np.asarray(opened[inner, inner])


def _drawn_beside(ink: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Ink near a border that belongs to something else: it goes on away from it."""
    beyond = ink & ~mask
    return np.asarray(beyond & (around(beyond & (around(mask, BAND // 2) == 0), BAND // 2) > 0))
