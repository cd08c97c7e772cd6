"""Convolutions against the dense coupling that they stand for, and convolutional RBMs against their definition."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from machines import random_features, seeded
from oracle import exact_moments
from torch import Tensor
from torch.autograd.functional import jacobian

from restore.couplings import Convolution, Dense
from restore.fields import Fields
from restore.priors import ConvolutionalRBM
from restore.priors.convolutional import squares
from restore.solvers import TAP

SHAPE, FEATURES, SIDE = (3, 4), 2, 3


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def convolution() -> Convolution:
    return Convolution(normal(FEATURES, 1, SIDE, SIDE, seed=0), SHAPE)


def states(count: int, seed: int) -> tuple[Tensor, Tensor]:
    below, above = convolution().sizes
    return normal(count, below, seed=seed), normal(count, above, seed=seed + 100)


def shared(features: int = FEATURES, side: int = SIDE) -> dict[str, Tensor]:
    return random_features(features, side, seed=1)


def of_weights(of_matrix: Tensor) -> Tensor:
    """A derivative in the weights, from that in the entries of the matrix that is made of them."""
    each = jacobian(lambda weights: Convolution(weights, SHAPE).matrix, convolution().weights)
    return torch.einsum("bh,bhfcij->fcij", of_matrix, each)


def test_each_feature_sees_every_place_in_the_same_way() -> None:
    coupling = convolution()
    rows, columns = SHAPE[0] + SIDE - 1, SHAPE[1] + SIDE - 1
    assert coupling.sizes == (12, FEATURES * rows * columns)
    seen = coupling.matrix.reshape(*SHAPE, FEATURES, rows, columns)
    for row, column, feature in itertools.product(range(SHAPE[0]), range(SHAPE[1]), range(FEATURES)):
        expected = torch.zeros(rows, columns, dtype=torch.float64)
        # The window whose lower right corner is at a pixel holds it there.
        expected[row : row + SIDE, column : column + SIDE] = coupling.weights[feature, 0].flip(0, 1)
        torch.testing.assert_close(seen[row, column, feature], expected)


@pytest.mark.parametrize(
    "of",
    [
        lambda coupling, below, above: coupling.up(below),
        lambda coupling, below, above: coupling.up(below[0]),
        lambda coupling, below, above: coupling.down(above),
        lambda coupling, below, above: coupling.down(above[0]),
        lambda coupling, below, above: coupling.interaction(below, above),
        lambda coupling, below, above: coupling.squared.up(below),
    ],
    ids=["up", "up-one", "down", "down-one", "interaction", "squared"],
)
def test_it_is_its_matrix(of: Callable[..., Tensor]) -> None:
    coupling = convolution()
    torch.testing.assert_close(of(coupling, *states(5, 4)), of(Dense(coupling.matrix), *states(5, 4)))


def test_its_statistics_are_those_of_its_matrix() -> None:
    coupling, means, variances = convolution(), states(5, 4), states(5, 5)
    dense = Dense(coupling.matrix)
    torch.testing.assert_close(coupling.product(*means), of_weights(dense.product(*means)))
    torch.testing.assert_close(coupling.statistics(*means), of_weights(dense.statistics(*means)))
    summed = coupling.product(*means, onto=coupling.weights.clone())
    torch.testing.assert_close(summed, coupling.weights + coupling.product(*means))
    result, expected = (each.tap_statistics(means, variances) for each in (coupling, dense))
    # Each entry of the matrix is one of the weights, or none, for which the matrix's statistics do not count.
    torch.testing.assert_close(result, of_weights(expected))


def test_centring_is_that_of_its_matrix() -> None:
    (below, above), gradient = states(2, 6), convolution()
    pairs = (below[0], below[1]), (above[0], above[1])
    change = gradient.weights - gradient.centred(*pairs).weights
    dense = Dense(gradient.matrix)
    torch.testing.assert_close(change, of_weights(dense.weights - dense.centred(*pairs).weights))


def test_a_pixel_beyond_the_border_is_neither_black_nor_white() -> None:
    """log p is that of units -1 and 1, of which those beyond the border are left out, up to a constant."""
    parts, (height, width) = shared(), (2, 3)
    machine = ConvolutionalRBM.of(parts, (height, width))
    images = torch.cartesian_prod(*[torch.tensor([0.0, 1.0]).double()] * (height * width))
    expected = torch.zeros(len(images)).double()
    for index, image in enumerate(images):
        spins = torch.zeros(height + 2 * SIDE - 2, width + 2 * SIDE - 2).double()
        spins[SIDE - 1 : -SIDE + 1, SIDE - 1 : -SIDE + 1] = 2 * image.reshape(height, width) - 1
        expected[index] = parts["units.0.bias"][0] * spins.sum()
        for row, column in itertools.product(range(height + SIDE - 1), range(width + SIDE - 1)):
            window = spins[row : row + SIDE, column : column + SIDE]
            for feature, bias in zip(squares(parts["weights.0"]), parts["units.1.bias"], strict=True):
                expected[index] += torch.log(2 * torch.cosh((feature * window).sum() + bias))
    log_p = -machine.free_energy(images)
    torch.testing.assert_close(log_p - log_p[0], expected - expected[0])


def test_evidence_survives_a_change_of_precision() -> None:
    machine = ConvolutionalRBM.of(shared(), SHAPE)
    evidence = Fields(normal(3, 12, seed=7))
    tilted = machine.tilt(evidence)
    images = (normal(3, 12, seed=8) > 0).double()
    torch.testing.assert_close(
        tilted.to(torch.float32).to(torch.float64).free_energy(images), tilted.free_energy(images), rtol=1e-5, atol=1e-4
    )


def test_its_parameters_make_it_again() -> None:
    machine = ConvolutionalRBM.of(shared(), SHAPE)
    assert {name: tuple(value.shape) for name, value in machine.parameters.items()} == {
        "weights.0": (FEATURES, SIDE * SIDE),
        "units.0.bias": (1,),
        "units.1.bias": (FEATURES,),
    }
    again = machine.with_parameters(machine.parameters)
    torch.testing.assert_close(again.couplings[0].matrix, machine.couplings[0].matrix)
    for one, other in zip(again.layers, machine.layers, strict=True):
        torch.testing.assert_close(one.parameters["bias"], other.parameters["bias"])


def test_the_solver_finds_its_marginals() -> None:
    """Weak couplings, for which TAP is wrong at third order only; with weights 0.1 that is below .01."""
    parts = {name: value / (10 if name == "weights.0" else 2) for name, value in shared(1, 2).items()}
    machine = ConvolutionalRBM.of(parts, (2, 3))
    solution = TAP(tol=1e-10).solve(machine)
    torch.testing.assert_close(solution.means[0][0], exact_moments(machine).visible, atol=0.01, rtol=0)
