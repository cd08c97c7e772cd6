"""Training that goes on from another prior."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from machines import bars_and_stripes, seeded
from oracle import log_likelihood
from priors import random_convolutional_deep_prior, saved_prior
from refusals import refused
from torch import Tensor

from restore import zoo
from restore.errors import ModelError, TrainingError
from restore.fields import Fields
from restore.learning.gradients.independent import LARGEST_PARAMETER, independent_units
from restore.learning.recipe.recipe import Recipe, parse
from restore.learning.recipe.spec import PriorShape
from restore.learning.rules.matched import MatchedMarginals
from restore.learning.run.session import Session
from restore.learning.starting import started
from restore.learning.train import train
from restore.priors import RBM
from restore.units import Bernoulli, Gaussian, Spiked, Spin, TruncatedGaussian, Units
from restore.zoo.store import save

SHAPE = (3, 3)


def recipe(start: Path | str, rate: float = 1e-30, **prior: Any) -> Recipe:
    return parse(
        {
            "name": "further",
            "data": {"source": "bars"},
            "prior": {"hidden": 5, "start": str(start)} | prior,
            "learner": {"method": "contrastive"},
            "training": {"epochs": 1, "batch": 7},
            "optimizer": {"rate": rate},
            "inference": {"modes": 0, "starts": 1},
            "storage": "float32",
        }
    )


def test_the_first_weights_are_those_of_the_other_prior(tmp_path: Path) -> None:
    start = saved_prior(tmp_path, SHAPE)
    machine = zoo.load(start).machine
    trained = train(recipe(start), bars_and_stripes(3), SHAPE, Session(tmp_path / "run", "data"))
    for name, value in machine.parameters.items():
        # At such a rate nothing moves.
        torch.testing.assert_close(trained.prior.machine.parameters[name], value.float(), rtol=0, atol=1e-20)


def test_further_hidden_units_begin_weakly(tmp_path: Path) -> None:
    start = saved_prior(tmp_path, SHAPE)
    wider = started(recipe(start, hidden=8).prior, SHAPE, seed=0)
    before, after = zoo.load(start).machine.parameters, wider.parameters
    assert torch.equal(after["weights.0"][:, :5], before["weights.0"])
    assert after["weights.0"].shape == (9, 8)
    assert 0 < float(after["weights.0"][:, 5:].abs().max()) < 0.1


def test_what_learns_by_restoring_takes_over_the_modes_of_its_start(tmp_path: Path) -> None:
    start = saved_prior(tmp_path, SHAPE)
    carried = zoo.load(start).modes
    settings = recipe(start)
    learner = MatchedMarginals(tasks=("flip:0.1",), iterations=3, scored=1)
    wished = replace(
        settings, method="matched", learner=learner, inference=replace(settings.inference, modes=len(carried) - 1)
    )
    trained = train(wished, bars_and_stripes(3), SHAPE, Session(tmp_path / "run", "data"))
    assert len(carried) > 1 and torch.equal(trained.prior.modes, carried[:-1])


@pytest.mark.parametrize(
    ("prior", "shape", "says"),
    [
        ({"hidden": 4}, SHAPE, "has 5 hidden units; give [prior] hidden as many or more"),
        ({}, (3, 4), "for images of 3x3 pixels cannot be the start of"),
        ({"family": "deep", "deeper": (2,)}, SHAPE, "cannot be the start of a deep Boltzmann machine"),
    ],
)
def test_another_kind_of_machine_is_refused(
    prior: dict[str, Any], shape: tuple[int, int], says: str, tmp_path: Path
) -> None:
    wanted = PriorShape(**({"hidden": 5, "start": str(saved_prior(tmp_path, SHAPE))} | prior))
    with refused(TrainingError, says):
        started(wanted, shape, 0)


def test_a_convolutional_machine_goes_on_from_another(tmp_path: Path) -> None:
    prior = random_convolutional_deep_prior()
    save(tmp_path / "layers", prior, "# Layers\n\n## Scores\n\nNone.\n")
    shape = PriorShape(family="deep_convolutional", layers=prior.description.layers, start=str(tmp_path / "layers"))
    found = started(shape, prior.description.image_shape, seed=0)
    for name, value in prior.machine.parameters.items():
        assert torch.equal(found.parameters[name], value), name
    others = (prior.description.layers[0]._replace(number=6), *prior.description.layers[1:])
    with refused(TrainingError, "layers"):
        started(replace(shape, layers=others), prior.description.image_shape, seed=0)


def test_a_start_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with refused(ModelError, "no-such-prior"):
        started(recipe("no-such-prior").prior, SHAPE, 0)


def growing(start: Path | str, hidden: int, **prior: Any) -> Recipe:
    table = {
        "name": "grown",
        "data": {"source": "bars"},
        "prior": {"hidden": hidden, "start": str(start)} | prior,
        "learner": {"method": "frank_wolfe", "penalty": 0.01},
        "inference": {"modes": 0, "starts": 1},
        "storage": "float32",
    }
    return parse(table)


@pytest.mark.usefixtures("quick_growth")
def test_frank_wolfe_adds_units_to_those_of_the_start(tmp_path: Path) -> None:
    start, images = saved_prior(tmp_path, SHAPE), bars_and_stripes(3)
    found = train(growing(start, 7), images, SHAPE, Session(tmp_path / "run", "data"))
    before, after = zoo.load(start).machine, found.prior.machine
    assert isinstance(before, RBM) and isinstance(after, RBM) and after.hidden.size == 7
    torch.testing.assert_close(after.weights[:, :5], before.weights.float())
    torch.testing.assert_close(after.hidden.parameters["bias"][:5], before.hidden.parameters["bias"].float())
    heights = [float(log_likelihood(one, images.to(one.weights)).mean()) for one in (before, after)]
    assert heights[1] > heights[0] + 0.1


@pytest.mark.usefixtures("quick_growth")
def test_a_start_without_room_to_grow_is_refused(tmp_path: Path) -> None:
    start = saved_prior(tmp_path, SHAPE)
    with refused(TrainingError, "hidden units"):
        train(growing(start, 5), bars_and_stripes(3), SHAPE, Session(tmp_path / "run", "data"))


# --- independent pixels ---


PIXELS = 4
NOTHING = Fields(torch.zeros(PIXELS, dtype=torch.float64))


def values(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def zeros(size: int = PIXELS) -> Tensor:
    return torch.zeros(size, dtype=torch.float64)


def grey(size: int = PIXELS) -> TruncatedGaussian:
    return TruncatedGaussian(zeros(size), zeros(size))


# Units to draw from, and the broad ones the search is given.
SLAB = TruncatedGaussian(values(12, -30, 3, -4), values(25, 10, -9, 0))
KNOWN = {
    "truncated": (SLAB, grey()),
    "spiked": (Spiked(values(-1, 4, 0, 2), SLAB), Spiked(zeros(), grey())),
    "wide": (
        TruncatedGaussian(values(3, -2, 0, 5), values(2, 8, -3, 20), -1, 1),
        TruncatedGaussian(zeros(), zeros(), -1, 1),
    ),
    "gaussian": (Gaussian(values(3, -2, 0, 5), values(2, 8, 1, 20)), Gaussian(zeros(), zeros() + 1)),
    "bernoulli": (Bernoulli(values(-2, 0, 1, 3)), Bernoulli(zeros())),
    "spin": (Spin(values(-1, 0, 0.5, 1.5)), Spin(zeros())),
}
every_kind = pytest.mark.parametrize(("truth", "broad"), KNOWN.values(), ids=KNOWN)


def drawn(units: Units, count: int, seed: int = 0) -> Tensor:
    return units.sample(Fields(zeros().expand(count, -1)), seeded(seed))


def gap(units: Units, images: Tensor, pseudo: Units) -> dict[str, Tensor]:
    """The gradient by its definition: expected statistics minus their mean over the images and one more."""
    expected, extra = units.expected_statistics(NOTHING), pseudo.expected_statistics(NOTHING)
    seen = {name: (value.sum(0) + extra[name]) / (len(images) + 1) for name, value in units.statistics(images).items()}
    return {name: expected[name] - seen[name] for name in seen}


@every_kind
def test_the_statistics_expected_are_those_of_the_images(truth: Units, broad: Units) -> None:
    images = drawn(truth, 500)
    for value in gap(independent_units(broad, images), images, broad).values():
        torch.testing.assert_close(value, torch.zeros_like(value), rtol=0, atol=2e-5)


@pytest.mark.parametrize("broad", [grey(), Spiked(zeros(), grey())], ids=["truncated", "spiked"])
def test_pixels_that_never_change_keep_finite_parameters(broad: Units) -> None:
    images = values(0, 1, 0.4, 1e-3).expand(60_000, -1)
    found = independent_units(broad, images)
    for name, value in found.parameters.items():
        assert bool((value.abs() <= LARGEST_PARAMETER).all())
        # Where a bound holds a parameter back, the likelihood would grow beyond it; elsewhere nothing is left to gain.
        slope = gap(found, images, broad)[name]
        held = value.abs() == LARGEST_PARAMETER
        assert bool((slope[held] * value[held] < 0).all())
        torch.testing.assert_close(slope[~held], torch.zeros_like(slope[~held]), rtol=0, atol=1e-5)
    torch.testing.assert_close(found.moments(NOTHING)[0], images[0], rtol=0, atol=0.01)


@pytest.mark.parametrize(
    "images", [torch.zeros(5, 3), torch.zeros(0, 4), torch.full((5, 4), 2.0), torch.full((5, 4), torch.nan)]
)
def test_images_that_do_not_fit_are_refused(images: Tensor) -> None:
    with refused(TrainingError, "4" if images.shape[1:] != (PIXELS,) or not len(images) else "[0, 1]"):
        independent_units(grey(), images)
