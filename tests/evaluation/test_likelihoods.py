"""Exact, TAP and pseudo-likelihoods against brute force; what they say and refuse."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pseudo
import pytest
import torch
from machines import brute_force, random_rbm, seeded
from mean_likelihoods import exact_likelihood
from pseudo import pseudo_likelihood
from torch import Tensor

from restore.errors import ModelError, UsageError
from restore.evaluation.likelihoods import exact
from restore.evaluation.likelihoods.exact import chunks
from restore.priors import RBM

PIXELS = 6


@dataclass(frozen=True)
class Dense:
    """A prior that is no RBM: log p(v) = vᵀJv / 2 + bᵀv - log Z."""

    couplings: Tensor
    bias: Tensor

    def free_energy(self, visible: Tensor) -> Tensor:
        return -((visible @ self.couplings) * visible).sum(-1) / 2 - visible @ self.bias


def dense(seed: int = 0) -> Dense:
    draw = torch.randn(PIXELS, PIXELS, generator=seeded(seed), dtype=torch.float64)
    return Dense((draw + draw.T).fill_diagonal_(0), torch.randn(PIXELS, generator=seeded(seed + 1)).double())


MODELS = {"few hidden": random_rbm(PIXELS, 4), "many hidden": random_rbm(PIXELS, 9, seed=1), "dense": dense()}
every_model = pytest.mark.parametrize("name", MODELS)


def all_images() -> Tensor:
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=PIXELS)), dtype=torch.float64)


def probabilities(name: str) -> np.ndarray:
    """p(v) of all images, by summing the joint distribution over hidden states, in their order."""
    model = MODELS[name]
    if isinstance(model, RBM):
        truth = brute_force(model)
        return truth.probabilities.reshape(2**PIXELS, -1).sum(1)
    weight = np.exp([0.5 * v @ model.couplings.numpy() @ v + model.bias.numpy() @ v for v in all_images().numpy()])
    return weight / weight.sum()


def images(count: int = 40, seed: int = 0) -> Tensor:
    return (torch.rand(count, PIXELS, generator=seeded(seed)) < 0.5).double()


def index_of(states: Tensor) -> np.ndarray:
    return (states @ (2.0 ** torch.arange(PIXELS - 1, -1, -1).double())).long().numpy()


# --- exact ---


@every_model
@pytest.mark.parametrize("chunk", [2, 13], ids=["many chunks", "one chunk"])
def test_exact_likelihoods(name: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "CHUNK_EXPONENT", chunk)
    truth = np.log(probabilities(name))[index_of(images())]
    told: list[int] = []
    likelihood = exact_likelihood(MODELS[name], images(), lambda done, note="": told.append(done))
    assert likelihood.mean == pytest.approx(truth.mean(), abs=1e-11)
    assert likelihood.standard_error == pytest.approx(truth.std(ddof=1) / math.sqrt(40))
    assert told == list(range(1, chunks(MODELS[name], PIXELS) + 1))
    assert (len(told) > 1) == (chunk == 2)


def test_sums_that_are_too_long_are_refused() -> None:
    images = torch.zeros(2, 40)
    with pytest.raises(UsageError):
        exact_likelihood(random_rbm(40, 30, dtype=torch.float32), images)
    with pytest.raises(UsageError):
        exact_likelihood(Dense(torch.zeros(40, 40), torch.zeros(40)), images)


# --- pseudo ---


@every_model
def test_exact_pseudo_likelihood(name: str) -> None:
    """Σ_i log p(v) / (p(v) + p(v with pixel i inverted)), from the enumerated distribution."""
    p, states = probabilities(name), index_of(images())
    flipped = states[:, None] ^ (1 << np.arange(PIXELS))
    truth = np.log(p[states][:, None] / (p[states][:, None] + p[flipped])).sum(1)
    likelihood = pseudo_likelihood(MODELS[name], images(), PIXELS, seeded())
    assert likelihood.mean == pytest.approx(truth.mean(), abs=1e-11)
    assert likelihood.log_partition is None


def test_the_parts_it_is_computed_in_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in MODELS:
        whole = pseudo_likelihood(MODELS[name], images(), 3, seeded()).mean
        with monkeypatch.context() as patch:
            patch.setattr(pseudo, "HELD", 60)
            assert pseudo_likelihood(MODELS[name], images(), 3, seeded()).mean == pytest.approx(whole, abs=1e-12)


# --- what all share ---


def test_infinite_parameters_are_refused() -> None:
    machine = random_rbm(PIXELS, 4)
    broken = machine.with_parameters(machine.parameters | {"units.0.bias": torch.full((PIXELS,), math.inf).double()})
    for likelihood in (exact_likelihood, lambda model, data: pseudo_likelihood(model, data, 3, seeded())):
        with pytest.raises(ModelError):
            likelihood(broken, torch.ones(1, PIXELS).double())
