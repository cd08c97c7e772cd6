"""Features: E[h | v] from either engine in the caller's kind, and what a classifier makes of them."""

from __future__ import annotations

import json
import struct
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import Run
from machines import brute_force, random_rbm
from PIL import Image

import restore
from restore import zoo
from restore.errors import InputError, ModelError
from restore.evaluation.classification import PENALTIES, Examples, classify
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


# --- classification ---


def examples(count: int, seed: int, noise: float = 0.0) -> Examples:
    """Three classes, each a corner of its own; some labels wrong."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 3, count)
    features = (0.8 * np.eye(3)[labels] + 0.2 * draw.random((count, 3))).astype(np.float32)
    wrong = draw.random(count) < noise
    return Examples(features, np.where(wrong, (labels + 1) % 3, labels))


def test_classes_that_can_be_told_are_told() -> None:
    found = classify(examples(120, 0), examples(50, 1), np.random.default_rng(0))
    assert (found.error, found.standard_error, found.validation_error) == (0, 0, 0)
    assert (found.features, found.classes, found.trained, found.tested, found.held_out) == (3, 3, 120, 50, 20)
    assert found.warnings == ()


def test_wrong_labels_are_errors() -> None:
    found = classify(examples(600, 0), examples(400, 1, noise=0.25), np.random.default_rng(0))
    wrong = (examples(400, 1, noise=0.25).labels != examples(400, 1).labels).mean()
    # Drawn in the same order, so that the labels differ where they were made wrong.
    assert found.error == pytest.approx(wrong)
    assert found.standard_error == pytest.approx((wrong * (1 - wrong) / 400) ** 0.5)


def test_the_penalty_is_chosen_without_the_test_images() -> None:
    training = examples(300, 0, noise=0.2)
    one = classify(training, examples(50, 1), np.random.default_rng(3))
    two = classify(training, examples(70, 2, noise=0.9), np.random.default_rng(3))
    assert one.penalty == two.penalty and one.penalty in PENALTIES
    assert one.validation_error == two.validation_error


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_images(count: int) -> None:
    with pytest.raises(InputError, match="too few"):
        classify(examples(count, 0), examples(5, 1), np.random.default_rng(0))


def test_one_class() -> None:
    training = examples(30, 0)
    with pytest.raises(InputError, match="of 1 classes"):
        classify(Examples(training.features, np.zeros(30, np.int64)), training, np.random.default_rng(0))


def test_a_fit_that_does_not_settle_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("restore.evaluation.classification.MAX_ITER", 2)
    found = classify(examples(60, 0, noise=0.2), examples(20, 1), np.random.default_rng(0))
    assert "did not settle" in found.warnings[0]


def labelled(folder: Path, count: int, seed: int) -> Path:
    """An idx file of images, and beside it one of labels that a single pixel tells."""
    draw = np.random.default_rng(seed)
    images = (draw.random((count, *SHAPE)) < 0.5).astype(np.uint8) * 255
    labels = (images[:, 0, 0] > 0).astype(np.uint8)
    for name, values in (("images-idx3", images), ("labels-idx1", labels)):
        head = struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
        (folder / f"mine-{name}-ubyte").write_bytes(head + values.tobytes())
    return folder / "mine-images-idx3-ubyte"


def test_from_the_command_line(run: Run, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    data = labelled(tmp_path, 400, 0)
    assert run("evaluate", folder, "--data", data, "--classify", "--json") == 0
    told = capsys.readouterr()
    report = json.loads(told.out)
    assert (report["tested"], report["classes"], report["features"]) == (400, 2, 5)
    assert 0 <= report["error"] < 0.5
    # One file serves as both splits.
    assert "400 of the images it is tested on are also trained on" in told.err
    assert run("evaluate", folder, "--data", data, "--classify", "--n", 90) == 0
    told = capsys.readouterr()
    assert "wrong of 90 test images" in told.out and "wrong of 15 held-out images" in told.out


def test_data_without_labels(run: Run, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    np.save(tmp_path / "data.npy", GREY)
    assert run("evaluate", folder, "--data", tmp_path / "data.npy", "--classify") == 3
    assert "has no labels" in capsys.readouterr().err
    assert run("evaluate", folder, "--data", tmp_path / "nothing", "--classify") == 3
    assert "neither a path nor a known data set" in capsys.readouterr().err
    data = labelled(tmp_path, 20, 0)
    labels = tmp_path / "mine-labels-idx1-ubyte"
    labels.write_bytes(struct.pack(">BBBB1I", 0, 0, 8, 1, 7) + bytes(7))
    assert run("evaluate", folder, "--data", data, "--classify") == 3
    assert "7 labels for 20 images" in capsys.readouterr().err


def test_without_scikit_learn(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("sklearn", "sklearn.linear_model"):
        monkeypatch.setitem(sys.modules, name, None)
    assert run("evaluate", folder, "--data", labelled(tmp_path, 20, 0), "--classify") == 2
    assert "restore-prior[features]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--task", "flip:0.1"), "one of"),
        (("--likelihood", "exact"), "one of"),
        (("--split", "train"), "--split"),
        (("--runs", 5), "--likelihood ais"),
        (("--soft",), "--task"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_usage(
    options: tuple[object, ...], says: str, run: Run, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("evaluate", folder, "--data", labelled(tmp_path, 20, 0), "--classify", *options) == 2
    assert says in capsys.readouterr().err


def test_conditional_priors_have_no_features(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conditional = saved(tmp_path / "conditional", "crbm")
    assert run("evaluate", conditional, "--data", labelled(tmp_path, 20, 0), "--classify") == 4
    assert "no features" in capsys.readouterr().err
