"""The engine on onnxruntime: batches on several threads, pictures of any size, features and the means of pixels."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from machines import brute_force
from priors import random_conditional, random_convolutional_deep_prior, random_prior

from restore import zoo
from restore.errors import ModelError, UsageError
from restore.export.packing import beside_weights
from restore.inference.damage import Damage, Observed
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.restore import restore
from restore.inference.torch_engine import Engine
from restore.marginals import Status

pytest.importorskip("onnxruntime")

from restore.inference.onnx.engine import OnnxEngine


def test_batches_on_several_threads_come_back_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = OnnxEngine.load(zoo.find("tap-text"))
    few = replace(loaded, facts=replace(loaded.facts, at_once=2))
    grey = np.random.default_rng(0).integers(0, 2, (11, 16, 16)).astype(float)
    whole, _ = loaded.marginals(grey, Damage(0.1))
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        parts, _ = few.marginals(grey, Damage(0.1))
        np.testing.assert_allclose(parts.means[0], whole.means[0], atol=1e-4)


@pytest.mark.parametrize(
    ("threads", "images", "sizes"), [("1", 300, [256, 44]), ("2", 300, [150, 150]), ("8", 60, [43, 17]), ("2", 5, [5])]
)
def test_threads_share_what_is_worth_it(
    threads: str, images: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, run, batches = OnnxEngine.load(zoo.find("tap-text")), OnnxEngine.run, []

    def counted(engine: OnnxEngine, observed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        batches.append(len(observed["image"]))
        return run(engine, observed)

    monkeypatch.setattr(OnnxEngine, "run", counted)
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    loaded.marginals(np.zeros((images, 16, 16)), Damage(0.1))
    assert sorted(batches, reverse=True) == sizes


def test_large_images_are_restored_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = OnnxEngine.load(zoo.find("conv-shapes"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert [loaded.of_size((side, side))._at_once(9) for side in (32, 64, 256)] == [9, 3, 1]


@pytest.mark.parametrize("name", ["tap-mnist-25", pytest.param("conv-shapes", marks=pytest.mark.thorough)])
def test_both_engines_agree(name: str) -> None:
    place = zoo.find(name)
    ours, theirs = Engine.load(str(place), "cpu"), OnnxEngine.load(place)
    draw = np.random.default_rng(0)
    grey = (draw.random((2, *theirs.description.image_shape)) < 0.3).astype(float)
    damage = Damage(draw.uniform(0.05, 0.3, grey.shape), hidden=draw.random(grey.shape) < 0.1)
    (one, gain), (other, same) = (engine.marginals(grey, damage) for engine in (ours, theirs))
    # Both stop at the same tolerance, along the same steps, in single precision.
    np.testing.assert_allclose(one.means[0], other.means[0], atol=1e-3)
    np.testing.assert_allclose(gain, same, atol=1e-5)
    assert np.array_equal(theirs.pixel_means(), ours.pixel_means()) and theirs.light_ground == ours.light_ground


@pytest.mark.thorough
def test_a_graph_by_itself_tells_the_means_of_pixels() -> None:
    beside = OnnxEngine.load(zoo.find("tap-mnist-25"))
    np.testing.assert_allclose(replace(beside, weights=None).pixel_means(), beside.pixel_means(), rtol=1e-4)


def test_a_graph_holds_one_solver() -> None:
    loaded = OnnxEngine.load(zoo.find("tap-mnist-25"))
    assert loaded.with_solver("tap") is loaded
    with pytest.raises(UsageError):
        loaded.with_solver("mean_field")


def test_features_are_the_expected_hidden_units(tmp_path: Path) -> None:
    prior, grey = random_prior((3, 4), modes=0), np.random.default_rng(0).random((4, 3, 4))
    found = Engine.of(prior, torch.device("cpu")).features(grey)
    # From the joint distribution of all units, by counting.
    joint = brute_force(prior.machine)
    for image, features in zip(grey > 0.5, found, strict=True):
        weight = joint.probabilities * (joint.states[:, :12] == image.ravel()).all(1)
        np.testing.assert_allclose(features, weight @ joint.states[:, 12:] / weight.sum(), atol=1e-5)
    with pytest.raises(ModelError):
        Engine.of(random_conditional((3, 4)), torch.device("cpu")).features(grey)


def test_features_of_a_graph_are_those_of_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    images, place = np.random.default_rng(1).random((7, 28, 28)), zoo.find("tap-mnist-25")
    ours, runtime = Engine.load(str(place), "cpu").features(images), OnnxEngine.load(place)
    # As where torch is not installed.
    monkeypatch.setitem(sys.modules, "torch", None)
    theirs = runtime.features(images)
    np.testing.assert_allclose(theirs, ours, atol=1e-6)
    assert theirs.dtype == ours.dtype == np.float32 and ours.std() > 0.1
    with pytest.raises(ModelError):
        replace(runtime, weights=None).features(images)


def test_a_picture_that_is_tried_again_has_every_answer_of_the_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, once, turns = OnnxEngine.load(zoo.find("tap-mnist-25")), OnnxEngine._run_once, []

    def watched(engine: OnnxEngine, *given: Any) -> dict[str, np.ndarray]:
        turns.append(once(engine, *given))
        if len(turns) == 1:
            turns[0]["converged"][1:] = False
        return {name: value.copy() for name, value in turns[-1].items()}

    monkeypatch.setattr(OnnxEngine, "_run_once", watched)
    pixels = np.random.default_rng(0).integers(0, 2, (3, 28, 28)).astype(np.float32)
    told = {"p": np.full((1, 1, 1), 0.1, np.float32), "mask": np.zeros((1, 1, 1), bool)}
    found = loaded.run({"image": pixels, **told})
    first, second = turns
    for name, value in found.items():
        both = second[name] + (first[name][1:] if name == "iterations" else 0)
        np.testing.assert_array_equal(value[1:], both, err_msg=name)
        np.testing.assert_array_equal(value[0], first[name][0], err_msg=name)
    # More damping ends elsewhere.
    assert (second["log_partition"] != first["log_partition"][1:]).all()


def test_a_graph_that_diverges_leaves_the_picture_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    run = OnnxEngine.run

    def breaking(engine: OnnxEngine, observed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = run(engine, observed)
        found["converged"][1], found["residual"][1] = False, np.inf
        return found

    monkeypatch.setattr(OnnxEngine, "run", breaking)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    pictures = [Observed(pixels, Damage(0.1)) for pixels in np.random.default_rng(0).integers(0, 2, (3, 28, 28)) * 1.0]
    options = Options(force=True)
    found = restore(pictures, options, Engines(options, only=OnnxEngine.load(zoo.find("tap-mnist-25"))))
    assert [each.status is Status.DIVERGED for each in found] == [False, True, False]
    assert np.array_equal(found[1].estimate, pictures[1].pixels)
    assert all(np.isfinite(part).all() for each in found for part in (each.estimate, each.means, each.deviations))


@pytest.mark.thorough
def test_a_convolutional_deep_machine_is_the_same_in_either_engine_at_any_size(tmp_path: Path) -> None:
    """Sides that no layer's step divides, others that it does, and pictures smaller than a window."""
    prior = random_convolutional_deep_prior()
    zoo.save(tmp_path, prior, "# layers\n")
    (tmp_path / zoo.GRAPH).write_bytes(beside_weights(tmp_path))
    graph, library = OnnxEngine.load(tmp_path), Engine.load(str(tmp_path), "cpu")
    for shape in ((12, 8), (41, 37), (9, 16), (2, 5)):
        seen = np.random.default_rng(0).integers(0, 2, (3, *shape)).astype(float)
        (found, gain), (wanted, _) = (each.of_size(shape).marginals(seen, Damage(0.2)) for each in (graph, library))
        for one, other in zip(found.means, wanted.means, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
        np.testing.assert_allclose(found.log_partition, wanted.log_partition, rtol=1e-6, atol=1e-4)
        assert wanted.means[0].std() > 0.1 and np.isfinite(gain).all()
