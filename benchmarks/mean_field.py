"""A mean field of an Ising model: a simple restorer that knows only that neighbours are alike."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.channels import Channel, Task
from restore.evaluation.evaluate import evaluate
from restore.inference.tiles.blend import mean_field

# Couplings that are tried, and on how many images.
COUPLINGS = (0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8)
TRIED = 50


@dataclass(frozen=True)
class IsingField:
    """Pixels of which each is coupled to the four beside it, as in `restore.inference.tiles.blend.mean_field`.

    Attributes:
        image_shape: (H, W).
        coupling: how strongly neighbours agree.

    >>> from restore.channels import BitFlip
    >>> speck = torch.zeros(1, 25)
    >>> speck[0, 12] = 1
    >>> IsingField((5, 5), 0.6).restore(speck, BitFlip(0.1)).round().sum().item()
    0.0
    """

    image_shape: tuple[int, int]
    coupling: float

    def restore(self, observed: Tensor, channel: Channel) -> Tensor:
        evidence = channel.evidence(observed).linear.reshape(-1, *self.image_shape)
        means, _, _ = mean_field(evidence.cpu().numpy(), self.coupling)
        return ((1 + torch.from_numpy(means)) / 2).reshape(observed.shape).to(observed)


def tuned_field(images: Tensor, task: Task, image_shape: tuple[int, int], seed: int) -> IsingField:
    """The field with the coupling that restores some of these images (N, D) best after a task."""

    def wrong(field: IsingField) -> float:
        generator = torch.Generator().manual_seed(seed)
        return evaluate(field.restore, images[:TRIED], task, image_shape, generator).error_all.mean

    return min((IsingField(image_shape, coupling) for coupling in COUPLINGS), key=wrong)
