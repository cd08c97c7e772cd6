"""Baselines: simple restorers of binary images that a trained prior has to beat, also used as pseudo-models.

They read an observation only through `channel.evidence`, so they serve every channel: the sign of a pixel's field is
what was seen, zero is a hidden pixel, and ±CERTAIN a pixel known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from restore.channels import Channel
from restore.channels.bit_flip import CERTAIN
from restore.errors import UsageError

BASELINES = ("ope", "nn", "median")


class Baseline(Protocol):
    """A restorer without a trained prior."""

    def restore(self, observed: Tensor, channel: Channel) -> Tensor:
        """The probability of ink of every pixel; observed and result have shape (N, D)."""


def baseline(name: str, images: Tensor, image_shape: tuple[int, int], neighbours: int = 1) -> Baseline:
    """Make a baseline by its name.

    Args:
        name: one of `BASELINES`.
        images: binary training images, shape (N, D); `median` ignores them.
        image_shape: (H, W), with D = H·W.
        neighbours: the k of `nn`.

    Raises:
        UsageError: if there is no such baseline, or k is not in 1..N.

    >>> from restore.channels import BitFlip
    >>> speck = torch.zeros(1, 25)
    >>> speck[0, 12] = 1
    >>> baseline("median", speck, (5, 5)).restore(speck, BitFlip(0.1)).round().sum().item()
    0.0
    """
    if name == "ope":
        return PointwiseEstimate.fit(images)
    if name == "nn":
        return NearestNeighbours(images, neighbours)
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
class NearestNeighbours:
    """The mean of the k training images under which the observation is most likely.

    log p(y | x) is evidence·x up to a constant, so one matrix product ranks all training images. For bit flips this is
    the order of Hamming distances, for a known hole the order of distances over visible pixels.

    Attributes:
        images: binary training images, shape (N, D).
        neighbours: k, in 1..N.
        keep_known: return pixels known exactly as they are, instead of the neighbours' (needed for completion; the
            study of the TAP machine paper does not do it at p = 0).
        block: images restored at a time; memory is block·N numbers.
    """

    images: Tensor
    neighbours: int = 1
    keep_known: bool = True
    block: int = 1000

    def __post_init__(self) -> None:
        if not 1 <= self.neighbours <= len(self.images):
            raise UsageError(f"{self.neighbours} neighbours were asked of {len(self.images)} training images")

    def restore(self, observed: Tensor, channel: Channel) -> Tensor:
        evidence = channel.evidence(observed).linear
        # A positive factor changes no order. This one makes the fields of a uniform channel ±1, so that scores are
        # whole numbers and ties stay ties, however a sum is rounded.
        scaled = evidence / evidence.abs().amax(dim=1, keepdim=True).clamp_min(torch.finfo(evidence.dtype).tiny)
        exemplars = self.images.to(evidence)
        found = torch.cat([self._mean_of_nearest(part, exemplars) for part in scaled.split(self.block)])
        return _keeping_known(found, evidence) if self.keep_known else found

    def _mean_of_nearest(self, evidence: Tensor, exemplars: Tensor) -> Tensor:
        scores = evidence @ exemplars.T
        if self.neighbours == 1:
            return exemplars[scores.argmax(dim=1)]
        return exemplars[scores.topk(self.neighbours, dim=1).indices].mean(dim=1)


@dataclass(frozen=True)
class Median:
    """The median filter of a binary image: every pixel becomes what most of the observed pixels around it are.

    The result is the share of ink among them, which rounds to the median; there are no votes beyond the border. Hidden
    pixels have no vote, and pixels known exactly stay. Holes are filled from their rim inwards; each ring votes once it
    has a value.

    Attributes:
        image_shape: (H, W).
        side: of the square of pixels around each that vote, an odd number.
    """

    image_shape: tuple[int, int]
    side: int = 3

    def restore(self, observed: Tensor, channel: Channel) -> Tensor:
        evidence = channel.evidence(observed).linear
        shares = _shares(self._as_images(evidence > 0), self._as_images(evidence != 0), self.side)
        return _keeping_known(shares.reshape(observed.shape).to(observed), evidence)

    def _as_images(self, flat: Tensor) -> Tensor:
        return flat.reshape(-1, 1, *self.image_shape)


def _shares(ink: Tensor, voting: Tensor, side: int) -> Tensor:
    """The share of ink among the votes around every pixel of boolean images (N, 1, H, W); 1/2 without any vote.

    In float64, so that a tie is exactly 1/2.
    """
    shares = torch.full_like(ink, 0.5, dtype=torch.float64)
    reached = torch.zeros_like(voting)
    # Each pass reaches a pixel further or more, so the longer side limits their number; images without holes need one.
    for _ in range(max(ink.shape[-2:])):
        votes = _sum(voting, side)
        now = (votes > 0) & ~reached
        if not bool(now.any()):
            break
        shares = torch.where(now, _sum(ink & voting, side) / votes, shares)
        ink = torch.where(voting, ink, shares > 0.5)
        reached = voting = reached | now
    return shares


def _sum(votes: Tensor, side: int) -> Tensor:
    return avg_pool2d(votes.double(), side, stride=1, padding=side // 2, divisor_override=1)


def _keeping_known(restored: Tensor, evidence: Tensor) -> Tensor:
    return torch.where(evidence.abs() >= CERTAIN, (evidence > 0).to(restored), restored)
