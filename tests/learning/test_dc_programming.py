"""S-DCP and CS-DCP against the paper's algorithms written out, and against what is exact about them."""

from __future__ import annotations

import math

import pytest
import torch
from directions import RATE, free, moved_by, some_images
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import numerical_gradients, random_rbm, seeded
from torch import Tensor

from restore.errors import UsageError
from restore.learning.gradients.centring import FORGETTING
from restore.learning.gradients.statistics import clamped, difference
from restore.learning.rules.contract import Gradient, Learner
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.rules.spectral import SpectralDescent
from restore.priors import RBM
from restore.priors.exact import binary_states, exact_moments, log_likelihood


def one_batch(learner: Learner, machine: RBM, batch: Tensor, state: dict, generator: torch.Generator) -> list[RBM]:
    """The machine after each of the steps that a learner takes on a mini-batch."""
    step = learner.step(machine, batch, state, generator)
    machines = [moved_by(machine, step.gradient)]
    while step.again is not None:
        step = step.again(machines[-1])
        machines.append(moved_by(machines[-1], step.gradient))
    return machines


def inner(left: Gradient, right: Gradient) -> float:
    return float(sum((left[name] * right[name]).sum() for name in left))


def assert_same(got: RBM, wanted: RBM, atol: float = 0.0) -> None:
    for name, value in wanted.parameters.items():
        torch.testing.assert_close(got.parameters[name], value, rtol=0, atol=atol, msg=lambda m, n=name: f"{n}: {m}")


# --- the paper's algorithms ---


def algorithm_1(machine: RBM, batch: Tensor, k: int, generator: torch.Generator) -> RBM:
    """CD-k, as the paper has it."""
    visible = batch
    for _ in range(k):
        hidden = machine.sample_hidden(visible, generator)
        visible = machine.sample_visible(hidden, generator)
    return moved_by(machine, difference(clamped(machine, batch), clamped(machine, visible)))


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


@pytest.mark.parametrize("k", [1, 3])
def test_one_inner_step_is_contrastive_divergence_bit_for_bit(k: int) -> None:
    machine, batch = random_rbm(5, 4, dtype=torch.float32), some_images(9, 5).float()
    learner = ContrastiveDivergence(steps=k, centring=False, inner_steps=1)
    generator, other = seeded(3), seeded(3)
    (got,) = one_batch(learner, machine, batch, learner.init(machine, batch, seeded()), generator)
    assert_same(got, algorithm_1(machine, batch, k, other))
    assert torch.equal(generator.get_state(), other.get_state())


@pytest.mark.parametrize(("d", "k"), [(2, 1), (3, 4)])
def test_inner_steps_are_those_of_the_paper_bit_for_bit(d: int, k: int) -> None:
    machine, batch = random_rbm(5, 4, dtype=torch.float32), some_images(9, 5).float()
    learner = ContrastiveDivergence(steps=k, centring=False, inner_steps=d)
    generator, other = seeded(3), seeded(3)
    got = one_batch(learner, machine, batch, learner.init(machine, batch, seeded()), generator)
    assert len(got) == d
    assert_same(got[-1], algorithm_3(machine, batch, d, k, other))
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


def test_the_centred_gauge_makes_a_difference() -> None:
    machine, images = random_rbm(5, 4), some_images(9, 5)
    state = ContrastiveDivergence().init(machine, images, seeded())
    centred, plain = (
        one_batch(ContrastiveDivergence(steps=4, inner_steps=3, centring=each), machine, images, state, seeded(3))[-1]
        for each in (True, False)
    )
    assert float((centred.weights - plain.weights).abs().max()) > 0.01


def test_the_data_half_stays_in_the_gauge_of_the_first_inner_step() -> None:
    """Where the model's half is the data's own, later steps have left what the moves of the offsets have made of it."""
    # Units this sure never leave the state they are in.
    bias = torch.full((5,), -100.0).double()
    machine = RBM.binary(200 * torch.eye(5).double(), bias, bias)
    images = binary_states(5, machine.weights)
    learner = ContrastiveDivergence(inner_steps=3)
    state = learner.init(machine, images, seeded()) | {"offset.0": torch.linspace(0, 0.4, 5).double()}
    step = learner.step(machine, images[:9], state, seeded(2))
    mean = images[:9].mean(0)
    apart = torch.outer(mean - state["offset.0"], mean - state["offset.1"])
    kept = 1 - FORGETTING
    for moves in (1, 2, 3):
        # Each move takes both offsets nearer to the means by the same factor.
        torch.testing.assert_close(
            step.gradient["weights.0"], apart * (kept**2 - kept ** (2 * moves)), rtol=1e-9, atol=1e-12
        )
        step = step.again(machine) if step.again is not None else step


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


# --- what is exact about it ---


@settings(max_examples=15)
@given(st.integers(0, 1000), st.floats(0.3, 3))
def test_log_z_is_convex_and_so_is_the_inner_objective(seed: int, scale: float) -> None:
    machine = random_rbm(3, 2, scale=scale, seed=seed)
    shapes = [(name, value.shape) for name, value in machine.parameters.items()]

    def log_partition(flat: Tensor) -> Tensor:
        parts = flat.split([shape.numel() for _, shape in shapes])
        named = {name: part.view(shape) for (name, shape), part in zip(shapes, parts, strict=True)}
        return exact_moments(machine.with_parameters(named)).log_partition

    at = torch.cat([value.flatten() for value in machine.parameters.values()])
    # The inner objective differs from log Z by a linear function, so they share their Hessian.
    assert float(torch.linalg.eigvalsh(torch.func.hessian(log_partition)(at)).min()) > -1e-12


def inner_objective(machine: RBM, positive: Gradient) -> Tensor:
    """f(θ') - θ'ᵀ∇g(θ) at θ' = the machine."""
    return exact_moments(machine).log_partition - inner(dict(machine.parameters), positive)


def test_inner_gradient_is_that_of_the_inner_objective() -> None:
    machine, other, images = random_rbm(4, 3, seed=1), random_rbm(4, 3, seed=2), some_images(7, 4)
    positive = clamped(machine, images)
    numerical = numerical_gradients(lambda moved: -inner_objective(moved, positive), other)
    got = difference(positive, free(other))
    for name, value in numerical.items():
        torch.testing.assert_close(got[name], value, rtol=0, atol=1e-8)


def test_sampled_inner_gradients_are_those_of_the_inner_objective() -> None:
    machine, images, copies = random_rbm(5, 4, scale=0.5, seed=1), some_images(7, 5), 6000
    batch = images.repeat(copies, 1)
    learner = ContrastiveDivergence(steps=15, centring=False, inner_steps=2)
    first = learner.step(machine, batch, learner.init(machine, images, seeded()), seeded(2))
    other = random_rbm(5, 4, scale=0.5, seed=2)
    assert first.again is not None
    second = first.again(other)
    assert second.again is None
    wanted = difference(clamped(machine, images), free(other))
    mixed_up = difference(clamped(other, images), free(other))
    # Every statistic lies in [0, 1], so its standard deviation is at most 1/2; after 15 sweeps the start is forgotten.
    error = 5 * 0.5 / math.sqrt(len(batch))
    for name, value in wanted.items():
        torch.testing.assert_close(second.gradient[name], value, rtol=0, atol=error)
    assert max(float((mixed_up[name] - wanted[name]).abs().max()) for name in wanted) > 5 * error


@settings(max_examples=25)
@given(st.integers(0, 1000), st.floats(0.1, 3), st.integers(1, 8))
def test_with_exact_gradients_it_never_lowers_the_likelihood(seed: int, scale: float, d: int) -> None:
    machine, images = random_rbm(4, 3, scale=scale, seed=seed), some_images(6, 4, seed)
    # Statistics of length at most sqrt(D + H + DH): the curvature of log Z is at most their square.
    rate = 1 / (4 + 3 + 4 * 3)
    likelihood = float(log_likelihood(machine, images).mean())
    for _ in range(5):
        positive = clamped(machine, images)
        objective = float(inner_objective(machine, positive))
        for _ in range(d):
            machine = moved_by(machine, difference(positive, free(machine)), rate)
            objective, before = float(inner_objective(machine, positive)), objective
            assert objective <= before + 1e-12
        likelihood, before = float(log_likelihood(machine, images).mean()), likelihood
        assert likelihood >= before - 1e-12


def test_sweeps_are_what_a_batch_costs() -> None:
    drawn = 0

    class Counting(type(random_rbm(2, 2).visible)):  # type: ignore[misc]
        def sample(self, *arguments: object) -> Tensor:
            nonlocal drawn
            drawn += 1
            return super().sample(*arguments)

        def with_parameters(self, parameters: dict) -> Counting:
            return Counting(parameters["bias"])

    plain = random_rbm(5, 4)
    machine = RBM((Counting(plain.visible.bias), plain.hidden), plain.couplings)
    batch = some_images(9, 5)
    for learner, sweeps in (
        (ContrastiveDivergence(steps=12), 12),
        (ContrastiveDivergence(steps=4, inner_steps=3), 12),
        (ContrastiveDivergence("persistent", steps=4, inner_steps=6), 24),
        (SpectralDescent(steps=5), 5),
    ):
        state, drawn = learner.init(machine, batch, seeded()), 0
        one_batch(learner, machine, batch, state, seeded(1))
        assert drawn == learner.sweeps == sweeps
        assert float(learner.step(machine, batch, state, seeded(1)).monitors["sweeps"]) == sweeps


@pytest.mark.parametrize("inner_steps", [0, -1])
def test_impossible_inner_steps(inner_steps: int) -> None:
    with pytest.raises(UsageError):
        ContrastiveDivergence(inner_steps=inner_steps)
