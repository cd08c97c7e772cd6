"""What sharing work among threads costs: seconds of processors with as many threads as by default, and with one.

    python benchmarks/choices/threads.py [--repeats 3] [--busy 4]

Restores a scan and a page, and trains an RBM and a convolutional prior, each in a process of its own and in turns.
`--busy` runs so many processes beside it that do nothing but compute.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.measures.script import command_line, head, row
from restore.inference import threads

SEED = 0

# What the process for training runs: a few mini-batches as of a published recipe.
TRAIN = """
from restore.inference import threads
threads.settle()
import sys, tempfile, torch
from dataclasses import replace
from pathlib import Path
from restore.learning.course import course_of
from restore.learning.steps import fit
from restore.learning.recipe.recipe import read_recipe
from restore.learning.run.session import Session
recipe, side, count = read_recipe(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
recipe = replace(recipe, training=replace(recipe.training, epochs=1, watch="", minutes=0))
recipe = replace(recipe, data=replace(recipe.data, validation=0))
images = (torch.rand(count, side * side, generator=torch.Generator().manual_seed(0)) < 0.1).float()
with tempfile.TemporaryDirectory() as folder:
    fit(recipe, course_of(recipe, images, (side, side)), Session(Path(folder)))
"""


def pictures(folder: Path) -> tuple[Path, Path]:
    """A scan of .14 megapixels and a page of .8, of digits, with noise."""
    from restore.inference.torch_engine import Engine
    from restore.priors.bits import unpack

    engine, draw = Engine.load("tap-mnist", "cpu"), np.random.default_rng(SEED)
    digits = unpack(engine.trained.modes, 784).numpy().reshape(-1, 28, 28)
    paths = []
    for name, (height, width) in {"scan": (340, 420), "page": (800, 1000)}.items():
        down, across = -(-height // 28), -(-width // 28)
        ink = digits[np.arange(down * across) % len(digits)].reshape(down, across, 28, 28).transpose(0, 2, 1, 3)
        paper = 1.0 - ink.reshape(28 * down, 28 * across)[:height, :width]
        if name == "scan":
            grey = (
                60 + 150 * (paper + np.roll(paper, 1, 0) + np.roll(paper, 1, 1)) / 3 + draw.normal(0, 12, paper.shape)
            )
        else:
            grey = 255 * np.where(draw.random(paper.shape) < 0.1, 1 - paper, paper)
        paths.append(folder / f"{name}.png")
        Image.fromarray(grey.clip(0, 255).astype(np.uint8)).save(paths[-1])
    return paths[0], paths[1]


def spent(command: list[str], one: bool) -> tuple[float, float]:
    """Seconds of processors and of the clock that a command takes, with one thread or by default."""
    names = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    given = {name: value for name, value in os.environ.items() if name not in names}
    start, before = time.perf_counter(), os.times()
    subprocess.run(command, check=True, env=given | ({"OMP_NUM_THREADS": "1"} if one else {}), capture_output=True)
    after = os.times()
    system = after.children_system - before.children_system
    return after.children_user - before.children_user + system, time.perf_counter() - start


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="[%(default)s]")
    parser.add_argument("--busy", type=int, default=0, help="processes beside it [%(default)s]")
    chosen = parser.parse_args()
    recipes = Path(__file__).parents[2] / "training/recipes"
    beside = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(chosen.busy)]
    try:
        with tempfile.TemporaryDirectory() as place:
            scan, page = pictures(Path(place))
            restore: list[Any] = [
                sys.executable,
                "-c",
                "from restore.cli import main; main()",
                "denoise",
                "--overwrite",
            ]
            to = ["--force", "--quiet", "-o", f"{place}/out.png"]
            train = [sys.executable, "-c", TRAIN]
            work = {
                "a scan of 420x340 pixels": [*restore, str(scan), *to],
                "a page of 1000x800 pixels": [*restore, str(page), *to],
                "training tap-mnist on 10,000 images": [*train, str(recipes / "tap-mnist.toml"), "28", "10000"],
                "training conv-text on 64 images": [*train, str(recipes / "conv-text.toml"), "48", "64"],
            }
            print(f"{threads.processors()} processors, load {os.getloadavg()[0]:.1f}")
            head("work", "one thread, CPU s", "default, CPU s", "ratio", "one thread, s", "default, s")
            for name, command in work.items():
                turns = [(spent(command, one=True), spent(command, one=False)) for _ in range(chosen.repeats)]
                one, default = (median(turn[which][0] for turn in turns) for which in (0, 1))
                clock = [f"{median(turn[which][1] for turn in turns):.1f}" for which in (0, 1)]
                row(name, f"{one:.1f}", f"{default:.1f}", f"{default / one:.2f}", *clock)
    finally:
        for process in beside:
            process.kill()


if __name__ == "__main__":
    main()
