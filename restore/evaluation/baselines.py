"""The median filter, the baseline of trained priors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from restore.channels import Damage
from restore.channels.flips import CERTAIN_FIELD


@dataclass(frozen=True)
class Median:
    """The median filter: every pixel becomes the median of the observed ones in a square around it.

    Pixels beyond the border do not count, nor do hidden ones; holes are filled from their rim inwards. Pixels known
    exactly stay. Where no pixel is known, the result is 1/2.

    Attributes:
        image_shape: (H, W).
        side: of the square, an odd number.
        grey: True if pixels are grey values instead of ink and paper.
    """

    image_shape: tuple[int, int]
    side: int = 3
    grey: bool = False

    def restore(self, observed: Tensor, damage: Damage) -> Tensor:
        visible, certain = self._visible(observed, damage)
        medians = torch.where(certain, visible, self._filtered(visible))
        # Each pass reaches at least one pixel further.
        while bool(medians.isnan().any()) and not bool(medians.isnan().all()):
            medians = torch.where(medians.isnan(), self._filtered(medians), medians)
        return medians.nan_to_num(0.5).clamp(0, 1)

    def _visible(self, observed: Tensor, damage: Damage) -> tuple[Tensor, Tensor]:
        """The observed pixels, NaN where hidden, and a mask of certain ones; (N, D)."""
        if not self.grey:
            evidence = damage.channel(grey=False).evidence(observed).linear
            return torch.where(evidence == 0, torch.nan, (evidence > 0).to(observed)), evidence.abs() >= CERTAIN_FIELD
        hidden = torch.zeros(1, 1) if damage.hidden is None else torch.as_tensor(damage.hidden).flatten(1)
        visible = torch.where(hidden > 0, torch.nan, observed)
        return visible, ~visible.isnan() & (not damage.p and not damage.sigma)

    def _filtered(self, rows: Tensor) -> Tensor:
        """Medians over squares, ignoring NaN; one image at a time, to limit memory."""
        images = rows.reshape(-1, 1, *self.image_shape)
        around = (pad(image, 4 * [self.side // 2], value=torch.nan) for image in images)
        squares = (square.unfold(1, self.side, 1).unfold(2, self.side, 1).flatten(3) for square in around)
        return torch.stack([square.nanmedian(dim=3).values for square in squares]).reshape(rows.shape)
