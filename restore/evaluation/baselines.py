"""Baselines: simple restorers that a trained prior has to beat, also used as pseudo-models.

They read an observation only through `channel.evidence`, so they serve every channel: the sign of a binary pixel's
field is what was seen, zero is a hidden pixel, and ±CERTAIN a pixel known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from restore.channels import Channel, GaussianNoise, Occlusion
from restore.channels.bit_flip import CERTAIN
from restore.errors import UsageError
from restore.units import Units

BASELINES = ("ope", "nn", "median")

# Images that are compared with all training images at a time, to bound memory.
BLOCK = 1000


class Baseline(Protocol):
    """A restorer without a trained prior."""

    def restore(self, observed: Tensor, channel: Channel) -> Tensor:
        """The probability of ink, or the grey value, of every pixel; observed and result have shape (N, D)."""


def baseline(name: str, images: Tensor, image_shape: tuple[int, int]) -> Baseline:
    """Make a baseline of binary images by its name.

    Args:
        name: one of `BASELINES`.
        images: binary training images, shape (N, D); `median` ignores them.
        image_shape: (H, W), with D = H·W.

    Raises:
        UsageError: if there is no such baseline.

    >>> from restore.channels import BitFlip
    >>> speck = torch.zeros(1, 25)
    >>> speck[0, 12] = 1
    >>> baseline("median", speck, (5, 5)).restore(speck, BitFlip(0.1)).sum().item()
    0.0
    """
    if name == "ope":
        return PointwiseEstimate.fit(images)
    if name == "nn":
        return NearestNeighbour(images)
    if name == "median":
        return Median(image_shape)
    raise UsageError(f"there is no baseline {name!r}; the baselines are {', '.join(BASELINES)}")


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

    def restore(self, observed: Tensor, channel: Channel) -> Tensor:
        return torch.sigmoid(self.log_odds.to(observed) + channel.evidence(observed).linear)


@dataclass(frozen=True)
class PixelwiseEstimate:
    """The posterior mean of independent grey pixels.

    Attributes:
        units: the pixels, see `restore.learning.gradients.independent`.
    """

    units: Units

    def restore(self, observed: Tensor, channel: Channel) -> Tensor:
        return self.units.moments(channel.evidence(observed))[0].clamp(0, 1)


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

    def restore(self, observed: Tensor, channel: Channel) -> Tensor:
        evidence = channel.evidence(observed).linear
        # A positive factor changes no order. This one makes the fields of a uniform channel ±1, so that scores are
        # whole numbers and ties stay ties, however a sum is rounded.
        scaled = evidence / evidence.abs().amax(dim=1, keepdim=True).clamp_min(torch.finfo(evidence.dtype).tiny)
        exemplars = self.images.to(evidence)
        found = torch.cat([exemplars[(part @ exemplars.T).argmax(dim=1)] for part in scaled.split(BLOCK)])
        certain = evidence.abs() >= CERTAIN
        return torch.where(certain, (evidence > 0).to(found), found) if self.keep_known else found


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
