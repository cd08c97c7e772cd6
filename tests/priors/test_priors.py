"""Machines, of one hidden layer, several, or given the image, against every joint state."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from conditionals import SIZES, all_states, log_weight, log_z, random_prior, scores, some_pairs
from directions import some_images
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import brute_force, random_deep, random_fully_visible, random_rbm, seeded, with_weights
from oracle import binary_states, exact_moments, log_likelihood
from priors import random_deep_prior
from refusals import refused
from textbook import total
from torch import Tensor

from restore.channels import BitFlip
from restore.errors import InputError, UsageError
from restore.fields import Fields
from restore.inference.torch_engine import Engine
from restore.learning.finish import own_modes
from restore.priors import RBM, BoltzmannMachine, ConditionalRBM, LayeredPrior
from restore.priors.bits import unpack
from restore.solvers import TAP
from restore.units import Bernoulli
from restore.zoo.inference import Inference


def joint_states(prior: BoltzmannMachine) -> tuple[np.ndarray, list[Tensor]]:
    truth = brute_force(prior)
    parts = torch.from_numpy(truth.states).split([layer.size for layer in prior.layers], dim=1)
    return truth.probabilities, list(parts)


# --- layered machines ---


@pytest.mark.parametrize(
    "prior",
    [random_rbm(4, 3), random_deep(3, 4, 2), random_deep(2, 3, 3, 2), random_fully_visible(6)],
    ids=["two", "three", "four", "fully-visible"],
)
def test_energy_gives_the_boltzmann_distribution(prior: BoltzmannMachine) -> None:
    probabilities, states = joint_states(prior)
    log_weight = -prior.energy(states)
    np.testing.assert_allclose(torch.softmax(log_weight, 0).numpy(), probabilities, atol=1e-14)


@pytest.mark.parametrize(
    "prior", [random_rbm(4, 3), random_deep(3, 4, 2), random_fully_visible(5)], ids=["rbm", "deep", "fully-visible"]
)
def test_inputs_are_the_change_of_energy_with_a_unit(prior: BoltzmannMachine) -> None:
    states = [torch.bernoulli(torch.full((6, layer.size), 0.5).double(), generator=seeded(1)) for layer in prior.layers]
    for index, layer in enumerate(prior.layers):
        field = prior.inputs(index, states) + layer.parameters["bias"]
        for unit in range(layer.size):
            on, off = ([state.clone() for state in states] for _ in range(2))
            on[index][:, unit], off[index][:, unit] = 1, 0
            torch.testing.assert_close(prior.energy(off) - prior.energy(on), field[:, unit])


def test_tilting_adds_evidence_to_the_energy() -> None:
    prior = random_deep(3, 4, 2)
    _, states = joint_states(prior)
    batch = len(states[0])
    linear = torch.randn(batch, 3, generator=seeded(2), dtype=torch.float64)
    quadratic = torch.rand(batch, 3, generator=seeded(3), dtype=torch.float64)
    top = torch.randn(2, generator=seeded(4), dtype=torch.float64)
    tilted = prior.tilt(Fields(linear, quadratic), None, Fields(top))
    assert type(tilted) is type(prior)
    shift = (linear * states[0] - quadratic * states[0] ** 2 / 2).sum(-1) + states[2] @ top
    torch.testing.assert_close(prior.energy(states) - tilted.energy(states), shift)
    rows = torch.tensor([5, 0, 5])
    some = [state[rows] for state in states]
    torch.testing.assert_close(tilted.rows(rows).energy(some), tilted.energy(states)[rows])
    with pytest.raises(ValueError):
        prior.tilt(None, None, None, Fields(top))


@pytest.mark.parametrize(
    ("sizes", "shapes"),
    [([3, 2], [(2, 3)]), ([3, 2], []), ([3], []), ([3, 2, 2], [(3, 2)]), ([3, 2], [(3, 2), (2, 2)])],
)
def test_layers_that_do_not_fit_are_refused(sizes: list[int], shapes: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError):
        LayeredPrior(tuple(Bernoulli(torch.zeros(n)) for n in sizes), tuple(torch.zeros(s) for s in shapes))


# --- the bipartite machine ---


def test_a_deep_machine_is_no_rbm() -> None:
    deep = random_deep(3, 2, 2)
    with pytest.raises(ValueError):
        RBM(deep.layers, deep.couplings)


def test_free_energy_sums_the_hidden_units_out() -> None:
    machine = random_rbm(4, 3, scale=2)
    truth = brute_force(machine)
    for image in binary_states(4, machine.weights):
        match = (truth.states[:, :4] == image.numpy()).all(1)
        mass = np.log(truth.probabilities[match].sum()) + truth.log_partition
        assert float(-machine.free_energy(image[None])) == pytest.approx(mass, abs=1e-12)


@pytest.mark.parametrize("side", ["hidden", "visible"])
def test_conditional_samples_have_the_conditional_distribution(side: str) -> None:
    machine, count = random_rbm(3, 2), 40_000
    truth = brute_force(machine)
    given, drawn = (slice(0, 3), slice(3, 5)) if side == "hidden" else (slice(3, 5), slice(0, 3))
    state = np.ones(given.stop - given.start)
    match = (truth.states[:, given] == state).all(1)
    weights = truth.probabilities[match] / truth.probabilities[match].sum()
    repeated = torch.from_numpy(state).expand(count, -1)
    sample = machine.sample_hidden if side == "hidden" else machine.sample_visible
    values = sample(repeated, seeded(1)).numpy()
    wanted = weights @ truth.states[match][:, drawn]
    assert (np.abs(values.mean(0) - wanted) <= 5 * np.sqrt(wanted * (1 - wanted) / count)).all()
    wanted = weights @ truth.states[match][:, drawn].prod(1)
    assert abs(values.prod(1).mean() - wanted) <= 5 * np.sqrt(wanted * (1 - wanted) / count)


# --- the oracle ---


@pytest.mark.parametrize(("visible", "hidden"), [(21, 21), (30, 21), (21, 30)])
def test_enumeration_of_more_than_twenty_units_is_refused(visible: int, hidden: int) -> None:
    machine = random_rbm(visible, hidden)
    with pytest.raises(UsageError):
        exact_moments(machine)
    with pytest.raises(UsageError):
        log_likelihood(machine, torch.zeros(1, visible).double())


# --- several hidden layers ---


depths = pytest.mark.parametrize("sizes", [(5, 4, 3), (4, 3, 3, 2)], ids=["two-hidden-layers", "three"])


def test_sweeps_leave_the_distribution_as_it_is() -> None:
    machine, count = random_deep(3, 3, 2, 2, scale=0.8), 40_000
    sizes = [layer.size for layer in machine.layers]
    truth = brute_force(machine)
    drawn = torch.multinomial(torch.from_numpy(truth.probabilities), count, replacement=True, generator=seeded(1))
    states = torch.from_numpy(truth.states)[drawn].split(sizes, 1)
    after = machine.sweep(states, seeded(2))
    assert all(not torch.equal(old, new) for old, new in zip(states, after, strict=True))
    for old, new in pairwise(after):
        pairs = old.T @ new / count
        layer = next(index for index, value in enumerate(after) if value is old)
        torch.testing.assert_close(pairs, torch.from_numpy(truth.pairs[layer]), rtol=0, atol=5 * 0.5 / count**0.5)


def test_own_modes_are_where_the_machine_has_its_mass() -> None:
    # Two opposite images, which both hidden layers tell apart.
    sign = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    upward, top = 1.5 * sign[:, None].expand(6, 4), 1.5 * torch.ones(4, 3)
    biases = [-upward.sum(1) / 2, -upward.sum(0) / 2 - top.sum(1) / 2, -top.sum(0) / 2]
    machine = LayeredPrior(tuple(Bernoulli(bias) for bias in biases), (upward, top))
    noise = torch.bernoulli(torch.full((50, 6), 0.5), generator=seeded())
    modes = unpack(own_modes(machine, noise, Inference(damping=0.3, modes=40), seeded(3)), 6)
    results = {tuple(mode) for mode in modes.int().tolist()}
    assert results == {(1, 0, 1, 0, 1, 0), (0, 1, 0, 1, 0, 1)}


@depths
def test_restoring_weak_machines_is_exact(sizes: tuple[int, ...]) -> None:
    prior = random_deep_prior((1, sizes[0]), sizes[1], sizes[2:])
    machine = with_weights(random_deep(*sizes), 0.15)
    prior = replace(
        prior,
        machine=machine.to(torch.float32),
        description=replace(prior.description, inference=replace(prior.description.inference, tol=1e-6)),
    )
    image = some_images(1, sizes[0])
    restored = Engine.of(prior, torch.device("cpu")).restore(image.float(), BitFlip(0.2))
    truth = brute_force(machine.tilt(BitFlip(0.2).evidence(image)))
    for layer, means in enumerate(restored.means):
        np.testing.assert_allclose(means[0], truth.means[layer], atol=2e-3)
    tilted = prior.machine.tilt(BitFlip(0.2).evidence(image.float()))
    assert float(TAP(tol=1e-6).solve(tilted).log_partition) == pytest.approx(truth.log_partition, abs=2e-3)


# --- the prior ---


@settings(max_examples=20)
@given(st.sampled_from(SIZES), st.integers(0, 1000), st.sampled_from([torch.float64, torch.float32]))
def test_given_is_the_conditional_distribution(sizes: tuple[int, int, int], seed: int, dtype: torch.dtype) -> None:
    prior, pairs = random_prior(sizes, seed=seed), some_pairs(sizes, 3, seed)
    wanted = scores(prior, pairs.observed)
    given = prior.to(dtype).given(pairs.observed.to(dtype))
    assert given.weights.dtype == given.layers[0].parameters["bias"].dtype == dtype
    close = 1e-12 if dtype == torch.float64 else 1e-4
    visible, hidden = (torch.from_numpy(all_states(size)).to(dtype) for size in sizes[:2])
    for row in range(3):
        machine = given.rows(torch.tensor([row]))
        energies = [machine.energy((v.expand(len(hidden), -1), hidden)).double().numpy() for v in visible]
        np.testing.assert_allclose(-np.array(energies), wanted[row], rtol=0, atol=close)
        result = -machine.free_energy(visible).double().numpy()
        np.testing.assert_allclose(result, total(wanted[row]), rtol=0, atol=close)
        assert brute_force(given, row).log_partition == pytest.approx(log_z(prior, pairs.observed)[row], abs=close)
    np.testing.assert_allclose(
        -given.free_energy(pairs.clean.to(dtype)).double().numpy(), log_weight(prior, pairs), rtol=0, atol=close
    )


@pytest.mark.parametrize(
    ("visible", "hidden"),
    [((4, 5), (3, 5)), ((5, 5), (2, 5)), ((5, 5), (3, 4)), ((5,), (3, 5)), ((5, 5), (3,)), ((5, 5, 1), (3, 5, 1))],
    ids=str,
)
def test_inputs_that_do_not_lead_to_the_layers(visible: tuple[int, ...], hidden: tuple[int, ...]) -> None:
    with pytest.raises(ValueError) as caught:
        ConditionalRBM(random_prior().machine, torch.zeros(visible), torch.zeros(hidden))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    "observed",
    [
        torch.zeros(2, 5),
        torch.zeros(2, 0),
        torch.zeros(4),
        torch.zeros(1, 2, 4),
        torch.tensor([[0, 1, 0, math.nan]]),
        torch.tensor([[0, 1, 0, 0], [math.inf, 1, 0, 0]]),
        torch.tensor([[0, -math.inf, 0, 0]]),
    ],
    ids=["size", "nothing", "flat", "3d", "nan", "inf", "-inf"],
)
def test_observed_images_that_cannot_be_used(observed: Tensor, dtype: torch.dtype) -> None:
    with refused(InputError):
        random_prior().to(dtype).given(observed.to(dtype))
