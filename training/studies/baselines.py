"""Simple restorers that the papers compare with.

They read an observation only through `channel.evidence`, so they serve every channel: the sign of a binary pixel's
field is what was seen, zero is a hidden pixel, and ±CERTAIN_FIELD a pixel known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.channels import Damage
from restore.channels.flips import CERTAIN_FIELD
from restore.units import Units

# Images that are compared with all training images at a time, to bound memory.
BLOCK = 1000


@dataclass(frozen=True)
class PointwiseEstimate:
    """The optimal estimate if pixels were independent: σ(logit(m_i) + evidence_i).

    TAP machine, sec. VII.D, eq. 46 with the sign of the evidence corrected.

    Attributes:
        log_odds: logit of the training mean m of every pixel; shape (D,).
    """

    log_odds: Tensor

    @classmethod
    def fit(cls, images: Tensor) -> PointwiseEstimate:
        """Fit to training images (N, D) and one image each of ink and paper, so that no pixel is certain."""
        mean = (images.sum(dim=0, dtype=torch.float64) + 1) / (len(images) + 2)
        return cls(torch.logit(mean).float())

    def restore(self, observed: Tensor, damage: Damage) -> Tensor:
        return torch.sigmoid(self.log_odds.to(observed) + damage.channel(grey=False).evidence(observed).linear)


@dataclass(frozen=True)
class PixelwiseEstimate:
    """The posterior mean of independent grey pixels.

    Attributes:
        units: the pixels, see `restore.learning.gradients.independent`.
    """

    units: Units

    def restore(self, observed: Tensor, damage: Damage) -> Tensor:
        return self.units.moments(damage.channel(grey=True).evidence(observed))[0].clamp(0, 1)


@dataclass(frozen=True)
class NearestNeighbour:
    """The training image under which the observation is most likely, the first of equals.

    log p(y | x) is evidence·x up to a constant, so one matrix product ranks all training images. For bit flips this is
    the order of Hamming distances, for a known hole the order of distances over visible pixels.

    Attributes:
        images: binary training images, shape (N, D).
        keep_known: return pixels known exactly as they are, instead of the neighbour's (needed for completion; the
            study of the TAP machine paper does not do it at p = 0).
    """

    images: Tensor
    keep_known: bool = True

    def restore(self, observed: Tensor, damage: Damage) -> Tensor:
        evidence = damage.channel(grey=False).evidence(observed).linear
        # A positive factor changes no order. This one makes the fields of a uniform channel ±1, so that scores are
        # whole numbers and ties stay ties, however a sum is rounded.
        scaled = evidence / evidence.abs().amax(dim=1, keepdim=True).clamp_min(torch.finfo(evidence.dtype).tiny)
        exemplars = self.images.to(evidence)
        found = torch.cat([exemplars[(part @ exemplars.T).argmax(dim=1)] for part in scaled.split(BLOCK)])
        certain = evidence.abs() >= CERTAIN_FIELD
        return torch.where(certain, (evidence > 0).to(found), found) if self.keep_known else found
