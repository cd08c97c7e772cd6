"""Learning by TAP and by contrastive divergence, against finite differences, and the modes of both."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from directions import EXACTLY, assert_close, assert_slopes, some_images
from machines import FLAT, bars_and_stripes, random_rbm, seeded
from oracle import binary_states, exact_moments, log_likelihood, log_likelihood_gradient
from torch import Tensor

from restore.learning.course import initial_prior
from restore.learning.finish import own_modes
from restore.learning.gradients.centring import FORGETTING, centred
from restore.learning.gradients.statistics import clamped, difference
from restore.learning.rules.contract import Gradient, Learner
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.rules.tap_likelihood import TAPLikelihood
from restore.priors import RBM
from restore.solvers import TAP
from restore.zoo.inference import Inference


def free(machine: RBM) -> Gradient:
    """Exact free statistics: the gradient of f = log Z."""
    exact = exact_moments(machine)
    return {"weights.0": exact.pairs, "units.0.bias": exact.visible, "units.1.bias": exact.hidden}


# --- TAP likelihood ---


def tap_likelihood(machine: RBM, images: Tensor) -> Tensor:
    """Mean of the exact unnormalised log-probability minus the TAP log Z from each image."""
    solution = TAP(max_iter=5000, tol=FLAT, damping=0.5).solve(machine, images)
    return -machine.free_energy(images).mean() - solution.log_partition.mean()


@pytest.mark.parametrize("starts", ["data", pytest.param("persistent", marks=pytest.mark.thorough)])
def test_gradient_is_that_of_the_tap_likelihood(starts: str) -> None:
    machine, images = random_rbm(5, 4, scale=0.6), some_images(7, 5)
    learner = TAPLikelihood(starts=starts, solutions=3, centring=False, **EXACTLY)
    state = learner.init(machine, images, seeded())
    step = learner.step(machine, images, state, seeded())
    # The machine has one fixed point, so that where solutions start does not matter.
    assert_slopes(step.gradient, lambda moved: tap_likelihood(moved, images), machine, 1e-8)
    assert float(step.monitors["solution_change"]) < 1e-13
    assert step.gradient.keys() == machine.parameters.keys()


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
