"""Whether two engines give the same answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from restore.description import Description
from restore.marginals import Status
from restore.restoration import PictureEngine
from restore.tasks import Flip, Patch, parse_task

# Probabilities of two engines may differ by so much, and no pixel in black and white.
TOLERANCE = 1e-4

# Residuals of one computation differ by less in two engines.
SAME_RESIDUAL = 1e-5

# What priors are tried on that are told of the damage; the others on what they have learnt to undo.
TASKS = ("flip:0.1", "flip:0.2", "patch:8")


@dataclass(frozen=True)
class Parity:
    """How far two engines lie apart on some images.

    What rounding does is below `TOLERANCE` while two iterations go side by side. It is as large as the tolerance of the
    solver where the residual of a start came so close to that tolerance that one engine took one iteration more, and
    has no bound where a start of one image does not converge. Such images are counted, and not compared.

    Attributes:
        task: how the images were damaged.
        images: how many.
        difference: largest difference of a probability of white between images that are compared.
        pixels: how many of their pixels are black for one engine and white for the other.
        parted: images that did not stop after the same steps in both engines.
        unsettled: other images that did not converge, though the prior is meant to.
    """

    task: str
    images: int
    difference: float
    pixels: int
    parted: int
    unsettled: int

    @property
    def agrees(self) -> bool:
        """Whether all that is compared agrees, and all but a few images that converged could be compared."""
        few = max(2, (self.images - self.unsettled) // 10)
        return self.difference <= TOLERANCE and self.pixels == 0 and self.parted <= few


def parities(
    first: PictureEngine, second: PictureEngine, clean: np.ndarray, tasks: Sequence[str] = (), seed: int = 0
) -> Iterator[Parity]:
    """Restore damaged images with both engines, task by task.

    Args:
        first, second: the engines, with the same prior.
        clean: images to damage, (N, H, W), in [0, 1].
        tasks: how to damage them, as `restore.tasks.parse_task` reads it; by default what suits the prior.
        seed: of the damage.
    """
    about = first.description
    for task in tasks or ((about.task,) if about.conditional else TASKS):
        yield _parity(first, second, clean, parse_task(task), seed)


def _parity(first: PictureEngine, second: PictureEngine, clean: np.ndarray, task: Flip | Patch, seed: int) -> Parity:
    generator = np.random.default_rng(seed)
    damaged = [task.damage_picture(image, generator) for image in clean]
    observed, p, hidden = _told(first.description, task, damaged)
    (one, _), (other, _) = (engine.marginals(observed, p, hidden) for engine in (first, second))
    unsettled = (one.status != Status.CONVERGED) & (not first.description.conditional)
    alike = (one.status == other.status) & (one.iterations == other.iterations)
    alike &= np.abs(one.residual - other.residual) <= SAME_RESIDUAL
    compared = alike & ~unsettled
    left, right = one.means[0][compared], other.means[0][compared]
    return Parity(
        str(task),
        len(clean),
        float(np.abs(left - right).max(initial=0)),
        int(((left > 0.5) != (right > 0.5)).sum()),
        int((~alike & ~unsettled).sum()),
        int(unsettled.sum()),
    )


def _told(
    about: Description, task: Flip | Patch, damaged: Sequence[tuple[np.ndarray, np.ndarray | None]]
) -> tuple[np.ndarray, float | None, np.ndarray | None]:
    """What the engines are given: the images, the flip probability, and the pixels to fill."""
    observed = np.stack([image for image, _ in damaged])
    if about.conditional:
        return observed, None, None
    if isinstance(task, Flip):
        return observed, task.probability, None
    return observed, None, np.stack([hidden for _, hidden in damaged if hidden is not None])
