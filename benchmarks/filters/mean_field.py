"""A mean field of an Ising model: a simple restorer that knows only that neighbours are alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from restore.channels import Damage

# The number of steps; more would only swallow thin lines.
STEPS = 60


def mean_field(evidence: np.ndarray, coupling: float, steps: int = STEPS) -> np.ndarray:
    """Means of an Ising model with four neighbours: m = tanh(coupling · sum of those beside it + evidence / 2).

    The naive mean field (MacKay, 2003, section 33.2), from log-odds of white, (N, H, W); half of each step is taken.

    Returns:
        The means, from -1 for black to 1 for white, float32.

    >>> speck = np.full((1, 5, 5), -2.0)
    >>> speck[0, 2, 2] = 2
    >>> bool(mean_field(speck, 0.6).max() < 0)
    True
    """
    field = np.asarray(evidence, np.float32) / 2
    means = np.tanh(field)
    for _ in range(steps):
        drawn = field.copy()
        pull = np.float32(coupling) * means
        drawn[..., 1:, :] += pull[..., :-1, :]
        drawn[..., :-1, :] += pull[..., 1:, :]
        drawn[..., 1:] += pull[..., :-1]
        drawn[..., :-1] += pull[..., 1:]
        means = (means + np.tanh(drawn)) / 2
    return means


@dataclass(frozen=True)
class IsingField:
    """Pixels of which each is coupled to the four beside it, as in `mean_field`.

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
