"""A page at two sizes: the log-odds are an average of both, each computed on its own, by definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from machines import random_deep, seeded
from torch import Tensor

from restore.errors import UsageError
from restore.families import FAMILIES, Features, Spec
from restore.fields import Fields
from restore.priors import ConditionalDBM
from restore.priors.page import doubled, halved, levels_of
from restore.registry import SOLVERS
from restore.solvers import TwoSizes, UpAndDown
from restore.solvers.loop import State

KINDS = [(1, "rectified"), (2, "spin")]
SPEC = Spec(family="conditional_convolutional", layers=(Features(3, 3, 1, "rectified"), Features(2, 2, 2, "spin")))
SHAPES = [(6, 8), (7, 5), (1, 3)]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def machine_of(shape: tuple[int, int]) -> ConditionalDBM:
    shapes = FAMILIES["conditional_convolutional"].shapes(SPEC, shape)
    draw = seeded(4)
    parts = {name: 0.4 * torch.randn(size, generator=draw).double() for name, size in shapes.items()}
    return ConditionalDBM.of(parts, shape, KINDS)


def page_of(shape: tuple[int, int]) -> tuple[Fields, np.ndarray, np.ndarray]:
    """Two pages as evidence of any precision, their grey levels, and what of them is visible, (2, H, W)."""
    draw = np.random.default_rng(3)
    grey, visible = draw.random((2, *shape)), draw.random((2, *shape)) < 0.6
    precision = np.where(visible, 3.0, 0.0)
    return Fields(*(torch.from_numpy(part.reshape(2, -1)) for part in (grey * precision, precision))), grey, visible


def half_of(grey: np.ndarray, visible: np.ndarray) -> Fields:
    """Pages at half their size, block by block: the average of what is visible in each."""
    pad = [(0, 0), *((0, size % 2) for size in grey.shape[1:])]
    grey, visible = np.pad(grey, pad, "edge"), np.pad(visible, pad, "edge")
    light, seen = (np.zeros((len(grey), grey.shape[1] // 2, grey.shape[2] // 2)) for _ in range(2))
    for index in np.ndindex(*light.shape):
        block = np.s_[index[0], 2 * index[1] : 2 * index[1] + 2, 2 * index[2] : 2 * index[2] + 2]
        if visible[block].any():
            light[index], seen[index] = grey[block][visible[block]].mean(), 1.0
    return Fields(*(torch.from_numpy(part.reshape(len(grey), -1)) for part in (light, seen)))


def enlarged(values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Images (N, h, w) at a shape, linear between the middles of pixels, and constant beyond the outermost."""
    for axis, size in enumerate(shape, 1):
        middles = 2 * np.arange(values.shape[axis]) + 0.5
        values = np.apply_along_axis(lambda row: np.interp(np.arange(size), middles, row), axis, values)  # noqa: B023
    return values


def odds_of(machine: ConditionalDBM, state: State) -> Tensor:
    return machine.layers[0].parameters["bias"] + UpAndDown().fields_of_image(machine, state).linear


@every_shape
@pytest.mark.parametrize(("sweeps", "damping"), [(1, 0.0), (3, 0.0), (3, 0.4)])
def test_log_odds_are_the_average_of_both_of_which_half_size_has_a_third(
    shape: tuple[int, int], sweeps: int, damping: float
) -> None:
    page, grey, visible = page_of(shape)
    small = (-(-shape[0] // 2), -(-shape[1] // 2))
    large, half = machine_of(shape).tilt(page), machine_of(small).tilt(half_of(grey, visible))
    plain, start = UpAndDown(damping=damping), torch.rand(2, shape[0] * shape[1], generator=seeded(1)).double()
    states = [plain.init(large, start), plain.init(half, halved(start, shape))]
    for _ in range(sweeps):
        before = states[0][0]
        states = [plain.step(of, state) for of, state in zip((large, half), states, strict=True)]
        one, other = (odds_of(of, state).numpy() for of, state in zip((large, half), states, strict=True))
        both = (2 * one + enlarged(other.reshape(2, *small), shape).reshape(2, -1)) / 3
        mean = (1 - damping) * torch.sigmoid(torch.from_numpy(both)) + damping * before
        states[0] = (mean, *states[0][1:])
    found = TwoSizes(max_iter=sweeps, tol=0.0, damping=damping).solve(machine_of(shape).tilt(page), start)
    torch.testing.assert_close(found.means[0], mean, atol=1e-9, rtol=0)
    assert [len(layer[0]) for layer in found.means] == [layer.size for layer in large.layers]
    warm = TwoSizes(sweeps, 0.0, damping, temperature=2.0).solve(machine_of(shape).tilt(page), start)
    torch.testing.assert_close(warm.means[0], torch.sigmoid(torch.from_numpy(both) / 2), atol=1e-9, rtol=0)


@every_shape
def test_the_page_at_half_its_size_has_the_averages_of_what_is_visible(shape: tuple[int, int]) -> None:
    page, grey, visible = page_of(shape)
    found = machine_of(shape).tilt(page).halved.page
    assert found is not None
    for one, other in zip(levels_of(found), levels_of(half_of(grey, visible)), strict=True):
        torch.testing.assert_close(one, other)


@every_shape
def test_what_is_level_stays_so_at_half_size_and_back(shape: tuple[int, int]) -> None:
    level = torch.full((1, shape[0] * shape[1]), 0.3).double()
    torch.testing.assert_close(doubled(halved(level, shape), shape), level)


def test_a_page_is_solved_alone_as_in_a_batch() -> None:
    """Images that have stopped leave the batch, with their page."""
    page, _, _ = page_of(SHAPES[0])
    solver, machine = TwoSizes(max_iter=50, tol=1e-5, damping=0.0), machine_of(SHAPES[0])
    whole = solver.solve(machine.tilt(page))
    for row in range(2):
        alone = machine.tilt(page.mapped(lambda values: values[row : row + 1]))  # noqa: B023
        torch.testing.assert_close(solver.solve(alone).means[0][0], whole.means[0][row], atol=1e-9, rtol=0)


def test_other_machines_and_families_are_refused() -> None:
    with pytest.raises(UsageError):
        TwoSizes().solve(random_deep(5, 4, 3, scale=0.5, seed=5))
    assert "two_sizes" in SPEC.solvers and SOLVERS["two_sizes"].coarser == 2
    assert "two_sizes" not in Spec(hidden=3).solvers
