"""Training runs: the same bits every time; folder, lock and log, optimizers, divergence, and the prior that is made."""

from __future__ import annotations

import json
import math
import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fits import BATCHES, EPOCHS, IMAGES, LEARNERS, Still, after_step, bits, log_of, recipe_of, run
from machines import seeded
from refusals import refused
from torch import Tensor

from restore import zoo
from restore.errors import TrainingError
from restore.learning.course import CleanImages, initial_prior, pixel_means
from restore.learning.recipe.recipe import Recipe
from restore.learning.recipe.spec import Data, Optimizer, PriorShape, Training
from restore.learning.rules.conditional.likelihood import BeliefPropagationLikelihood
from restore.learning.rules.contract import LearnerState, Step
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run.folder import Stopped, epoch_records, locked
from restore.learning.run.session import Progress, Session
from restore.learning.steps import fit
from restore.learning.train import epoch_folder, train
from restore.priors import RBM

every_learner = pytest.mark.parametrize("learner", LEARNERS)


pytestmark = pytest.mark.usefixtures("quick_disk")


# --- determinism ---


def test_the_order_of_the_data_is_drawn_anew_each_epoch(tmp_path: Path) -> None:
    seen: list[Tensor] = []
    epochs: list[int] = []

    @dataclass(frozen=True)
    class Watching(Still):
        def step(self, prior: RBM, batch: Tensor, state: LearnerState, generator: torch.Generator, epoch: int) -> Step:
            seen.append(batch.clone())
            epochs.append(epoch)
            return super().step(prior, batch, state, generator, epoch)

    run(recipe_of(Watching()), tmp_path)
    assert epochs == [epoch for epoch in range(EPOCHS) for _ in range(BATCHES)]
    assert [len(batch) for batch in seen] == [4, 4, 4, 2] * EPOCHS
    passes = [torch.cat(seen[first : first + BATCHES]) for first in range(0, len(seen), BATCHES)]
    for images in passes:
        assert sorted(map(tuple, images.tolist())) == sorted(map(tuple, IMAGES.tolist()))
    assert len({tuple(images.flatten().tolist()) for images in passes}) == EPOCHS


# --- folder, lock, log ---


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    with locked(tmp_path), refused(TrainingError, tmp_path, "run"):
        run(recipe_of(), tmp_path)
    run(recipe_of(), tmp_path)


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with refused(TrainingError, folder, "run"):
            run(recipe_of(), folder)


def test_a_log_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_of()
    after_step(monkeypatch, recipe.learner, lambda taken: (tmp_path / "log.jsonl").mkdir(exist_ok=True))
    with refused(TrainingError, tmp_path / "log.jsonl"):
        run(recipe, tmp_path)


@every_learner
def test_a_run_follows_from_its_seed_and_logs_each_epoch(learner: str, tmp_path: Path) -> None:
    """That the same seed gives the same bits is shown where runs are stopped and resumed."""
    before, told = torch.random.get_rng_state(), list[Progress]()
    found = run(recipe_of(learner), tmp_path, watch=told.append)
    assert bits(found) != bits(run(recipe_of(learner, seed=1), tmp_path / "other"))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(bool(torch.isfinite(value).all()) for value in found.parameters.values())
    records = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in records] == [1, 2, 3, 4]
    assert [record["step"] for record in records] == [4, 8, 12, 16]
    assert [record["rate"] for record in records] == pytest.approx([0.2 * (1 - step / 16) for step in (3, 7, 11, 15)])
    seconds = [record["seconds"] for record in records]
    assert seconds == sorted(seconds)
    assert seconds[0] > 0
    monitors = [key for key in records[0] if key not in {"epoch", "step", "rate", "seconds"}]
    assert monitors
    # No solution of weights as weak as these is without a law.
    assert all(record[monitor] > 0 or monitor == "lawless" for record in records for monitor in monitors)
    assert [(passed.done, passed.total, passed.progress) for passed in told] == [(n, 4, n / 4) for n in (1, 2, 3, 4)]
    assert told[0].monitors == {monitor: records[0][monitor] for monitor in monitors}
    assert [record["seconds"] for record in epoch_records(tmp_path)] == seconds


def test_the_first_prior_has_the_pixel_means_and_no_correlations() -> None:
    images = torch.tensor([[0.0, 1.0, 1.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    means = pixel_means(images)
    torch.testing.assert_close(means, torch.tensor([0.125, 0.875, 0.625]))
    prior = initial_prior(images, 500, 0.01, seeded(1))
    torch.testing.assert_close(torch.sigmoid(prior.visible.parameters["bias"]), means)
    assert prior.hidden.parameters["bias"].abs().max() == 0
    assert float(prior.weights.std()) == pytest.approx(0.01, rel=0.1)


# --- divergence ---


@pytest.mark.parametrize(
    ("learner", "optimizer"), [*((learner, "sgd") for learner in LEARNERS), ("tap-data", "adam"), ("tap-data", "muon")]
)
def test_divergence_is_reported(learner: str, optimizer: Any, tmp_path: Path) -> None:
    recipe = recipe_of(learner, Optimizer(name=optimizer, rate=1e38, schedule="constant"))
    with refused(TrainingError, tmp_path):
        run(recipe, tmp_path)
    assert checkpoints.load(tmp_path) is None


def test_weights_that_are_not_finite_are_never_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_of(Still(slope=math.nan))
    after_step(monkeypatch, recipe.learner, lambda taken: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Stopped), pytest.warns(UserWarning):
        run(recipe, tmp_path)
    kept = checkpoints.load(tmp_path)
    assert kept is not None and kept.step == 0 and kept.facts["halvings"] == 1
    assert all(value.isfinite().all() for name, value in kept.tensors.items() if name.startswith("prior."))


def test_training_that_diverges_goes_back_and_halves_its_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(rate: float) -> Recipe:
        return recipe_of("pcd", Optimizer(rate=rate, schedule="constant"))

    wanted = run(slow(0.05), tmp_path / "slow")
    recipe, kind = slow(0.1), type(slow(0.1).learner)
    original, taken = kind.step, 0

    def step(self: Any, *arguments: Any) -> Step:
        nonlocal taken
        taken += 1
        found = original(self, *arguments)
        factor = math.nan if taken == 3 else 1.0
        return replace(found, gradient={name: factor * value for name, value in found.gradient.items()})

    monkeypatch.setattr(kind, "step", step)
    with pytest.warns(UserWarning):
        fitted = fit(recipe, CleanImages(IMAGES), Session(tmp_path / "fast", "data"))
    # Nothing is left of the steps at the full rate, neither in chains nor in averages nor in random numbers.
    assert bits(fitted.machine) == bits(wanted)
    assert "1/2 " in fitted.ended
    assert [record["rate"] for record in log_of(tmp_path / "fast")] == [0.05] * len(log_of(tmp_path / "slow"))


def test_a_fault_of_another_kind_is_not_called_divergence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_of()

    def fail(taken: int) -> None:
        raise RuntimeError("something else")

    after_step(monkeypatch, recipe.learner, fail)
    with pytest.raises(RuntimeError):
        run(recipe, tmp_path)


def test_fields_that_are_no_longer_finite_are_divergence(tmp_path: Path) -> None:
    # Each weight is still a number, but a field, their sum, may not be one, which is what sampling says.
    @dataclass(frozen=True)
    class Huge(Still):
        def step(self, prior: RBM, batch: Tensor, state: LearnerState, generator: torch.Generator, epoch: int) -> Step:
            if not bool(torch.isfinite(prior.hidden_fields(batch).linear).all()):
                raise RuntimeError("probabilities contain NaN")
            return super().step(prior, batch, state, generator, epoch)

    recipe = recipe_of(Huge(slope=1.0), Optimizer(rate=2e38, momentum=0.0, weight_decay=0.0, schedule="constant"))
    with refused(TrainingError, tmp_path, "rate"):
        run(recipe, tmp_path)


# --- from recipe to prior ---


@pytest.mark.parametrize("storage", ["float16", "float32"])
def test_a_trained_prior_does_not_depend_on_interruptions(
    storage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of("tap-redrawn", storage=storage)
    recipe = replace(recipe, inference=replace(recipe.inference, modes=6, starts=3, damping=0.3))
    trained = train(recipe, IMAGES, (3, 3), Session(tmp_path / "whole", "data"))
    assert (trained.epoch, trained.error) == (EPOCHS, None)
    whole = trained.prior
    with pytest.MonkeyPatch.context() as patch:
        after_step(patch, recipe.learner, lambda taken: taken == 7 and os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(Stopped):
            train(recipe, IMAGES, (3, 3), Session(tmp_path / "stopped", "data"))
    resumed = train(recipe, IMAGES, (3, 3), Session(tmp_path / "stopped", "data", resume=True)).prior
    assert bits(resumed.machine) == bits(whole.machine)
    assert torch.equal(resumed.modes, whole.modes)
    header = whole.description
    assert (header.image_shape, header.hidden, header.inference.modes, header.recipe) == ((3, 3), 3, 6, recipe.digest)
    assert whole.modes.shape == (6, 2)
    torch.testing.assert_close(whole.pixel_means, pixel_means(IMAGES))
    rounded = torch.equal(whole.machine.weights.half().float(), whole.machine.weights)
    assert rounded == (storage == "float16")


def test_a_log_that_is_no_log_is_refused(tmp_path: Path) -> None:
    deep, long = b"[" * 100_000 + b"]" * 100_000, b'{"seconds": 1' + b"0" * 5000 + b"}"
    for content in (None, b"", b"{", b"[1]\n", b'{"seconds": "x"}\n', b"\xff\n", deep, long, long[:400] + b"}"):
        if content is not None:
            (tmp_path / "log.jsonl").write_bytes(content)
        with pytest.raises(TrainingError) as caught:
            epoch_records(tmp_path)
        assert str(caught.value).startswith(f"{tmp_path}/log.jsonl: ") and "\n" not in str(caught.value)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    def link(*names: str) -> None:
        for name in names:
            (tmp_path / name).write_bytes(b"mine")
            (tmp_path / "run" / name).unlink(missing_ok=True)
            (tmp_path / "run" / name).symlink_to(tmp_path / name)

    (tmp_path / "run").mkdir()
    link("lock", "log.jsonl")
    run(recipe_of(), tmp_path / "run", watch=lambda passed: link(checkpoints.NAME) if passed.done == EPOCHS else None)
    assert len(log_of(tmp_path / "run")) == EPOCHS
    for name in ("lock", "log.jsonl", checkpoints.NAME):
        assert (tmp_path / name).read_bytes() == b"mine" and not (tmp_path / "run" / name).is_symlink()


def test_more_units_than_memory_holds(tmp_path: Path) -> None:
    recipe = replace(recipe_of(), prior=PriorShape(hidden=10**13))
    with refused(TrainingError, "[prior] hidden"):
        run(recipe, tmp_path)


@pytest.mark.parametrize("family", ["rbm", "crbm"])
def test_priors_are_kept_along_the_run(family: str, tmp_path: Path) -> None:
    """They load as any prior does, and are what a run of as many epochs at a constant rate ends with."""

    def recipe(epochs: int) -> Recipe:
        length = Training(epochs=epochs, batch=4)
        if family == "rbm":
            return recipe_of("pcd", Optimizer(rate=0.2, schedule="constant"), training=length, storage="float32")
        return recipe_of(
            BeliefPropagationLikelihood(),
            Optimizer(rate=0.2, schedule="constant"),
            training=length,
            storage="float32",
            data=Data("bars-and-stripes", task="flip:0.1"),
            prior=PriorShape(hidden=3, family="crbm", weight_scale=0.1),
        )

    train(recipe(5), IMAGES, (3, 3), Session(tmp_path / "run", "data"), every=2)
    assert sorted(path.name for path in (tmp_path / "run" / "epochs").iterdir()) == ["0002", "0004"]
    for epochs in (2, 4):
        kept = zoo.load(epoch_folder(tmp_path / "run", epochs))
        ended = train(recipe(epochs), IMAGES, (3, 3), Session(tmp_path / str(epochs), "data")).prior
        assert bits(kept.machine) == bits(ended.machine)
        assert kept.description.name == f"test-epoch-{epochs}"
        assert kept.description.inference.solver == ended.description.inference.solver
        assert not (tmp_path / str(epochs) / "epochs").exists()
