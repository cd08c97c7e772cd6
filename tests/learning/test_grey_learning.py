"""Learning from grey levels, whole runs: the exact likelihood rises, kinds of units, stopping, the command."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from directions import grey_images
from machines import brute_force, random_machine, seeded
from stripes import SHAPE, recipe, stripes
from torch import Tensor

import restore
from restore.errors import TrainingError
from restore.fields import Fields
from restore.learning.course import course_of
from restore.learning.rules.contract import Step
from restore.learning.rules.tap_likelihood import TAPLikelihood
from restore.learning.run.folder import Stopped
from restore.learning.run.session import Session
from restore.learning.train import train
from restore.priors import RBM
from restore.registry import UNITS
from restore.units.layers import blank
from restore.zoo import describe


def exact_log_likelihood(machine: RBM, images: Tensor) -> float:
    """The hidden states gone through one by one; all units but those are independent given them."""
    machine = machine.to(torch.float64)
    states = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * machine.hidden.size)
    own = machine.hidden.log_weight(states).sum(-1)
    each = own + machine.visible.log_partition(Fields(states @ machine.weights.T)).sum(-1)
    return float((-machine.free_energy(images.double()) - torch.logsumexp(each, 0)).mean())


def test_the_exact_likelihood_of_these_tests_is_that_of_quadrature() -> None:
    machine, images = random_machine(("spiked-truncated", 2), ("bernoulli", 2)), grey_images(4, 2)
    assert isinstance(machine, RBM)
    wanted = float((-machine.free_energy(images)).mean()) - brute_force(machine, nodes=40).log_partition
    assert exact_log_likelihood(machine, images) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("visible", ["truncated-gauss-bernoulli", "truncated-gaussian"])
def test_training_raises_the_exact_likelihood(visible: str, tmp_path: Path) -> None:
    images, fresh = stripes(200), stripes(200, seed=9)
    settings = recipe(30, prior={"visible": visible})
    first = course_of(settings, images, SHAPE).initial(3, 0.01, seeded(0))
    trained = train(settings, images, SHAPE, Session(tmp_path, "x"))
    machine = trained.prior.machine
    assert isinstance(machine, RBM) and isinstance(first, RBM)
    before, after = exact_log_likelihood(first, fresh), exact_log_likelihood(machine, fresh)
    assert after > before + 0.5
    # What the prior carries is where learning started: pixels without neighbours.
    pixels = trained.prior.grey_pixels
    assert pixels is not None and pixels.parameters.keys() == machine.visible.parameters.keys()
    for name, value in pixels.parameters.items():
        assert torch.equal(value, first.visible.parameters[name])


@pytest.mark.parametrize("hidden", sorted(UNITS))
@pytest.mark.parametrize("deeper", [[], [2]], ids=["rbm", "deep"])
def test_every_kind_of_hidden_unit_can_be_trained_and_kept(hidden: str, deeper: list[int], tmp_path: Path) -> None:
    family = {"family": "deep", "deeper": deeper} if deeper else {}
    settings = recipe(2, prior={"hidden_type": hidden, "weight_scale": 0.1} | family)
    prior = train(settings, stripes(50), SHAPE, Session(tmp_path, "x")).prior
    about = prior.description
    assert about.kind.unit_kinds(about, about.image_shape) == (
        "truncated-gauss-bernoulli",
        *[hidden] * (1 + len(deeper)),
    )
    named = prior.machine.parameters
    assert all(bool(torch.isfinite(value).all()) for value in named.values())
    # Every parameter has learnt something of its own.
    assert len({value.data_ptr() for value in named.values()}) == len(named)
    start = blank(hidden, 3, named["weights.0"]).parameters
    assert not any(torch.equal(named[f"units.1.{name}"], value) for name, value in start.items())


@pytest.mark.parametrize("kind", sorted(UNITS))
def test_blank_units_prefer_nothing_and_share_nothing(kind: str) -> None:
    layer = blank(kind, 3, torch.zeros(1, dtype=torch.float64))
    named = layer.parameters
    assert len({value.data_ptr() for value in named.values()}) == len(named)
    assert bool(torch.isfinite(layer.log_partition(Fields(torch.zeros(3, dtype=torch.float64)))).all())
    for name, value in named.items():
        bounded = kind not in ("gaussian", "gauss-bernoulli")
        assert value.tolist() == [0.0 if bounded or name != "quadratic" else 1.0] * 3


@pytest.mark.parametrize("after", [1, 5])
def test_a_stopped_run_goes_on_with_the_same_bits(after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, images = recipe(2, optimizer={"average": 0.9}), stripes(100)
    whole = train(settings, images, SHAPE, Session(tmp_path / "whole", "x")).prior
    original, taken = TAPLikelihood.step, []

    def step(*told: Any) -> Step:
        taken.append(1)
        if len(taken) == after:
            os.kill(os.getpid(), signal.SIGINT)
        return original(*told)

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(TAPLikelihood, "step", step)
        train(settings, images, SHAPE, Session(tmp_path / "run", "x"))
    assert len(taken) == after
    again = train(settings, images, SHAPE, Session(tmp_path / "run", "x", resume=True)).prior
    for name, value in whole.machine.parameters.items():
        assert torch.equal(again.machine.parameters[name], value), name


def test_a_diverging_machine_ends_training_and_says_so(tmp_path: Path) -> None:
    settings = recipe(5, prior={"hidden_type": "gaussian"}, optimizer={"rate": 1e30})
    with pytest.raises(TrainingError):
        train(settings, stripes(100), SHAPE, Session(tmp_path, "x"))


def test_images_become_priors_in_python(tmp_path: Path) -> None:
    images = stripes(60).reshape(60, *SHAPE).numpy()
    prior = {"visible": "truncated-gaussian", "hidden_type": "gaussian"}
    made = restore.train(images, name="grey", hidden=2, epochs=2, prior=prior, optimizer={"rate": 0.01})
    about = made.description
    assert (about.grey, about.visible, about.hidden_type) == (True, "truncated-gaussian", "gaussian")
    assert (about.inference.modes, about.inference.starts) == (0, 1)
    found = made.denoise(images[:2], sigma=0.2)
    assert found.shape == (2, *SHAPE) and 0 <= found.min() <= found.max() <= 1


RECIPE = """
name = "grey-stripes"
seed = 1
[data]
source = "stripes"
[prior]
hidden = 3
visible = "truncated-gauss-bernoulli"
[learner]
method = "tap"
starts = "redrawn"
grey_unit = 0.3
[training]
epochs = 2
batch = 50
[optimizer]
rate = 0.02
schedule = "geometric"
end = 0.1
"""


@pytest.mark.usefixtures("without_graph")
def test_the_command_trains_a_grey_prior(run: Callable[..., int], tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(RECIPE)
    levels = np.rint(stripes(100).reshape(100, *SHAPE).numpy() * 255).astype(np.uint8)
    np.save(tmp_path / "data.npy", levels)
    words = ["--data", tmp_path / "data.npy", "-o", tmp_path / "made", "--run", tmp_path / "run", "--quiet"]
    assert run("train", tmp_path / "recipe.toml", *words) == 0
    assert describe(tmp_path / "made").grey
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    # The last of four steps begins after three quarters of the way.
    assert log[-1]["rate"] == pytest.approx(0.02 * 0.1**0.75)
