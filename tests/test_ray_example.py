"""The example of docs/python.md for Ray Data, on a local cluster: it restores as `restore.denoise` does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import restore

ROOT = Path(__file__).parent.parent


@pytest.fixture
def ray() -> Iterator[Any]:
    found = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    # Its workers are of low priority by default, and starve where others compute.
    found.init(num_cpus=1, include_dashboard=False, log_to_driver=False, _system_config={"worker_niceness": 0})
    yield found
    found.shutdown()


@pytest.mark.thorough
def test_the_example_restores_as_denoise_does(ray: Any, tmp_path: Path) -> None:
    clean = np.asarray(Image.open(ROOT / "assets" / "digit.png").convert("L"))
    images = np.where(np.random.default_rng(0).random((5, 28, 28)) < 0.1, 255 - clean, clean)
    (tmp_path / "scans").mkdir()
    for number, image in enumerate(images):
        Image.fromarray(image).save(tmp_path / "scans" / f"{number}.png")
    page = (ROOT / "docs" / "python.md").read_text()
    example = next(block for block in page.split("```python\n") if "map_batches" in block).split("```")[0]
    example = example.replace("s3://parts", str(tmp_path)).replace("concurrency=8", "concurrency=1")
    exec(example, {"ray": ray, "restore": restore})
    found = ray.data.read_parquet(str(tmp_path / "restored")).take_all()
    wanted = restore.denoise(images, "tap-mnist", p=0.1)
    assert sorted(row["image"].tobytes() for row in found) == sorted(image.tobytes() for image in wanted)
