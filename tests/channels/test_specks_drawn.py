"""Specks and holes: their shapes, how many there are, and what the user is told."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from machines import seeded
from scipy import ndimage

from restore.channels import Holes, Specks, Task, parse_task
from restore.channels import specks as module
from restore.channels.specks import LARGEST, POLYOMINOES, SMALLEST
from restore.errors import UsageError

PAGE = np.random.default_rng(0).integers(0, 2, (90, 131)).astype(float)


def test_every_shape_of_a_size_is_there_once() -> None:
    cells = module._cells()
    for size in range(SMALLEST, LARGEST + 1):
        shapes = [frozenset(map(tuple, shape)) for shape in cells[size, : POLYOMINOES[size]].tolist()]
        assert len(set(shapes)) == POLYOMINOES[size]
        assert {len(shape) for shape in shapes} == {size}
        for shape in shapes:
            drawn = np.zeros((LARGEST, LARGEST), bool)
            drawn[tuple(np.array(list(shape)).T)] = True
            assert ndimage.label(drawn)[1] == 1 and drawn[0].any() and drawn[:, 0].any()


@pytest.mark.parametrize("colour", [0, 1])
def test_lone_specks_have_all_sizes_and_shapes_alike(colour: int) -> None:
    # So few that hardly two touch; those of the colour of the ground do not show.
    observed = Specks(0.01).corrupt(np.full((2000, 2000), 1 - colour), np.random.default_rng(3))
    parts, count = ndimage.label(observed == colour)
    sizes = np.bincount(parts.ravel())[1:]
    expected = Specks(0.01).rate * observed.size
    assert count == pytest.approx(expected, abs=5 * expected**0.5 + 0.05 * expected)
    for size in range(SMALLEST, LARGEST):
        assert np.mean(sizes == size) == pytest.approx(1 / 7, abs=0.02)
    lying = sum(parts[index].shape == (1, 2) for index in ndimage.find_objects(parts))
    assert lying / count == pytest.approx(1 / (7 * POLYOMINOES[2]), abs=0.01)


def test_specks_cover_the_share_asked_for_up_to_the_edges() -> None:
    actual = np.mean(
        [Specks(0.02).corrupt(np.zeros((40, 50)), seed) for seed in map(np.random.default_rng, range(900))], 0
    )
    # Half are white; 5 standard errors of rows and columns at the border, as of all.
    for part in (actual, actual[0], actual[-1], actual[:, 0], actual[:, -1]):
        assert part.mean() == pytest.approx(0.01, abs=0.003)


def test_other_pixels_are_not_touched_and_none_means_none() -> None:
    assert np.array_equal(Specks(0.0).corrupt(PAGE, np.random.default_rng(0)), PAGE)
    observed, hidden = parse_task("specks:0.05").damage_picture(PAGE, np.random.default_rng(0))
    assert hidden is None and set(np.unique(observed)) == {0, 1}
    assert 0 < np.mean(observed != PAGE) < 0.05


def test_tensors_are_damaged_alike_for_a_seed_and_flips_are_told() -> None:
    task, clean = parse_task("specks:0.1"), torch.from_numpy(PAGE).reshape(1, -1).expand(3, -1)
    first, second = (task.damage(clean, (90, 131), seeded(5)) for _ in range(2))
    assert torch.equal(first.observed, second.observed) and first.observed.shape == clean.shape
    assert not torch.equal(first.observed[0], first.observed[1])
    assert (first.damage.p, first.damage.hidden) == (0.05, None)
    assert str(task) == "specks:0.1" and task.mask is None and task.unmasked() == task


def test_a_rate_and_a_share_say_the_same() -> None:
    # The mean size of specks of both colours.
    assert 2 * Specks(0.03).rate * np.arange(SMALLEST, LARGEST + 1).mean() == pytest.approx(0.03)


@pytest.mark.parametrize("share", [-0.1, 0.21, float("nan")])
def test_a_share_that_is_none(share: float) -> None:
    with pytest.raises(UsageError):
        Specks(share)


def test_specks_are_for_pictures_in_black_and_white() -> None:
    with pytest.raises(UsageError):
        parse_task("specks:0.1", grey=True)
    with pytest.raises(UsageError):
        parse_task("specks:0.1", "known")


GREYS = np.random.default_rng(0).random((120, 161))


def test_holes_are_whole_squares_apart_from_the_edges_and_nothing_else_is_touched() -> None:
    observed, hidden = Task((Holes(4, 0.2),), "known").damage_picture(GREYS, np.random.default_rng(1))
    assert hidden is not None
    np.testing.assert_array_equal(observed, np.where(hidden, 0.0, GREYS))
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
