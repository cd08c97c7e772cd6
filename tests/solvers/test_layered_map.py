"""Naive mean field and TAP against the enumeration oracle and the papers: settings, fixed points, statistics."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from machines import (
    both,
    halves,
    random_deep,
    random_fully_visible,
    random_pyramid,
    random_rbm,
    seeded,
)
from torch import Tensor

from restore.couplings import Dense
from restore.priors import RBM, BoltzmannMachine, ConvolutionalDBM
from restore.solvers import TAP, HardMeanField, LayeredMap, MeanField
from restore.units import Bernoulli, Rectified, Spin

PRECISE: dict[str, Any] = {"max_iter": 5000, "tol": 1e-14, "damping": 0.5}


# --- fixed points against the oracle ---


def test_a_sweep_updates_odd_layers_from_the_image_and_then_even_ones_from_these() -> None:
    """TAP machine, Alg. 1: hidden units first. Mean field by hand: sigmoid(bias + W m) of the newest neighbours."""
    machine = random_deep(3, 4, 2)
    (lower, upper), bias = (coupling.matrix for coupling in machine.couplings), [layer.bias for layer in machine.layers]
    start = tuple(torch.rand(1, size, generator=seeded(size), dtype=torch.float64) for size in (3, 4, 2))
    middle = torch.sigmoid(bias[1] + start[0] @ lower + start[2] @ upper.T)
    wanted = torch.sigmoid(bias[0] + middle @ lower.T), middle, torch.sigmoid(bias[2] + middle @ upper)
    state = MeanField(damping=0.0).step(machine, (*start, *start))
    torch.testing.assert_close(state[:3], wanted, rtol=0, atol=1e-12)


def gradient_in_means(solver: LayeredMap, machine: BoltzmannMachine, means: tuple[Tensor, ...]) -> list[Tensor]:
    moved = [mean.clone().requires_grad_() for mean in means]
    value = solver.log_partition(machine, moved, [mean * (1 - mean) for mean in moved])
    return list(torch.autograd.grad(value.sum(), moved))


@both
@pytest.mark.parametrize(
    "machine",
    [random_rbm(6, 4, scale=0.6), random_deep(5, 4, 3, scale=0.5), random_fully_visible(8, scale=0.4)],
    ids=["rbm", "three-layers", "fully-visible"],
)
def test_free_energy_is_stationary_at_the_fixed_point(kind: type[LayeredMap], machine: BoltzmannMachine) -> None:
    solver = kind(**PRECISE)
    solution = solver.solve(machine, halves(machine))
    for gradient in gradient_in_means(solver, machine, solution.means):
        assert float(gradient.abs().max()) < 1e-11
    away = tuple((mean + 0.1).clamp(max=0.95) for mean in solution.means)
    assert max(float(gradient.abs().max()) for gradient in gradient_in_means(solver, machine, away)) > 1e-3


def test_a_machine_with_points_settles_with_its_pixels_and_others_with_all_units() -> None:
    old, new = (
        (torch.zeros(1, 4), torch.zeros(1, 2)),
        (torch.tensor([[0.0, 0.2, 0.0, 0.0]]), torch.tensor([[0.0, 9.0]])),
    )
    pixels, coupling = Bernoulli(torch.zeros(4)), torch.ones(4, 2)
    for hidden, moved in (
        (Bernoulli(torch.zeros(2)), 9.0),
        (Spin(torch.zeros(2)), 9.0),
        (Rectified(torch.zeros(2), torch.ones(2)), 0.05),
    ):
        change = HardMeanField().watched(RBM((pixels, hidden), (Dense(coupling),)))
        assert change(new, old).item() == pytest.approx(moved)


def test_units_of_two_values_vary_as_their_means_say_and_points_do_not() -> None:
    """Of layers without neighbours, whose variances enumeration gives: sum of x² p(x) minus the square of the mean."""
    fields = torch.linspace(-1, 1, 3, dtype=torch.float64)
    values = {Bernoulli: torch.tensor([0.0, 1.0]), Spin: torch.tensor([-1.0, 1.0])}
    for kind, states in values.items():
        apart = RBM((kind(fields), Rectified(fields, torch.ones(3))), (Dense(torch.zeros(3, 3).double()),))
        solution = HardMeanField().solve(apart)
        weights = torch.softmax(fields[:, None] * states.double(), 1)
        variance = weights @ states.double() ** 2 - (weights @ states.double()) ** 2
        torch.testing.assert_close(solution.variances[0][0], variance, rtol=0, atol=1e-6)
        assert not solution.variances[1].any()


@pytest.mark.parametrize("solver", [TAP, MeanField])
def test_a_machine_of_any_size_settles_with_the_average_pixel(solver: type[LayeredMap]) -> None:
    """Among a million pixels one always moves: the residual is that of an image, whatever its size."""
    machine = ConvolutionalDBM.of(random_pyramid(1, 2, side=3, stride=1, seed=3), (3, 4), [(1, "spin")])
    start = torch.rand(1, 12, generator=seeded(2), dtype=torch.float64)
    once = solver(max_iter=1, damping=0.5).solve(machine, start)
    assert float(once.residual[0]) == pytest.approx(float((once.means[0] - start).abs().mean()), rel=1e-6)
    assert float((once.means[0] - start).abs().max()) > 1.2 * float(once.residual[0])
