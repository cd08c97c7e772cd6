"""What an engine is: a prior with its solver, loaded to restore pictures of its own size."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from restore.channels.damage import Damage
from restore.marginals import Marginals
from restore.zoo.description import Description


class PictureEngine(Protocol):
    """A prior with its solver. What it does not do raises UsageError, such as another solver or size."""

    @property
    def name(self) -> str:
        """What computes: "torch" or "onnx"."""

    @property
    def description(self) -> Description: ...

    @property
    def light_ground(self) -> bool:
        """True if the prior expects dark strokes on light."""

    @property
    def part(self) -> int:
        """The length of the sides of the parts in which a convolutional prior takes a large picture."""

    def with_solver(self, solver: str) -> PictureEngine:
        """The same prior with another solver."""

    def quickly(self) -> PictureEngine:
        """The same prior, solved well enough to be compared with others."""

    def precisely(self) -> PictureEngine:
        """The same prior, solved well enough for the odds of a single pixel where all others are known."""

    def of_size(self, shape: tuple[int, int], doubtful: float = 1.0) -> PictureEngine:
        """The same convolutional prior for pictures (H, W) of any size, of which a share is in doubt."""

    def marginals(self, seen: np.ndarray, damage: Damage) -> tuple[Marginals, np.ndarray]:
        """Posterior marginals of damaged pictures.

        Args:
            seen: pictures at the prior's size, (N, H, W), N >= 1: 0 and 1, or grey levels for a prior of grey ones.
            damage: of this batch, without unknown levels.

        Returns:
            The marginals; and by how many nats per visible pixel each picture is likelier after inversion, (N,).
        """

    def pixel_means(self) -> np.ndarray:
        """Mean of each pixel over the images that the prior was trained on, (H, W)."""
