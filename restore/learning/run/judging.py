"""How well a prior restores images that it has not learnt from: what training is watched by."""

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
from restore.zoo.description import Inference

# A prior in the middle of its training is judged by no more images, and each by no more iterations: what counts is
# which epoch was better, and the time belongs to learning.
IMAGES = 500
ITERATIONS = 100


class Judged(NamedTuple):
    """What came of images held out: the share of wrong pixels, of grey ones the mean squared error; and the share of
    images for which the solver converged."""

    error: float
    converged: float


@dataclass(frozen=True)
class Trial:
    """Images held out, damaged once, with which a prior is judged that is told how they were damaged.

    Attributes:
        clean: (M, D), M at least 1, as the prior knows them.
        observed: (M, D), damaged.
        channel: the damage.
        start: (M, D), the posterior mean if pixels were independent, which every restoration starts from.
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
        """The first images (M, D), damaged by a task with a seed; `pixels` are those without neighbours."""
        clean = clean[:IMAGES]
        generator = torch.Generator(clean.device).manual_seed(seed)
        observed, channel = parse_task(task, grey=grey).damage(clean, image_shape, generator)
        start, _ = pixels.moments(channel.evidence(observed))
        return cls(clean, observed, channel, start, grey)

    def judged(self, prior: LayeredPrior, inference: Inference) -> Judged:
        """How a prior restores them, from one start each, where the solver takes one."""
        solver = solver_of(replace(inference, max_iter=min(inference.max_iter, ITERATIONS)))
        machine = prior.tilt(self.channel.evidence(self.observed))
        start = self.start if SOLVERS[inference.solver].starts else None
        return verdict([solver.solve(machine, start)], self.clean, grey=self.grey)


def verdict(parts: Sequence[Solution], clean: Tensor, *, grey: bool = False) -> Judged:
    """What the solutions for damaged images are worth, given the clean ones (M, D) in the same order."""
    means = torch.cat([part.means[0] for part in parts])
    wrong = (means - clean).square() if grey else ((means > 0.5) != (clean > 0.5)).double()
    # Where the solver diverged nothing was restored; NaN would pass for black.
    error = torch.where(means.isnan(), 1.0, wrong.double()).mean()
    converged = torch.cat([part.status for part in parts]) == Status.CONVERGED
    return Judged(float(error), float(converged.double().mean()))
