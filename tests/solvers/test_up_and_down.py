"""Sweeps up and down: the same fixed points as hard mean field, in an order in which nothing is passed twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
import torch
from machines import random_deep, random_pyramid, random_rbm, seeded
from torch import Tensor

from restore.couplings import Convolution
from restore.fields import Fields
from restore.priors import BoltzmannMachine, ConvolutionalDBM, LayeredPrior
from restore.solvers import HardMeanField, UpAndDown
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
