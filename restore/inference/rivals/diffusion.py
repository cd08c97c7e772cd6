"""Holes filled by diffusion: what is visible spreads into them, and nothing is known of pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.inference.engine import Posterior
from restore.inference.tiles.blend import Watch, batch
from restore.zoo.inference import Effort

# Averages of neighbours that are taken at each resolution.
SMOOTHINGS = 8


@dataclass(frozen=True)
class Diffusion:
    """Hidden pixels have the mean of the four beside them (Laplace's equation); visible ones stay.

    It fills a hole in one colour with that colour, whatever its shape, and is what a prior has to predict better.
    """

    prior: None = None

    @property
    def names(self) -> tuple[str, str]:
        return "diffusion", "numpy"

    def solve(
        self, pictures: np.ndarray, damage: Damage, corners: Sequence[tuple[int, int]] = (), effort: Effort = "full"
    ) -> Posterior:
        hidden = np.zeros(pictures.shape, bool) if damage.hidden is None else damage.hidden
        white = diffused(pictures.astype(np.float32), ~hidden)
        return Posterior.of_pixels(white, white * (1 - white))

    def posterior(self, picture: Observed, watch: Watch) -> Posterior:
        return self.solve(*batch(picture))


def diffused(values: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """Pictures (N, H, W) whose hidden pixels are filled by diffusion; one half where nothing is visible.

    From coarse to fine: the means of 2x2 pixels are filled first, and begin the finer picture.

    >>> hidden = np.eye(8, dtype=bool)[None]
    >>> float(diffused(np.where(hidden, 0.0, 1.0), ~hidden).min())
    1.0
    """
    if visible.all():
        return values
    if not visible.any():
        return np.full_like(values, 0.5)
    if max(values.shape[1:]) == 1:
        return np.where(visible, values, 0.5).astype(values.dtype)
    height, width = values.shape[1:]
    even = ((0, 0), (0, height % 2), (0, width % 2))
    weight, light = (_quarter(np.pad(part, even)) for part in (visible.astype(values.dtype), values * visible))
    coarse = diffused(np.divide(light, weight, out=np.zeros_like(light), where=weight > 0), weight > 0)
    filled = np.where(visible, values, coarse.repeat(2, 1).repeat(2, 2)[:, :height, :width])
    for _ in range(SMOOTHINGS):
        around = np.pad(filled, ((0, 0), (1, 1), (1, 1)), mode="edge")
        upright = around[:, :-2, 1:-1] + around[:, 2:, 1:-1]
        beside = around[:, 1:-1]
        sums = upright + beside[:, :, :-2] + beside[:, :, 2:]
        filled = np.where(visible, values, sums / 4)
    return filled


def _quarter(values: np.ndarray) -> np.ndarray:
    """Sums over 2x2 pixels of pictures (N, H, W) of even sides."""
    count, height, width = values.shape
    return values.reshape(count, height // 2, 2, width // 2, 2).sum((2, 4))
