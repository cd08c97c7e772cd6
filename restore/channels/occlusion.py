"""Occlusion: some pixels are painted over, and it is known which."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from restore.channels.bit_flip import BitFlip
from restore.channels.contract import Channel
from restore.errors import UsageError
from restore.fields import Fields

EXACT = BitFlip(0.0)


@dataclass(frozen=True)
class Occlusion:
    """Hidden pixels show `fill` whatever they were; the others come through the channel `noise`.

    Attributes:
        hidden: boolean, broadcastable with the images; True = painted over (the pixels to fill).
        fill: the value painted, in [0, 1].
        noise: what the visible pixels went through; by default they are exact, which takes other evidence of ink than
            of grey values: of those it is GaussianNoise(0.0).

    Raises:
        UsageError: if the mask is not boolean.
    """

    hidden: Tensor
    fill: float = 0.0
    noise: Channel = EXACT

    def __post_init__(self) -> None:
        if self.hidden.dtype != torch.bool:
            raise UsageError(
                f"a mask must be boolean (True = to fill), not {self.hidden.dtype}; compare it with 0 first"
            )

    def __radd__(self, noise: Channel) -> Occlusion:
        """`noise + occlusion`: the image was noisy before all that this channel did to it."""
        before = noise if self.noise is EXACT else noise + self.noise  # type: ignore[operator]
        return replace(self, noise=before)

    def corrupt(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return torch.where(self.hidden, torch.full_like(x, self.fill), self.noise.corrupt(x, generator))

    def log_likelihood(self, y: Tensor, x: Tensor) -> Tensor:
        # A painted pixel shows `fill` with certainty, so it adds log 1; what y holds there is not looked at.
        return torch.where(self.hidden, torch.zeros_like(x), self.noise.log_likelihood(y, x))

    def evidence(self, y: Tensor) -> Fields:
        seen = self.noise.evidence(y)
        nothing = torch.zeros((), dtype=y.dtype, device=y.device)
        return Fields(
            torch.where(self.hidden, nothing, seen.linear),
            torch.where(self.hidden, nothing, seen.quadratic),
            None if seen.presence is None else torch.where(self.hidden, nothing, seen.presence),
        )
