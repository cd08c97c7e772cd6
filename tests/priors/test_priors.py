"""Layered priors, the bipartite machine, and the enumeration oracle against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from machines import brute_force, random_deep, random_fully_visible, random_rbm, seeded
from oracle import binary_states, exact_moments, log_likelihood
from torch import Tensor

from restore.errors import UsageError
from restore.fields import Fields
from restore.priors import RBM, BoltzmannMachine, LayeredPrior
from restore.units import Bernoulli


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
