"""Many images with each of two engines, and the number of images from which torch is the faster one.

    python benchmarks/package/engines.py [--model tap-mnist --model crbm-bp-mnist-flip10] [--p 0.1] [--images 1000]

The images are MNIST's test images where RESTORE_DATA holds them, else copies of assets/digit.png, with 10 % of their
pixels inverted. In turns, a new process loads one engine and restores one image, which is its start-up, then all
images, in portions as `restore denoise` does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.measures.script import command_line, head, row

if TYPE_CHECKING:
    from torch import Tensor

ASSETS = Path(__file__).parents[2] / "assets"
ENGINES = ("onnx", "torch")
MODELS = ("tap-mnist", "crbm-bp-mnist-flip10")


def main() -> None:
    import torch

    from benchmarks.measures.timing import on_processors
    from restore import zoo
    from restore.channels import BitFlip
    from restore.learning.run.card import machine_facts

    parser = command_line(__doc__, repeats=3)
    parser.add_argument("--model", action="append", help=f"name or folder of a prior [{', '.join(MODELS)}]")
    parser.add_argument("--p", type=float, default=0.1, help="for unconditional priors [%(default)s]")
    parser.add_argument("--images", type=int, default=1000, help="[%(default)s]")
    chosen = parser.parse_args()
    on_processors(chosen.threads)
    images, source = pictures(chosen.images)
    # The images have 28 rows and columns.
    observed = BitFlip(0.1).corrupt(images, torch.Generator().manual_seed(0)).unflatten(1, (28, 28)).numpy()
    print(f"{chosen.images} {source}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "observed.npy"
        np.save(file, observed)
        for model in chosen.model or MODELS:
            told = None if zoo.describe(zoo.find(model)).task else chosen.p
            compare(model, told, file, chosen.images, chosen.repeats)
    print(f"({os.cpu_count()} cores; {machine_facts()})")


def pictures(count: int) -> tuple[Tensor, str]:
    """Binary images (count, 784) and where they come from."""
    import torch
    from PIL import Image

    from restore.data import binarise, load

    if "RESTORE_DATA" in os.environ:
        ink, source = binarise(load("mnist", split="test").images, 127), "MNIST test images"
    else:
        with Image.open(ASSETS / "digit.png") as image:
            ink, source = binarise(np.asarray(image)[None], 127), "copies of assets/digit.png"
    images = torch.from_numpy(ink).flatten(1)
    return images.repeat(-(-count // len(images)), 1)[:count], source


def compare(model: str, p: float | None, images: Path, count: int, repeats: int) -> None:
    """Measure a prior with both engines and print the results."""
    turns = []
    for _ in range(repeats):
        turns.append([measured(engine, model, p, images) for engine in ENGINES])
    start, restoring = np.median(turns, axis=0).T
    each = restoring / count
    head("", "start-up, s", "images/s")
    for engine, seconds, per_image in zip(ENGINES, start, each, strict=True):
        row(f"`{model}`, {engine}", f"{seconds:.2f}", f"{1 / per_image:.1f}")
    print(f"\nonnx restores {each[1] / each[0]:.2f} times as many images per second as torch;", end=" ")
    if each[0] > each[1]:
        print(f"torch has caught up after {(start[1] - start[0]) / (each[0] - each[1]):.0f} images.")
    else:
        print("torch never catches up.")


def measured(engine: str, model: str, p: float | None, images: Path) -> tuple[float, float]:
    """Seconds to start up and to restore all images, in a new process."""
    command = [sys.executable, __file__, "--alone", engine, model, json.dumps(p), str(images)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    start, restoring = json.loads(done.stdout)
    return start, restoring


def alone(engine: str, model: str, p: str, images: str) -> None:
    """Print the seconds to start up and to restore. Only the engine may load torch here."""
    begun = time.perf_counter()
    from restore.channels.damage import Damage
    from restore.cli.batch.run import CHUNK_PICTURES
    from restore.inference.open import open_engine

    loaded, grey, told = open_engine(model, engine, "cpu"), np.load(images), Damage(json.loads(p))
    loaded.solve(grey[:1], told)
    started = time.perf_counter()
    for first in range(0, len(grey), CHUNK_PICTURES):
        loaded.solve(grey[first : first + CHUNK_PICTURES], told)
    print(json.dumps([started - begun, time.perf_counter() - started]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        alone(*sys.argv[2:])
    else:
        main()
