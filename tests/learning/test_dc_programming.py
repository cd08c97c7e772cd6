"""S-DCP and CS-DCP against the paper's algorithms written out, and against what is exact about them; and SSD."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import numerical_gradients, random_rbm, seeded
from torch import Tensor

from restore.errors import UsageError
from restore.learning.gradients.centring import FORGETTING
from restore.learning.gradients.statistics import clamped, difference
from restore.learning.rules.contract import Gradient, Learner
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.rules.spectral import SpectralDescent, sharp_matrix, sharp_vector, spectral
from restore.priors import RBM
from restore.priors.exact import binary_states, exact_moments, log_likelihood, log_likelihood_gradient

RATE = 0.4


def some_images(count: int, size: int, seed: int = 5) -> Tensor:
    return torch.bernoulli(torch.full((count, size), 0.4, dtype=torch.float64), generator=seeded(seed))


def moved_by(machine: RBM, direction: Gradient, rate: float = RATE) -> RBM:
    return machine.with_parameters({name: value + rate * direction[name] for name, value in machine.parameters.items()})


def one_batch(learner: Learner, machine: RBM, batch: Tensor, state: dict, generator: torch.Generator) -> list[RBM]:
    """The machine after each of the steps that a learner takes on a mini-batch."""
    step = learner.step(machine, batch, state, generator)
    machines = [moved_by(machine, step.gradient)]
    while step.again is not None:
        step = step.again(machines[-1])
        machines.append(moved_by(machines[-1], step.gradient))
    return machines


def free(machine: RBM) -> Gradient:
    """Exact free statistics: the gradient of f = log Z."""
    exact = exact_moments(machine)
    return {"weights.0": exact.pairs, "units.0.bias": exact.visible, "units.1.bias": exact.hidden}


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
    """Over two mini-batches, whose means are others than those of all images, where the offsets begin."""
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


@settings(deadline=None, max_examples=15)
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


@settings(deadline=None, max_examples=25)
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
    with pytest.raises(UsageError, match="inner_steps must be at least 1"):
        ContrastiveDivergence(inner_steps=inner_steps)


# --- spectral descent ---


def random_matrix(seed: int, rows: int, columns: int, rank: int) -> Tensor:
    draw = seeded(seed)
    left = torch.randn(rows, rank, generator=draw, dtype=torch.float64)
    return left @ torch.randn(rank, columns, generator=draw, dtype=torch.float64)


@settings(deadline=None, max_examples=30)
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


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000), st.floats(0.1, 3))
def test_sharp_is_the_steepest_step(seed: int, stretch: float) -> None:
    gradient = random_matrix(seed, 4, 3, 3)

    def gain(step: Tensor) -> float:
        return float((gradient * step).sum() - torch.linalg.matrix_norm(step, 2) ** 2 / 2)

    best = gain(sharp_matrix(gradient))
    assert gain(random_matrix(seed + 1, 4, 3, 3) * stretch) <= best
    assert gain(gradient * stretch) <= best + 1e-12


def test_sharp_of_many_matrices_and_of_none() -> None:
    many = torch.stack([random_matrix(seed, 4, 3, 2) for seed in range(5)])
    torch.testing.assert_close(sharp_matrix(many), torch.stack([sharp_matrix(one) for one in many]))
    torch.testing.assert_close(sharp_vector(many[0]), torch.stack([sharp_vector(row) for row in many[0]]))
    assert not sharp_matrix(torch.zeros(4, 3)).any()
    assert not sharp_vector(torch.zeros(4)).any()


def test_directions_that_are_zero_to_rounding_stay_so() -> None:
    gradient = random_matrix(1, 6, 5, 2).float()
    assert int(torch.linalg.matrix_rank(sharp_matrix(gradient))) == 2


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.floats(0.1, 4), st.floats(0.01, 3))
def test_log_z_stays_below_the_bounds(seed: int, scale: float, length: float) -> None:
    machine = random_rbm(4, 3, scale=scale, seed=seed)
    slope, at = free(machine), exact_moments(machine).log_partition
    moves = {
        "weights.0": (random_matrix(seed, 4, 3, 3) * length, 4 * 3),
        "units.0.bias": (random_matrix(seed, 1, 4, 1)[0] * length, 4**2),
        "units.1.bias": (random_matrix(seed, 1, 3, 1)[0] * length, 3**2),
    }
    for name, (move, curvature) in moves.items():
        there = machine.with_parameters(machine.parameters | {name: machine.parameters[name] + move})
        norm = torch.linalg.matrix_norm(move, 2) if move.dim() == 2 else move.abs().max()
        bound = at + (slope[name] * move).sum() + curvature / 2 * norm**2
        assert float(exact_moments(there).log_partition) <= float(bound) + 1e-12


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


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 1000), st.floats(0.1, 3))
def test_a_third_of_the_safe_rate_never_lowers_the_likelihood(seed: int, scale: float) -> None:
    machine, images = random_rbm(4, 3, scale=scale, seed=seed), some_images(6, 4, seed)
    before = float(log_likelihood(machine, images).mean())
    for _ in range(5):
        gradient = log_likelihood_gradient(machine, images)
        direction = spectral(gradient)
        machine = moved_by(machine, direction, 1 / (3 * 4 * 3))
        before, last = float(log_likelihood(machine, images).mean()), before
        assert before >= last - 1e-12


def test_spectral_descent_takes_the_gradient_of_contrastive_divergence() -> None:
    machine, images = random_rbm(5, 4), some_images(9, 5)
    learner = SpectralDescent("persistent", chains=6, steps=3)
    plain = ContrastiveDivergence("persistent", chains=6, steps=3, centring=False)
    state = learner.init(machine, images, seeded(1))
    got, wanted = (one.step(machine, images, state, seeded(2)) for one in (learner, plain))
    for name, value in spectral(wanted.gradient).items():
        assert torch.equal(got.gradient[name], value)
    assert torch.equal(got.state["chains"], wanted.state["chains"])


@pytest.mark.parametrize("settings", [{"chains": 0}, {"steps": 0}], ids=str)
def test_impossible_spectral_settings(settings: dict) -> None:
    with pytest.raises(UsageError, match=next(iter(settings))):
        SpectralDescent(**settings)
