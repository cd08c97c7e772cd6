"""Judge a prior in training by restoring held-out images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from restore.channels import Channel, parse_task
from restore.marginals import Status
from restore.priors import LayeredPrior
from restore.registry import SOLVERS
from restore.solvers import Solution, solver_of
from restore.units import Units
from restore.zoo.inference import Inference

# A prior in training is judged by at most this many images and iterations: this is enough to compare epochs, and the
# time belongs to learning.
IMAGES = 500
ITERATIONS = 100


class Judged(NamedTuple):
    """How well held-out images were restored.

    Attributes:
        error: share of wrong pixels; for grey images the mean squared error.
        converged: share of images for which the solver converged.
    """

    error: float
    converged: float


@dataclass(frozen=True)
class Trial:
    """Held-out images, damaged once, to judge a prior that is told the damage.

    Attributes:
        clean: (M, D), M at least 1, as the prior knows them.
        observed: (M, D), damaged.
        channel: the damage.
        start: (M, D), the posterior mean of independent pixels, from which every restoration starts.
        grey: whether pixels are grey levels.
    """

    clean: Tensor
    observed: Tensor
    channel: Channel
    start: Tensor
    grey: bool

    @classmethod
    def of(
        cls, clean: Tensor, task: str, image_shape: tuple[int, int], pixels: Units, seed: int, *, grey: bool
    ) -> Trial:
        """Damage the first of the images (M, D) by a task with a seed; `pixels` are independent units."""
        clean = clean[:IMAGES]
        generator = torch.Generator(clean.device).manual_seed(seed)
        observed, channel = parse_task(task, grey=grey).damage(clean, image_shape, generator)
        start, _ = pixels.moments(channel.evidence(observed))
        return cls(clean, observed, channel, start, grey)

    def judged(self, prior: LayeredPrior, inference: Inference) -> Judged:
        """Judge a prior by restoring them, from one start each if the solver takes starts."""
        solver = solver_of(replace(inference, max_iter=min(inference.max_iter, ITERATIONS)))
        machine = prior.tilt(self.channel.evidence(self.observed))
        start = self.start if SOLVERS[inference.solver].starts else None
        return verdict([solver.solve(machine, start)], self.clean, grey=self.grey)


def verdict(parts: Sequence[Solution], clean: Tensor, *, grey: bool = False) -> Judged:
    """Compare the solutions for damaged images with the clean ones (M, D), in the same order."""
    means = torch.cat([part.means[0] for part in parts])
    wrong = (means - clean).square() if grey else ((means > 0.5) != (clean > 0.5)).double()
    # Where the solver diverged nothing was restored; NaN would count as black.
    error = torch.where(means.isnan(), 1.0, wrong.double()).mean()
    converged = torch.cat([part.status for part in parts]) == Status.CONVERGED
    return Judged(float(error), float(converged.double().mean()))
