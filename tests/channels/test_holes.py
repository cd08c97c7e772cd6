"""Holes all over an image of any size."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from machines import seeded

from restore.channels import BitFlip, Holes, Occlusion, parse_task
from restore.errors import UsageError

PAGE = np.random.default_rng(0).random((120, 161))


def test_holes_are_whole_squares_apart_from_the_edges_and_nothing_else_is_touched() -> None:
    observed, hidden = Holes(4, 0.2).damage_picture(PAGE, np.random.default_rng(1))
    np.testing.assert_array_equal(observed, np.where(hidden, 0.0, PAGE))
    whole = hidden[:120, :160].reshape(15, 8, 20, 8).swapaxes(1, 2).reshape(-1, 8, 8)
    for cell in whole[whole.any((1, 2))]:
        rows, columns = cell.any(1), cell.any(0)
        assert cell.sum() == 16 and rows.sum() == columns.sum() == 4 and cell[np.ix_(rows, columns)].all()


@pytest.mark.parametrize("share", [0.05, 0.1, 0.25])
def test_they_hide_the_share_asked_for_with_either_library(share: float) -> None:
    task = Holes(3, share)
    _, hidden = task.damage_picture(np.zeros((600, 600)), np.random.default_rng(0))
    damaged = task.damage(torch.zeros(1, 360000), (600, 600), seeded())
    assert isinstance(damaged.channel, Occlusion)
    # Ten thousand cells, each with a hole of 9 pixels or none: 5 standard deviations of at most 1/200.
    for found in (hidden.mean(), float(damaged.channel.hidden.double().mean())):
        assert found == pytest.approx(share, abs=0.25 * 5 / 200)


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (7, 3)], ids=str)
def test_images_of_any_size_may_have_some(shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(0)
    found = [Holes(8, 0.25).damage_picture(np.ones(shape), generator)[1] for _ in range(60)]
    assert 0 < np.mean(found) < 1 and found[0].shape == shape


def test_without_the_mask_flips_of_half_their_share_are_assumed() -> None:
    task = parse_task("holes:3:0.1", "unknown")
    channel = task.damage(torch.ones(2, 72), (8, 9), seeded()).channel
    assert isinstance(channel, BitFlip)
    assert torch.as_tensor(channel.probability).flatten().tolist() == pytest.approx([0.05] * 72)
    with pytest.raises(UsageError):
        Holes(3, 0.1, mask="unknown", grey=True)
