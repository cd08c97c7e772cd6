"""Training machines with several hidden layers, one after the other and then all: stages, runs, and recipes."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from directions import some_images
from fits import after_step, bits, log_of
from machines import bars_and_stripes, random_deep, seeded
from torch import Tensor

from restore.learning.recipe.recipe import Recipe, parse
from restore.learning.rules.tap_likelihood import TAPLikelihood
from restore.learning.run.folder import Stopped, stage_folder
from restore.learning.run.session import Session
from restore.learning.starting import Stage, pretrained, stacked
from restore.learning.train import train
from restore.priors import RBM, LayeredPrior
from restore.units import Bernoulli

pytestmark = pytest.mark.usefixtures("quick_disk")

IMAGES = bars_and_stripes(3)

RECIPE: dict[str, Any] = {
    "name": "layers",
    "data": {"source": "bars-and-stripes"},
    "prior": {"family": "deep", "hidden": 4, "deeper": [3, 2], "weight_scale": 0.1},
    "learner": {"method": "tap", "starts": "redrawn", "solutions": 5},
    "optimizer": {"rate": 0.2},
    "pretraining": {"epochs": 2},
    "training": {"epochs": 3, "batch": 5},
}


def recipe_of(**tables: dict[str, Any]) -> Recipe:
    return parse(RECIPE | {name: RECIPE.get(name, {}) | table for name, table in tables.items()})


def run(recipe: Recipe, folder: Path, images: Tensor = IMAGES, **session: Any) -> LayeredPrior:
    machine = train(recipe, images, (3, 3), Session(folder, "data", **session)).prior.machine
    assert isinstance(machine, LayeredPrior)
    return machine


def test_a_layer_with_a_missing_neighbour_hears_the_other_one_twice() -> None:
    stage = Stage(some_images(6, 3).float(), Bernoulli(torch.tensor([0.5, 0.0, -1.0])), 2, 2, 1, drawn=False)
    rbm = stage.initial(0, 0.3, seeded())
    single = stage.single(rbm)
    assert (rbm.visible.size, rbm.hidden.size, tuple(single.weights.shape)) == (6, 2, (3, 2))
    batch = stage.batch(torch.tensor([1, 4]), seeded())
    torch.testing.assert_close(rbm.hidden_fields(batch).linear, 2 * stage.below[[1, 4]] @ single.weights)
    # Either copy of the image hears the hidden units once.
    hidden = torch.tensor([[1.0, 0.0]])
    heard = rbm.visible_fields(hidden).linear
    torch.testing.assert_close(heard, single.visible_fields(hidden).linear.repeat(1, 2))
    assert torch.equal(single.visible.parameters["bias"], stage.lower.parameters["bias"])


def test_stacked_layers_hear_on_average_what_they_heard_alone() -> None:
    lower, upper = random_deep(4, 3, seed=1), random_deep(3, 2, seed=2)
    deep = stacked([RBM(machine.layers, machine.couplings) for machine in (lower, upper)])
    below, above = some_images(1, 4), some_images(1, 2)
    twice = [
        lower.layers[1].parameters["bias"] + 2 * below @ lower.couplings[0].weights,
        upper.layers[0].parameters["bias"] + 2 * above @ upper.couplings[0].weights.T,
    ]
    heard = deep.layers[1].parameters["bias"] + deep.inputs(1, [below, torch.zeros(1, 3), above])
    torch.testing.assert_close(heard, (twice[0] + twice[1]) / 2)
    assert [layer.size for layer in deep.layers] == [4, 3, 2]


def test_upper_layers_learn_from_states_drawn_anew() -> None:
    probabilities = torch.tensor([[0.0, 1.0, 0.25]]).repeat(4000, 1)
    stage = Stage(probabilities, Bernoulli(torch.zeros(3)), 2, 1, 2, drawn=True)
    generator = seeded()
    first, second = (stage.batch(torch.arange(4000), generator) for _ in range(2))
    assert set(first.unique().tolist()) == {0.0, 1.0}
    assert not torch.equal(first, second)
    torch.testing.assert_close(first.mean(0), probabilities[0], rtol=0, atol=5 * 0.5 / 4000**0.5)


def test_every_layer_is_trained_on_what_the_one_below_makes_of_the_images(tmp_path: Path) -> None:
    recipe = recipe_of()
    machine, _ = pretrained(recipe, IMAGES, Session(tmp_path, "data"))
    assert [layer.size for layer in machine.layers] == [9, 4, 3, 2]
    learner = recipe.learner
    seen: list[Tensor] = []

    class Spy(TAPLikelihood):
        def init(self, prior: LayeredPrior, images: Tensor, generator: torch.Generator) -> Any:
            seen.append(images)
            return super().init(prior, images, generator)

    spying = replace(recipe, learner=Spy(starts=learner.starts, solutions=learner.solutions))
    pretrained(spying, IMAGES, Session(tmp_path / "again", "data"))
    # The image and the layer next to it are there twice, as they have something above what they are joined to.
    assert [images.shape[1] for images in seen] == [18, 8, 3]
    assert torch.equal(seen[0], IMAGES.repeat(1, 2))
    for images in seen[1:]:
        assert float(images.min()) > 0 and float(images.max()) < 1


def stage_logs(folder: Path) -> list[list[dict[str, Any]]]:
    return [log_of(stage_folder(folder, number)) for number in (1, 2, 3)] + [log_of(folder)]


def test_stopped_at_every_step_of_every_stage_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_of()
    whole = run(recipe, tmp_path / "whole")
    # Three batches an epoch.
    after_step(monkeypatch, recipe.learner, lambda taken: os.kill(os.getpid(), signal.SIGINT))
    stops = 0
    while True:
        try:
            resumed = run(recipe, tmp_path / "stopped", resume=True)
            break
        except Stopped:
            stops += 1
    assert stops == 3 * (2 * 3) + 3 * 3
    assert bits(resumed) == bits(whole)
    assert stage_logs(tmp_path / "stopped") == stage_logs(tmp_path / "whole")


def test_what_is_overwritten_is_trained_from_the_first_stage_on(tmp_path: Path) -> None:
    """A finished run leaves the checkpoints of its stages, which must not pass for those of the new one."""
    recipe = recipe_of()
    first, again = run(recipe, tmp_path), run(recipe, tmp_path, overwrite=True)
    for ours, theirs in zip(first.couplings, again.couplings, strict=True):
        assert torch.equal(ours.weights, theirs.weights)
