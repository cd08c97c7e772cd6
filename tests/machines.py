"""Small random machines for the tests, and their exact answers by going through every joint state.

The enumeration is plain numpy and shares no code with the package: it knows the energy function and nothing else.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from restore.priors import RBM, BoltzmannMachine, FullyVisible, LayeredPrior
from restore.units import Bernoulli

# Small matrices: threads only cost.
torch.set_num_threads(1)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


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


def with_weights(prior: BoltzmannMachine, factor: float) -> BoltzmannMachine:
    """The machine with all its couplings multiplied by a factor."""
    named = prior.parameters
    return prior.with_parameters(
        {name: value * factor if name.startswith("weights") else value for name, value in named.items()}
    )


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
    """log Z, E[x_l] per layer and E[x_l x_{l+1}^T] per coupling of one machine; and its joint distribution.

    The coupling of a fully visible machine joins layer 0 with itself: E[x_0 x_0^T].

    Attributes:
        states: every joint state, (states, units of all layers).
        probabilities: of each, (states,).
    """

    log_partition: float
    means: list[np.ndarray]
    pairs: list[np.ndarray]
    states: np.ndarray
    probabilities: np.ndarray


def brute_force(prior: BoltzmannMachine, row: int = 0) -> Truth:
    """All answers about a binary machine (of a batch of tilted machines, about the one in `row`)."""
    biases = []
    for layer in prior.layers:
        bias = layer.parameters["bias"].double().numpy()
        biases.append(bias[row] if bias.ndim == 2 else bias)
    couplings = [coupling.double().numpy() for coupling in prior.couplings]
    sizes = [len(bias) for bias in biases]
    states = np.array(list(itertools.product((0.0, 1.0), repeat=sum(sizes))))
    parts = np.split(states, np.cumsum(sizes)[:-1], axis=1)
    score = sum(part @ bias for part, bias in zip(parts, biases, strict=True))
    dense = isinstance(prior, FullyVisible)
    joined = [(parts[0], parts[0])] if dense else list(itertools.pairwise(parts))
    for (left, right), coupling in zip(joined, couplings, strict=True):
        score = score + np.einsum("si,ij,sj->s", left, np.triu(coupling) if dense else coupling, right)
    top = score.max()
    log_partition = top + np.log(np.exp(score - top).sum())
    probabilities = np.exp(score - log_partition)
    return Truth(
        float(log_partition),
        [probabilities @ part for part in parts],
        [np.einsum("s,si,sj->ij", probabilities, a, b) for a, b in joined],
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
