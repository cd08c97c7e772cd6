"""Restoring many images in one call against a Python loop that restores them one at a time.

    python benchmarks/package/batch.py [--model tap-mnist-100] [--images 10000] [--looped 200]

The images are MNIST's test images where RESTORE_DATA holds them, else copies of assets/digit.png, with 10 % of their
pixels inverted. Every turn of the loop takes `--looped` of them, the next ones each time; its time is scaled up to all.
"""

from __future__ import annotations

import os
from itertools import cycle
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from benchmarks.measures.script import command_line
from benchmarks.measures.timing import medians, report
from restore.channels import BitFlip
from restore.data import binarise, load
from restore.inference.torch_engine import Engine

ASSETS = Path(__file__).parents[2] / "assets"
CHANNEL = BitFlip(0.1)


def pictures(count: int) -> tuple[Tensor, str]:
    """Binary images (count, 784) and where they come from."""
    if "RESTORE_DATA" in os.environ:
        ink, source = binarise(load("mnist", split="test").images, 127), "MNIST test images"
    else:
        with Image.open(ASSETS / "digit.png") as image:
            ink, source = binarise(np.asarray(image)[None], 127), "copies of assets/digit.png"
    images = torch.from_numpy(ink).flatten(1)
    return images.repeat(-(-count // len(images)), 1)[:count], source


def main() -> None:
    parser = command_line(__doc__, repeats=3)
    parser.add_argument("--model", default="tap-mnist-100", help="name or folder of a prior [%(default)s]")
    parser.add_argument("--images", type=int, default=10_000, help="[%(default)s]")
    parser.add_argument("--looped", type=int, default=200, help="images the loop restores per turn [%(default)s]")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    engine = Engine.load(chosen.model, "cpu")
    images, source = pictures(chosen.images)
    observed = CHANNEL.corrupt(images, torch.Generator().manual_seed(0))
    portions = cycle(observed.split(chosen.looped))

    def batch() -> None:
        engine.restore(observed, CHANNEL)

    def loop() -> None:
        for image in next(portions).split(1):
            engine.restore(image, CHANNEL)

    loop()
    seconds = medians({"one batch": batch, "one at a time": loop}, chosen.repeats, warm_up=0)
    seconds["one at a time"] *= chosen.images / chosen.looped
    header = engine.trained.description
    print(f"{chosen.images} {source}, {header.name} ({header.hidden} hidden units, {header.inference.starts} starts)")
    report(seconds, "one at a time")
    print(f"one at a time: scaled up from {chosen.looped} images")


if __name__ == "__main__":
    main()
