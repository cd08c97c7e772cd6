"""Machines with several hidden layers: both phases of their gradient, pre-training, recipes, files, and restoring."""

from __future__ import annotations

import json
import os
import signal
import tomllib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from machines import bars_and_stripes, brute_force, numerical_gradients, random_deep, seeded, with_weights
from priors import random_deep_prior
from test_fit import after_step, bits, log_of
from test_learners import EXACTLY, assert_close, moved_by, some_images
from torch import Tensor

import restore
from restore import zoo
from restore.channels import BitFlip
from restore.engine import Engine
from restore.errors import TrainingError, UsageError
from restore.fields import Fields
from restore.learning.centring import centred
from restore.learning.contract import Gradient
from restore.learning.course import independent_pixels, pixel_means
from restore.learning.modes import own_modes
from restore.learning.pipeline import train
from restore.learning.pretraining import Stage, pretrained, stacked
from restore.learning.recipe import Recipe, parse
from restore.learning.run_folder import Stopped, epoch_seconds, stage_folder
from restore.learning.tap_likelihood import TAPLikelihood
from restore.priors import RBM, LayeredPrior
from restore.priors.bits import unpack
from restore.priors.exact import binary_states
from restore.solvers import TAP
from restore.units import Bernoulli

depths = pytest.mark.parametrize("sizes", [(5, 4, 3), (4, 3, 3, 2)], ids=["two-hidden-layers", "three"])
PRECISE: dict[str, Any] = {"max_iter": 5000, "tol": 1e-13, "damping": 0.1}


def step_of(learner: TAPLikelihood, machine: LayeredPrior, images: Tensor) -> Gradient:
    return learner.step(machine, images, learner.init(machine, images, seeded()), seeded()).gradient


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for the disk: nothing here pulls the plug."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


# --- the gradient ---


def tap_likelihood(machine: LayeredPrior, images: Tensor) -> Tensor:
    """Mean over images of TAP's log Z with the image clamped, minus that of the machine from each image."""
    clamped = TAP(**PRECISE).solve(machine.above(images), images.new_full((len(images), machine.layers[1].size), 0.5))
    free = TAP(**PRECISE).solve(machine, images)
    return (machine.layers[0].log_weight(images).sum(-1) + clamped.log_partition - free.log_partition).mean()


def likelihood(machine: LayeredPrior, images: Tensor) -> Tensor:
    """Exact mean log-likelihood."""
    sizes = [layer.size for layer in machine.layers]
    states = binary_states(sum(sizes), images)
    weight = -machine.energy(states.split(sizes, 1))
    same = (states[:, None, : sizes[0]] == images).all(-1)
    return torch.stack([weight[mine].logsumexp(0) for mine in same.T]).mean() - weight.logsumexp(0)


@depths
@pytest.mark.parametrize("starts", ["data", "redrawn"])
def test_gradient_is_that_of_the_tap_likelihood(sizes: tuple[int, ...], starts: Any) -> None:
    machine, images = random_deep(*sizes, scale=0.6), some_images(6, sizes[0])
    learner = TAPLikelihood(starts=starts, solutions=3, centring=False, **EXACTLY)
    wanted = numerical_gradients(lambda moved: tap_likelihood(moved, images), machine)
    assert_close(step_of(learner, machine, images), wanted, 1e-8)


@depths
def test_gradient_of_weak_couplings_is_the_exact_one(sizes: tuple[int, ...]) -> None:
    images, errors = some_images(6, sizes[0]), []
    for scale in (0.2, 0.1):
        machine = random_deep(*sizes, scale=scale, seed=3)
        got = step_of(TAPLikelihood(centring=False, **EXACTLY), machine, images)
        wanted = numerical_gradients(lambda moved: likelihood(moved, images), machine)
        errors.append(max(float((got[name] - wanted[name]).abs().max()) for name in wanted))
    # TAP leaves out the third order of log Z, which is the second of its gradient in the weights.
    assert errors[1] < errors[0] / 3 < 1e-3


@depths
def test_clamped_statistics_of_weak_couplings_are_the_exact_ones(sizes: tuple[int, ...]) -> None:
    images, errors = some_images(6, sizes[0]), []
    for scale in (0.2, 0.1):
        machine = random_deep(*sizes, scale=scale, seed=3)
        got = TAPLikelihood(**EXACTLY)._clamped(machine, images)
        above = machine.above(images)
        truths = [brute_force(above, row) for row in range(len(images))]
        first = torch.from_numpy(np.stack([truth.means[0] for truth in truths]))
        wanted = {"units.0.bias": images.mean(0), "weights.0": images.T @ first / len(images)}
        for layer in range(1, len(sizes)):
            wanted[f"units.{layer}.bias"] = torch.from_numpy(np.mean([truth.means[layer - 1] for truth in truths], 0))
        for layer in range(1, len(sizes) - 1):
            wanted[f"weights.{layer}"] = torch.from_numpy(np.mean([truth.pairs[layer - 1] for truth in truths], 0))
        assert got.keys() == wanted.keys() == machine.parameters.keys()
        errors.append(max(float((got[name] - wanted[name]).abs().max()) for name in wanted))
    assert errors[1] < errors[0] / 3 < 1e-3


def test_clamped_statistics_without_upper_couplings_are_those_of_an_rbm() -> None:
    machine, images = random_deep(5, 4, 3), some_images(7, 5)
    cut = machine.with_parameters(machine.parameters | {"weights.1": torch.zeros(4, 3).double()})
    rbm = RBM(cut.layers[:2], cut.couplings[:1])
    learner = TAPLikelihood(**EXACTLY)
    deep, plain = learner._clamped(cut, images), learner._clamped(rbm, images)
    assert_close({name: deep[name] for name in plain}, plain, 1e-14)
    torch.testing.assert_close(deep["units.2.bias"], torch.sigmoid(cut.layers[2].parameters["bias"]))


@pytest.mark.parametrize("rate", [0.01, 1.0])
@pytest.mark.parametrize("sizes", [(4, 3, 2), (3, 3, 2, 2)], ids=["two-hidden-layers", "three"])
def test_centred_direction_is_a_step_in_the_centred_parameters(sizes: tuple[int, ...], rate: float) -> None:
    machine, images = random_deep(*sizes, seed=1), some_images(6, sizes[0])
    offsets = [torch.rand(size, generator=seeded(size), dtype=torch.float64) for size in sizes]

    def shifted(parameters: dict[str, Tensor], sign: float) -> dict[str, Tensor]:
        """From plain biases to those beside centred couplings, or back: what the neighbours' offsets add."""
        moved = dict(parameters)
        for layer in range(len(sizes) - 1):
            weights = parameters[f"weights.{layer}"]
            moved[f"units.{layer}.bias"] = moved[f"units.{layer}.bias"] + sign * weights @ offsets[layer + 1]
            moved[f"units.{layer + 1}.bias"] = moved[f"units.{layer + 1}.bias"] + sign * weights.T @ offsets[layer]
        return moved

    def slopes(parameters: dict[str, Tensor], sign: float) -> Gradient:
        leaves = {name: value.clone().requires_grad_() for name, value in parameters.items()}
        value = likelihood(machine.with_parameters(shifted(leaves, sign)), images)
        return dict(zip(leaves, torch.autograd.grad(value, list(leaves.values())), strict=True))

    centre = shifted(machine.parameters, 1.0)
    ascent = slopes(centre, -1.0)
    wanted = shifted({name: value + rate * ascent[name] for name, value in centre.items()}, -1.0)
    plain = slopes(machine.parameters, 0.0)
    assert_close(moved_by(machine, centred(plain, offsets), rate).parameters, wanted, 1e-12)


# --- pre-training ---

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


def run(recipe: Recipe, folder: Path, images: Tensor = IMAGES, **options: Any) -> LayeredPrior:
    machine = train(recipe, images, (3, 3), folder, fingerprint="data", **options).prior.machine
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
        lower.layers[1].parameters["bias"] + 2 * below @ lower.couplings[0],
        upper.layers[0].parameters["bias"] + 2 * above @ upper.couplings[0].T,
    ]
    heard = deep.layers[1].parameters["bias"] + deep.inputs(1, [below, torch.zeros(1, 3), above])
    torch.testing.assert_close(heard, (twice[0] + twice[1]) / 2)
    assert [layer.size for layer in deep.layers] == [4, 3, 2]


def test_copies_stay_alike_where_nothing_is_drawn() -> None:
    stage = Stage(IMAGES, independent_pixels("bernoulli", IMAGES), 3, 2, 2, drawn=False)
    rbm, learner = stage.initial(0, 0.3, seeded()), TAPLikelihood()
    gradient = step_of(learner, rbm, stage.batch(torch.arange(14), seeded()))
    blocks = gradient["weights.0"].unflatten(0, (2, -1)).unflatten(2, (2, -1))
    for copy in (blocks[0, :, 1], blocks[1, :, 0], blocks[1, :, 1]):
        torch.testing.assert_close(copy, blocks[0, :, 0])


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
    machine = pretrained(recipe, IMAGES, tmp_path, fingerprint="data")
    assert [layer.size for layer in machine.layers] == [9, 4, 3, 2]
    learner = recipe.learner
    seen: list[Tensor] = []

    class Spy(TAPLikelihood):
        def init(self, prior: LayeredPrior, images: Tensor, generator: torch.Generator) -> Any:
            seen.append(images)
            return super().init(prior, images, generator)

    spying = replace(recipe, learner=Spy(starts=learner.starts, solutions=learner.solutions))
    pretrained(spying, IMAGES, tmp_path / "again", fingerprint="data")
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
    # Three batches an epoch; the last step of a stage ends it, so that the stop comes in the next.
    after_step(monkeypatch, recipe.learner, lambda taken: os.kill(os.getpid(), signal.SIGINT))
    stops = 0
    while True:
        try:
            resumed = run(recipe, tmp_path / "stopped", resume=True)
            break
        except Stopped:
            stops += 1
    assert stops == 3 * (2 * 3 - 1) + 3 * 3 - 1
    assert bits(resumed) == bits(whole)
    assert stage_logs(tmp_path / "stopped") == stage_logs(tmp_path / "whole")


def test_the_time_of_a_run_is_that_of_all_its_stages(tmp_path: Path) -> None:
    run(recipe_of(), tmp_path)
    last = [json.loads((folder / "log.jsonl").read_text().splitlines()[-1])["seconds"] for folder in _stages(tmp_path)]
    assert epoch_seconds(tmp_path)[-1] == pytest.approx(sum(last))


def test_a_run_with_another_pretraining_is_refused(tmp_path: Path) -> None:
    run(recipe_of(), tmp_path)
    with pytest.raises(TrainingError, match="layer-1: holds a run already"):
        run(recipe_of(), tmp_path)
    with pytest.raises(TrainingError, match=r"recipe\.pretraining\.epochs was 2 and is 1"):
        run(recipe_of(pretraining={"epochs": 1}), tmp_path, resume=True)


def test_without_pretraining_there_are_no_stages(tmp_path: Path) -> None:
    assert recipe_of(pretraining={"epochs": 0}).digest == parse({**RECIPE, "pretraining": {}}).digest
    run(recipe_of(pretraining={"epochs": 0}), tmp_path)
    assert not stage_folder(tmp_path, 1).exists()


def test_grey_pixels_can_be_pretrained(tmp_path: Path) -> None:
    recipe = recipe_of(
        prior={"visible": "truncated-gauss-bernoulli", "deeper": [3]},
        learner={"grey_unit": 0.3},
        optimizer={"rate": 0.01},
    )
    images = IMAGES * torch.rand(IMAGES.shape, generator=seeded())
    machine = run(recipe, tmp_path, images)
    assert machine.layers[0].parameters.keys() == {"presence", "bias", "quadratic"}
    assert all(bool(torch.isfinite(value).all()) for value in machine.parameters.values())


# --- recipes ---


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ({"pretraining": {"epochs": -1}}, "[pretraining] epochs must be 0, for none, or positive, not -1"),
        ({"pretraining": {"epochs": 1.5}}, "[pretraining] epochs must be a whole number, not 1.5"),
        ({"pretraining": {"epoch": 1}}, "[pretraining] epoch is not a known key; did you mean epochs?"),
        (
            {"prior": {"family": "rbm", "deeper": []}},
            '[pretraining] is for [prior] family = "deep"; leave it away',
        ),
        ({"prior": {"hidden_type": "spin"}}, "[pretraining] is for binary hidden units; leave it away"),
        ({"prior": {"deeper": []}}, "[prior] deeper, as in [100], is for family"),
        ({"prior": {"deeper": [3, 0]}}, "[prior] deeper layers have at least 1 unit each, not (3, 0)"),
        ({"prior": {"deeper": [3, 1.5]}}, "[prior] deeper entries must be a whole number, not 1.5"),
        ({"prior": {"deeper": 3}}, "[prior] deeper must be a list, not 3"),
        ({"prior": {"hidden": "auto"}}, "hidden of a deep machine is a number; give one"),
        (
            {"inference": {"modes": 5}, "prior": {"visible": "truncated-gaussian"}},
            "[inference] modes are for binary units; set it to 0",
        ),
        ({"inference": {"solver": "sum_product"}}, "sum_product"),
    ],
)
def test_bad_recipes(tables: dict[str, dict[str, Any]], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        recipe_of(**tables)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_the_published_recipe_pretrains() -> None:
    path = Path(__file__).parents[1] / "training" / "tap-deep-mnist.toml"
    recipe = parse(tomllib.loads(path.read_text()))
    assert recipe.pretraining.epochs and recipe.prior.deeper
    # Modes take several minutes to find, so that a deep recipe has to ask for them.
    assert (recipe_of().inference.modes, recipe_of().inference.starts) == (0, 1)
    assert recipe.inference.modes and recipe.inference.starts > 1


# --- files, and restoring ---


def test_saved_loaded_and_restoring_the_same(tmp_path: Path) -> None:
    prior = random_deep_prior((5, 6))
    zoo.save(tmp_path / "layers", prior, "# layers\n")
    loaded = zoo.load(tmp_path / "layers")
    assert loaded.description == prior.description
    assert bits(loaded.machine) == bits(prior.machine)  # type: ignore[arg-type]
    noisy = some_images(4, 30).float()
    channel = BitFlip(0.1)
    solution = Engine.of(loaded, torch.device("cpu")).restore(noisy, channel)
    assert [means.shape[1] for means in solution.means] == [30, 6, 4, 3]
    # The only start is the pointwise estimate.
    evidence = channel.evidence(noisy)
    settings = prior.description.inference
    start, _ = Bernoulli(torch.logit(prior.pixel_means)).moments(Fields(evidence.linear.float()))
    solver = TAP(settings.max_iter, settings.tol, settings.damping)
    wanted = solver.solve(prior.machine.tilt(Fields(evidence.linear.float())), start)  # type: ignore[union-attr]
    torch.testing.assert_close(solution.means, wanted.means)
    torch.testing.assert_close(solution.log_partition, wanted.log_partition)


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
    modes = unpack(own_modes(machine, noise, 40, TAP(damping=0.3), seeded(3)), 6)
    found = {tuple(mode) for mode in modes.int().tolist()}
    assert found == {(1, 0, 1, 0, 1, 0), (0, 1, 0, 1, 0, 1)}


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
    found = Engine.of(prior, torch.device("cpu")).restore(image.float(), BitFlip(0.2))
    truth = brute_force(machine.tilt(BitFlip(0.2).evidence(image)))
    for layer, means in enumerate(found.means):
        np.testing.assert_allclose(means[0], truth.means[layer], atol=2e-3)
    assert float(found.log_partition) == pytest.approx(truth.log_partition, abs=2e-3)


def test_a_trained_machine_restores(tmp_path: Path) -> None:
    recipe = recipe_of(
        prior={"hidden": 16, "deeper": [8]},
        training={"epochs": 250, "batch": 14, "checkpoint_every": 100},
        pretraining={"epochs": 80},
    )
    trained = train(recipe, IMAGES, (3, 3), tmp_path / "run", fingerprint="data").prior
    assert (trained.description.family, trained.description.sizes) == ("deep", (9, 16, 8))
    zoo.save(tmp_path / "bars", trained, "# bars\n")
    images = IMAGES.numpy().reshape(-1, 3, 3) > 0
    holes = np.zeros((3, 3), bool)
    holes[1, 1] = True
    damaged = images.copy()
    damaged[:, 1, 1] = ~damaged[:, 1, 1]
    model = restore.load(tmp_path / "bars", device="cpu")
    restored = model.complete(damaged, holes)
    # Every image but the two that differ in nothing else is settled by its other pixels.
    assert (restored == images).all(axis=(1, 2)).mean() >= 0.85


def test_pixel_means_are_those_of_the_images(tmp_path: Path) -> None:
    trained = train(recipe_of(), IMAGES, (3, 3), tmp_path, fingerprint="data").prior
    torch.testing.assert_close(trained.pixel_means, pixel_means(IMAGES))


def _stages(folder: Path) -> list[Path]:
    return [*(stage_folder(folder, number) for number in (1, 2, 3)), folder]
