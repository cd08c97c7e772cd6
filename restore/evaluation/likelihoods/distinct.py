"""Find which of many points are the same, without comparing all pairs."""

from __future__ import annotations

import torch
from torch import Tensor

# How many points are compared at a time: only their distances to the points found so far are held.
BLOCK = 1000


def distinct(points: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
    """The points that repeat no earlier one, and for every point the nearest of these.

    Two points are the same if no coordinate differs by more than the tolerance. If points are either much closer than
    that or much farther apart, as approximate fixed points are, the result is that of comparing all pairs, in any
    order. Time and memory grow with the points times the distinct ones, not with the square of the points.

    Args:
        points: shape (N, D).
        tolerance: not negative.

    Returns:
        The numbers of the distinct points, increasing, (S,); and for every point its place among them, (N,); int64.
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
    """The largest difference of a coordinate for every pair; shape (left, right)."""
    return torch.cdist(left, right, p=torch.inf)
