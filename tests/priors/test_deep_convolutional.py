"""Strided convolutions against their definition, and convolutional deep machines against enumeration."""

from __future__ import annotations

import itertools

import pytest
import torch
from machines import random_pyramid, seeded
from torch import Tensor
from torch.autograd.functional import jacobian

from restore.couplings import Dense, Strided
from restore.fields import Fields
from restore.priors import ConvolutionalDBM
from restore.priors.exact import binary_states
from restore.solvers import TAP, MeanField

# Features, channels, side, stride, and the grid below: sides that are a multiple of the stride, and not.
GRIDS = [(2, 1, 6, 2, (3, 5)), (2, 3, 6, 2, (4, 5)), (2, 2, 3, 1, (2, 3)), (1, 1, 9, 3, (4, 6))]
every_grid = pytest.mark.parametrize(("features", "channels", "side", "stride", "shape"), GRIDS)


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def strided(features: int, channels: int, side: int, stride: int, shape: tuple[int, int]) -> Strided:
    return Strided(normal(features, channels, side, side, seed=0), shape, stride)


@every_grid
def test_each_feature_sees_every_few_places_in_the_same_way(
    features: int, channels: int, side: int, stride: int, shape: tuple[int, int]
) -> None:
    coupling = strided(features, channels, side, stride, shape)
    rows, columns = (-(-size // stride) for size in shape)
    assert (coupling.places, coupling.sizes[1]) == ((rows, columns), rows * columns * features)
    expected = torch.zeros(*shape, channels, rows, columns, features, dtype=torch.float64)
    reach = (side - stride) // 2
    for row, column, down, right in itertools.product(range(rows), range(columns), range(side), range(side)):
        at = row * stride - reach + down, column * stride - reach + right
        if all(0 <= place < size for place, size in zip(at, shape, strict=True)):
            expected[at[0], at[1], :, row, column] = coupling.weights[:, :, down, right].T
    torch.testing.assert_close(coupling.matrix, expected.reshape(coupling.sizes))


@every_grid
def test_a_strided_convolution_is_its_matrix(
    features: int, channels: int, side: int, stride: int, shape: tuple[int, int]
) -> None:
    coupling = strided(features, channels, side, stride, shape)
    below, above = (normal(4, size, seed=seed) for seed, size in enumerate(coupling.sizes, 1))
    for one, dense in ((coupling, Dense(coupling.matrix)), (coupling.squared, Dense(coupling.matrix**2))):
        torch.testing.assert_close(one.up(below), dense.up(below))
        torch.testing.assert_close(one.down(above), dense.down(above))
        torch.testing.assert_close(one.down(above[0]), dense.down(above[0]))
        torch.testing.assert_close(one.interaction(below, above), dense.interaction(below, above))
    each = jacobian(lambda weights: coupling.with_weights(weights).matrix, coupling.weights)
    wanted = torch.einsum("ba,bafcij->fcij", Dense(coupling.matrix).product(below, above), each)
    torch.testing.assert_close(coupling.product(below, above), wanted)


def energies(parts: dict[str, Tensor], shape: tuple[int, int], stride: int, states: list[Tensor]) -> Tensor:
    """Minus the exponents of spins of -1 and 1, of which those beyond the border are left out; pixels are centred."""
    grid, total = shape, torch.zeros(len(states[0]), dtype=torch.float64)
    spins = [2 * state - 1 for state in states]
    centred = [2 * (states[0] - parts["units.0.centre"]), *spins[1:]]
    for layer, (below, above) in enumerate(itertools.pairwise(centred)):
        weights = parts[f"weights.{layer}"]
        coupling = Strided(weights / weights.shape[1], grid, stride)
        total += torch.einsum("nb,ba,na->n", below, coupling.matrix, above)
        grid = coupling.places
    for layer, spin in enumerate(spins):
        total += (spin * parts[f"units.{layer}.bias"].repeat(spin.shape[1] // len(parts[f"units.{layer}.bias"]))).sum(1)
    return -total


def enumerated(machine: ConvolutionalDBM) -> tuple[list[Tensor], Tensor]:
    sizes = [layer.size for layer in machine.layers]
    every = binary_states(sum(sizes), machine.couplings[0].weights)
    states = list(every.split(sizes, 1))
    return states, machine.energy(states)


def test_a_unit_beyond_the_border_is_neither_black_nor_white() -> None:
    parts, shape = random_pyramid(1, 2, 2, side=6, stride=2, seed=1), (2, 3)
    machine = ConvolutionalDBM.of(parts, shape, 2)
    states, found = enumerated(machine)
    assert [state.shape[1] for state in states] == [6, 4, 2]
    expected = energies(parts, shape, 2, states)
    torch.testing.assert_close(found - found[0], expected - expected[0])


@pytest.mark.parametrize(("solver", "order"), [(MeanField, 2), (TAP, 3)])
def test_its_marginals_are_those_of_enumeration_up_to_the_order_of_the_solver(
    solver: type[MeanField | TAP], order: int
) -> None:
    """Halving all couplings divides the error of means by almost two to the power of the first order left out."""
    errors = []
    for scale in (0.04, 0.02):
        parts = random_pyramid(1, 2, 2, side=6, stride=2, scale=scale, seed=3)
        machine = ConvolutionalDBM.of(parts, (2, 3), 2)
        states, energy = enumerated(machine)
        exact = torch.softmax(-energy, 0) @ states[0]
        solved = solver(tol=1e-13, max_iter=5000).solve(machine)
        errors.append((solved.means[0][0] - exact).abs().max())
    assert errors[0] > 1.6 * 2 ** (order - 1) * errors[1]


def test_mean_field_without_damping_raises_its_bound_at_every_iteration() -> None:
    """Odd and even layers are independent given each other, so that every update is a maximum of the bound."""
    machine = ConvolutionalDBM.of(random_pyramid(1, 3, 2, side=6, stride=2, scale=0.5, seed=4), (5, 4), 2)
    states, bounds = MeanField(damping=0.0).init(machine, torch.full((1, 20), 0.5, dtype=torch.float64)), []
    for _ in range(10):
        states = MeanField(damping=0.0).step(machine, states)
        # As a functional of means, not only at a fixed point: their entropies and the expected exponent.
        means = list(states[:3])
        entropy = sum(torch.special.entr(mean).sum() + torch.special.entr(1 - mean).sum() for mean in means)
        bounds.append(float(entropy - machine.energy(means)))
    assert all(later >= earlier - 1e-9 for earlier, later in itertools.pairwise(bounds)) and bounds[-1] > bounds[0]


def test_its_parameters_make_it_again_and_evidence_survives_a_change_of_precision() -> None:
    parts = random_pyramid(1, 2, 3, side=3, stride=1, seed=5)
    machine = ConvolutionalDBM.of(parts, (3, 4), 1)
    again = machine.with_parameters(machine.parameters)
    assert again.parameters.keys() == parts.keys()
    for one, other in zip(again.layers, machine.layers, strict=True):
        torch.testing.assert_close(one.parameters["bias"], other.parameters["bias"])
    tilted = machine.tilt(Fields(normal(3, 12, seed=7)))
    states = [(normal(3, layer.size, seed=8) > 0).double() for layer in machine.layers]
    single = tilted.to(torch.float32).to(torch.float64)
    torch.testing.assert_close(single.energy(states), tilted.energy(states), rtol=1e-5, atol=1e-3)
