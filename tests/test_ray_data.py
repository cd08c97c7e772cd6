"""Restoring with Ray Data: what an actor does is what `restore.denoise` and `restore.complete` do, bit for bit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import restore
from restore.errors import UsageError
from restore.ray_data import BATCH, Worker, restored

MODEL = "tap-mnist-25"
OPENING = {"model": MODEL, "device": "cpu", "engine": "onnx"}
ASSETS = Path(__file__).parent.parent / "assets"


def digits(count: int) -> np.ndarray:
    """A digit with random flips, (count, 28, 28) uint8."""
    clean = np.asarray(Image.open(ASSETS / "digit.png").convert("L"))
    return np.where(np.random.default_rng(0).random((count, 28, 28)) < 0.1, 255 - clean, clean)


def worker(mask: str | None = None, **told: Any) -> Worker:
    return Worker(OPENING, "image", mask, ("clean", None), told)


@pytest.mark.thorough
@pytest.mark.parametrize("soft", [False, True])
def test_a_batch_is_restored_as_by_denoise(soft: bool) -> None:
    images = digits(9)
    found = worker(p=0.1, soft=soft)({"image": images, "name": np.arange(9)})
    assert found.keys() == {"image", "name", "clean"} and found["clean"].dtype == np.uint8
    np.testing.assert_array_equal(found["clean"], restore.denoise(images, MODEL, 0.1, soft=soft, engine="onnx"))
    np.testing.assert_array_equal(found["image"], images)


@pytest.mark.thorough
def test_masks_are_a_column_too() -> None:
    images, masks = digits(3), np.zeros((3, 28, 28), bool)
    masks[:, 5:15, 5:15] = True
    found = worker("mask")({"image": images, "mask": masks})["clean"]
    np.testing.assert_array_equal(found, restore.complete(images, masks, MODEL, engine="onnx"))
    np.testing.assert_array_equal(found[~masks], images[~masks])


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*independent pixels")
@pytest.mark.parametrize("options", [{"fit": "resize", "force": True}, {"force": True}], ids=["resized", "tiles"])
def test_images_of_several_sizes_are_restored_as_by_denoise(options: dict[str, Any]) -> None:
    draw, images = np.random.default_rng(0), np.empty(4, object)
    images[:] = [draw.random(shape) < 0.1 for shape in ((28, 28), (30, 44), (5, 61), (40, 28))]
    found = worker(p=0.1, **options)({"image": images})["clean"]
    for before, after in zip(images, found, strict=True):
        assert after.shape == before.shape
        np.testing.assert_array_equal(after, restore.denoise(before, MODEL, 0.1, engine="onnx", **options))


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError) as fault:
        restored(None, model=MODEL, p=0.1)
    assert "restore-prior[ray]" in str(fault.value)


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """Ray with a cluster of its own on this machine."""
    found = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    # Its workers are of low priority by default, and starve where others compute.
    found.init(num_cpus=1, include_dashboard=False, log_to_driver=False, _system_config={"worker_niceness": 0})
    found.data.DataContext.get_current().enable_progress_bars = False
    yield found
    found.shutdown()


def test_a_data_set_on_a_local_cluster_is_restored_bit_for_bit(ray: Any) -> None:
    images = digits(2 * BATCH + 10)
    dataset = ray.data.from_items([{"image": image, "index": index} for index, image in enumerate(images)])
    rows = restored(dataset, model=MODEL, p=0.1, engine="onnx", soft=True, output="clean").take_all()
    rows = sorted(rows, key=lambda row: row["index"])
    assert [row["index"] for row in rows] == list(range(len(images)))
    wanted = restore.denoise(images, MODEL, 0.1, soft=True, engine="onnx")
    np.testing.assert_array_equal(np.stack([row["clean"] for row in rows]), wanted)
    np.testing.assert_array_equal(np.stack([row["image"] for row in rows]), images)
