"""Training runs: the same bits every time, whatever stopped them in between; checkpoints, log, lock, divergence."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machines import bars_and_stripes, seeded
from torch import Tensor

from restore import zoo
from restore.description import Inference
from restore.errors import TrainingError, UsageError
from restore.learning import checkpoint as checkpoints
from restore.learning import course as course_module
from restore.learning.checkpoint import Checkpoint, differences, locked, newest
from restore.learning.conditional_divergence import ConditionalDivergence
from restore.learning.conditional_likelihood import BeliefPropagationLikelihood, MeanFieldLikelihood
from restore.learning.contract import LearnerState, Step
from restore.learning.contrastive import ContrastiveDivergence
from restore.learning.course import CleanImages, DamagedImages, initial_prior, pixel_means
from restore.learning.fit import Fitted, fit, scheduled_rate
from restore.learning.judging import Judged
from restore.learning.logistic import LogisticRegression
from restore.learning.max_margin import LatentMaxMargin, MarginalMaxMargin
from restore.learning.perceptron import PerceptronLoss
from restore.learning.pipeline import course_of, epoch_folder, train
from restore.learning.recipe import Recipe
from restore.learning.run_folder import Stopped, epoch_seconds
from restore.learning.spectral import SpectralDescent
from restore.learning.tables import Data, Optimizer, PriorShape, Training
from restore.learning.tap_likelihood import TAPLikelihood
from restore.priors import RBM, ConditionalRBM
from restore.solvers import FIXED_POINTS, MeanField
from restore.tasks import parse_task

IMAGES = bars_and_stripes(3)
EPOCHS, BATCHES = 4, 4

LEARNERS: dict[str, Any] = {
    "tap-data": TAPLikelihood(),
    "tap-noisy": TAPLikelihood(starts="noisy", noise=0.2),
    "tap-persistent": TAPLikelihood(starts="persistent", solutions=5),
    "tap-redrawn": TAPLikelihood(starts="redrawn", solutions=5, damping=0.2),
    "adaptive-tap": TAPLikelihood(fixed_point="adaptive_tap", damping=0.5),
    "adaptive-tap-persistent": TAPLikelihood(fixed_point="adaptive_tap", starts="persistent", solutions=5, damping=0.5),
    "cd": ContrastiveDivergence(steps=2),
    "pcd": ContrastiveDivergence(starts="persistent", chains=5, centring=False),
    "s-dcp": ContrastiveDivergence(steps=2, centring=False, inner_steps=3),
    "cs-dcp": ContrastiveDivergence(steps=2, inner_steps=3),
    "pcd-inner": ContrastiveDivergence(starts="persistent", chains=5, inner_steps=2),
    "ssd": SpectralDescent(starts="persistent", chains=5),
}
OPTIMIZERS = {
    "sgd": Optimizer(rate=0.2),
    "sgd-plain": Optimizer(rate=0.2, momentum=0.0, weight_decay=0.0, schedule="constant"),
    "adam": Optimizer(name="adam", rate=0.05, momentum=0.9, weight_decay=0.1),
    "rmsprop": Optimizer(name="rmsprop", rate=0.01, options={"alpha": 0.9, "momentum": 0.5}),
    "nadam": Optimizer(name="nadam", rate=0.01),
    "asgd": Optimizer(name="asgd", rate=0.05),
    "adagrad": Optimizer(name="adagrad", rate=0.05),
}
every_learner = pytest.mark.parametrize("learner", LEARNERS)


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for the disk: nothing here pulls the plug."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def recipe_of(learner: Any = "pcd", optimizer: str | Optimizer = "sgd", **changed: Any) -> Recipe:
    return Recipe(
        name="test",
        data=changed.pop("data", Data("bars-and-stripes")),
        prior=changed.pop("prior", PriorShape(hidden=3, weight_scale=0.1)),
        method=changed.pop("method", "tap"),
        learner=LEARNERS.get(learner, learner) if isinstance(learner, str) else learner,
        # 14 images in batches of 4: the last one is smaller.
        training=changed.pop("training", Training(epochs=EPOCHS, batch=4, checkpoint_every=2)),
        optimizer=OPTIMIZERS[optimizer] if isinstance(optimizer, str) else optimizer,
        **changed,
    )


def run(recipe: Recipe, folder: Path, resume: bool = False, images: Tensor = IMAGES, **options: Any) -> RBM:
    return fit(
        recipe, CleanImages(images), folder, fingerprint=options.pop("fingerprint", "data"), resume=resume, **options
    ).prior


def bits(prior: RBM) -> dict[str, bytes]:
    return {name: value.numpy().tobytes() for name, value in prior.parameters.items()}


def log_of(folder: Path) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


def after_step(monkeypatch: pytest.MonkeyPatch, learner: Any, act: Callable[[int], None]) -> None:
    """Call `act` with the number of steps taken since now, just before each step's gradient is returned."""
    kind, taken = type(learner), 0
    original = kind.step

    def step(self: Any, *arguments: Any) -> Step:
        nonlocal taken
        taken += 1
        result = original(self, *arguments)
        act(taken)
        return result

    monkeypatch.setattr(kind, "step", step)


# --- determinism ---


@every_learner
def test_the_same_seed_gives_the_same_bits(learner: str, tmp_path: Path) -> None:
    before = torch.random.get_rng_state()
    first, again = (run(recipe_of(learner), tmp_path / name) for name in ("a", "b"))
    other = run(recipe_of(learner, seed=1), tmp_path / "c")
    assert bits(first) == bits(again)
    assert log_of(tmp_path / "a") == log_of(tmp_path / "b")
    assert bits(first) != bits(other)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(bool(torch.isfinite(value).all()) for value in first.parameters.values())


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


# --- stopping and resuming ---


@pytest.mark.parametrize(
    ("learner", "optimizer"),
    [
        *((learner, "sgd") for learner in LEARNERS),
        ("tap-redrawn", "adam"),
        ("pcd", "adam"),
        ("pcd", "sgd-plain"),
        *(("pcd", name) for name in ("rmsprop", "nadam", "asgd", "adagrad")),
    ],
)
def test_stopped_by_a_signal_at_every_step_and_resumed(
    learner: str, optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of(learner, optimizer)
    whole = run(recipe, tmp_path / "whole")
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    numbers = [signal.SIGINT, signal.SIGTERM] * (EPOCHS * BATCHES // 2)
    after_step(monkeypatch, recipe.learner, lambda taken: os.kill(os.getpid(), numbers[taken - 1]))
    for number in numbers[:-1]:
        with pytest.raises(Stopped) as caught:
            run(recipe, tmp_path / "stopped", resume=True)
        assert caught.value.signal_number == number
        assert isinstance(caught.value, KeyboardInterrupt)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
    resumed = run(recipe, tmp_path / "stopped", resume=True)
    assert bits(resumed) == bits(whole)
    assert log_of(tmp_path / "stopped") == log_of(tmp_path / "whole")


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(LEARNERS)), st.lists(st.integers(1, 9), max_size=4))
def test_stopped_anywhere_any_number_of_times(
    tmp_path_factory: pytest.TempPathFactory, learner: str, stops: list[int]
) -> None:
    folder, recipe = tmp_path_factory.mktemp("runs"), recipe_of(learner)
    whole = run(recipe, folder / "whole")
    for stop in stops:
        with pytest.MonkeyPatch.context() as patch:
            after_step(
                patch, recipe.learner, lambda taken, stop=stop: taken == stop and os.kill(os.getpid(), signal.SIGINT)
            )
            try:
                run(recipe, folder / "stopped", resume=True)
            except Stopped:
                continue
    assert bits(run(recipe, folder / "stopped", resume=True)) == bits(whole)
    assert log_of(folder / "stopped") == log_of(folder / "whole")


@every_learner
def test_killed_at_any_moment_and_resumed(learner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_of(learner)
    after_step(
        # What a run that is killed at this moment leaves behind.
        monkeypatch,
        recipe.learner,
        lambda taken: shutil.copytree(tmp_path / "whole", tmp_path / f"killed-{taken}"),
    )
    whole = run(recipe, tmp_path / "whole")
    monkeypatch.undo()
    for taken in range(1, EPOCHS * BATCHES + 1):
        folder = tmp_path / f"killed-{taken}"
        assert bits(run(recipe, folder, resume=True)) == bits(whole)
        assert log_of(folder) == log_of(tmp_path / "whole")


def test_killed_between_log_and_checkpoint_or_within_either(tmp_path: Path) -> None:
    recipe = recipe_of()
    moments = iter(range(EPOCHS))
    # The meter is told after the log and before the checkpoint of an epoch.
    copy = lambda done, note="": shutil.copytree(tmp_path / "whole", tmp_path / f"killed-{next(moments)}")  # noqa: E731
    whole = run(recipe, tmp_path / "whole", meter=copy)
    for moment in range(EPOCHS):
        folder = tmp_path / f"killed-{moment}"
        with (folder / "log.jsonl").open("a") as stream:
            stream.write('{"epoch": 99, "st')
        (folder / ".restore-tmp").write_bytes(b"half a checkpoint")
        (folder / "checkpoint-000000012.safetensors").write_bytes(b"tensors without a record")
        assert bits(run(recipe, folder, resume=True)) == bits(whole)
        assert log_of(folder) == log_of(tmp_path / "whole")


def test_a_finished_run_is_finished(tmp_path: Path) -> None:
    recipe = recipe_of()
    whole = run(recipe, tmp_path)
    records = (tmp_path / "log.jsonl").read_bytes()
    assert bits(run(recipe, tmp_path, resume=True)) == bits(whole)
    assert (tmp_path / "log.jsonl").read_bytes() == records


def test_resume_in_an_empty_folder_begins(tmp_path: Path) -> None:
    assert bits(run(recipe_of(), tmp_path / "a", resume=True)) == bits(run(recipe_of(), tmp_path / "b"))


def test_a_signal_in_the_last_step_lets_the_run_finish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_of()
    after_step(
        monkeypatch, recipe.learner, lambda taken: taken == EPOCHS * BATCHES and os.kill(os.getpid(), signal.SIGTERM)
    )
    run(recipe, tmp_path)
    assert newest(tmp_path).step == EPOCHS * BATCHES


def test_training_in_a_thread(tmp_path: Path) -> None:
    # Signal handlers belong to the main thread.
    results: list[RBM] = []
    thread = threading.Thread(target=lambda: results.append(run(recipe_of(), tmp_path / "thread")))
    thread.start()
    thread.join()
    assert bits(results[0]) == bits(run(recipe_of(), tmp_path / "main"))


# --- what may not change ---


def stopped_run(folder: Path, recipe: Recipe) -> None:
    with pytest.MonkeyPatch.context() as patch:
        after_step(patch, recipe.learner, lambda taken: taken == 6 and os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(Stopped):
            run(recipe, folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seed": 5}, "recipe.seed was 0 and is 5"),
        ({"optimizer": "adam"}, "recipe.optimizer.name was 'sgd' and is 'adam'"),
        ({"learner": "cd"}, "recipe.learner.starts was 'persistent' and is 'data'"),
        ({"training": Training(epochs=5, batch=4, checkpoint_every=2)}, "recipe.training.epochs was 4 and is 5"),
    ],
    ids=["seed", "optimizer", "learner", "epochs"],
)
def test_another_recipe_is_refused(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    stopped_run(tmp_path, recipe_of())
    with pytest.raises(TrainingError, match="cannot resume") as caught:
        run(recipe_of(**change), tmp_path, resume=True)
    assert says in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)
    # The refusal has changed nothing.
    run(recipe_of(), tmp_path, resume=True)


def test_other_data_or_threads_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped_run(tmp_path, recipe_of())
    with pytest.raises(TrainingError, match="data was 'data' and is 'other'"):
        run(recipe_of(), tmp_path, resume=True, fingerprint="other")
    threads = torch.get_num_threads()
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads + 1)
    with pytest.raises(TrainingError, match=f"threads was {threads} and is {threads + 1}"):
        run(recipe_of(), tmp_path, resume=True)


def test_name_storage_and_inference_may_change(tmp_path: Path) -> None:
    stopped_run(tmp_path, recipe_of())
    recipe = recipe_of()
    changed = replace(recipe, name="other", storage="float32", inference=replace(recipe.inference, starts=3))
    assert bits(run(changed, tmp_path, resume=True)) == bits(run(recipe, tmp_path / "whole"))


def test_a_run_is_not_begun_over_another(tmp_path: Path) -> None:
    stopped_run(tmp_path, recipe_of())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(TrainingError, match="--resume"):
        run(recipe_of(), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_another_kind_of_device_is_refused(tmp_path: Path) -> None:
    stopped_run(tmp_path, recipe_of())
    found = newest(tmp_path)
    # The state of a CUDA generator has 16 bytes.
    checkpoints.save(
        tmp_path, replace(found, tensors=found.tensors | {"generator": torch.zeros(16, dtype=torch.uint8)})
    )
    with pytest.raises(TrainingError, match="another kind of device"):
        run(recipe_of(), tmp_path, resume=True)


def test_differences_of_nested_facts() -> None:
    old = {"a": 1, "b": {"c": [1, 2], "d": None}, "gone": True}
    new = {"a": 1, "b": {"c": [1, 3], "d": None}, "new": 0.5}
    assert differences(old, new) == [
        "b.c was [1, 2] and is [1, 3]",
        "gone was True and is None",
        "new was None and is 0.5",
    ]
    assert differences(old, old) == []


# --- checkpoints ---


def test_the_last_two_checkpoints_are_kept(tmp_path: Path) -> None:
    run(recipe_of(training=Training(epochs=5, batch=4)), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *(f"checkpoint-{step:09d}.{end}" for step in (16, 20) for end in ("json", "safetensors")),
        "lock",
        "log.jsonl",
    ]


def spoil(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "empty":
        path.write_bytes(b"")
    elif how == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif how == "padded":
        path.write_bytes(data + b"\0")
    elif how == "missing":
        path.unlink()
    elif how == "flipped":
        path.write_bytes(data[:-20] + bytes([data[-20] ^ 1]) + data[-19:])
    elif how == "no-object":
        path.write_bytes(b"[1, 2]")
    elif how == "nested":
        path.write_bytes(b"[" * 100_000)
    elif how == "other-number":
        record = json.loads(data)
        record["step"] += 1
        path.write_text(json.dumps(record))
    elif how == "newer":
        path.write_text(json.dumps(json.loads(data) | {"format": checkpoints.FORMAT + 1}))


DAMAGES = [
    *(("json", how) for how in ("empty", "truncated", "padded", "no-object", "nested", "other-number", "newer")),
    *(("safetensors", how) for how in ("empty", "truncated", "padded", "flipped", "missing")),
]


@pytest.mark.parametrize(("part", "how"), DAMAGES)
def test_a_damaged_newest_checkpoint_is_passed_over(part: str, how: str, tmp_path: Path) -> None:
    recipe = recipe_of(training=Training(epochs=EPOCHS, batch=4))
    whole = run(recipe, tmp_path)
    names = log_of(tmp_path)
    spoil(tmp_path / f"checkpoint-{EPOCHS * BATCHES:09d}.{part}", how)
    with pytest.warns(UserWarning, match=rf"{EPOCHS * BATCHES:09d}.json: damaged checkpoint passed over") as warned:
        resumed = run(recipe, tmp_path, resume=True)
    assert len(warned) == 1
    assert "\n" not in str(warned[0].message)
    assert bits(resumed) == bits(whole)
    assert log_of(tmp_path) == names
    # It has been written again.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert newest(tmp_path).step == EPOCHS * BATCHES


@pytest.mark.parametrize(("part", "how"), [("json", "truncated"), ("safetensors", "flipped")])
def test_when_all_checkpoints_are_damaged(part: str, how: str, tmp_path: Path) -> None:
    run(recipe_of(), tmp_path)
    for path in tmp_path.glob(f"*.{part}"):
        spoil(path, how)
    with pytest.warns(UserWarning), pytest.raises(TrainingError, match="every checkpoint is damaged"):
        run(recipe_of(), tmp_path, resume=True)


def test_checkpoints_written_before_records_had_a_checksum(tmp_path: Path) -> None:
    stopped_run(tmp_path, recipe_of())
    (path,) = tmp_path.glob("*.json")
    record = json.loads(path.read_text())
    del record["check"]
    path.write_text(json.dumps(record))
    assert bits(run(recipe_of(), tmp_path, resume=True)) == bits(run(recipe_of(), tmp_path / "whole"))


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    tensors = {
        "a": torch.randn(3, 2, generator=seeded(1)).T,
        "empty": torch.empty(0, dtype=torch.int64),
        "bytes": seeded(2).get_state(),
        "number": torch.tensor(3.0),
    }
    facts = {"x": 0.1 + 0.2, "nested": {"nan": math.nan, "big": 2**60}, "text": "ü\n"}
    checkpoints.save(tmp_path, Checkpoint(7, tensors, facts))
    found = newest(tmp_path)
    assert found.step == 7
    assert found.tensors.keys() == tensors.keys()
    assert all(torch.equal(found.tensors[name], value) for name, value in tensors.items())
    assert repr(found.facts) == repr(facts)
    assert newest(tmp_path / "nowhere") is None


@pytest.mark.parametrize("call", [1, 2, 3, 4])
def test_a_full_disk_leaves_the_older_checkpoints(call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_of(training=Training(epochs=EPOCHS, batch=4))
    stopped_run(tmp_path, recipe)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("checkpoint-*")}
    real, calls = os.fsync, 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        # The log is cut first, which takes two calls; then come tensors and record.
        if calls >= 2 + call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TrainingError, match="No space left on device") as caught:
        run(recipe, tmp_path, resume=True)
    monkeypatch.undo()
    assert "checkpoint-" in str(caught.value)
    assert "\n" not in str(caught.value)
    after = {path.name: path.read_bytes() for path in tmp_path.glob("checkpoint-*")}
    assert before.items() <= after.items()
    assert not list(tmp_path.glob(".restore-*"))
    assert bits(run(recipe, tmp_path, resume=True)) == bits(run(recipe, tmp_path / "whole"))


def test_a_disk_that_takes_no_more_bytes(tmp_path: Path) -> None:
    # The file system itself refuses, half way through the tensors.
    code = f"""
import resource, signal, sys, pathlib, torch
from restore import zoo
from restore.errors import TrainingError, UsageError
from restore.learning.checkpoint import Checkpoint, newest, save
folder = pathlib.Path({str(tmp_path)!r})
save(folder, Checkpoint(1, {{"a": torch.zeros(10)}}, {{}}))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    save(folder, Checkpoint(2, {{"a": torch.zeros(10000)}}, {{}}))
except TrainingError as fault:
    print(fault)
assert newest(folder).step == 1
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True
    )
    assert "cannot be written (File too large)" in done.stdout
    assert len(done.stdout.splitlines()) == 1


# --- folder, lock, log ---


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(TrainingError, match="another training run works in this folder"):
        run(recipe_of(), tmp_path)
    run(recipe_of(), tmp_path)


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(TrainingError, match="cannot be used as a run folder"):
            run(recipe_of(), folder)


def test_a_log_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_of()
    after_step(monkeypatch, recipe.learner, lambda taken: (tmp_path / "log.jsonl").mkdir(exist_ok=True))
    with pytest.raises(TrainingError, match=r"log\.jsonl: cannot be written"):
        run(recipe, tmp_path)


@every_learner
def test_the_log_has_one_line_per_epoch(learner: str, tmp_path: Path) -> None:
    told: list[tuple[int, str]] = []
    run(recipe_of(learner), tmp_path, meter=lambda done, note="": told.append((done, note)))
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
    assert [done for done, _ in told] == [1, 2, 3, 4]
    assert told[0][1] == " ".join(f"{monitor} {records[0][monitor]:.4g}" for monitor in monitors)
    assert epoch_seconds(tmp_path) == seconds


def test_seconds_go_on_after_a_stop(tmp_path: Path) -> None:
    stopped_run(tmp_path, recipe_of())
    spent = newest(tmp_path).facts["seconds"]
    assert spent > 0
    run(recipe_of(), tmp_path, resume=True)
    assert epoch_seconds(tmp_path)[-1] > spent


# --- optimizer ---


@dataclass(frozen=True)
class Still:
    """A learner whose gradient is the same number everywhere."""

    slope: float = 0.0

    def init(self, prior: RBM, images: Tensor, generator: torch.Generator) -> LearnerState:
        return {}

    def step(self, prior: RBM, batch: Tensor, state: LearnerState, generator: torch.Generator, epoch: int) -> Step:
        return Step({name: torch.full_like(value, self.slope) for name, value in prior.parameters.items()}, state, {})


def start_of(recipe: Recipe, images: Tensor = IMAGES) -> RBM:
    return initial_prior(images, recipe.prior.hidden, recipe.prior.weight_scale, seeded(recipe.seed))


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_weight_decay_acts_on_weights_only(name: Any, tmp_path: Path) -> None:
    optimizer = Optimizer(name=name, rate=0.1, momentum=0.0, weight_decay=0.05, schedule="constant")
    recipe = recipe_of(Still(), optimizer)
    # Pixels of different means, so that there are biases to decay.
    images = IMAGES[IMAGES[:, 0] == 1]
    recipe = replace(recipe, training=Training(epochs=EPOCHS * BATCHES, batch=len(images)))
    before, after = start_of(recipe, images), run(recipe, tmp_path, images=images)
    assert float(before.visible.parameters["bias"].abs().max()) > 1
    factor = (1 - 0.1 * 0.05) ** (EPOCHS * BATCHES)
    torch.testing.assert_close(after.weights, factor * before.weights)
    for layer, wanted in zip(after.layers, before.layers, strict=True):
        assert torch.equal(layer.parameters["bias"], wanted.parameters["bias"])


def test_steps_climb_with_rate_momentum_and_schedule(tmp_path: Path) -> None:
    recipe = recipe_of(Still(slope=0.3), Optimizer(rate=0.1, momentum=0.5, weight_decay=0.0, schedule="linear"))
    before, after = start_of(recipe), run(recipe, tmp_path)
    total, velocity, moved = EPOCHS * BATCHES, 0.0, 0.0
    for step in range(total):
        velocity = 0.5 * velocity + 0.3
        moved += 0.1 * (1 - step / total) * velocity
    for name, value in after.parameters.items():
        torch.testing.assert_close(value, before.parameters[name] + moved)


def test_schedules() -> None:
    linear, constant = (Optimizer(rate=2.0, schedule=schedule) for schedule in ("linear", "constant"))
    assert [scheduled_rate(linear, share) for share in (0, 0.25, 1)] == [2, 1.5, 0]
    assert [scheduled_rate(constant, share) for share in (0, 0.25, 1)] == [2, 2, 2]


def test_the_first_prior_has_the_pixel_means_and_no_correlations() -> None:
    images = torch.tensor([[0.0, 1.0, 1.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    means = pixel_means(images)
    torch.testing.assert_close(means, torch.tensor([0.125, 0.875, 0.625]))
    prior = initial_prior(images, 500, 0.01, seeded(1))
    torch.testing.assert_close(torch.sigmoid(prior.visible.parameters["bias"]), means)
    assert prior.hidden.parameters["bias"].abs().max() == 0
    assert float(prior.weights.std()) == pytest.approx(0.01, rel=0.1)


# --- divergence ---


@every_learner
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_divergence_is_reported(learner: str, optimizer: Any, tmp_path: Path) -> None:
    recipe = recipe_of(learner, Optimizer(name=optimizer, rate=1e38, schedule="constant"))
    with pytest.raises(TrainingError, match=r"training diverged .* lower the rate") as caught:
        run(recipe, tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert newest(tmp_path) is None


def test_weights_that_are_not_finite_are_never_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_of(Still(slope=math.nan))
    after_step(monkeypatch, recipe.learner, lambda taken: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(TrainingError, match="diverged"):
        run(recipe, tmp_path)
    assert not list(tmp_path.glob("checkpoint-*"))


def test_a_fault_of_another_kind_is_not_called_divergence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_of()

    def fail(taken: int) -> None:
        raise RuntimeError("something else")

    after_step(monkeypatch, recipe.learner, fail)
    with pytest.raises(RuntimeError, match="something else"):
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
    with pytest.raises(TrainingError, match=r"diverged \(a field is no longer finite at step 1\); lower the rate"):
        run(recipe, tmp_path)


# --- moving average ---


@pytest.mark.parametrize("average", [0.5, 0.999])
def test_the_average_forgets_as_it_says(average: float, tmp_path: Path) -> None:
    optimizer = Optimizer(rate=0.1, momentum=0.5, weight_decay=0.0, schedule="constant", average=average)
    recipe = recipe_of(Still(slope=0.3), optimizer)
    before, after = start_of(recipe), run(recipe, tmp_path)
    velocity, moved, mean = 0.0, 0.0, 0.0
    for step in range(EPOCHS * BATCHES):
        velocity = 0.5 * velocity + 0.3
        moved += 0.1 * velocity
        # Within the first steps there is little to remember.
        keep = min(average, (step + 1) / (step + 1 + 10))
        mean = keep * mean + (1 - keep) * moved
    assert mean < 0.95 * moved
    for name, value in after.parameters.items():
        torch.testing.assert_close(value, before.parameters[name] + mean)


def test_the_average_does_not_touch_the_training(tmp_path: Path) -> None:
    for name, average in (("without", 0.0), ("with", 0.9)):
        run(recipe_of(optimizer=replace(OPTIMIZERS["sgd"], average=average)), tmp_path / name)
    ours, theirs = (newest(tmp_path / name).tensors for name in ("without", "with"))
    assert all(torch.equal(theirs[name], value) for name, value in ours.items())
    added = theirs.keys() - ours.keys()
    assert added == {f"average.{name}" for name in ("weights.0", "units.0.bias", "units.1.bias")}
    assert not any(torch.equal(theirs[name], theirs[name.replace("average", "prior")]) for name in added)


# --- validation ---


@dataclass
class Graded:
    """A course whose error after each epoch is given; it keeps the parameters it was asked about."""

    errors: Sequence[float]
    images: Tensor = IMAGES
    asked: list[dict[str, bytes]] = field(default_factory=list)
    inferences: list[Inference] = field(default_factory=list)

    def initial(self, hidden: int, weight_scale: float, generator: torch.Generator) -> RBM:
        return initial_prior(self.images, hidden, weight_scale, generator)

    def batch(self, index: Tensor, generator: torch.Generator) -> Tensor:
        return self.images[index]

    def judged(self, prior: RBM, inference: Inference) -> Judged:
        self.asked.append(bits(prior))
        self.inferences.append(inference)
        return Judged(self.errors[len(self.asked) - 1], 1.0)


@dataclass(frozen=True)
class Restoring(ContrastiveDivergence):
    """A learner of an RBM that says how to restore, as learners of conditional ones do."""

    def inference(self, epoch: int) -> Inference:
        return Inference(max_iter=7 + epoch, modes=0, starts=0)


def patient(patience: int = 0, epochs: int = 8, average: float = 0.0, every: int = 1) -> Recipe:
    return recipe_of(
        Restoring(),
        replace(OPTIMIZERS["sgd"], average=average),
        data=Data("bars-and-stripes", task="flip:0.1", validation=4),
        prior=PriorShape(hidden=3, family="crbm", weight_scale=0.1),
        training=Training(epochs=epochs, batch=4, checkpoint_every=every, patience=patience),
    )


def judge(recipe: Recipe, course: Graded, folder: Path, resume: bool = False) -> Fitted[RBM]:
    return fit(recipe, course, folder, fingerprint="data", resume=resume)


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_the_prior_with_the_lowest_error_is_returned(average: float, tmp_path: Path) -> None:
    course = Graded([0.5, 0.3, 0.2, 0.4, 0.2, 0.6, 0.7, 0.8])
    fitted = judge(patient(average=average), course, tmp_path)
    # The first of two equally good ones.
    assert (fitted.epoch, fitted.error) == (2, 0.2)
    assert len(course.asked) == 8
    assert len({state["weights.0"] for state in course.asked}) == 8
    assert bits(fitted.prior) == course.asked[2]
    assert [record["validation_error"] for record in log_of(tmp_path)] == course.errors
    # Each epoch is judged by the inference that its learner names.
    assert [inference.max_iter for inference in course.inferences] == list(range(7, 15))
    assert bits(judge(patient(average=average), Graded([]), tmp_path, resume=True).prior) == course.asked[2]


@pytest.mark.parametrize(
    ("patience", "errors", "epochs"),
    [
        (0, [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0], 8),
        (1, [0.5, 0.4, 0.4], 3),
        (2, [0.5, 0.6, 0.4, 0.5, 0.45], 5),
        (3, [0.5, 0.6, 0.7, 0.8], 4),
        (3, [0.5, 0.6, 0.7, 0.4, 0.5, 0.6, 0.39, 0.5], 8),
        (8, [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0], 8),
    ],
)
@pytest.mark.parametrize("every", [1, 3])
def test_patience_ends_the_run(patience: int, errors: list[float], epochs: int, every: int, tmp_path: Path) -> None:
    recipe = patient(patience, every=every)
    course = Graded(errors)
    fitted = judge(recipe, course, tmp_path)
    assert len(course.asked) == len(log_of(tmp_path)) == epochs
    assert (fitted.epoch, fitted.error) == (errors.index(min(errors)), min(errors))
    # However few checkpoints there are, the last step has one, and a finished run stays finished.
    assert newest(tmp_path).step == epochs * BATCHES
    again = judge(recipe, Graded([]), tmp_path, resume=True)
    assert (again.epoch, again.error, bits(again.prior)) == (fitted.epoch, fitted.error, bits(fitted.prior))
    assert len(log_of(tmp_path)) == epochs


def test_a_signal_in_the_step_that_exhausts_patience_lets_the_run_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = patient(2)
    after_step(monkeypatch, recipe.learner, lambda taken: taken == 12 and os.kill(os.getpid(), signal.SIGTERM))
    assert judge(recipe, Graded([0.1, 0.2, 0.3]), tmp_path).epoch == 0


def test_without_validation_images_the_last_prior_is_returned(tmp_path: Path) -> None:
    fitted = fit(recipe_of(), CleanImages(IMAGES), tmp_path, fingerprint="data")
    assert (fitted.epoch, fitted.error) == (EPOCHS - 1, None)
    assert not any("validation_error" in record or "best" in record for record in log_of(tmp_path))
    final = newest(tmp_path).tensors
    assert torch.equal(final["prior.weights.0"], fitted.prior.weights)
    assert not any(name.startswith(("best", "average")) for name in final)


# --- a solver that stops converging ---


@dataclass(frozen=True)
class Converging(Still):
    """A learner whose solver converges for a given share of the images in each epoch."""

    shares: Sequence[float] = ()

    def step(self, prior: RBM, batch: Tensor, state: LearnerState, generator: torch.Generator, epoch: int) -> Step:
        made = super().step(prior, batch, state, generator, epoch)
        return replace(made, monitors={"converged": torch.tensor(self.shares[epoch])})

    def inference(self, epoch: int) -> Inference:
        return Inference(modes=0, starts=0)


@pytest.mark.parametrize(
    ("shares", "warned_of"),
    [
        ((0.9, 0.8, 0.7, 0.6), []),
        # What goes on unchanged is said once.
        ((0.1, 0.2, 0.1, 0.0), [1]),
        ((0.1, 0.9, 0.4, 0.3), [1, 3]),
        ((0.9, 0.4, 0.6, 0.2), [2, 4]),
        ((0.5, 0.49, 0.5, 0.5), [2]),
    ],
)
def test_a_solver_that_stops_converging_is_reported(
    shares: tuple[float, ...], warned_of: list[int], tmp_path: Path
) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run(recipe_of(Converging(shares=shares)), tmp_path)
    texts = [str(warning.message) for warning in found]
    sentences = {
        epoch: f"the solver converged for only {shares[epoch - 1]:.0%} of the images of epoch {epoch}: lower the rate, "
        "raise weight_decay, or allow more iterations"
        for epoch in warned_of
    }
    assert texts == [f"{tmp_path}: {sentence}" for sentence in sentences.values()]
    assert {record["epoch"]: record["warning"] for record in log_of(tmp_path) if "warning" in record} == sentences
    assert [record["converged"] for record in log_of(tmp_path)] == pytest.approx(list(shares), rel=1e-6)


def test_the_warning_names_the_prior_that_is_kept(tmp_path: Path) -> None:
    recipe = replace(patient(epochs=3), learner=Converging(shares=[0.9, 0.8, 0.1]))
    with pytest.warns(UserWarning, match="epoch 3: .*; the best prior so far, from epoch 2, is kept$") as warned:
        fitted = judge(recipe, Graded([0.5, 0.4, 0.45]), tmp_path)
    assert len(warned) == 1
    assert fitted.epoch == 1


def test_what_has_been_seen_to_converge_is_remembered_over_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of(Converging(shares=[0.9, 0.1, 0.9, 0.9]))
    after_step(monkeypatch, recipe.learner, lambda taken: taken == 6 and os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Stopped):
        run(recipe, tmp_path)
    monkeypatch.undo()
    with pytest.warns(UserWarning, match="only 10% of the images of epoch 2"):
        run(recipe, tmp_path, resume=True)


# --- damaged images ---

CONDITIONAL: dict[str, Any] = {
    "belief_propagation": BeliefPropagationLikelihood(iterations=3),
    "mean_field": MeanFieldLikelihood(iterations=3),
    "contrastive": ConditionalDivergence(),
    "perceptron": PerceptronLoss(steps=2),
    "marginal_max_margin": MarginalMaxMargin(iterations=3),
    "latent_max_margin": LatentMaxMargin(iterations=3),
    "logistic": LogisticRegression(),
}
LARGER = bars_and_stripes(4)


def conditional_recipe(
    learner: str = "mean_field", task: str = "flip:0.2", validation: int = 6, rate: float = 0.5, **changed: Any
) -> Recipe:
    return recipe_of(
        CONDITIONAL[learner],
        Optimizer(rate=rate, average=0.9),
        method=learner,
        data=Data("bars-and-stripes", task=task, validation=validation),
        prior=PriorShape(hidden=3, family="crbm", weight_scale=0.0 if learner == "logistic" else 0.1),
        training=Training(epochs=EPOCHS, batch=8, checkpoint_every=2, patience=3 if validation else 0),
        **changed,
    )


def damaged_images(seed: int = 0, task: str = "flip:0.2") -> DamagedImages:
    return DamagedImages(LARGER[6:], LARGER[:6], (4, 4), parse_task(task), seed)


def test_damage_is_drawn_afresh_for_every_batch_and_once_for_validation() -> None:
    course, draw = damaged_images(), seeded(3)
    index = torch.tensor([3, 0, 11])
    batches = [course.batch(index, draw) for _ in range(5)]
    for pairs in batches:
        assert torch.equal(pairs.clean, course.images[index])
        assert 0 < float((pairs.observed != pairs.clean).sum()) < 24
    assert len({bits_of(pairs.observed) for pairs in batches}) == 5
    again = course.batch(index, seeded(3))
    assert torch.equal(again.observed, batches[0].observed)
    # Neither the training's random numbers nor how often it is asked for make a difference.
    first = course.damaged
    wanted = course.task.damage(course.validation, (4, 4), seeded(0)).observed
    assert torch.equal(first, wanted)
    assert torch.equal(course.damaged, damaged_images().damaged)
    assert not torch.equal(damaged_images(seed=1).damaged, first)


def bits_of(values: Tensor) -> bytes:
    return values.numpy().tobytes()


def test_the_error_is_the_share_of_wrong_pixels_of_the_validation_images(monkeypatch: pytest.MonkeyPatch) -> None:
    course = damaged_images()
    inference = Inference("sum_product", 20, 1e-4, 0.0, modes=0, starts=0)
    prior = course.initial(3, 0.5, seeded(2))
    prior = replace(prior, visible_input=torch.eye(16) * 9 - 4)
    solver = FIXED_POINTS["sum_product"](max_iter=20, tol=1e-4, damping=0.0)
    means = torch.cat([solver.solve(prior.given(image[None])).means[0] for image in course.damaged])
    wrong = (means > 0.5) != (course.validation > 0.5)
    assert 0 < int(wrong.sum()) < wrong.numel()
    assert course.judged(prior, inference).error == pytest.approx(int(wrong.sum()) / (6 * 16))
    monkeypatch.setattr(course_module, "VALIDATION_BATCH", 4)
    assert course.judged(prior, inference).error == pytest.approx(int(wrong.sum()) / (6 * 16))
    assert replace(course, validation=LARGER[:0]).judged(prior, inference) is None


def test_the_first_conditional_prior_answers_with_the_pixel_means() -> None:
    course = damaged_images()
    prior = course.initial(3, 0.0, seeded(1))
    means = MeanField().solve(prior.given(course.damaged)).means[0]
    torch.testing.assert_close(means, pixel_means(course.images).expand(6, -1))
    drawn = course.initial(300, 0.01, seeded(1))
    assert float(drawn.visible_input.abs().max()) == 0
    assert [float(value.std()) for value in (drawn.weights, drawn.hidden_input)] == pytest.approx([0.01] * 2, rel=0.1)


def test_images_are_held_out_by_the_seed() -> None:
    courses = [course_of(conditional_recipe(seed=seed), LARGER, (4, 4)) for seed in (0, 0, 1)]
    for course in courses:
        learnt, held = (sorted(map(tuple, part.tolist())) for part in (course.images, course.validation))
        assert len(held) == 6
        assert not set(learnt) & set(held)
        assert sorted(learnt + held) == sorted(map(tuple, LARGER.tolist()))
        assert (str(course.task), course.image_shape) == ("flip:0.2", (4, 4))
    assert torch.equal(courses[0].validation, courses[1].validation)
    assert not torch.equal(courses[0].validation, courses[2].validation)
    assert len(course_of(conditional_recipe(validation=0), LARGER, (4, 4)).validation) == 0
    assert course_of(recipe_of(), LARGER, (4, 4)) == CleanImages(LARGER)


@pytest.mark.parametrize("validation", [29, 30, 10**9])
def test_too_few_images_to_hold_some_out(validation: int) -> None:
    with pytest.raises(TrainingError, match=rf"30 images, of which {validation} are for validation") as caught:
        course_of(conditional_recipe(validation=validation), LARGER, (4, 4))
    assert "\n" not in str(caught.value)
    assert len(course_of(conditional_recipe(validation=28), LARGER, (4, 4)).images) == 2


def test_modes_and_description_follow_from_the_learner(tmp_path: Path) -> None:
    recipe = conditional_recipe("marginal_max_margin", storage="float16")
    trained = train(recipe, LARGER, (4, 4), tmp_path, fingerprint="data")
    prior, about = trained.prior, trained.prior.description
    assert isinstance(prior.machine, ConditionalRBM)
    assert (about.family, about.task, about.method) == ("crbm", "flip:0.2", "marginal_max_margin")
    assert about.inference == recipe.learner.inference(trained.epoch - 1)
    assert prior.modes.shape == (0, 2)
    records = log_of(tmp_path)
    assert trained.error == min(record["validation_error"] for record in records)
    assert trained.error == records[trained.epoch - 1]["validation_error"]
    torch.testing.assert_close(prior.pixel_means, pixel_means(course_of(recipe, LARGER, (4, 4)).images))
    for name, value in prior.machine.parameters.items():
        assert name.startswith("units") or torch.equal(value.half().float(), value)


@pytest.mark.parametrize("learner", CONDITIONAL)
def test_conditional_runs_stopped_at_every_step_and_resumed(
    learner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = conditional_recipe(learner, task="patch:2:1" if learner == "contrastive" else "flip:0.2")
    course = lambda: course_of(recipe, LARGER, (4, 4))  # noqa: E731
    whole = fit(recipe, course(), tmp_path / "whole", fingerprint="data")
    after_step(monkeypatch, recipe.learner, lambda taken: os.kill(os.getpid(), signal.SIGTERM))
    resumed, stops = None, 0
    while resumed is None:
        try:
            resumed = fit(recipe, course(), tmp_path / "stopped", fingerprint="data", resume=True)
        except Stopped:
            stops += 1
    records = log_of(tmp_path / "whole")
    assert stops == 3 * len(records) - 1
    assert bits(resumed.prior) == bits(whole.prior)
    assert (resumed.epoch, resumed.error) == (whole.epoch, whole.error)
    assert log_of(tmp_path / "stopped") == records
    assert whole.error == min(record["validation_error"] for record in records)


@pytest.mark.parametrize("learner", CONDITIONAL)
def test_divergence_of_conditional_runs_is_reported(learner: str, tmp_path: Path) -> None:
    recipe = conditional_recipe(learner, rate=1e38)
    with pytest.raises(TrainingError, match=r"training diverged .* lower the rate"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(recipe, course_of(recipe, LARGER, (4, 4)), tmp_path, fingerprint="data")
    assert newest(tmp_path) is None


# --- from recipe to prior ---


@pytest.mark.parametrize("storage", ["float16", "float32"])
def test_a_trained_prior_does_not_depend_on_interruptions(
    storage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of("tap-redrawn", storage=storage)
    recipe = replace(recipe, inference=replace(recipe.inference, modes=6, starts=3, damping=0.3))
    trained = train(recipe, IMAGES, (3, 3), tmp_path / "whole", fingerprint="data")
    assert (trained.epoch, trained.error) == (EPOCHS, None)
    whole = trained.prior
    with pytest.MonkeyPatch.context() as patch:
        after_step(patch, recipe.learner, lambda taken: taken == 7 and os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(Stopped):
            train(recipe, IMAGES, (3, 3), tmp_path / "stopped", fingerprint="data")
    resumed = train(recipe, IMAGES, (3, 3), tmp_path / "stopped", fingerprint="data", resume=True).prior
    assert bits(resumed.machine) == bits(whole.machine)
    assert torch.equal(resumed.modes, whole.modes)
    about = whole.description
    assert (about.image_shape, about.hidden, about.inference.modes, about.recipe) == ((3, 3), 3, 6, recipe.digest)
    assert whole.modes.shape == (6, 2)
    torch.testing.assert_close(whole.pixel_means, pixel_means(IMAGES))
    rounded = torch.equal(whole.machine.weights.half().float(), whole.machine.weights)
    assert rounded == (storage == "float16")


def test_a_log_that_is_no_log_is_refused(tmp_path: Path) -> None:
    for content in (None, b"{", b"[1]\n", b'{"seconds": "x"}\n', b"\xff\n"):
        if content is not None:
            (tmp_path / "log.jsonl").write_bytes(content)
        with pytest.raises(TrainingError, match=r"log\.jsonl: missing or damaged"):
            epoch_seconds(tmp_path)


def test_more_units_than_memory_holds(tmp_path: Path) -> None:
    recipe = replace(recipe_of(), prior=PriorShape(hidden=10**13))
    with pytest.raises(TrainingError, match="10000000000000 hidden units do not fit into memory"):
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

    train(recipe(5), IMAGES, (3, 3), tmp_path / "run", fingerprint="data", every=2)
    assert sorted(path.name for path in (tmp_path / "run" / "epochs").iterdir()) == ["0002", "0004"]
    for epochs in (2, 4):
        kept = zoo.load(epoch_folder(tmp_path / "run", epochs))
        ended = train(recipe(epochs), IMAGES, (3, 3), tmp_path / str(epochs), fingerprint="data").prior
        assert bits(kept.machine) == bits(ended.machine)
        assert kept.description.name == f"test-epoch-{epochs}"
        assert kept.description.inference.solver == ended.description.inference.solver
        assert not (tmp_path / str(epochs) / "epochs").exists()


def test_keeping_priors_every_so_often_backwards_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="every"):
        train(recipe_of(), IMAGES, (3, 3), tmp_path, fingerprint="data", every=-1)
