"""Holes all over an image of any size."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from machines import seeded

from restore.channels import Holes, Task, parse_task
from restore.errors import UsageError

PAGE = np.random.default_rng(0).random((120, 161))


def test_holes_are_whole_squares_apart_from_the_edges_and_nothing_else_is_touched() -> None:
    observed, hidden = Task((Holes(4, 0.2),), "known").damage_picture(PAGE, np.random.default_rng(1))
    assert hidden is not None
    np.testing.assert_array_equal(observed, np.where(hidden, 0.0, PAGE))
    whole = hidden[:120, :160].reshape(15, 8, 20, 8).swapaxes(1, 2).reshape(-1, 8, 8)
    for cell in whole[whole.any((1, 2))]:
        rows, columns = cell.any(1), cell.any(0)
        assert cell.sum() == 16 and rows.sum() == columns.sum() == 4 and cell[np.ix_(rows, columns)].all()


@pytest.mark.parametrize("share", [0.05, 0.1, 0.25])
def test_they_hide_the_share_asked_for_with_either_library(share: float) -> None:
    holes = Holes(3, share)
    hidden, other = (holes.drawn((1, 600, 600), generator) for generator in (np.random.default_rng(0), seeded()))
    # Ten thousand cells, each with a hole of 9 pixels or none: 5 standard deviations of at most 1/200.
    for actual in (float(hidden.mean()), float(other.double().mean())):
        assert actual == pytest.approx(share, abs=0.25 * 5 / 200)


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (7, 3)], ids=str)
def test_images_of_any_size_may_have_some(shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(0)
    hidden = [Holes(8, 0.25).drawn((1, *shape), generator) for _ in range(60)]
    assert 0 < np.mean(hidden) < 1 and hidden[0].shape == (1, *shape)


def test_without_the_mask_flips_of_half_their_share_are_assumed() -> None:
    task = parse_task("holes:3:0.1", "unknown")
    damage = task.damage(torch.ones(2, 72), (8, 9), seeded()).damage
    assert damage.hidden is None and np.ravel(damage.p) == pytest.approx([0.05] * 72)
    with pytest.raises(UsageError):
        Task((Holes(3, 0.1),), "unknown", grey=True)
