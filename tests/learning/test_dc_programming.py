"""S-DCP, CS-DCP and spectral descent against the algorithms of their papers, and what is exact about them."""

from __future__ import annotations

import pytest
import torch
from directions import RATE, moved_by, some_images
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import random_rbm, seeded
from oracle import binary_states
from torch import Tensor

from restore.learning.gradients.centring import FORGETTING
from restore.learning.gradients.statistics import clamped, difference
from restore.learning.rules.contract import Learner
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.rules.spectral import SpectralDescent, sharp_matrix, sharp_vector, spectral
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


# --- stochastic spectral descent ---


def random_matrix(seed: int, rows: int, columns: int, rank: int) -> Tensor:
    draw = seeded(seed)
    left = torch.randn(rows, rank, generator=draw, dtype=torch.float64)
    return left @ torch.randn(rank, columns, generator=draw, dtype=torch.float64)


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))
def test_sharp_is_dual_to_the_norm(seed: int, rows: int, columns: int, rank: int) -> None:
    gradient = random_matrix(seed, rows, columns, min(rows, columns, rank))
    matrix = sharp_matrix(gradient)
    nuclear = torch.linalg.matrix_norm(gradient, "nuc")
    torch.testing.assert_close((gradient * matrix).sum(), nuclear**2)
    torch.testing.assert_close(torch.linalg.matrix_norm(matrix, 2), nuclear)
    vector = sharp_vector(gradient[0])
    torch.testing.assert_close((gradient[0] * vector).sum(), gradient[0].abs().sum() ** 2)
    torch.testing.assert_close(vector.abs().max(), gradient[0].abs().sum())


def test_sharp_of_many_matrices_and_of_none() -> None:
    many = torch.stack([random_matrix(seed, 4, 3, 2) for seed in range(5)])
    torch.testing.assert_close(sharp_matrix(many), torch.stack([sharp_matrix(one) for one in many]))
    torch.testing.assert_close(sharp_vector(many[0]), torch.stack([sharp_vector(row) for row in many[0]]))
    assert not sharp_matrix(torch.zeros(4, 3)).any()
    assert not sharp_vector(torch.zeros(4)).any()


@pytest.mark.parametrize(("visible", "hidden"), [(7, 2), (3, 6), (4, 4)])
def test_the_safe_rate_leads_to_the_top_of_each_bound(visible: int, hidden: int) -> None:
    """No multiple of a step has more of <s, x> - L |x|^2 / 2; L is the most that <x, statistics>^2 is for |x| = 1."""
    pixels, units = (binary_states(size, torch.zeros(1, dtype=torch.float64)).sum(1) for size in (visible, hidden))
    # Over all states, at the moves of norm 1 that reach the most: all ones, and all ones over sqrt(D H).
    curvatures = {
        "weights.0": float((torch.outer(pixels, units) ** 2).max()) / (visible * hidden),
        "units.0.bias": float((pixels**2).max()),
        "units.1.bias": float((units**2).max()),
    }
    gradient = {
        "weights.0": random_matrix(1, visible, hidden, 2),
        "units.0.bias": random_matrix(2, 1, visible, 1)[0],
        "units.1.bias": random_matrix(3, 1, hidden, 1)[0],
    }
    for name, step in spectral(gradient).items():
        step = step / (visible * hidden)
        norm = torch.linalg.matrix_norm(step, 2) if step.dim() == 2 else step.abs().max()
        rise, fall = float((gradient[name] * step).sum()), curvatures[name] * float(norm) ** 2
        # Of t rise - t^2 fall / 2 the top is at t = rise / fall.
        assert rise / fall == pytest.approx(1, rel=1e-9), name


def test_spectral_descent_goes_by_the_gradient_of_contrastive_divergence() -> None:
    machine, images = random_rbm(5, 4), some_images(9, 5)
    learner = SpectralDescent("persistent", chains=6, steps=3)
    plain = ContrastiveDivergence("persistent", chains=6, steps=3, centring=False)
    state = learner.init(machine, images, seeded(1))
    got, wanted = (one.step(machine, images, state, seeded(2)) for one in (learner, plain))
    for name, value in spectral(wanted.gradient).items():
        assert torch.equal(learner.direction(got.gradient)[name], value)
    assert torch.equal(got.state["chains"], wanted.state["chains"])
