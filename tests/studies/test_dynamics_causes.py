"""Solutions counted by several rules, what has converged by the paper's, and how far apart bands of numbers are."""

from __future__ import annotations

import dynamics_causes as causes
import numpy as np
import pytest
import torch
from bands import separation
from dynamics_causes import ByMeanSquare, Counted, counted
from machines import random_rbm

from restore.priors import RBM


def two_memories(few: int, many: int) -> RBM:
    """A machine with two independent groups of pixels, each either black or white as a whole."""
    weights = torch.zeros(few + many, 2)
    weights[:few, 0] = weights[few:, 1] = 12.0
    return RBM.binary(weights, torch.full((few + many,), -6.0), -weights.sum(0) / 2)


@pytest.mark.parametrize("criterion", causes.CRITERIA)
def test_a_difference_of_few_pixels_counts_by_thresholds_and_not_by_their_share(criterion: str) -> None:
    starts = torch.zeros(4, 40)
    starts[1::2, :2], starts[2:, 2:] = 1, 1
    found = counted(two_memories(2, 38), starts.repeat(2, 1), criterion, 7)
    assert found == Counted(7, criterion, 8, 8, (4, 4, 4), 2)
    # Of three pixels the share is above 5 %.
    starts[1::2, 2] = 1
    starts[::2, 2] = 0
    assert counted(two_memories(3, 37), starts, criterion, 7).by_share == 4


def test_the_papers_criterion_is_the_root_of_the_mean_square() -> None:
    machine = random_rbm(6, 3, scale=0.5, seed=1)
    old = tuple(torch.zeros(2, size) for size in (6, 3, 6, 3))
    new = (old[0] + torch.tensor([[0.3], [0.0]]), old[1].clone(), old[2] + 9, old[3])
    moved = ByMeanSquare().watched(machine)(new, old)
    assert moved.tolist() == pytest.approx([0.3 * (6 / 9) ** 0.5, 0.0])


# --- bands of numbers ---


@pytest.mark.parametrize("distance", [4.0, 8.0])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_two_bands_are_as_far_apart_as_they_were_drawn(distance: float, share: float) -> None:
    draw = np.random.default_rng(0)
    count = int(2000 * share)
    low, high = draw.normal(0, 2, count), draw.normal(2 * distance, 2, 2000 - count)
    assert separation([*low, *high]) == pytest.approx(distance, rel=0.1)
