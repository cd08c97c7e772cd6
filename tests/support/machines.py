"""Small random machines for the tests, and their exact answers by going through every joint state.

The enumeration is plain numpy and shares no code with the package: it knows the energy function and nothing else. Units
on an interval are enumerated too, at the nodes of a quadrature.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from restore.fields import Fields
from restore.priors import RBM, BoltzmannMachine, FullyVisible, LayeredPrior
from restore.solvers import TAP, MeanField, Solution
from restore.units import Bernoulli, Gaussian, Spiked, Spin, TruncatedGaussian, Units

# Small matrices: threads only cost.
torch.set_num_threads(1)

# How well fixed points need to be solved for finite differences of log Z: it is stationary there, so that its error is
# the square of this tolerance.
FLAT = 1e-9


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_pyramid(*channels: int, side: int, stride: int, scale: float = 0.5, seed: int = 0) -> dict[str, Tensor]:
    """What a deep convolutional machine shares, with channels of each layer, the image's first, and normal values.

    Its sides are odd multiples of its stride.
    """
    draw = seeded(seed)
    assert side % (2 * stride) == stride
    parts = {
        f"weights.{layer}": scale * torch.randn(above, below, side, side, generator=draw, dtype=torch.float64)
        for layer, (below, above) in enumerate(itertools.pairwise(channels))
    }
    biases = {
        f"units.{layer}.bias": 0.7 * torch.randn(count, generator=draw, dtype=torch.float64)
        for layer, count in enumerate(channels)
    }
    return parts | biases | {"units.0.centre": torch.full((1,), 0.2, dtype=torch.float64)}


def random_rbm(
    visible: int,
    hidden: int,
    *,
    scale: float = 1.0,
    bias: float = 0.7,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> RBM:
    """A binary RBM with normal weights and biases of the given standard deviations."""
    draw = seeded(seed)
    weights, visible_bias, hidden_bias = (
        torch.randn(shape, generator=draw, dtype=torch.float64) for shape in ((visible, hidden), (visible,), (hidden,))
    )
    return RBM.binary((scale * weights).to(dtype), (bias * visible_bias).to(dtype), (bias * hidden_bias).to(dtype))


def random_deep(*sizes: int, scale: float = 1.0, bias: float = 0.7, seed: int = 0) -> LayeredPrior:
    """A binary machine with several hidden layers."""
    draw = seeded(seed)
    layers = tuple(Bernoulli(bias * torch.randn(size, generator=draw, dtype=torch.float64)) for size in sizes)
    couplings = tuple(
        scale * torch.randn(pair, generator=draw, dtype=torch.float64) for pair in itertools.pairwise(sizes)
    )
    return LayeredPrior(layers, couplings)


def random_fully_visible(
    size: int, *, scale: float = 1.0, bias: float = 0.7, seed: int = 0, dtype: torch.dtype = torch.float64
) -> FullyVisible:
    """A fully visible machine with normal couplings and biases of the given standard deviations."""
    draw = seeded(seed)
    upper = torch.randn(size, size, generator=draw, dtype=torch.float64).triu(1)
    biases = torch.randn(size, generator=draw, dtype=torch.float64)
    return FullyVisible.binary((scale * (upper + upper.T)).to(dtype), (bias * biases).to(dtype))


def forest_edges(visible: int, hidden: int, seed: int) -> Tensor:
    """A mask of edges without loops, as many as there can be, (visible, hidden)."""
    edges = list(itertools.product(range(visible), range(hidden)))
    tree = list(range(visible + hidden))
    mask = torch.zeros(visible, hidden, dtype=torch.float64)
    for index in torch.randperm(len(edges), generator=seeded(seed)).tolist():
        i, j = edges[index]
        first, second = tree[i], tree[visible + j]
        if first != second:
            mask[i, j] = 1
            tree = [first if label == second else label for label in tree]
    assert int(mask.sum()) == visible + hidden - 1
    return mask


def with_weights(prior: BoltzmannMachine, factor: float) -> BoltzmannMachine:
    """The machine with all its couplings multiplied by a factor."""
    named = prior.parameters
    return prior.with_parameters(
        {name: value * factor if name.startswith("weights") else value for name, value in named.items()}
    )


def random_units(kind: str, size: int, draw: torch.Generator) -> Units:
    """Units of a type by name, with biases of standard deviation .7; slabs have curvatures in [1, 3)."""
    bias, presence = 0.7 * torch.randn(2, size, generator=draw, dtype=torch.float64)
    quadratic = 1 + 2 * torch.rand(size, generator=draw, dtype=torch.float64)
    slabs = {
        "gaussian": Gaussian(bias, quadratic),
        "truncated": TruncatedGaussian(bias, quadratic - 2),
        "symmetric": TruncatedGaussian(bias, quadratic - 2, -1.0, 1.0),
    }
    plain = {"bernoulli": Bernoulli(bias), "spin": Spin(bias), **slabs}
    return Spiked(presence, slabs[kind.removeprefix("spiked-")]) if kind.startswith("spiked-") else plain[kind]


def random_machine(*layers: tuple[str, int], scale: float = 0.5, seed: int = 0) -> LayeredPrior:
    """A machine of layers (kind, size), see `random_units`, with normal couplings; an RBM where they are two."""
    draw = seeded(seed)
    units = tuple(random_units(kind, size, draw) for kind, size in layers)
    couplings = tuple(
        scale * torch.randn(left.size, right.size, generator=draw, dtype=torch.float64)
        for left, right in itertools.pairwise(units)
    )
    return (RBM if len(units) == 2 else LayeredPrior)(units, couplings)


# One of each shape, small enough to go through all joint states.
SMALL: dict[str, BoltzmannMachine] = {
    "rbm": random_rbm(5, 4, seed=3),
    "tilted": random_rbm(4, 5, seed=4).tilt(Fields(torch.tensor([[3.0, -2.0, 0.5, 1.0]]).double())),
    "three-layers": random_deep(4, 3, 3, seed=5),
    "four-layers": random_deep(3, 3, 2, 3, seed=6),
    "fully-visible": random_fully_visible(7, seed=7),
    "fully-visible-tilted": random_fully_visible(6, seed=8).tilt(
        Fields(torch.tensor([[3.0, -2.0, 0.5, 1.0, 0.0, -1.0]]).double())
    ),
}


def of_shapes(*shapes: str) -> pytest.MarkDecorator:
    """Hands a test each of these machines of `SMALL` as `machine`."""
    return pytest.mark.parametrize("machine", [SMALL[shape] for shape in shapes], ids=shapes)


def two_patterns(size: int = 12, strength: float = 0.6, tilt: float = -0.2) -> tuple[RBM, Tensor]:
    """A machine with two opposite modes, as in a Hopfield network of one pattern, and the patterns (2, size).

    Many weak couplings make its modes, which is what mean-field methods are for; `tilt` is half the difference that
    each pixel's bias makes between the patterns.
    """
    visible = torch.where(torch.arange(size) % 2 == 1, 1.0, -1.0).double()
    hidden = torch.where(torch.arange(size) % 3 == 0, 1.0, -1.0).double()
    weights = strength * torch.outer(visible, hidden)
    # These biases make both patterns, and both answers of the hidden units to them, equally probable.
    machine = RBM.binary(weights, tilt * visible - weights.sum(1) / 2, -weights.sum(0) / 2)
    return machine, torch.stack([(1 + visible) / 2, (1 - visible) / 2])


@dataclass(frozen=True)
class Truth:
    """log Z, mean and variance of x_l per layer and E[x_l x_{l+1}^T] per coupling of a machine; its joint distribution.

    The coupling of a fully visible machine joins layer 0 with itself: E[x_0 x_0^T].

    Attributes:
        states: every joint state, (states, units of all layers).
        probabilities: of each, (states,).
    """

    log_partition: float
    means: list[np.ndarray]
    variances: list[np.ndarray]
    pairs: list[np.ndarray]
    states: np.ndarray
    probabilities: np.ndarray


def errors(solution: Solution, log_partition: float, means: Sequence[np.ndarray]) -> tuple[float, float]:
    """How far the solution of one image is from log Z, and at most from a mean."""
    found = np.concatenate([mean[0].numpy() for mean in solution.means])
    return abs(float(solution.log_partition) - log_partition), float(np.abs(found - np.concatenate(means)).max())


def orders(values: Sequence[tuple[float, float]]) -> list[float]:
    """The powers with which the last two of a series of errors fell, their argument having been halved."""
    return [math.log2(before / after) for before, after in zip(*values[-2:], strict=True)]


def values_of(units: Units, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The values of a unit, and the logs of the measure of each: 0 for a single value, else a quadrature's weight."""
    match units:
        case Bernoulli():
            return np.array([0.0, 1.0]), np.zeros(2)
        case Spin():
            return np.array([-1.0, 1.0]), np.zeros(2)
        case TruncatedGaussian():
            places, weights = np.polynomial.legendre.leggauss(nodes)
            half = (units.high - units.low) / 2
            return (units.low + units.high) / 2 + half * places, np.log(half * weights)
        case Gaussian():
            # Equal steps converge exponentially; none of them is at 0.
            places = np.linspace(-9.05, 9, 3 * nodes)
            return places, np.full(len(places), np.log(places[1] - places[0]))
        case Spiked():
            places, measure = values_of(units.slab, nodes)
            return np.concatenate([[0.0], places]), np.concatenate([[0.0], measure])
    raise TypeError(units)


def brute_force(prior: BoltzmannMachine, row: int = 0, nodes: int = 16) -> Truth:
    """All answers about a machine (of a batch of tilted machines, about the one in `row`).

    Units on an interval take so many values, those on the whole line three times as many.
    """
    couplings = [coupling.matrix.double().numpy() for coupling in prior.couplings]
    sizes = [layer.size for layer in prior.layers]
    values, log_weights = [], []
    for layer in prior.layers:
        own = {name: value.double().numpy() for name, value in layer.parameters.items()}
        own = {name: value[row] if value.ndim == 2 else value for name, value in own.items()}
        places, measure = values_of(layer, nodes)
        for unit in range(layer.size):
            weight = own["bias"][unit] * places
            if "quadratic" in own:
                weight = weight - own["quadratic"][unit] * places**2 / 2
            if "presence" in own:
                weight = weight + own["presence"][unit] * (places != 0)
            values.append(places)
            log_weights.append(weight + measure)
    codes = np.indices([len(places) for places in values]).reshape(len(values), -1)
    states = np.stack([places[code] for places, code in zip(values, codes, strict=True)], 1)
    score = sum(weight[code] for weight, code in zip(log_weights, codes, strict=True))
    parts = np.split(states, np.cumsum(sizes)[:-1], axis=1)
    dense = isinstance(prior, FullyVisible)
    joined = [(parts[0], parts[0])] if dense else list(itertools.pairwise(parts))
    for (left, right), coupling in zip(joined, couplings, strict=True):
        score = score + ((left @ (np.triu(coupling) if dense else coupling)) * right).sum(1)
    top = score.max()
    log_partition = top + np.log(np.exp(score - top).sum())
    probabilities = np.exp(score - log_partition)
    means = [probabilities @ part for part in parts]
    return Truth(
        float(log_partition),
        means,
        [probabilities @ (part - mean) ** 2 for part, mean in zip(parts, means, strict=True)],
        [(a * probabilities[:, None]).T @ b for a, b in joined],
        states,
        probabilities,
    )


def numerical_gradient(function, value: Tensor, step: float = 1e-5) -> Tensor:
    """Central finite differences of a scalar function in every entry of a tensor."""
    gradient = torch.zeros_like(value)
    flat = gradient.view(-1)
    for index in range(value.numel()):
        shift = torch.zeros_like(value).view(-1)
        shift[index] = step
        shift = shift.view_as(value)
        flat[index] = (float(function(value + shift)) - float(function(value - shift))) / (2 * step)
    return gradient


def numerical_gradients(function, prior: BoltzmannMachine, step: float = 1e-5) -> dict[str, Tensor]:
    """Finite differences of a scalar function of a machine in each of its parameters."""
    named = prior.parameters
    return {
        name: numerical_gradient(
            lambda moved, name=name: function(prior.with_parameters(named | {name: moved})), value, step
        )
        for name, value in named.items()
    }


def bars_and_stripes(size: int) -> Tensor:
    """Every image whose rows, or whose columns, are each of one colour; (2 * 2**size - 2, size * size)."""
    images = set()
    for bits in itertools.product((0.0, 1.0), repeat=size):
        rows = np.repeat(np.array(bits)[:, None], size, axis=1)
        images |= {tuple(rows.ravel()), tuple(rows.T.ravel())}
    return torch.tensor(sorted(images), dtype=torch.float32)


def random_evidence(batch: int, size: int, strength: float = 2.0, seed: int = 9) -> Fields:
    linear = strength * torch.randn(batch, size, generator=seeded(seed), dtype=torch.float64)
    return Fields(linear, torch.rand(batch, size, generator=seeded(seed + 1), dtype=torch.float64))


def gaussian_machine(sizes: tuple[int, ...], scale: float) -> tuple[LayeredPrior, Tensor, Tensor]:
    """A machine of Gaussian units; its joint precision and bias."""
    draw = seeded(4)
    total = sum(sizes)
    bias, variances = torch.randn(total, generator=draw).double(), 1 + torch.rand(total, generator=draw).double()
    couplings = tuple(scale * torch.randn(pair, generator=draw).double() for pair in pairwise(sizes))
    layers = tuple(Gaussian(*parts) for parts in zip(bias.split(sizes), variances.split(sizes), strict=True))
    precision = torch.diag(variances)
    first = 0
    for coupling in couplings:
        low, high = coupling.shape
        rows, columns = slice(first, first + low), slice(first + low, first + low + high)
        precision[rows, columns], precision[columns, rows] = -coupling, -coupling.T
        first += low
    return LayeredPrior(layers, couplings), precision, bias


def gaussian_answers(precision: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Means, covariance and log Z of exp(bias x - x precision x / 2)."""
    covariance = torch.linalg.inv(precision)
    mean = covariance @ bias
    log_z = (len(bias) * np.log(2 * np.pi) - torch.logdet(precision) + bias @ mean) / 2
    return mean, covariance, log_z


both = pytest.mark.parametrize("kind", [MeanField, TAP], ids=["mean-field", "tap"])


def halves(machine: BoltzmannMachine, batch: int = 1) -> Tensor:
    return torch.full((batch, machine.layers[0].size), 0.5, dtype=machine.couplings[0].weights.dtype)
