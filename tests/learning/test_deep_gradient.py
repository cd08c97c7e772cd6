"""Learning machines with several hidden layers: both phases of their gradient, and its centred direction."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from directions import EXACTLY, assert_close, assert_slopes, moved_by, some_images
from machines import FLAT, numerical_gradients, random_deep, seeded
from oracle import binary_states
from torch import Tensor

from restore.learning.gradients.centring import centred
from restore.learning.rules.contract import Gradient
from restore.learning.rules.tap_likelihood import TAPLikelihood
from restore.priors import LayeredPrior
from restore.solvers import TAP

depths = pytest.mark.parametrize("sizes", [(5, 4, 3), (4, 3, 3, 2)], ids=["two-hidden-layers", "three"])
PRECISE: dict[str, Any] = {"max_iter": 5000, "tol": FLAT, "damping": 0.1}


def step_of(learner: TAPLikelihood, machine: LayeredPrior, images: Tensor) -> Gradient:
    return learner.step(machine, images, learner.init(machine, images, seeded()), seeded()).gradient


def tap_likelihood(machine: LayeredPrior, images: Tensor) -> Tensor:
    """Mean over images of TAP's log Z with the image clamped, minus that of the machine from each image."""
    clamped = TAP(**PRECISE).solve(machine.above(images), images.new_full((len(images), machine.layers[1].size), 0.5))
    free = TAP(**PRECISE).solve(machine, images)
    return (machine.layers[0].log_weight(images).sum(-1) + clamped.log_partition - free.log_partition).mean()


def likelihood(machine: LayeredPrior, images: Tensor) -> Tensor:
    """Exact mean log-likelihood."""
    sizes = [layer.size for layer in machine.layers]
    states = binary_states(sum(sizes), images)
    weight = -machine.energy(states.split(sizes, 1))
    same = (states[:, None, : sizes[0]] == images).all(-1)
    return torch.stack([weight[mine].logsumexp(0) for mine in same.T]).mean() - weight.logsumexp(0)


@pytest.mark.thorough
@depths
@pytest.mark.parametrize("starts", ["data", "redrawn"])
def test_gradient_is_that_of_the_tap_likelihood(sizes: tuple[int, ...], starts: Any) -> None:
    machine, images = random_deep(*sizes, scale=0.6), some_images(6, sizes[0])
    learner = TAPLikelihood(starts=starts, solutions=3, centring=False, **EXACTLY)
    assert_slopes(step_of(learner, machine, images), lambda moved: tap_likelihood(moved, images), machine, 1e-8)


@depths
def test_gradient_of_weak_couplings_is_the_exact_one(sizes: tuple[int, ...]) -> None:
    images, errors = some_images(6, sizes[0]), []
    for scale in (0.2, 0.1):
        machine = random_deep(*sizes, scale=scale, seed=3)
        got = step_of(TAPLikelihood(centring=False, **EXACTLY), machine, images)
        wanted = numerical_gradients(lambda moved: likelihood(moved, images), machine)
        errors.append(max(float((got[name] - wanted[name]).abs().max()) for name in wanted))
    # TAP leaves out the third order of log Z, which is the second of its gradient in the weights.
    assert errors[1] < errors[0] / 3 < 1e-3


@pytest.mark.parametrize("rate", [0.01, 1.0])
@pytest.mark.parametrize("sizes", [(4, 3), (4, 3, 2), (3, 3, 2, 2)], ids=["rbm", "two-hidden-layers", "three"])
def test_centred_direction_is_a_step_in_the_centred_parameters(sizes: tuple[int, ...], rate: float) -> None:
    machine, images = random_deep(*sizes, seed=1), some_images(6, sizes[0])
    offsets = [torch.rand(size, generator=seeded(size), dtype=torch.float64) for size in sizes]

    def shifted(parameters: dict[str, Tensor], sign: float) -> dict[str, Tensor]:
        """From plain biases to those beside centred couplings, or back: what the neighbours' offsets add."""
        moved = dict(parameters)
        for layer in range(len(sizes) - 1):
            weights = parameters[f"weights.{layer}"]
            moved[f"units.{layer}.bias"] = moved[f"units.{layer}.bias"] + sign * weights @ offsets[layer + 1]
            moved[f"units.{layer + 1}.bias"] = moved[f"units.{layer + 1}.bias"] + sign * weights.T @ offsets[layer]
        return moved

    def slopes(parameters: dict[str, Tensor], sign: float) -> Gradient:
        leaves = {name: value.clone().requires_grad_() for name, value in parameters.items()}
        value = likelihood(machine.with_parameters(shifted(leaves, sign)), images)
        return dict(zip(leaves, torch.autograd.grad(value, list(leaves.values())), strict=True))

    centre = shifted(machine.parameters, 1.0)
    ascent = slopes(centre, -1.0)
    wanted = shifted({name: value + rate * ascent[name] for name, value in centre.items()}, -1.0)
    plain = slopes(machine.parameters, 0.0)
    assert_close(moved_by(machine, centred(machine.couplings, plain, offsets), rate).parameters, wanted, 1e-12)
