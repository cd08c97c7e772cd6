"""S-DCP and CS-DCP against the paper's algorithms written out, and against what is exact about them."""

from __future__ import annotations

import pytest
import torch
from directions import RATE, moved_by, some_images
from machines import random_rbm, seeded
from oracle import binary_states
from torch import Tensor

from restore.learning.gradients.centring import FORGETTING
from restore.learning.gradients.statistics import clamped, difference
from restore.learning.rules.contract import Learner
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.priors import RBM


def one_batch(learner: Learner, machine: RBM, batch: Tensor, state: dict, generator: torch.Generator) -> list[RBM]:
    """The machine after each of the steps that a learner takes on a mini-batch."""
    step = learner.step(machine, batch, state, generator)
    machines = [moved_by(machine, step.gradient)]
    while step.again is not None:
        step = step.again(machines[-1])
        machines.append(moved_by(machines[-1], step.gradient))
    return machines


def assert_same(got: RBM, wanted: RBM, atol: float) -> None:
    for name, value in wanted.parameters.items():
        torch.testing.assert_close(got.parameters[name], value, rtol=0, atol=atol, msg=lambda m, n=name: f"{n}: {m}")


# --- the paper's algorithms ---


def algorithm_3(machine: RBM, batch: Tensor, d: int, k: int, generator: torch.Generator) -> RBM:
    """S-DCP, as the paper has it."""
    positive, visible = clamped(machine, batch), batch
    for _ in range(d):
        for _ in range(k):
            hidden = machine.sample_hidden(visible, generator)
            visible = machine.sample_visible(hidden, generator)
        machine = moved_by(machine, difference(positive, clamped(machine, visible)))
    return machine


def algorithm_4(
    machine: RBM, batch: Tensor, mu: Tensor, lam: Tensor, d: int, k: int, generator: torch.Generator
) -> tuple[RBM, Tensor, Tensor]:
    """CS-DCP in its own, centred parameters, with the transposition that its line for c lacks; read back at the end.

    Returns:
        The machine in the plain parameters, mu and lambda.
    """
    weights, b, c = machine.weights, *(machine.parameters[f"units.{layer}.bias"] for layer in (0, 1))
    b, c = b + weights @ lam, c + weights.T @ mu

    def draw(mean: Tensor) -> Tensor:
        return (torch.rand(mean.shape, generator=generator, dtype=mean.dtype) < mean).to(mean.dtype)

    def hidden_mean(visible: Tensor) -> Tensor:
        return torch.sigmoid((visible - mu) @ weights + c)

    positive, visible = hidden_mean(batch), batch
    mu_batch, lam_batch = batch.mean(0), positive.mean(0)
    for index in range(d):
        for _ in range(k):
            hidden = draw(hidden_mean(visible))
            visible = draw(torch.sigmoid((hidden - lam) @ weights.T + b))
        negative = hidden_mean(visible)
        b = b + FORGETTING * weights @ (lam_batch - lam)
        c = c + FORGETTING * weights.T @ (mu_batch - mu)
        mu, lam = mu.lerp(mu_batch, FORGETTING), lam.lerp(lam_batch, FORGETTING)
        if index == 0:
            gradient_g = (batch - mu).T @ (positive - lam) / len(batch)
        weights = weights + RATE * (gradient_g - (visible - mu).T @ (negative - lam) / len(batch))
        b = b + RATE * (batch.mean(0) - visible.mean(0))
        c = c + RATE * (positive.mean(0) - negative.mean(0))
    return RBM.binary(weights, b - weights @ lam, c - weights.T @ mu), mu, lam


@pytest.mark.parametrize(("d", "k"), [(1, 3), (2, 1), (3, 4)])
def test_inner_steps_are_those_of_the_paper(d: int, k: int) -> None:
    machine, batch = random_rbm(5, 4), some_images(9, 5)
    learner = ContrastiveDivergence(steps=k, centring=False, inner_steps=d)
    generator, other = seeded(3), seeded(3)
    got = one_batch(learner, machine, batch, learner.init(machine, batch, seeded()), generator)
    assert len(got) == d
    assert_same(got[-1], algorithm_3(machine, batch, d, k, other), 1e-12)
    assert torch.equal(generator.get_state(), other.get_state())


@pytest.mark.parametrize(("d", "k"), [(1, 2), (3, 4), (6, 1)])
def test_centred_inner_steps_are_those_in_the_papers_parameters(d: int, k: int) -> None:
    """Over two mini-batches, whose means differ from the means of all images, where the offsets begin."""
    machine, images = random_rbm(5, 4), some_images(18, 5)
    wanted, generator, other = machine, seeded(3), seeded(3)
    learner = ContrastiveDivergence(steps=k, inner_steps=d)
    state = learner.init(machine, images, seeded())
    mu, lam = state["offset.0"], state["offset.1"]
    for batch in images.split(9):
        step = learner.step(machine, batch, state, generator)
        machine = moved_by(machine, step.gradient)
        while step.again is not None:
            step = step.again(machine)
            machine = moved_by(machine, step.gradient)
        state = step.state
        wanted, mu, lam = algorithm_4(wanted, batch, mu, lam, d, k, other)
    assert_same(machine, wanted, 1e-12)
    torch.testing.assert_close(state["offset.0"], mu)
    torch.testing.assert_close(state["offset.1"], lam)


def test_persistent_chains_go_on_through_inner_steps_and_batches() -> None:
    # Units this sure never leave the state they are in.
    machine = RBM.binary(200 * torch.eye(5), torch.full((5,), -100.0), torch.full((5,), -100.0))
    images = binary_states(5, machine.weights)
    learner = ContrastiveDivergence("persistent", chains=6, steps=2, centring=False, inner_steps=3)
    state = learner.init(machine, images, seeded(1))
    step = learner.step(machine, images[:7], state, seeded(2))
    while step.again is not None:
        step = step.again(machine)
    assert torch.equal(step.state["chains"], state["chains"])
    torch.testing.assert_close(step.gradient["units.0.bias"], images[:7].mean(0) - state["chains"].mean(0))
