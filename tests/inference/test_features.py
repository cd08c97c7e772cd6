"""Features: E[h | v] from either engine, in the caller's kind."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from machines import brute_force, random_rbm
from PIL import Image

import restore
from restore import zoo
from restore.errors import ModelError
from restore.inference.onnx.engine import OnnxEngine
from restore.priors import ConditionalRBM
from restore.zoo.description import Description
from restore.zoo.inference import Inference

SHAPE = (3, 4)


def saved(folder: Path, family: str = "rbm") -> Path:
    machine: Any = random_rbm(12, 5, dtype=torch.float32)
    conditional = family == "crbm"
    about = Description(
        "tiny",
        SHAPE,
        5,
        127,
        "nothing",
        "none",
        family=family,
        task="flip:0.1" if conditional else "",
        inference=Inference(modes=0, starts=0 if conditional else 1, solver="mean_field" if conditional else "tap"),
    )
    if conditional:
        machine = ConditionalRBM(machine, torch.zeros(12, 12), torch.zeros(5, 12))
    zoo.save(folder, zoo.TrainedPrior(about, machine, torch.full((12,), 0.5), torch.zeros(0, 2, dtype=torch.uint8)), "")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(tmp_path / "tiny")


GREY = np.random.default_rng(0).integers(0, 256, (4, *SHAPE), dtype=np.uint8)


def truth(folder: Path, grey: np.ndarray = GREY) -> np.ndarray:
    """E[h | v] from the joint distribution of all units, by counting."""
    joint = brute_force(zoo.load(folder).machine)
    rows = []
    for image in grey > 127:
        given = (joint.states[:, :12] == image.ravel()).all(1)
        weight = joint.probabilities * given
        rows.append(weight @ joint.states[:, 12:] / weight.sum())
    return np.array(rows)


def test_features_are_the_expected_hidden_units(folder: Path) -> None:
    found = restore.load(folder, engine="torch").transform(GREY)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, truth(folder), atol=1e-5)
    inverted = restore.load(folder, engine="torch").transform(255 - GREY, invert=True)
    # 127 and 128 change places, and no pixel here is either.
    np.testing.assert_array_equal(inverted, found)


def test_features_come_in_the_callers_kind(folder: Path, tmp_path: Path) -> None:
    prior = restore.load(folder, engine="torch")
    expected = truth(folder)
    image = Image.fromarray(GREY[0])
    image.save(tmp_path / "image.png")
    for given in (GREY[0], image, tmp_path / "image.png", [GREY[0]], GREY[:1] / np.float32(255)):
        found = prior.transform(given)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, expected[:1], atol=1e-5)
    tensor = torch.from_numpy(GREY)
    for given in (tensor, list(tensor)):
        found = prior.transform(given)
        assert isinstance(found, torch.Tensor) and found.dtype == torch.float32
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)


def test_both_engines_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    images = np.random.default_rng(1).random((7, 28, 28))
    ours = restore.load("tap-mnist-25", engine="torch").transform(images)
    runtime = restore.load("tap-mnist-25", engine="onnx")
    # As where torch is not installed.
    monkeypatch.setitem(sys.modules, "torch", None)
    theirs = runtime.transform(images)
    np.testing.assert_allclose(theirs, ours, atol=1e-6)
    assert theirs.dtype == ours.dtype == np.float32
    assert ours.std() > 0.1


def test_a_graph_by_itself_has_no_features() -> None:
    pytest.importorskip("onnxruntime")
    prior = restore.load("tap-mnist-25", engine="onnx")
    assert isinstance(prior.engine, OnnxEngine)
    alone = restore.Restorer(replace(prior.engine, weights=None))
    with pytest.raises(ModelError, match="name the prior it was made from"):
        alone.transform(np.zeros((28, 28)))


def test_images_of_another_size_and_conditional_priors(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="resize it first"):
        restore.load(folder, engine="torch").transform(np.zeros((4, 3)))
    conditional = restore.load(saved(tmp_path / "conditional", "crbm"), engine="torch")
    with pytest.raises(ModelError, match="no features"):
        conditional.transform(GREY)
