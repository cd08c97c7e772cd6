"""Which of many points are the same, without comparing all pairs of them."""

from __future__ import annotations

import torch
from torch import Tensor

# Points compared side by side: the distances from them to those found so far are all that is held at a time.
BLOCK = 1000


def distinct(points: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
    """The points that repeat no earlier one, and for every point the nearest of those.

    Two points are the same when no coordinate differs by more than the tolerance. Where points lie either much closer
    together or much farther apart, as fixed points that an iteration has come close to do, the outcome is that of
    comparing all pairs, whatever their order. It takes time and memory in proportion to the points times the distinct
    ones, not to the square of the points.

    Args:
        points: shape (N, D).
        tolerance: not negative.

    Returns:
        Which points are distinct, increasing, (S,); and for every point its place among them, (N,); both int64.
    """
    points = points.float()
    index = torch.zeros(0, dtype=torch.int64, device=points.device)
    for first in range(0, len(points), BLOCK):
        block = points[first : first + BLOCK]
        known = (_distances(block, points[index]) <= tolerance).any(1)
        rest = (~known).nonzero().squeeze(1)
        among = _distances(block[rest], block[rest]) <= tolerance
        repeats = torch.tril(among, diagonal=-1).any(1)
        index = torch.cat([index, first + rest[~repeats]])
    nearest = [_distances(block, points[index]).argmin(1) for block in points.split(BLOCK)] if len(points) else []
    return index, torch.cat(nearest) if nearest else index


def _distances(left: Tensor, right: Tensor) -> Tensor:
    """Largest difference of a coordinate, for every pair; shape (left, right)."""
    return torch.cdist(left, right, p=torch.inf)
