"""Fully visible priors through the commands: recipe, training, stopping and resuming, files, graphs, restoring."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from directions import log_pseudo_likelihood
from machines import bars_and_stripes, seeded
from refusals import refused

from restore.channels import BitFlip
from restore.data import Dataset
from restore.errors import TrainingError
from restore.inference.torch_engine import Engine
from restore.learning.lesson import Lesson
from restore.learning.loop import drive
from restore.learning.recipe.recipe import Recipe, parse
from restore.learning.recipe.spec import PriorShape
from restore.learning.rounds import Rounds
from restore.learning.run.card import write_card
from restore.learning.run.outcome import Trained
from restore.learning.run.session import Session
from restore.learning.train import train
from restore.priors import FullyVisible
from restore.zoo.inference import Inference

TABLE: dict[str, Any] = {
    "name": "mine",
    "data": {"source": "bars"},
    "prior": {"family": "fvbm"},
    "learner": {"method": "bslm", "l2": 0.01, "rounds": 5},
}
SHAPE = (4, 4)


def recipe(**learner: Any) -> Recipe:
    return parse(TABLE | {"learner": TABLE["learner"] | learner})


@pytest.fixture(scope="module")
def images() -> torch.Tensor:
    return bars_and_stripes(4)


@pytest.fixture(scope="module")
def trained(images: torch.Tensor, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train(recipe(), images, SHAPE, Session(tmp_path_factory.mktemp("run"), "x"))


# --- recipes ---


def test_a_recipe_needs_the_family_and_a_method_only() -> None:
    made = recipe()
    assert (made.prior.hidden, made.in_rounds) == (0, True)
    assert made.inference == Inference("mean_field", damping=0.5, modes=0, starts=1)


# --- training ---


def test_training_describes_what_it_made(trained: Trained, images: torch.Tensor) -> None:
    header = trained.prior.description
    assert (header.family, header.hidden, len(header.sizes), header.method) == ("fvbm", 0, 1, "bslm")
    assert "log-pseudo-likelihood" in trained.verdict
    machine = trained.prior.machine
    assert isinstance(machine, FullyVisible)
    assert machine.weights.dtype == torch.float32
    independent = FullyVisible.binary(torch.zeros(16, 16), torch.logit(images.mean(0)))
    assert float(log_pseudo_likelihood(machine, images).mean()) > float(
        log_pseudo_likelihood(independent, images).mean() + 5
    )
    shown = Dataset(images.reshape(-1, 4, 4).numpy().astype("uint8"), "bars", "train")
    card = write_card(trained, Lesson(recipe(), "text", shown, None, ()), "command", 2.0)
    assert "A binary fully visible Boltzmann machine with 16 visible units (4 x 4 pixels) and\nno hidden units" in card


@pytest.mark.parametrize("method", ["bslm", "gradient_ascent", "quasi_newton"])
def test_a_stopped_run_goes_on_bit_by_bit(method: str, images: torch.Tensor, tmp_path: Path) -> None:
    whole = recipe(method=method, rounds=4, tol=0.0).learner
    some = replace(whole, rounds=2)
    shape = PriorShape(family="fvbm")
    straight, part, resumed = (
        Rounds(rule, rule.at_work(shape, images[:0]), images, Session(tmp_path / name, resume=True), seed=0)
        for rule, name in ((whole, "a"), (some, "b"), (whole, "b"))
    )
    for work in (straight, part, resumed):
        drive(work, {"recipe": "same"})
    assert straight.done == resumed.done
    for name, value in straight.state.state.items():
        assert torch.equal(resumed.state.state[name], value)


def test_constant_pixels_need_a_penalty(images: torch.Tensor, tmp_path: Path) -> None:
    framed = images.clone()
    framed[:, 0] = 0
    with refused(TrainingError, "pixel 0", "[learner] l2"):
        train(recipe(l2=0.0), framed, SHAPE, Session(tmp_path / "a", "x"))
    made = train(recipe(), framed, SHAPE, Session(tmp_path / "b", "x"))
    assert all(bool(torch.isfinite(value).all()) for value in made.prior.machine.parameters.values())


def test_modes_come_from_its_own_samples(images: torch.Tensor, tmp_path: Path) -> None:
    table = TABLE | {"inference": {"solver": "tap", "damping": 0.6, "modes": 6, "starts": 3}}
    made = train(parse(table), images, SHAPE, Session(tmp_path, "x"))
    assert made.prior.modes.shape == (6, 2)
    found = Engine.of(made.prior, torch.device("cpu")).restore(images[:3], BitFlip(0.1))
    assert bool(torch.isfinite(found.log_partition).all())


# --- use ---


@pytest.mark.parametrize("solver", ["tap", "mean_field"])
def test_it_restores(trained: Trained, images: torch.Tensor, solver: Any) -> None:
    header = replace(trained.prior.description, inference=Inference(solver, damping=0.5, modes=0, starts=1))
    engine = Engine.of(replace(trained.prior, description=header), torch.device("cpu"))
    truth = images.repeat(10, 1)
    channel = BitFlip(0.1)
    noisy = channel.corrupt(truth, seeded(1))
    restored = engine.restore(noisy, channel).means[0] > 0.5
    before, after = ((one != truth.bool()).float().mean() for one in (noisy.bool(), restored))
    assert float(after) < 0.7 * float(before)
