"""Convolutions against their definition, and convolutional deep machines against enumeration."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import random_pyramid, seeded
from oracle import binary_states
from torch import Tensor
from torch.autograd.functional import jacobian

from restore.couplings import Convolution, Dense
from restore.errors import UsageError
from restore.families import Features, Spec
from restore.fields import Fields
from restore.priors import ConvolutionalDBM
from restore.priors.stability import stable
from restore.solvers import TAP, HardMeanField, MeanField

# Features, channels, side, stride, and the grid below: sides that are a multiple of the stride, and not.
GRIDS = [(2, 1, 6, 2, (3, 5)), (2, 3, 6, 2, (4, 5)), (2, 2, 3, 1, (2, 3)), (1, 1, 9, 3, (4, 6))]
every_grid = pytest.mark.parametrize(("features", "channels", "side", "stride", "shape"), GRIDS)


def kinds(stride: int) -> list[tuple[int, str]]:
    """Rectified features and spins above them, both so far apart."""
    return [(stride, "rectified"), (stride, "spin")]


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def convolution(features: int, channels: int, side: int, stride: int, shape: tuple[int, int]) -> Convolution:
    return Convolution(normal(features, channels, side, side, seed=0), shape, stride)


@every_grid
def test_each_feature_sees_every_few_places_in_the_same_way(
    features: int, channels: int, side: int, stride: int, shape: tuple[int, int]
) -> None:
    coupling = convolution(features, channels, side, stride, shape)
    rows, columns = (-(-size // stride) for size in shape)
    assert (coupling.places, coupling.sizes[1]) == ((rows, columns), rows * columns * features)
    expected = torch.zeros(channels, *shape, features, rows, columns, dtype=torch.float64)
    reach = (side - stride) // 2
    for row, column, down, right in itertools.product(range(rows), range(columns), range(side), range(side)):
        at = row * stride - reach + down, column * stride - reach + right
        if all(0 <= place < size for place, size in zip(at, shape, strict=True)):
            expected[:, at[0], at[1], :, row, column] = coupling.weights[:, :, down, right].T
    torch.testing.assert_close(coupling.matrix, expected.reshape(coupling.sizes))


@every_grid
def test_a_convolution_is_its_matrix(
    features: int, channels: int, side: int, stride: int, shape: tuple[int, int]
) -> None:
    coupling = convolution(features, channels, side, stride, shape)
    below, above = (normal(4, size, seed=seed) for seed, size in enumerate(coupling.sizes, 1))
    for one, dense in ((coupling, Dense(coupling.matrix)), (coupling.squared, Dense(coupling.matrix**2))):
        torch.testing.assert_close(one.up(below), dense.up(below))
        torch.testing.assert_close(one.down(above), dense.down(above))
        torch.testing.assert_close(one.down(above[0]), dense.down(above[0]))
        torch.testing.assert_close(one.interaction(below, above), dense.interaction(below, above))
    each = jacobian(lambda weights: coupling.with_weights(weights).matrix, coupling.weights)

    def of_weights(of_matrix: Tensor) -> Tensor:
        """A derivative in the weights, from that in the entries of the matrix that is made of them."""
        return torch.einsum("ba,bafcij->fcij", of_matrix, each)

    dense, means = Dense(coupling.matrix), (below, above)
    variances = dense.down(above), dense.up(below)
    torch.testing.assert_close(coupling.product(*means), of_weights(dense.product(*means)))
    torch.testing.assert_close(coupling.statistics(*means), of_weights(dense.statistics(*means)))
    summed = coupling.product(*means, onto=coupling.weights.clone())
    torch.testing.assert_close(summed, coupling.weights + coupling.product(*means))
    # Each entry of the matrix is one of the weights, or none, for which the matrix's statistics do not count.
    result, expected = (one.tap_statistics(means, variances) for one in (coupling, dense))
    torch.testing.assert_close(result, of_weights(expected))
    pairs = (below[0], below[1]), (above[0], above[1])
    change, other = (one.weights - one.centred(*pairs).weights for one in (coupling, dense))
    torch.testing.assert_close(change, of_weights(other))


def energies(parts: dict[str, Tensor], shape: tuple[int, int], stride: int, states: list[Tensor]) -> Tensor:
    """Minus the exponents of pixels of -1 and 1, centred, features of any size and spins; none beyond the border."""
    grid, (pixels, features, *spins) = shape, states
    total = -(features**2).sum(1) / 2
    below = 2 * (pixels - parts["units.0.centre"])
    for layer, above in enumerate([features, *spins]):
        coupling = Convolution(parts[f"weights.{layer}"], grid, stride)
        total += torch.einsum("nb,ba,na->n", below, coupling.matrix, above)
        below, grid = above, coupling.places
    for layer, state in enumerate([2 * pixels - 1, features, *spins]):
        bias = parts[f"units.{layer}.bias"]
        total += state @ bias.repeat_interleave(state.shape[1] // len(bias))
    return -total


def drawn_states(machine: ConvolutionalDBM, count: int) -> list[Tensor]:
    pixels, features, *spins = (normal(count, layer.size, seed=index) for index, layer in enumerate(machine.layers, 8))
    return [(pixels > 0).double(), features.abs(), *(spin.sign() for spin in spins)]


def test_a_unit_beyond_the_border_is_neither_black_nor_white() -> None:
    parts, shape = random_pyramid(1, 2, 2, side=6, stride=2, seed=1), (2, 3)
    machine = ConvolutionalDBM.of(parts, shape, kinds(2))
    states = drawn_states(machine, 50)
    assert [state.shape[1] for state in states] == [6, 4, 2]
    result, expected = machine.energy(states), energies(parts, shape, 2, states)
    torch.testing.assert_close(result - result[0], expected - expected[0])


def exact_pixels(machine: ConvolutionalDBM) -> Tensor:
    """The share of white of each pixel, over all pixels and spins; features, independent given both, in closed form."""
    sizes = [layer.size for layer in machine.layers]
    every = binary_states(sizes[0] + sum(sizes[2:]), machine.couplings[0].weights)
    pixels, *spins = every.split([sizes[0], *sizes[2:]], 1)
    spins = [2 * spin - 1 for spin in spins]
    nothing = torch.zeros(len(every), sizes[1], dtype=every.dtype)
    field = Fields(machine.inputs(1, [pixels, nothing, *spins]))
    weight = machine.layers[1].log_partition(field).sum(1) - machine.energy([pixels, nothing, *spins])
    return torch.softmax(weight, 0) @ pixels


@pytest.mark.parametrize(("solver", "order"), [(MeanField, 2), (TAP, 3)])
def test_its_marginals_are_those_of_enumeration_up_to_the_order_of_the_solver(
    solver: type[MeanField | TAP], order: int
) -> None:
    """Halving all couplings divides the error of means by almost two to the power of the first order left out."""
    errors = []
    for scale in (0.04, 0.02):
        parts = random_pyramid(1, 2, 2, side=6, stride=2, scale=scale, seed=3)
        machine = ConvolutionalDBM.of(parts, (2, 3), kinds(2))
        solved = solver(tol=1e-13, max_iter=5000).solve(machine)
        errors.append((solved.means[0][0] - exact_pixels(machine)).abs().max())
    assert errors[0] > 1.6 * 2 ** (order - 1) * errors[1]


@pytest.mark.parametrize("solver", [MeanField, HardMeanField])
def test_without_damping_every_iteration_raises_the_bound(solver: type[MeanField]) -> None:
    """Odd and even layers are independent given each other, so that every update is a maximum of the bound."""
    parts = random_pyramid(1, 3, 2, side=6, stride=2, scale=0.1, seed=4)
    machine, bounds = ConvolutionalDBM.of(parts, (5, 4), kinds(2)), []
    states = solver(damping=0.0).init(machine, torch.full((1, 20), 0.5, dtype=torch.float64))
    for _ in range(10):
        states = solver(damping=0.0).step(machine, states)
        pixels, features, spins = states[:3]
        up = (1 + spins) / 2
        bound = sum(torch.special.entr(share).sum() for share in (pixels, 1 - pixels, up, 1 - up))
        if solver is HardMeanField:
            bound = bound - machine.energy([pixels, features, spins])
        else:
            # Entropy and mean log-weight of a feature under the field that gave it its mean: the pixels' are newer, so
            # the maximum over the features' fields is taken, which they have at the next half iteration.
            field = machine.inputs(1, [pixels, features, spins])
            nothing = torch.zeros_like(features)
            bound = (
                bound + machine.layers[1].log_partition(Fields(field)).sum() - machine.energy([pixels, nothing, spins])
            )
        bounds.append(float(bound))
    assert all(later >= earlier - 1e-9 for earlier, later in itertools.pairwise(bounds)) and bounds[-1] > bounds[0]


def test_at_a_fixed_point_no_state_of_a_feature_raises_the_bound_of_hard_mean_field() -> None:
    machine = ConvolutionalDBM.of(random_pyramid(1, 3, 2, side=6, stride=2, scale=0.1, seed=4), (5, 4), kinds(2))
    solution = HardMeanField(tol=1e-13, max_iter=5000, damping=0.0).solve(machine)
    pixels, features, spins = solution.means
    for variance, expected in zip(solution.variances, (pixels - pixels**2, 0 * features, 1 - spins**2), strict=True):
        torch.testing.assert_close(variance, expected)
    up = (1 + spins) / 2
    entropy = sum(torch.special.entr(share).sum() for share in (pixels, 1 - pixels, up, 1 - up))

    def bound(values: Tensor) -> float:
        return float(entropy - machine.energy([pixels, values, spins]))

    assert bound(features) == pytest.approx(float(solution.log_partition), abs=1e-9)
    moves = 0.01 * normal(200, features.shape[1], seed=3)
    assert all(bound((features + move).clamp_min(0)) <= bound(features) for move in moves)


def small(*layers: Features, shape: tuple[int, int], scale: float) -> ConvolutionalDBM:
    spec = Spec(family="deep_convolutional", layers=layers)
    spec.check(shape)
    parts = {name: scale * normal(*size, seed=len(name)) for name, size in spec.kind.shapes(spec, shape).items()}
    return spec.kind.machine(spec, shape, parts | {"units.0.centre": torch.full((1,), 0.2, dtype=torch.float64)})


def test_layers_of_every_type_have_the_marginals_of_enumeration() -> None:
    """Two clipped layers, one above the other, beside spins: on an interval the sum is a quadrature."""
    errors = []
    for scale in (0.1, 0.05):
        layers = (
            Features(1, 1, 1, "truncated-gaussian"),
            Features(1, 3, 1, "spin"),
            Features(1, 2, 2, "truncated-gaussian"),
        )
        machine = small(*layers, shape=(1, 2), scale=scale)
        exact = enumerated(machine)
        solved = MeanField(tol=1e-13, max_iter=5000).solve(machine)
        errors.append((solved.means[0][0] - exact).abs().max())
    assert errors[0] > 3.2 * errors[1] > 0


def enumerated(machine: ConvolutionalDBM, nodes: int = 10) -> Tensor:
    """The share of white of each pixel, over all states; clipped units take the nodes of Gauss and Legendre."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    unit = [((1 + point) / 2, weight / 2) for point, weight in zip(points, weights, strict=True)]
    values = {(0.0, 1.0): unit, (-1.0, 1.0): [(-1.0, 1.0), (1.0, 1.0)]}
    each = []
    for index, layer in enumerate(machine.layers):
        each += [[(0.0, 1.0), (1.0, 1.0)] if index == 0 else values[layer.support]] * layer.size
    grid = torch.tensor([*itertools.product(*each)], dtype=torch.float64)
    states = grid[..., 0].split([layer.size for layer in machine.layers], 1)
    share = torch.softmax(grid[..., 1].log().sum(1) - machine.energy(states), 0)
    return share @ states[0]


def test_rectified_layers_are_not_neighbours() -> None:
    """Their joint energy would have no bound; a spin between them, or a clipped feature, gives it one."""
    spec = Spec(family="deep_convolutional", layers=(Features(2, 3, 1, "rectified"), Features(2, 3, 1, "rectified")))
    with pytest.raises(UsageError):
        spec.check()
    unbounded = spec.kind.machine(
        spec, (3, 3), {name: torch.ones(size) for name, size in spec.kind.shapes(spec, (3, 3)).items()}
    )
    assert not stable(unbounded)
    for units in ("spin", "truncated-gaussian"):
        layers = Features(2, 3, 1, "rectified"), Features(2, 3, 1, units), Features(2, 3, 1, "rectified")
        assert stable(small(*layers, shape=(3, 3), scale=9.0))


@pytest.mark.parametrize(
    "layer",
    [
        (0, 3, 1, "spin"),
        (2, 0, 1, "spin"),
        (2, 3, 0, "spin"),
        (2, 4, 1, "spin"),
        (2, 3, 2, "spin"),
        (2, 3, 1, "gaussian"),
    ],
)
def test_a_layer_that_there_is_not_is_refused(layer: tuple[int, int, int, str]) -> None:
    with pytest.raises(UsageError):
        Spec(family="deep_convolutional", layers=(Features(*layer),)).check()


def test_its_parameters_make_it_again_and_evidence_survives_a_change_of_precision() -> None:
    parts = random_pyramid(1, 2, 3, side=3, stride=1, seed=5)
    machine = ConvolutionalDBM.of(parts, (3, 4), kinds(1))
    again = machine.with_parameters(machine.parameters)
    assert again.parameters.keys() == parts.keys()
    for one, other in zip(again.layers, machine.layers, strict=True):
        torch.testing.assert_close(one.parameters["bias"], other.parameters["bias"])
    tilted = machine.tilt(Fields(normal(3, 12, seed=7)))
    states = drawn_states(machine, 3)
    single = tilted.to(torch.float32).to(torch.float64)
    torch.testing.assert_close(single.energy(states), tilted.energy(states), rtol=1e-5, atol=1e-3)


def test_at_first_it_is_independent_pixels_with_couplings_of_the_scale_that_is_asked_for() -> None:
    layers = Features(64, 6, 2, "rectified"), Features(32, 6, 2, "spin"), Features(40, 3, 1, "rectified")
    spec = Spec(family="deep_convolutional", layers=layers)
    means = torch.tensor([0.1, 0.5])  # the share of white is .3

    def machine(scale: float) -> ConvolutionalDBM:
        made: ConvolutionalDBM = spec.kind.initial(spec, (6, 8), means, scale, seeded(3))
        return made

    alone = MeanField().solve(machine(0.0).tilt(Fields(torch.zeros(1, 48))))
    torch.testing.assert_close(alone.means[0], torch.full((1, 48), 0.3))
    # The scale is that of fields, whatever a feature sees.
    for name, seen in (("weights.0", 36), ("weights.1", 64 * 36), ("weights.2", 32 * 9)):
        weights = machine(0.7).shared[name]
        assert float(weights.std()) == pytest.approx(0.7 / seen**0.5, rel=0.1)
        assert float(weights.mean()) == pytest.approx(0.0, abs=0.02)


def informed(stride: int) -> Spec:
    """Three layers, of which two are as fine as the first."""
    finest = (Features(2, stride, stride, "rectified"), Features(3, 3, 1, "spin"))
    return Spec(family="informed_convolutional", layers=(*finest, Features(2, 2, 2, "spin")))


INFORMED = informed(1)


@given(
    seed=st.integers(0, 1000),
    strength=st.floats(0.0, 20.0),
    shape=st.sampled_from([(2, 4), (3, 5)]),
    stride=st.sampled_from([1, 2]),
)
@settings(max_examples=20, deadline=None)
def test_the_finest_layers_hear_what_is_known_of_the_image_around_each_place(
    seed: int, strength: float, shape: tuple[int, int], stride: int
) -> None:
    """Under evidence the energy falls by that of the pixels, and by each hidden unit times what its window holds."""
    spec, side = informed(stride), 3 * stride
    parts = {name: normal(*size, seed=seed) for name, size in spec.kind.shapes(spec, shape).items()}
    assert {name for name in parts if name.startswith("inputs")} == {"inputs.1", "inputs.2"}
    machine = spec.kind.machine(spec, shape, parts)
    odds = strength * normal(1, shape[0] * shape[1], seed=seed + 1).clamp(-1, 1)
    odds[0, 0] = 0  # hidden
    states = drawn_states(machine, 6)
    known = np.tanh(odds.numpy().reshape(shape) / 2)
    seen = np.pad(np.stack([known, abs(known)]), ((0, 0), (stride, side), (stride, side)))
    gain = (odds @ states[0].T)[0]
    places = [-(-size // stride) for size in shape]
    for layer in (1, 2):
        kernels, own = parts[f"inputs.{layer}"].numpy(), states[layer].reshape(6, -1, *places).numpy()
        for row, column in itertools.product(*map(range, places)):
            top, left = row * stride, column * stride
            heard = (kernels * seen[:, top : top + side, left : left + side]).sum((1, 2, 3))
            gain += torch.from_numpy(own[:, :, row, column] @ heard)
    # Noise told as precision is known as well.
    precision = normal(1, shape[0] * shape[1], seed=seed + 2).abs()
    for evidence in (Fields(odds), Fields(odds + precision / 2, precision)):
        under = machine.tilt(evidence)
        torch.testing.assert_close(machine.energy(states) - under.energy(states), gain)
        assert under.parameters.keys() == parts.keys()


def test_no_informed_layout_is_taken_whose_layers_would_hear_nothing() -> None:
    for family in ("informed_convolutional", "conditional_convolutional"):
        spec = Spec(family=family, layers=(Features(2, 9, 3, "rectified"), Features(3, 3, 1, "spin")))
        with pytest.raises(UsageError, match="stride of the first layer"):
            spec.check((9, 9))
        for stride in (1, 2):
            replace(spec, layers=informed(stride).layers).check((8, 8))


def test_without_evidence_they_hear_nothing() -> None:
    parts = {name: normal(*size, seed=3) for name, size in INFORMED.kind.shapes(INFORMED, (4, 4)).items()}
    machine = INFORMED.kind.machine(INFORMED, (4, 4), parts)
    states = drawn_states(machine, 3)
    torch.testing.assert_close(machine.tilt(Fields(torch.zeros(1, 16).double())).energy(states), machine.energy(states))
