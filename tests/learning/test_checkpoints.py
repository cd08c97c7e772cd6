"""Checkpoints: damaged ones, full disks, and processes that are killed."""

from __future__ import annotations

import errno
import math
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from fits import EPOCHS, bits, recipe_of, run, stopped_run
from machines import seeded
from refusals import refused
from safetensors.torch import save as to_bytes

from restore.errors import TrainingError
from restore.learning.recipe.spec import Training
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run.checkpoint import Checkpoint

pytestmark = pytest.mark.usefixtures("quick_disk")


DAMAGES = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "padded": lambda data: data + b"\0",
    "no header": lambda data: to_bytes({"a": torch.ones(1)}),
    "no table": lambda data: to_bytes({"a": torch.ones(1)}, {"step": "3", "facts": "[1, 2]"}),
    "nested": lambda data: to_bytes({"a": torch.ones(1)}, {"step": "3", "facts": "[" * 100_000}),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_checkpoint_is_refused(how: str, tmp_path: Path) -> None:
    run(recipe_of(), tmp_path)
    path = tmp_path / checkpoints.NAME
    path.write_bytes(DAMAGES[how](path.read_bytes()))
    assert checkpoints.facts(tmp_path) == {}
    with refused(TrainingError, path):
        run(recipe_of(), tmp_path, resume=True)


@dataclass
class Held:
    """A state with a field of every kind."""

    order: torch.Tensor
    optimizer: torch.optim.Optimizer
    generator: torch.Generator
    average: dict[str, torch.Tensor] = field(default_factory=dict)
    best: float = math.inf
    ended: str = ""
    fine: bool = False
    step: int = 0


def stepped(steps: int) -> tuple[torch.Tensor, torch.optim.Optimizer]:
    weights = torch.ones(3, 2)
    optimizer = torch.optim.Adam([weights])
    for number in range(steps):
        weights.grad = torch.full((3, 2), float(number))
        optimizer.step()
    return weights, optimizer


def test_a_state_comes_back_field_by_field(tmp_path: Path) -> None:
    _, optimizer = stepped(3)
    state = Held(torch.arange(5), optimizer, seeded(1), {"a.b": torch.rand(2)}, 0.5, "why", True, 3)
    checkpoints.save(tmp_path, checkpoints.of(state, {"used": 1.5}))
    found = checkpoints.load(tmp_path)
    assert found is not None and (found.step, found.facts["used"]) == (3, 1.5)
    back = checkpoints.set_state(Held(torch.empty(0), stepped(0)[1], seeded(2)), found, torch.device("cpu"))
    assert torch.equal(back.order, state.order) and torch.equal(back.average["a.b"], state.average["a.b"])
    assert (back.best, back.ended, back.fine, back.step) == (0.5, "why", True, 3)
    moments, expected = (one.state_dict()["state"][0] for one in (back.optimizer, optimizer))
    assert moments.keys() == expected.keys()
    assert all(torch.equal(moments[name], value) for name, value in expected.items())
    # Whoever resumes sets it: on another kind of device it cannot be.
    assert torch.equal(found.tensors["generator"], seeded(1).get_state())


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    tensors = {
        "a": torch.randn(3, 2, generator=seeded(1)).T,
        "empty": torch.empty(0, dtype=torch.int64),
        "bytes": seeded(2).get_state(),
        "number": torch.tensor(3.0),
    }
    facts = {"x": 0.1 + 0.2, "nested": {"nan": math.nan, "big": 2**60}, "text": "ü\n"}
    checkpoints.save(tmp_path, Checkpoint(7, tensors, facts))
    found = checkpoints.load(tmp_path)
    assert found.step == 7
    assert found.tensors.keys() == tensors.keys()
    assert all(torch.equal(found.tensors[name], value) for name, value in tensors.items())
    assert repr(found.facts) == repr(facts)
    assert checkpoints.load(tmp_path / "nowhere") is None


@pytest.mark.parametrize("call", [1, 2])
def test_a_full_disk_leaves_the_older_checkpoint(call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_of(training=Training(epochs=EPOCHS, batch=4))
    stopped_run(tmp_path, recipe)
    before = (tmp_path / checkpoints.NAME).read_bytes()
    real, calls = os.fsync, 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        # The log is cut first, which takes two calls; then comes the checkpoint.
        if calls >= 2 + call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TrainingError) as caught:
        run(recipe, tmp_path, resume=True)
    monkeypatch.undo()
    assert checkpoints.NAME in str(caught.value)
    assert "\n" not in str(caught.value)
    # The second call comes after the new one has taken its place.
    assert ((tmp_path / checkpoints.NAME).read_bytes() == before) == (call == 1)
    assert not list(tmp_path.glob(".restore-*"))
    assert bits(run(recipe, tmp_path, resume=True)) == bits(run(recipe, tmp_path / "whole"))
