"""One image from the command line, from the start of the process to its end, against starting onnxruntime alone.

    python benchmarks/peers/cold_start.py [--model tap-mnist] [--repeats 10]
    python benchmarks/peers/cold_start.py --pictures

In turns: (a) Python loads numpy, Pillow and onnxruntime and makes a session of the prior's graph; (b) `restore
denoise`; (c) `restore denoise --engine torch`. Time is wall time, memory is the peak of a process. With `--pictures`:
a mask and a page of up to 512x512 pixels, a tenth of them flipped, without options, and with prior and level told.
Other work on the machine counts, so the least time stands beside the median.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.measures.script import command_line, head, row
from benchmarks.measures.timing import COMMAND, of_processes, on_processors
from restore import zoo
from restore.learning.run.card import machine_facts

IMAGE = Path(__file__).parents[2] / "assets" / "digit-noisy.png"

# For the ratios of time b / a, time c / b, and memory b / c.
AIMS = ("at most 1.5", "at least 4", "at most 0.40")

PEER = "import sys, numpy, PIL.Image, onnxruntime; onnxruntime.InferenceSession(sys.argv[1])"


def of_pictures(repeats: int) -> None:
    """Print what a mask and a page take without options, and with prior and level told."""
    # Only here, as they load scikit-image and need fonts.
    from benchmarks.pictures.kinds import mask
    from training.data.pages import page
    from training.data.text import families_for_tests

    pictures = {
        "mask": (mask(3), "conv-art"),
        "page": (page(families_for_tests(), 0, 0, (512, 512)) > 127, "conv-text"),
    }
    with tempfile.TemporaryDirectory() as folder:
        candidates = {}
        for name, (whole, model) in pictures.items():
            image = Path(folder) / f"{name}.png"
            Image.fromarray(whole ^ (np.random.default_rng(3).random(whole.shape) < 0.1)).save(image)
            denoise = (*COMMAND, "denoise", str(image), "--quiet", "--overwrite")
            candidates[f"{name}, without options"] = denoise
            candidates[f"{name}, told"] = (*denoise, "--model", model, "--p", "0.1")
        turns = of_processes(candidates.values(), repeats)
    head("", "least, s", "median, s", "MiB")
    for name, each in zip(candidates, np.swapaxes(turns, 0, 1), strict=True):
        (time, memory), least = np.median(each, axis=0), each[:, 0].min()
        row(name, f"{least:.2f}", f"{time:.2f}", f"{memory:.0f}")


def main() -> None:
    parser = command_line(__doc__, repeats=10)
    parser.add_argument("--model", default="tap-mnist", help="name of an unconditional prior [%(default)s]")
    parser.add_argument("--pictures", action="store_true", help="restore a mask and a page, and compare with nothing")
    chosen = parser.parse_args()
    on_processors(chosen.threads)
    if chosen.pictures:
        of_pictures(chosen.repeats)
        return
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder) / "restored.png")
        denoise = (*COMMAND, "denoise", str(IMAGE), "--model", chosen.model, "--p", "0.1", "--overwrite", "-o", target)
        candidates = {
            "(a) onnxruntime and a session": (sys.executable, "-c", PEER, str(zoo.find(chosen.model) / zoo.GRAPH)),
            "(b) `restore denoise`": denoise,
            "(c) `restore denoise --engine torch`": (*denoise, "--engine", "torch"),
        }
        turns = of_processes(candidates.values(), chosen.repeats)
    seconds, mebibytes = np.median(turns, axis=0).T
    head("", "seconds", "MiB")
    for name, time, memory in zip(candidates, seconds, mebibytes, strict=True):
        row(name, f"{time:.3f}", f"{memory:.1f}")
    ratios = (seconds[1] / seconds[0], seconds[2] / seconds[1], mebibytes[1] / mebibytes[2])
    for name, ratio, aim in zip(("time, b / a", "time, c / b", "memory, b / c"), ratios, AIMS, strict=True):
        print(f"{name}: {ratio:.2f}; aim: {aim}")
    print(f"({os.cpu_count()} cores; {machine_facts()})")


if __name__ == "__main__":
    main()
