"""One image from the command line, from the start of the process to its end, against starting onnxruntime alone.

    python benchmarks/peers/cold_start.py [--model tap-mnist] [--repeats 10]

In turns: (a) Python loads numpy, Pillow and onnxruntime and makes a session of the prior's graph; (b) `restore
denoise`; (c) `restore denoise --engine torch`. Ratios are of seconds of processors, which other work hardly changes;
memory is the peak of a process.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measures.script import command_line, head, row
from benchmarks.measures.timing import COMMAND, of_processes, on_processors
from restore import zoo
from restore.learning.run.card import machine_facts

IMAGE = Path(__file__).parents[2] / "assets" / "digit-noisy.png"

# For the ratios of time b / a, time c / b, and memory b / c.
AIMS = ("at most 1.5", "at least 4", "at most 0.40")

PEER = "import sys, numpy, PIL.Image, onnxruntime; onnxruntime.InferenceSession(sys.argv[1])"


def main() -> None:
    parser = command_line(__doc__, repeats=10)
    parser.add_argument("--model", default="tap-mnist", help="name of an unconditional prior [%(default)s]")
    chosen = parser.parse_args()
    on_processors(chosen.threads)
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder) / "restored.png")
        denoise = (*COMMAND, "denoise", str(IMAGE), "--model", chosen.model, "--p", "0.1", "--overwrite", "-o", target)
        candidates = {
            "(a) onnxruntime and a session": (sys.executable, "-c", PEER, str(zoo.find(chosen.model) / zoo.GRAPH)),
            "(b) `restore denoise`": denoise,
            "(c) `restore denoise --engine torch`": (*denoise, "--engine", "torch"),
        }
        turns = of_processes(candidates.values(), chosen.repeats)
    seconds, mebibytes, of_processors = np.median(turns, axis=0).T
    head("", "CPU-s", "seconds", "MiB")
    for name, *figures in zip(candidates, of_processors, seconds, mebibytes, strict=True):
        row(name, *(f"{figure:.3f}" for figure in figures[:2]), f"{figures[2]:.1f}")
    started, ours, by_torch = of_processors
    ratios = (ours / started, by_torch / ours, mebibytes[1] / mebibytes[2])
    for name, ratio, aim in zip(("time, b / a", "time, c / b", "memory, b / c"), ratios, AIMS, strict=True):
        print(f"{name}: {ratio:.2f}; aim: {aim}")
    print(f"({os.cpu_count()} cores; {machine_facts()})")


if __name__ == "__main__":
    main()
