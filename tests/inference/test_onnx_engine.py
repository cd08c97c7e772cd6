"""The engine on onnxruntime: batches on several threads, pictures of any size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from restore import zoo
from restore.channels.damage import Damage
from restore.errors import UsageError

pytest.importorskip("onnxruntime")

from restore.inference.onnx.engine import OnnxEngine
from restore.inference.open import open_engine


def test_batches_on_several_threads_come_back_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = OnnxEngine.load(zoo.find("tap-mnist-25"))
    few = replace(loaded, facts=replace(loaded.facts, at_once=2))
    grey = np.random.default_rng(0).integers(0, 2, (7, 28, 28)).astype(float)
    whole = loaded.solve(grey, Damage(0.1))
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        parts = few.solve(grey, Damage(0.1))
        np.testing.assert_allclose(parts.means, whole.means, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "side", "threads", "images", "sizes"),
    [
        ("tap-mnist-25", 28, "1", 40, [16, 16, 8]),
        ("tap-mnist-25", 28, "2", 30, [15, 15]),
        ("tap-mnist-25", 28, "8", 60, [8] * 7 + [4]),
        ("tap-mnist-25", 28, "8", 5, [3, 2]),
        ("conv-art", 32, "1", 9, [9]),
        ("conv-art", 64, "1", 9, [3] * 3),
        ("conv-art", 128, "1", 9, [1] * 9),
    ],
)
def test_threads_share_what_is_worth_it_and_large_images_come_one_by_one(
    name: str, side: int, threads: str, images: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = OnnxEngine.load(zoo.find(name))
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    header = loaded.header.at("full", (side, side), touched=True)
    batches = loaded._batches({"image": np.zeros((images, side, side), np.float32)}, header)
    assert list(map(len, batches)) == sizes


def test_a_graph_holds_one_solver() -> None:
    assert open_engine("tap-mnist-25", "onnx", solver="tap").backend == "onnx"
    with pytest.raises(UsageError):
        open_engine("tap-mnist-25", "onnx", solver="mean_field")


def test_a_picture_that_is_tried_again_has_every_answer_of_the_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, once, turns = OnnxEngine.load(zoo.find("tap-mnist-25")), OnnxEngine._run_once, []

    def watched(engine: OnnxEngine, *given: Any) -> dict[str, np.ndarray]:
        turns.append(once(engine, *given))
        if len(turns) == 1:
            turns[0]["converged"][1:] = False
        return {name: value.copy() for name, value in turns[-1].items()}

    monkeypatch.setattr(OnnxEngine, "_run_once", watched)
    pixels = np.random.default_rng(0).integers(0, 2, (3, 28, 28)).astype(np.float32)
    known = {"p": np.full((1, 1, 1), 0.1, np.float32), "mask": np.zeros((1, 1, 1), bool)}
    actual = loaded.run(loaded.header, {"image": pixels, **known})
    first, second = turns
    for name, value in actual.items():
        both = second[name] + (first[name][1:] if name == "iterations" else 0)
        np.testing.assert_array_equal(value[1:], both, err_msg=name)
        np.testing.assert_array_equal(value[0], first[name][0], err_msg=name)
    # More damping ends elsewhere.
    assert (second["log_partition"] != first["log_partition"][1:]).all()
