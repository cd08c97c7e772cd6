"""The median filter, which a trained prior has to beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from restore.channels import Channel, GaussianNoise, Occlusion
from restore.channels.bit_flip import CERTAIN


@dataclass(frozen=True)
class Median:
    """The median filter: every pixel becomes the median of the observed ones in a square around it.

    Pixels beyond the border do not count, nor do hidden ones; holes are filled from their rim inwards. Pixels known
    exactly stay. Where no pixel is known, the result is 1/2.

    Attributes:
        image_shape: (H, W).
        side: of the square, an odd number.
        grey: whether pixels are grey values instead of ink and paper.
    """

    image_shape: tuple[int, int]
    side: int = 3
    grey: bool = False

    def restore(self, observed: Tensor, channel: Channel) -> Tensor:
        seen, certain = self._seen(observed, channel)
        found = torch.where(certain, seen, self._filtered(seen))
        # Each pass reaches at least one pixel further.
        while bool(found.isnan().any()) and not bool(found.isnan().all()):
            found = torch.where(found.isnan(), self._filtered(found), found)
        return found.nan_to_num(0.5).clamp(0, 1)

    def _seen(self, observed: Tensor, channel: Channel) -> tuple[Tensor, Tensor]:
        """What was seen, NaN where a pixel is hidden, and which pixels are certain; (N, D)."""
        if not self.grey:
            evidence = channel.evidence(observed).linear
            return torch.where(evidence == 0, torch.nan, (evidence > 0).to(observed)), evidence.abs() >= CERTAIN
        noise = channel.noise if isinstance(channel, Occlusion) else channel
        hidden = channel.hidden if isinstance(channel, Occlusion) else torch.zeros((), dtype=torch.bool)
        exact = isinstance(noise, GaussianNoise) and not np.any(np.asarray(noise.sigma))
        seen = torch.where(torch.as_tensor(hidden), torch.nan, observed)
        return seen, ~seen.isnan() & exact

    def _filtered(self, rows: Tensor) -> Tensor:
        """Medians of what is a number, one image at a time: the squares take as much memory as they have pixels."""
        images = rows.reshape(-1, 1, *self.image_shape)
        around = (pad(image, 4 * [self.side // 2], value=torch.nan) for image in images)
        squares = (each.unfold(1, self.side, 1).unfold(2, self.side, 1).flatten(3) for each in around)
        return torch.stack([each.nanmedian(dim=3).values for each in squares]).reshape(rows.shape)
