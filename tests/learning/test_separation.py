"""Images whose pseudo-likelihood has no maximum are recognised, and what is missing is named."""

from __future__ import annotations

import math

import pytest
import torch
from bslm_covariance import flattened, rounds_of
from directions import fitted
from machines import seeded
from oracle import binary_states
from refusals import refused
from torch import Tensor

from restore.errors import TrainingError
from restore.learning.gradients.pseudo_likelihood import Objective, Sample, Spins, separated_units
from restore.learning.rules.bslm import BSLM, spins_of


def refusal(images: Tensor, **settings: float) -> str:
    with pytest.raises(TrainingError) as caught:
        fitted(BSLM(**settings), images)  # type: ignore[arg-type]
    return str(caught.value)


def test_constant_pixels_are_named() -> None:
    images = (torch.rand(200, 8, generator=seeded(1)) < 0.5).double()
    images[:, 2], images[:, 5] = 0, 1
    message = refusal(images)
    assert message.startswith("pixels 2, 5 never change")
    assert "l2" in message


@pytest.mark.parametrize("kind", ["equal", "opposite", "one-implies-the-other"])
def test_pixels_that_lack_a_combination_are_named(kind: str) -> None:
    images = (torch.rand(400, 5, generator=seeded(1)) < 0.5).double()
    first = images[:, 1]
    images[:, 3] = {"equal": first, "opposite": 1 - first}.get(kind, torch.maximum(first, images[:, 3]))
    assert refusal(images).startswith("pixels 1 and 3 never show")


def test_fewer_images_than_pixels() -> None:
    images = (torch.rand(25, 40, generator=seeded(1)) < 0.5).double()
    # Enough of them that every pair shows all combinations would be too many to be separable; so only ascent tells.
    learner = BSLM()
    objective = learner.objective(images)
    start = Spins(torch.zeros(40, 40).double(), torch.zeros(40).double())
    with refused(TrainingError, "[learner] l2"):
        list(rounds_of(learner, images, start))
    assert float(objective.value(start)) == pytest.approx(-40 * math.log(2))


def test_a_penalty_gives_every_sample_a_maximum() -> None:
    images = (torch.rand(25, 40, generator=seeded(1)) < 0.5).double()
    images[:, 3] = 0
    found = fitted(BSLM(l2=1e-3), images)
    assert found[-1].verdict
    at = spins_of(found[-1].state)
    assert bool(torch.isfinite(flattened(at)).all())
    gradient = BSLM(l2=1e-3).objective(images).evaluate(at).gradient
    assert float(flattened(gradient).abs().max()) < 1e-4


def test_one_unit_that_is_always_predicted_is_no_proof() -> None:
    """A pixel that is the majority of five others can be told from them, but they cannot be told from it."""
    images = majority_beside(5)
    at = Spins(torch.zeros(6, 6).double(), torch.zeros(6).double())
    at.couplings[5, :5] = at.couplings[:5, 5] = 1.0
    objective = Objective(Sample.of(images))
    spins = objective.sample.spins
    assert bool((spins * objective.fields(at) > 0)[5].all())
    assert not len(separated_units(objective, at))
    found = fitted(BSLM(tol=1e-14, rounds=500), images)
    assert "less than" in found[-1].verdict
    assert float(spins_of(found[-1].state).couplings.abs().max()) < 5


def majority_beside(count: int) -> Tensor:
    """All states of some pixels, an odd number, and their majority beside them."""
    others = binary_states(count, torch.zeros((), dtype=torch.float64))
    return torch.cat([others, (others.mean(1, keepdim=True) > 0.5).double()], 1)


def test_couplings_on_their_way_to_infinity_are_told() -> None:
    """The majority of three: couplings of 1 to it and -1/2 among them have no negative margin, but some that are 0."""
    images = majority_beside(3)
    direction = torch.tensor([[0, -1, -1, 2], [-1, 0, -1, 2], [-1, -1, 0, 2], [2, 2, 2, 0]]).double()
    objective = Objective(Sample.of(images))
    margins = objective.sample.spins * objective.fields(Spins(direction, torch.zeros(4).double()))
    assert float(margins.min()) == 0
    assert float(margins.max()) > 0
    assert "set [learner] l2" in fitted(BSLM(tol=0.0, rounds=500), images)[-1].verdict
