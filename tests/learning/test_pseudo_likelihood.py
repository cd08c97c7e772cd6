"""The pseudo-likelihood: its value, gradient and curvature, and the standard errors of its maximum."""

from __future__ import annotations

import math

import pytest
import torch
from bslm_covariance import flattened, standard_errors, unflattened
from directions import drawn, fitted, log_pseudo_likelihood, random_spins, same
from machines import numerical_gradient, seeded
from refusals import refused
from torch import Tensor

from restore.errors import TrainingError
from restore.learning.gradients.pseudo_likelihood import Objective, Sample, Spins
from restore.learning.rules.bslm import BSLM, spins_of
from restore.priors import FullyVisible

# --- the objective ---


def plain_value(images: Tensor, at: Spins) -> float:
    """Eq. 2.1 over the number of images, written out."""
    total = 0.0
    for x in (2 * images - 1).numpy():
        for unit, spin in enumerate(x):
            field = float(at.couplings[unit].numpy() @ x + float(at.bias[unit]))
            total += spin * field - math.log(math.cosh(field)) - math.log(2)
    return total / len(images)


@pytest.mark.parametrize("units", [1, 4, 65], ids=["one", "few", "not-coded"])
def test_value_is_that_of_the_paper(units: int) -> None:
    images = (torch.rand(30, units, generator=seeded(1)) < 0.4).double()
    at = random_spins(units, 0.1)
    objective = Objective(Sample.of(images))
    assert objective.value(at) == pytest.approx(plain_value(images, at), abs=1e-12)
    bits = log_pseudo_likelihood(FullyVisible.from_spins(*at), images).mean()
    assert objective.value(at) == pytest.approx(float(bits), abs=1e-12)


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_gradient_against_finite_differences(l2: float) -> None:
    images = (torch.rand(50, 5, generator=seeded(1)) < 0.4).double()
    objective, at = Objective(Sample.of(images), l2), random_spins(5)
    gradient = objective.evaluate(at).gradient
    wanted = numerical_gradient(lambda moved: objective.value(unflattened(moved)), flattened(at))
    # A coupling stands in two entries of M, each of which has half its derivative.
    told = flattened(Spins(2 * gradient.couplings, gradient.bias))
    torch.testing.assert_close(told, wanted, rtol=0, atol=1e-8)
    assert objective.evaluate(at).value == objective.value(at)


def test_penalty_counts_every_entry() -> None:
    images, at = same(4), random_spins(4)
    free, bound = (Objective(Sample.of(images), l2).value(at) for l2 in (0.0, 0.5))
    assert free - bound == pytest.approx(0.25 * float((at.couplings**2).sum() + (at.bias**2).sum()), abs=1e-12)


@pytest.mark.parametrize("images", [torch.zeros(0, 3), torch.tensor([[0.5, 1.0]]), torch.tensor([[math.nan, 1.0]])])
def test_other_images_are_refused(images: Tensor) -> None:
    with refused(TrainingError, "images"):
        Sample.of(images)


# --- standard errors ---


def test_standard_errors_predict_the_error() -> None:
    truth = random_spins(5, 0.1)
    squares, predicted = [], []
    for seed in range(40):
        images = drawn(truth, 2000, seed)
        at = spins_of(fitted(BSLM(), images)[-1].state)
        squares.append((flattened(at) - flattened(truth)).square())
        predicted.append(flattened(standard_errors(images, at)).square())
    assert float(torch.stack(squares).mean() / torch.stack(predicted).mean()) == pytest.approx(1, abs=0.2)
