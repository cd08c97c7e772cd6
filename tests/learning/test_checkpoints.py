"""Checkpoints: damaged ones, full disks, and processes that are killed."""

from __future__ import annotations

import errno
import json
import math
import os
import warnings
from pathlib import Path

import pytest
import torch
from fits import BATCHES, EPOCHS, bits, log_of, recipe_of, run, stopped_run
from machines import seeded
from refusals import refused

from restore.errors import TrainingError
from restore.learning.recipe.spec import Training
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run.checkpoint import Checkpoint, newest

pytestmark = pytest.mark.usefixtures("quick_disk")


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
        path.write_text(json.dumps(record), encoding="utf-8")


DAMAGES = [
    *(("json", how) for how in ("empty", "truncated", "padded", "no-object", "nested", "other-number")),
    *(("safetensors", how) for how in ("empty", "truncated", "padded", "flipped", "missing")),
]


@pytest.mark.parametrize(("part", "how"), DAMAGES)
def test_a_damaged_newest_checkpoint_is_passed_over(part: str, how: str, tmp_path: Path) -> None:
    recipe = recipe_of(training=Training(epochs=EPOCHS, batch=4))
    whole = run(recipe, tmp_path)
    names, told = log_of(tmp_path), checkpoints.facts(tmp_path)["identity"]
    spoil(tmp_path / f"checkpoint-{EPOCHS * BATCHES:09d}.{part}", how)
    assert checkpoints.facts(tmp_path)["identity"] == told != {}
    with pytest.warns(UserWarning) as warned:
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
    with pytest.warns(UserWarning), refused(TrainingError, tmp_path):
        run(recipe_of(), tmp_path, resume=True)


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
    with pytest.raises(TrainingError) as caught:
        run(recipe, tmp_path, resume=True)
    monkeypatch.undo()
    assert "checkpoint-" in str(caught.value)
    assert "\n" not in str(caught.value)
    after = {path.name: path.read_bytes() for path in tmp_path.glob("checkpoint-*")}
    assert before.items() <= after.items()
    assert not list(tmp_path.glob(".restore-*"))
    assert bits(run(recipe, tmp_path, resume=True)) == bits(run(recipe, tmp_path / "whole"))
