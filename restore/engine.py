"""The engine: evidence in, marginals out, for as many images as there are.

A `Engine` holds a prior on a device with its solver. It works on flat tensors; `restore.api` and the command
line bring images to that form and back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from restore.channels import Channel
from restore.devices import pick_device
from restore.errors import InputError, UsageError
from restore.fields import Fields
from restore.solvers import FIXED_POINTS, SeveralStarts, Solution
from restore.solvers.solution import concatenate
from restore.solvers.starts import nearest_modes
from restore.units import Bernoulli
from restore.zoo import TrainedPrior, find, load

# Rows (images times starts) solved side by side: enough to keep the matrix products busy, few enough that their state
# stays in the caches of a processor.
ROWS = {"cpu": 2048, "cuda": 32768}


@dataclass(frozen=True)
class Engine:
    """A prior with its solver, ready to restore.

    Attributes:
        trained: the prior and what it carries.
        device: where to compute.
    """

    trained: TrainedPrior
    device: torch.device

    @classmethod
    def load(cls, model: str, device: str = "auto") -> Engine:
        """A published or user-trained prior by name or path; see `restore.zoo.find` for the errors."""
        where = pick_device(device)
        return cls.of(load(find(model)), where)

    @classmethod
    def of(cls, trained: TrainedPrior, device: torch.device) -> Engine:
        """A prior moved to a device."""
        moved = replace(
            trained,
            machine=trained.machine.to(device),
            pixel_means=trained.pixel_means.to(device),
            modes=trained.modes.to(device),
        )
        return cls(moved, device)

    @cached_property
    def solver(self) -> SeveralStarts:
        settings = self.trained.description.inference
        fixed_point = FIXED_POINTS[settings.solver]
        return SeveralStarts(fixed_point(max_iter=settings.max_iter, tol=settings.tol, damping=settings.damping))

    def restore(
        self, observed: Tensor, channel: Channel, advance: Callable[[int], None] = lambda done: None
    ) -> Solution:
        """Posterior marginals of images seen through a channel.

        Args:
            observed: binary images (N, D), on any device; N at least 1.
            channel: how they were damaged.
            advance: told after each batch how many images are done.

        Returns:
            The solution, on the engine's device; `means[0]` is the probability of ink of each pixel.

        Raises:
            UsageError: if the images have another number of pixels than the prior, or there are none.
            InputError: if one image alone does not fit into the device's memory.
        """
        if observed.dim() != 2 or observed.shape[1] != self.trained.description.pixels or not len(observed):
            expected = self.trained.description.pixels
            raise UsageError(f"images of shape {tuple(observed.shape)} do not fit; give (N >= 1, {expected})")
        evidence = channel.evidence(observed)
        done: list[Solution] = []
        first, size = 0, max(1, ROWS[self.device.type] // self.trained.description.inference.starts)
        with torch.inference_mode():
            while first < len(observed):
                try:
                    done.append(self._solve(_rows(evidence, first, first + size)))
                except torch.cuda.OutOfMemoryError:
                    if size == 1:
                        raise InputError(
                            f"{self.device}: out of memory with a single image; use --device cpu"
                        ) from None
                    torch.cuda.empty_cache()
                    size //= 2
                    continue
                first += size
                advance(min(first, len(observed)))
        return concatenate(done)

    def _solve(self, evidence: Fields) -> Solution:
        like = self.trained.machine.weights
        evidence = Fields(evidence.linear.to(like), evidence.quadratic.to(like))
        machine = self.trained.machine.tilt(evidence)
        strength = evidence.linear.abs().mean(-1)
        power = (strength / self.trained.description.inference.trust).clamp(max=1)
        return self.solver.solve(machine, self.starts(evidence), power)

    def starts(self, evidence: Fields) -> Tensor:
        """Where the solver starts: the pointwise estimate first, then the modes nearest to the evidence.

        The pointwise estimate is the posterior mean if pixels were independent (TAP machine, eq. 46).
        """
        pointwise, _ = Bernoulli(torch.logit(self.trained.pixel_means)).moments(evidence)
        modes = nearest_modes(evidence.linear, self.trained.modes, self.trained.description.inference.starts - 1)
        return torch.cat([pointwise[:, None], modes], 1)


def _rows(fields: Fields, first: int, last: int) -> Fields:
    quadratic = fields.quadratic if fields.quadratic.dim() < 2 else fields.quadratic[first:last]
    return Fields(fields.linear[first:last], quadratic)
