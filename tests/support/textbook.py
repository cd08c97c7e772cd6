"""Formulas as a textbook writes them: belief propagation message by message, and log p(y | x) of channels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import forest_edges, random_rbm, seeded
from torch import Tensor

from restore.channels import BitFlip, Channel, GaussianNoise, Occlusion, SaltAndPepper
from restore.fields import Fields
from restore.priors import RBM
from restore.solvers import BeliefPropagation, Solution
from restore.solvers.messages import bp_kernel

needs_kernel = pytest.mark.skipif(bp_kernel.library() is None, reason="no C compiler that builds the fused kernel")

forms = pytest.mark.parametrize("form", ["plain", pytest.param("fused", marks=needs_kernel)])

kinds = pytest.mark.parametrize("kind", ["sum", "max", "mixed"])

# Absolute errors allowed for means and pairs, and for log Z: float64 in the plain form, float32 in the kernel.
CLOSE = {"plain": 1e-10, "fused": 2e-5}

CLOSE_LOG_Z = {"plain": 1e-9, "fused": 2e-4}


# --- the textbook ---


@dataclass
class Beliefs:
    """What one state of all messages says: means (images, units), pairs (images, D, H), two forms of log Z (images,).

    `bethe` is energy and entropy of the beliefs, right at fixed points; `log_partition` the same as a function of
    messages, which is defined for any.
    """

    visible: np.ndarray
    hidden: np.ndarray
    pairs: np.ndarray
    log_partition: np.ndarray
    bethe: np.ndarray


def total(logs: np.ndarray, axis: int = -1) -> np.ndarray:
    """Log of a sum."""
    return np.logaddexp.reduce(logs, axis)


def entropy(logs: np.ndarray) -> np.ndarray:
    return -(np.exp(logs) * logs).sum(-1)


def textbook(machine: RBM, kind: str, iterations: int, damping: float = 0.0) -> list[Beliefs]:
    """Beliefs after 1, 2, ... iterations of belief propagation on the factor graph, edge by edge.

    Nodes i, j with factors phi(x); edges with factors psi(x_i, x_j) = exp(w x_i x_j). Messages are pairs of logs.
    """
    biases = [layer.parameters["bias"].double() for layer in machine.layers]
    images = max([len(bias) for bias in biases if bias.dim() == 2], default=1)
    weights = machine.weights.double().expand(images, -1, -1).numpy()
    b, c = (bias.expand(images, -1).numpy() for bias in biases)
    rows, columns = range(b.shape[1]), range(c.shape[1])
    phi_v, phi_h = ([np.stack([np.zeros(images), one], -1) for one in bias.T] for bias in (b, c))
    # psi[image, v, h]; what a factor sends to its visible and to its hidden node.
    psi = {(i, j): np.zeros((images, 2, 2)) for i in rows for j in columns}
    for i, j in psi:
        psi[i, j][:, 1, 1] = weights[:, i, j]
    down: dict[tuple[int, int], np.ndarray] = {}
    up = {edge: np.zeros((images, 2)) for edge in psi}
    reduce_ = np.max if kind == "max" else total

    def to_factor_from_hidden(i: int, j: int) -> np.ndarray:
        return phi_h[j] + sum((up[other, j] for other in rows if other != i), np.zeros(2))

    def to_factor_from_visible(i: int, j: int) -> np.ndarray:
        return phi_v[i] + sum((down[i, other] for other in columns if other != j), np.zeros(2))

    def all_down() -> None:
        for i, j in psi:
            arriving = to_factor_from_hidden(i, j)
            message = np.stack([reduce_(psi[i, j][:, v] + arriving, axis=-1) for v in (0, 1)], -1)
            down[i, j] = message - total(message)[:, None]

    def all_up() -> None:
        sent = {}
        for i, j in psi:
            arriving = to_factor_from_visible(i, j)
            if kind == "mixed":
                # Only the value that maximises the belief is summed over (Liu & Ihler 2013); of a tie, the value 0.
                belief = arriving + down[i, j]
                best = belief[:, 1] > belief[:, 0]
                message = np.where(best[:, None], psi[i, j][:, 1], psi[i, j][:, 0])
            else:
                message = np.stack([reduce_(psi[i, j][:, :, h] + arriving, axis=-1) for h in (0, 1)], -1)
            # Messages may have any common factor; damping mixes them as (0, log-odds).
            sent[i, j] = (1 - damping) * (message - message[:, :1]) + damping * up[i, j]
        up.update(sent)

    def beliefs() -> Beliefs:
        at_v = [phi_v[i] + sum(down[i, j] for j in columns) for i in rows]
        at_h = [phi_h[j] + sum(up[i, j] for i in rows) for j in columns]
        log_z = sum(map(total, at_v)) + sum(map(total, at_h))
        belief_v, belief_h = ([values - total(values)[:, None] for values in at] for at in (at_v, at_h))
        bethe = np.zeros(images)
        for i in rows:
            bethe += (np.exp(belief_v[i]) * phi_v[i]).sum(-1) + (1 - len(columns)) * entropy(belief_v[i])
        for j in columns:
            bethe += (np.exp(belief_h[j]) * phi_h[j]).sum(-1) + (1 - len(rows)) * entropy(belief_h[j])
        pairs = np.zeros_like(weights)
        for i, j in psi:
            n_v, n_h = to_factor_from_visible(i, j), to_factor_from_hidden(i, j)
            joint = (psi[i, j] + n_v[:, :, None] + n_h[:, None, :]).reshape(images, 4)
            log_z = log_z + total(joint) - total(n_v + down[i, j]) - total(n_h + up[i, j])
            joint = joint - total(joint)[:, None]
            bethe += weights[:, i, j] * np.exp(joint[:, 3]) + entropy(joint)
            pairs[:, i, j] = np.exp(joint[:, 3])
        ones = [np.stack([np.exp(belief[:, 1]) for belief in layer], -1) for layer in (belief_v, belief_h)]
        return Beliefs(*ones, pairs, log_z, bethe)

    trace = []
    all_down()
    for _ in range(iterations):
        all_up()
        all_down()
        trace.append(beliefs())
    return trace


def log_weight(machine: RBM, row: int, visible: np.ndarray, hidden: np.ndarray) -> float:
    weights, b, c = numbers(machine, row)
    return float(visible @ b + hidden @ c + visible @ weights @ hidden)


def log_summed(machine: RBM, row: int, visible: np.ndarray) -> np.ndarray:
    """log sum_h of the weights of visible states (..., D)."""
    weights, b, c = numbers(machine, row)
    return visible @ b + np.logaddexp(0, visible @ weights + c).sum(-1)


def numbers(machine: RBM, row: int) -> tuple[np.ndarray, ...]:
    biases = (layer.parameters["bias"].double().numpy() for layer in machine.layers)
    return machine.weights.double().numpy(), *(bias[row] if bias.ndim == 2 else bias for bias in biases)


# --- machines and forms ---


def precision(machine: RBM, form: str) -> RBM:
    return machine.to(torch.float64 if form == "plain" else torch.float32)


def solve(machine: RBM, form: str, *, pairs: bool = False, **keys: Any) -> Solution:
    """In float64 by the plain form, or in float32 by the kernel."""
    return BeliefPropagation(**keys).solve(precision(machine, form), pairs=pairs)


def under_evidence(machine: RBM, images: int, strength: float = 1.0, seed: int = 5, both: bool = True) -> RBM:
    drawn = [
        Fields(strength * torch.randn(images, layer.size, generator=seeded(seed + at), dtype=torch.float64))
        for at, layer in enumerate(machine.layers)
    ]
    return machine.tilt(*(drawn if both else drawn[:1]))


def rounded(machine: RBM) -> RBM:
    """With parameters that float32 can hold, so that both precisions have the same problem."""
    return machine.to(torch.float32).to(torch.float64)


def forest(visible: int, hidden: int, seed: int, scale: float = 2.0, bias: float = 1.0) -> RBM:
    """A machine whose weights that are not zero form a random forest."""
    machine = random_rbm(visible, hidden, scale=scale, bias=bias, seed=seed)
    kept = torch.rand(visible, hidden, generator=seeded(seed)) < 0.9
    return rounded(with_values(machine, machine.weights * forest_edges(visible, hidden, seed) * kept))


def with_values(machine: RBM, weights: Tensor | None = None, **biases: Tensor) -> RBM:
    named = machine.parameters
    return machine.with_parameters(
        {
            "weights.0": named["weights.0"] if weights is None else weights,
            "units.0.bias": biases.get("visible", named["units.0.bias"]),
            "units.1.bias": biases.get("hidden", named["units.1.bias"]),
        }
    )


def numpy_of(values: Tensor | None) -> np.ndarray:
    assert values is not None
    return values.double().numpy()


def agree(found: Tensor | np.ndarray | None, wanted: np.ndarray | Tensor, within: float) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=0, atol=within)


def same(one: Solution, other: Solution, within: float = 0.0) -> None:
    for a, b in zip((*one.means, one.log_partition), (*other.means, other.log_partition), strict=True):
        np.testing.assert_allclose(a, b, rtol=within, atol=within)
    assert torch.equal(one.iterations, other.iterations)
    assert torch.equal(one.status, other.status)
    if one.pairs is not None or other.pairs is not None:
        np.testing.assert_allclose(numpy_of(one.pairs), numpy_of(other.pairs), rtol=within, atol=within)


small = given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 10**6), st.sampled_from(["sum", "max", "mixed"]))

quick = settings(max_examples=20)


# --- log p(y | x) of each pixel by definition: what the evidence of channels is tested against ---


def log_likelihood(channel: Channel, y: Tensor, x: Tensor) -> Tensor:
    """log p(y_i | x_i) of observations y of images x, (batch, D): densities of noise, probabilities of all else."""
    if isinstance(channel, Occlusion):
        # A hidden pixel shows the paint with certainty, whatever it was.
        hidden = torch.as_tensor(channel.hidden, device=x.device)
        return torch.where(hidden, torch.zeros_like(x), log_likelihood(channel.noise, y, x))
    if isinstance(channel, BitFlip):
        p = _like(channel.probability, x)
        return torch.where(y == x, torch.log1p(-p), torch.log(p))
    if isinstance(channel, GaussianNoise):
        return _of_noise(_like(channel.sigma, x), y, x)
    assert isinstance(channel, SaltAndPepper)
    p, sigma = _like(channel.probability, x), _like(channel.noise.sigma, x)
    through = torch.log1p(-p) + _of_noise(sigma, y, x)
    # A pixel seen exactly may show black or white without an impulse.
    both = torch.where((sigma == 0) & (y == x), torch.log1p(-p / 2), torch.log(p / 2))
    return torch.where(((y == 0) | (y == 1)) & (p > 0), both, through)


def _of_noise(sigma: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """The log-density of y; where sigma is 0, its log-probability."""
    density = -((y - x) / sigma).square() / 2 - sigma.log() - math.log(2 * math.pi) / 2
    return torch.where(sigma > 0, density, torch.where(y == x, 0.0, -math.inf).to(x.dtype))


def _like(values: object, x: Tensor) -> Tensor:
    return torch.as_tensor(values, dtype=x.dtype, device=x.device)
