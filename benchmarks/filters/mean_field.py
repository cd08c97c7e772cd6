"""A mean field of an Ising model: a simple restorer that knows only that neighbours are alike."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.channels import Damage
from restore.inference.rivals.ising import mean_field


@dataclass(frozen=True)
class IsingField:
    """Pixels of which each is coupled to the four beside it, as in `restore.inference.rivals.ising.mean_field`.

    Attributes:
        image_shape: (H, W).
        coupling: how strongly neighbours agree.

    >>> from restore.channels import Damage
    >>> speck = torch.zeros(1, 25)
    >>> speck[0, 12] = 1
    >>> IsingField((5, 5), 0.6).restore(speck, Damage(0.1)).round().sum().item()
    0.0
    """

    image_shape: tuple[int, int]
    coupling: float

    def restore(self, observed: Tensor, damage: Damage) -> Tensor:
        evidence = damage.channel(grey=False).evidence(observed).linear.reshape(-1, *self.image_shape)
        means = mean_field(evidence.cpu().numpy(), self.coupling)
        return ((1 + torch.from_numpy(means)) / 2).reshape(observed.shape).to(observed)
