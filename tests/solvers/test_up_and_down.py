"""Sweeps up and down, of an image and of a page at two sizes, as they are defined."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from machines import random_deep, random_pyramid, random_rbm, seeded
from torch import Tensor

from restore.couplings import Convolution
from restore.errors import UsageError
from restore.families import FAMILIES, Features, Spec
from restore.fields import Fields
from restore.priors import BoltzmannMachine, ConditionalDBM, ConvolutionalDBM, LayeredPrior
from restore.priors.page import doubled, halved, levels_of
from restore.registry import SOLVERS
from restore.solvers import HardMeanField, TwoSizes, UpAndDown
from restore.solvers.loop import State
from restore.solvers.mean_field import value_of

KINDS = [(1, "rectified"), (1, "spin"), (1, "truncated-gaussian")]
PYRAMID = ConvolutionalDBM.of(random_pyramid(1, 2, 3, 2, side=3, stride=1, scale=0.1, seed=4), (3, 4), KINDS)
MACHINES: dict[str, BoltzmannMachine] = {
    "rbm": random_rbm(6, 4, scale=0.5),
    "deep": random_deep(5, 4, 3, 2, scale=0.5, seed=5),
    "pyramid": PYRAMID,
}
every_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


def under_evidence(machine: BoltzmannMachine, count: int = 3) -> BoltzmannMachine:
    return machine.tilt(Fields(torch.randn(count, machine.layers[0].size, generator=seeded(1), dtype=torch.float64)))


@every_machine
def test_its_fixed_points_are_those_of_hard_mean_field(machine: BoltzmannMachine) -> None:
    tilted = under_evidence(machine)
    one, other = (made(tol=1e-13, max_iter=2000, damping=0.0).solve(tilted) for made in (UpAndDown, HardMeanField))
    for mean, expected in zip(one.means, other.means, strict=True):
        torch.testing.assert_close(mean, expected, atol=1e-9, rtol=0)
    for variance, expected in zip(one.variances, other.variances, strict=True):
        torch.testing.assert_close(variance, expected, atol=1e-9, rtol=0)
    torch.testing.assert_close(one.log_partition, other.log_partition)


def by_definition(machine: BoltzmannMachine, means: list[Tensor], layers: Iterable[int]) -> None:
    """Update layers one after the other, with every field anew from all neighbours."""
    for layer in layers:
        means[layer] = value_of(machine.layers[layer], Fields(machine.inputs(layer, means)))


@every_machine
def test_a_sweep_goes_up_and_down(machine: BoltzmannMachine) -> None:
    """In the first, nothing comes from above on the way up."""
    tilted, solver, top = under_evidence(machine), UpAndDown(damping=0.0), len(machine.layers) - 1
    means = [torch.full((3, machine.layers[0].size), 0.4, dtype=torch.float64)]
    state = solver.init(tilted, means[0])
    for layer, coupling in zip(tilted.layers[1:], tilted.couplings, strict=True):
        means.append(value_of(layer, Fields(coupling.up(means[-1]))))
    upwards, downwards = range(1, top + 1), range(top - 1, -1, -1)
    for sweep in range(4):
        by_definition(tilted, means, [*(upwards if sweep else ()), *downwards])
        state = solver.step(tilted, state)
        fields = [coupling.down(mean) for coupling, mean in zip(tilted.couplings, means[1:], strict=True)]
        for value, expected in zip(state, (means[0], *fields), strict=True):
            torch.testing.assert_close(value, expected)
    torch.testing.assert_close(solver.fields_of_image(tilted, state).linear, tilted.inputs(0, means))
    by_definition(tilted, means, upwards)
    for mean, expected in zip(solver.moments(tilted, state)[0], means, strict=True):
        torch.testing.assert_close(mean, expected)


def test_damping_keeps_a_share_of_the_image() -> None:
    tilted = under_evidence(PYRAMID)
    start = torch.full((3, 12), 0.4, dtype=torch.float64)
    state = UpAndDown().init(tilted, start)
    plain, damped = (UpAndDown(damping=share).step(tilted, state)[0] for share in (0.0, 0.25))
    torch.testing.assert_close(damped, 0.75 * plain + 0.25 * start)


@dataclass(frozen=True)
class Counted(Convolution):
    passes: list[str] = field(default_factory=list)

    def up(self, below: Tensor) -> Tensor:
        self.passes.append("up")
        return super().up(below)

    def down(self, above: Tensor) -> Tensor:
        self.passes.append("down")
        return super().down(above)


def test_a_sweep_passes_each_coupling_once_up_and_once_down() -> None:
    couplings = tuple(
        Counted(coupling.weights, coupling.image_shape, coupling.stride) for coupling in PYRAMID.couplings
    )
    machine = LayeredPrior(PYRAMID.layers, couplings)
    solver = UpAndDown(damping=0.0)
    state: State = solver.init(machine, torch.full((1, 12), 0.4, dtype=torch.float64))
    for _ in range(2):
        state = solver.step(machine, state)
    solver.fields_of_image(machine, state)
    assert [coupling.passes for coupling in couplings] == [["up", "down"] * 2] * 3


FEATURES = [(1, "rectified"), (2, "spin")]
SPEC = Spec(family="conditional_convolutional", layers=(Features(3, 3, 1, "rectified"), Features(2, 2, 2, "spin")))
SHAPES = [(6, 8), (7, 5), (1, 3)]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def machine_of(shape: tuple[int, int]) -> ConditionalDBM:
    shapes = FAMILIES["conditional_convolutional"].shapes(SPEC, shape)
    draw = seeded(4)
    parts = {name: 0.4 * torch.randn(size, generator=draw).double() for name, size in shapes.items()}
    return ConditionalDBM.of(parts, shape, FEATURES)


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
