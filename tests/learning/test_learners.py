"""Learning by TAP and by contrastive divergence, against finite differences; centring, and the modes of both."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from directions import EXACTLY, assert_close, assert_slopes, grey_images, moved_by, some_images
from machines import FLAT, bars_and_stripes, numerical_gradients, random_deep, random_machine, random_rbm, seeded
from oracle import binary_states, exact_moments, log_likelihood, log_likelihood_gradient
from torch import Tensor

from restore.learning.course import initial_prior
from restore.learning.finish import own_modes
from restore.learning.gradients.centring import FORGETTING, centred
from restore.learning.gradients.statistics import clamped, difference
from restore.learning.rules.contract import Gradient, Learner, Step
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.rules.tap_likelihood import TAPLikelihood
from restore.priors import RBM, LayeredPrior
from restore.solvers import TAP
from restore.zoo.inference import Inference


def free(machine: RBM) -> Gradient:
    """Exact free statistics: the gradient of f = log Z."""
    exact = exact_moments(machine)
    return {"weights.0": exact.pairs, "units.0.bias": exact.visible, "units.1.bias": exact.hidden}


# --- TAP likelihood ---

DEPTHS = [(5, 4, 3), (4, 3, 3, 2)]


def step_of(learner: TAPLikelihood, machine: LayeredPrior, images: Tensor) -> Step:
    return learner.step(machine, images, learner.init(machine, images, seeded()), seeded())


def tap_likelihood(machine: LayeredPrior, images: Tensor) -> Tensor:
    """Mean of the log-weight of each image, by TAP above the first hidden layer, minus the TAP log Z from it."""
    solver = TAP(max_iter=5000, tol=FLAT, damping=0.5)
    if isinstance(machine, RBM):
        clamped = -machine.free_energy(images)
    else:
        above = solver.solve(machine.above(images), images.new_full((len(images), machine.layers[1].size), 0.5))
        clamped = machine.layers[0].log_weight(images).sum(-1) + above.log_partition
    return (clamped - solver.solve(machine, images).log_partition).mean()


def machines() -> Iterator[Any]:
    """Starts, machines and images: bits, deep machines, grey pixels under hidden units of every kind."""
    thorough = pytest.mark.thorough
    for starts, marks in (("data", ()), ("persistent", thorough)):
        yield pytest.param(starts, random_rbm(5, 4, scale=0.6), some_images(7, 5), id=f"rbm-{starts}", marks=marks)
    for starts, sizes in itertools.product(("data", "redrawn"), DEPTHS):
        machine, images = random_deep(*sizes, scale=0.6), some_images(6, sizes[0])
        yield pytest.param(starts, machine, images, id=f"{sizes}-{starts}", marks=thorough)
    kinds = ("bernoulli", "gaussian", "spin", "spiked-truncated")
    for visible, hidden in itertools.product(("truncated", "spiked-truncated"), kinds):
        machine = random_machine((visible, 3), (hidden, 2), scale=0.4)
        yield pytest.param("data", machine, grey_images(4, 3), id=f"{visible}-{hidden}", marks=thorough)


@pytest.mark.parametrize(("starts", "machine", "images"), list(machines()))
def test_gradient_is_that_of_the_tap_likelihood(starts: Any, machine: LayeredPrior, images: Tensor) -> None:
    step = step_of(TAPLikelihood(starts=starts, solutions=3, centring=False, **EXACTLY), machine, images)
    # Each machine has one fixed point, so that where solutions start does not matter.
    assert_slopes(step.gradient, lambda moved: tap_likelihood(moved, images), machine, 1e-8)
    assert float(step.monitors["solution_change"]) < 1e-13
    assert all(float(value.abs().min()) > 1e-7 for value in step.gradient.values())


def likelihood(machine: LayeredPrior, images: Tensor) -> Tensor:
    """Exact mean log-likelihood."""
    sizes = [layer.size for layer in machine.layers]
    states = binary_states(sum(sizes), images)
    weight = -machine.energy(states.split(sizes, 1))
    same = (states[:, None, : sizes[0]] == images).all(-1)
    return torch.stack([weight[mine].logsumexp(0) for mine in same.T]).mean() - weight.logsumexp(0)


@pytest.mark.parametrize("sizes", DEPTHS, ids=["two-hidden-layers", "three"])
def test_gradient_of_weak_couplings_is_the_exact_one(sizes: tuple[int, ...]) -> None:
    images, errors = some_images(6, sizes[0]), []
    for scale in (0.2, 0.1):
        machine = random_deep(*sizes, scale=scale, seed=3)
        got = step_of(TAPLikelihood(centring=False, **EXACTLY), machine, images).gradient
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


@pytest.mark.parametrize(
    "learner",
    [
        TAPLikelihood(**EXACTLY),
        ContrastiveDivergence(starts="data"),
        ContrastiveDivergence(starts="persistent", chains=5),
    ],
    ids=["tap", "cd", "pcd"],
)
def test_learners_centre_about_the_data_and_moving_means(learner: Learner) -> None:
    machine, images = random_rbm(5, 4, scale=0.6), some_images(7, 5)
    batch = images[:4]
    state = learner.init(machine, images, seeded(1))
    torch.testing.assert_close(state["offset.0"], images.mean(0))
    # TAP begins with what hidden units of any type are on their own; contrastive divergence knows bits alone.
    own = torch.sigmoid(machine.hidden.parameters["bias"])
    begins = own if isinstance(learner, TAPLikelihood) else torch.full_like(own, 0.5)
    torch.testing.assert_close(state["offset.1"], begins)
    plain = replace(learner, centring=False).step(machine, batch, state, seeded(2))  # type: ignore[type-var]
    step = learner.step(machine, batch, state, seeded(2))
    hidden = torch.lerp(state["offset.1"], clamped(machine, batch)["units.1.bias"], FORGETTING)
    # TAP learning has the visible offset rest; that of contrastive divergence follows the mini-batches too.
    follows = 0 if isinstance(learner, TAPLikelihood) else FORGETTING
    visible = torch.lerp(images.mean(0), batch.mean(0), follows)
    assert_close(step.gradient, centred(machine.couplings, plain.gradient, (visible, hidden)), 1e-14)
    torch.testing.assert_close(step.state["offset.1"], hidden)
    torch.testing.assert_close(step.state["offset.0"], visible)


@pytest.mark.parametrize("iterations", [1, 2, 5])
@pytest.mark.parametrize("damping", [0.0, 0.4])
def test_a_step_takes_the_iterations_asked_for(iterations: int, damping: float) -> None:
    machine, images = random_rbm(5, 4), some_images(7, 5)
    learner = TAPLikelihood(iterations=iterations, damping=damping, starts="persistent", solutions=6)
    state = learner.init(machine, images, seeded(1))
    solver = TAP(max_iter=iterations, tol=0.0, damping=damping)
    wanted = tuple(state[f"solution.{index}"] for index in range(4))
    for _ in range(iterations - 1):
        wanted = solver.step(machine, wanted)
    wanted = replace(solver, damping=0.0).step(machine, wanted)
    after = learner.step(machine, images, state, seeded(2)).state
    for index, value in enumerate(wanted):
        torch.testing.assert_close(after[f"solution.{index}"], value)


def test_redrawn_solutions_start_from_images_drawn_from_the_last_marginals() -> None:
    machine, images = random_rbm(5, 4), some_images(7, 5)
    learner = TAPLikelihood(starts="redrawn", solutions=3)
    state = learner.init(machine, images, seeded(1))
    assert state["solution.0"].shape == (3, 5)
    marginals = torch.rand(3, 5, generator=seeded(3), dtype=torch.float64)
    count = 2000
    many = state | {
        f"solution.{index}": (marginals if index == 0 else state[f"solution.{index}"]).repeat(count, 1)
        for index in range(4)
    }
    start = learner._start(machine, images, many, seeded(4))[0]
    assert set(start.unique().tolist()) == {0.0, 1.0}
    mean = start.view(count, 3, 5).mean(0)
    assert bool(((mean - marginals).abs() <= 5 * (marginals * (1 - marginals) / count).sqrt()).all())


# --- modes ---


def test_own_modes_are_images_where_the_prior_has_its_mass() -> None:
    images = bars_and_stripes(2)
    machine = initial_prior(images, 3, 0.1, seeded(1))
    wished = Inference(modes=7)
    modes = own_modes(machine, images, wished, seeded(2))
    assert (modes.shape, modes.dtype) == ((7, 1), torch.uint8)
    assert torch.equal(modes, own_modes(machine, images, wished, seeded(2)))
    assert own_modes(machine, images, Inference(modes=0, starts=1), seeded(2)).shape == (0, 1)


# --- statistics ---


def test_clamped_minus_exact_free_statistics_is_the_exact_gradient() -> None:
    machine, images = random_rbm(5, 4), some_images(7, 5)
    assert_close(difference(clamped(machine, images), free(machine)), log_likelihood_gradient(machine, images), 1e-12)


# --- contrastive divergence ---


@pytest.mark.parametrize("steps", [1, 3])
def test_persistent_chains_at_the_distribution_give_the_exact_gradient(steps: int) -> None:
    machine, images, count = random_rbm(5, 4, scale=1.2), some_images(7, 5), 100_000
    states = binary_states(5, machine.weights)
    drawn = torch.multinomial(log_likelihood(machine, states).exp(), count, replacement=True, generator=seeded(1))
    learner = ContrastiveDivergence(starts="persistent", chains=count, steps=steps, centring=False)
    # A chain rests in its hidden state.
    chains = machine.sample_hidden(states[drawn], seeded(3))
    step = learner.step(machine, images, learner.init(machine, images, seeded()) | {"chains": chains}, seeded(2))
    # Every statistic lies in [0, 1], so its standard deviation is at most 1/2.
    assert_close(step.gradient, log_likelihood_gradient(machine, images), 5 * 0.5 / math.sqrt(count))
    assert not torch.equal(step.state["chains"], chains)


def test_many_steps_of_contrastive_divergence_forget_the_data() -> None:
    machine, images = random_rbm(5, 4, scale=0.5), some_images(7, 5)
    batch = images.repeat(6000, 1)
    learner = ContrastiveDivergence(starts="data", steps=15, centring=False)
    step = learner.step(machine, batch, learner.init(machine, images, seeded()), seeded(2))
    assert_close(step.gradient, log_likelihood_gradient(machine, images), 5 * 0.5 / math.sqrt(len(batch)))


def test_chains_restart_from_the_data_or_go_on() -> None:
    machine, images = random_rbm(5, 4), some_images(9, 5)
    restarting = ContrastiveDivergence(starts="data")
    assert "chains" not in restarting.step(machine, images, restarting.init(machine, images, seeded()), seeded()).state
    going_on = ContrastiveDivergence(starts="persistent", chains=6)
    state = going_on.init(machine, images, seeded())
    hidden = machine.hidden.size
    assert state["chains"].shape == (6, hidden)
    # Hidden units this sure show which image a chain came from.
    copying = RBM.binary(200 * torch.eye(5), torch.full((5,), -100.0), torch.full((5,), -100.0))
    seen = {tuple(image.tolist()) for image in images}
    assert all(tuple(chain.tolist()) in seen for chain in going_on.init(copying, images.float(), seeded())["chains"])
