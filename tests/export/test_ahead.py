"""A graph that is traced while its prior is still trained is the one that would be traced at the end."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
import torch
from machines import with_weights
from priors import random_prior

from restore import zoo
from restore.export import ahead
from restore.export.ahead import Ahead
from restore.export.packing import beside_weights
from restore.priors import ConvolutionalRBM
from restore.priors.convolutional import Shared
from restore.zoo import TrainedPrior
from restore.zoo.description import Description
from restore.zoo.inference import Inference


def convolutional(weight: float) -> TrainedPrior:
    """Its few parameters are small enough that what follows from them is computed in advance."""
    machine = ConvolutionalRBM.of(
        Shared(torch.full((2, 9), weight), torch.tensor([-weight]), torch.arange(2.0) - weight), (5, 7)
    )
    inference = Inference(modes=0, starts=1, max_iter=40, damping=0.1)
    about = Description("x", (5, 7), 2, 127, "none", "none", inference=inference, family="convolutional", kernel=3)
    return TrainedPrior(about, machine, torch.full((35,), 0.3), torch.empty(0, 5, dtype=torch.uint8))


def dense(weight: float) -> TrainedPrior:
    """With few units, from whose biases something is computed in advance, too."""
    prior = random_prior((3, 4), hidden=3, modes=5)
    return replace(prior, machine=with_weights(prior.machine, weight))


@pytest.mark.parametrize("made", [convolutional, pytest.param(dense, marks=pytest.mark.thorough)])
def test_a_graph_traced_ahead_has_the_bytes_of_one_traced_at_the_end(
    made: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last, early = made(0.5), made(0.25)
    told = replace(early.description, unfinished="epoch 1 of 9", run="runs/x", recipe="other", log_partition=3.0)
    told = replace(told, inference=replace(told.inference, max_iter=7, tol=0.1, damping=0.5))
    begun = Ahead(replace(early, description=told, modes=torch.zeros_like(early.modes)))
    zoo.save(tmp_path, last, "")
    wanted = beside_weights(tmp_path)
    monkeypatch.setattr(ahead, "trace", None)  # not needed
    assert beside_weights(tmp_path, begun.trace) == wanted


OTHERS = {
    "another size": lambda: random_prior((3, 4), hidden=4, modes=5),
    "no modes": lambda: random_prior((3, 4), hidden=3, modes=0),
    "another threshold": lambda: replace(dense(1.0), description=replace(dense(1.0).description, threshold=90)),
    "fewer starts": lambda: replace(
        dense(1.0),
        description=replace(dense(1.0).description, inference=replace(dense(1.0).description.inference, starts=2)),
    ),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_prior_that_became_another_is_traced_at_the_end(
    other: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = Ahead(other())
    assert traced(begun, dense(1.0), tmp_path, monkeypatch) == "at the end"


def test_a_process_that_fails_leaves_the_graph_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = shutil.which("false")
    assert fails is not None
    monkeypatch.setattr(sys, "executable", fails)
    begun = Ahead(dense(1.0))
    assert traced(begun, dense(1.0), tmp_path, monkeypatch) == "at the end"


def traced(begun: Ahead, prior: TrainedPrior, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """When the graph of a prior was traced."""
    at_the_end = onnx.ModelProto(producer_name="at the end")
    monkeypatch.setattr(ahead, "trace", lambda facts, stored: at_the_end)
    monkeypatch.setattr("restore.export.packing.simplified", lambda model, stored: stop(model))
    zoo.save(folder, prior, "")
    with pytest.raises(StopIteration) as stopped:
        beside_weights(folder, begun.trace)
    return str(stopped.value)


def stop(model: onnx.ModelProto) -> None:
    raise StopIteration(model.producer_name)


def test_nobody_waits_for_a_process_that_is_no_longer_needed() -> None:
    begun = Ahead(dense(1.0))
    process = begun._process
    del begun
    assert process.poll() is not None
