"""Training runs end with the same bits whatever stopped them in between, and go on as what they were alone."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fits import BATCHES, EPOCHS, LEARNERS, after_step, bits, log_of, recipe_of, run, stopped_run
from refusals import refused

from restore.errors import TrainingError
from restore.learning.recipe.spec import Training
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run import folder as run_folder
from restore.learning.run.folder import Stopped
from restore.priors import RBM

pytestmark = pytest.mark.usefixtures("quick_disk")


# --- stopping and resuming ---


@pytest.mark.parametrize(
    ("learner", "optimizer"),
    [
        *((learner, "sgd") for learner in LEARNERS),
        ("tap-redrawn", "adam"),
        ("pcd", "adam"),
        ("pcd", "muon"),
        ("pcd", "sgd-plain"),
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
    for number in numbers:
        with pytest.raises(Stopped) as caught:
            run(recipe, tmp_path / "stopped", resume=True)
        assert caught.value.signal_number == number
        assert isinstance(caught.value, KeyboardInterrupt)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
    resumed = run(recipe, tmp_path / "stopped", resume=True)
    assert bits(resumed) == bits(whole)
    assert log_of(tmp_path / "stopped") == log_of(tmp_path / "whole")


def test_killed_between_log_and_checkpoint_or_within_either(tmp_path: Path) -> None:
    recipe = recipe_of()
    moments = iter(range(EPOCHS))
    # Whoever watches is told after the log and before the checkpoint of an epoch.
    copy = lambda passed: shutil.copytree(tmp_path / "whole", tmp_path / f"killed-{next(moments)}")  # noqa: E731
    whole = run(recipe, tmp_path / "whole", watch=copy)
    for moment in range(EPOCHS):
        folder = tmp_path / f"killed-{moment}"
        with (folder / "log.jsonl").open("a") as stream:
            stream.write('{"epoch": 99, "st')
        (folder / ".restore-tmp").write_bytes(b"half a checkpoint")
        assert bits(run(recipe, folder, resume=True)) == bits(whole)
        assert log_of(folder) == log_of(tmp_path / "whole")


def test_training_in_a_thread(tmp_path: Path) -> None:
    # Signal handlers belong to the main thread.
    results: list[RBM] = []
    thread = threading.Thread(target=lambda: results.append(run(recipe_of(), tmp_path / "thread")))
    thread.start()
    thread.join()
    assert bits(results[0]) == bits(run(recipe_of(), tmp_path / "main"))


# --- what may not change ---


def test_resuming_with_another_recipe_other_data_or_processes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_run(tmp_path, recipe_of())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    changes: list[tuple[str, dict[str, Any]]] = [
        ("recipe.seed was 0 and is 5", {"seed": 5}),
        ("recipe.optimizer.name", {"optimizer": "adam"}),
        ("recipe.learner.starts", {"learner": "cd"}),
        ("recipe.training.epochs", {"training": Training(epochs=5, batch=4, checkpoint_every=2)}),
    ]
    for subject, change in changes:
        with refused(TrainingError, tmp_path, subject):
            run(recipe_of(**change), tmp_path, resume=True)
    with refused(TrainingError, tmp_path, "data"):
        run(recipe_of(), tmp_path, resume=True, data="other")
    with refused(TrainingError, tmp_path, "resume"):
        run(recipe_of(), tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(run_folder, "processes", lambda: 2)
        with refused(TrainingError, tmp_path, "processes"):
            run(recipe_of(), tmp_path, resume=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_number_of_threads_may_change_which_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped_run(tmp_path, recipe_of())
    threads = torch.get_num_threads()
    with monkeypatch.context() as patched:
        patched.setattr(torch, "get_num_threads", lambda: threads + 1)
        with pytest.warns(UserWarning):
            run(recipe_of(), tmp_path, resume=True)
    # Nothing is left for threads to decide.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(recipe_of(), tmp_path, resume=True)


def test_name_storage_and_inference_may_change(tmp_path: Path) -> None:
    stopped_run(tmp_path, recipe_of())
    recipe = recipe_of()
    changed = replace(recipe, name="other", storage="float32", inference=replace(recipe.inference, starts=3))
    assert bits(run(changed, tmp_path, resume=True)) == bits(run(recipe, tmp_path / "whole"))


def test_another_kind_of_device_goes_on_with_other_random_numbers(tmp_path: Path) -> None:
    stopped_run(tmp_path, recipe_of())
    found = checkpoints.load(tmp_path)
    # The state of a CUDA generator has 16 bytes.
    checkpoints.save(
        tmp_path, replace(found, tensors=found.tensors | {"generator": torch.zeros(16, dtype=torch.uint8)})
    )
    with pytest.warns(UserWarning):
        ended = run(recipe_of(), tmp_path, resume=True)
    assert bits(ended) != bits(run(recipe_of(), tmp_path / "whole"))
    assert len(log_of(tmp_path)) == EPOCHS
