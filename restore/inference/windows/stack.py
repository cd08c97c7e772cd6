"""Windows of a prior on top of each other as one picture, whose log-probability is the sum of theirs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from restore.inference.damage import Damage
from restore.inference.pictures import PictureEngine
from restore.marginals import Marginals, Status
from restore.zoo.description import Description

# A stack is solved if all but so many of its windows are: its evidence is a sum, in which few of them count little.
UNSOLVED_IN_STACK = 0.1


@dataclass(frozen=True)
class Stack:
    """Restores pictures of `count` windows: a `restore.inference.pictures.PictureSolver`."""

    engine: PictureEngine
    count: int

    @property
    def description(self) -> Description:
        height, width = self.engine.description.image_shape
        return replace(self.engine.description, image_shape=(self.count * height, width))

    @property
    def light_ground(self) -> bool:
        return self.engine.light_ground

    @property
    def log_partition(self) -> float:
        return self.count * self.engine.log_partition

    def for_evidence(self) -> Stack:
        """The same: what is chosen by a sum over windows differs by more than they may be off."""
        return self

    def marginals(self, grey: np.ndarray, damage: Damage) -> tuple[Marginals, np.ndarray]:
        """As in `restore.inference.pictures.PictureSolver`; of the layers only the image."""
        images, window = len(grey), self.engine.description.image_shape

        def apart(level: np.ndarray) -> np.ndarray:
            if level.ndim == 3 and level.shape[1:] == (1, 1):
                return np.repeat(level, self.count, axis=0)
            whole = level if level.ndim == 3 else level[None]
            return np.array(np.broadcast_to(whole, grey.shape)).reshape(-1, *window)

        def together(values: np.ndarray) -> np.ndarray:
            return values.reshape(images, self.count, *values.shape[1:])

        hidden = np.zeros(grey.shape, bool) if damage.hidden is None else np.asarray(damage.hidden)
        told = damage.mapped(apart).covering(hidden.reshape(-1, *window))
        found, gain = self.engine.marginals(grey.reshape(-1, *window), told)
        lost = (together(found.status) == Status.DIVERGED).any(1)
        solved = (together(found.status) == Status.CONVERGED).mean(1) >= 1 - UNSOLVED_IN_STACK
        marginals = Marginals(
            (found.means[0].reshape(images, -1),),
            (found.variances[0].reshape(images, -1),),
            together(found.log_partition).sum(1),
            together(found.iterations).max(1),
            together(found.residual).max(1),
            np.where(lost, Status.DIVERGED, np.where(solved, Status.CONVERGED, Status.MAX_ITER)),
        )
        if not self.engine.description.conditional:
            # Evidence tells polarities apart better.
            return marginals, np.zeros(images)
        visible = (~hidden).reshape(images, self.count, -1).sum(2)
        return marginals, (together(gain) * visible).sum(1) / visible.sum(1).clip(1)
