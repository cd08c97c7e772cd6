"""The memory of `restore denoise IN_FOLDER -o OUT_FOLDER` on many images against that on a few.

    python benchmarks/package/memory.py [--model tap-mnist-25] [--few 100] [--many 10000]

The images are assets/digit.png with 10 % of its pixels inverted, different ones each time. Memory is the peak of the
process. A third run repeats the command on the many images, which are all done already.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.measures.timing import on_processors, parser
from benchmarks.peers.cold_start import COMMAND, measured
from restore.learning.run.card import machine_facts

DIGIT = Path(__file__).parents[2] / "assets" / "digit.png"
AIM = 1.2


def drawn(folder: Path, count: int) -> Path:
    """Make a folder of damaged digits."""
    folder.mkdir()
    with Image.open(DIGIT) as image:
        ink = np.asarray(image.convert("L")) > 127
    rng = np.random.default_rng(0)
    for index in range(count):
        flipped = ink ^ (rng.random(ink.shape) < 0.1)
        Image.fromarray(255 * flipped.astype(np.uint8)).save(folder / f"{index:06}.png")
    return folder


def main() -> None:
    options = parser("Memory of a batch of many images against that of a few.", repeats=1)
    options.add_argument("--model", default="tap-mnist-25", help="name of an unconditional prior [%(default)s]")
    options.add_argument("--few", type=int, default=100, help="[%(default)s]")
    options.add_argument("--many", type=int, default=10_000, help="[%(default)s]")
    chosen = options.parse_args()
    on_processors(chosen.threads)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = {count: drawn(folder / str(count), count) for count in (chosen.few, chosen.many)}
        for engine in ("onnx", "torch"):
            words = ("--model", chosen.model, "--p", "0.1", "--engine", engine, "--quiet")
            most = []
            for count in (chosen.few, chosen.many, chosen.many):
                target = f"{folder}/{engine}-{count}/"
                command = (sys.executable, "-c", COMMAND, "denoise", str(sources[count]), "-o", target, *words)
                seconds, mebibytes = measured(*command)
                most.append(mebibytes)
                print(f"{engine:<6} {count:>6} images {seconds:8.1f} s {mebibytes:8.1f} MiB", flush=True)
                assert len(list(Path(target).glob("*.png"))) == count
            print(
                f"{engine:<6} ratio {most[1] / most[0]:.3f}, done before {most[2] / most[0]:.3f}   aim: at most {AIM}"
            )
    print(f"({machine_facts()})")


if __name__ == "__main__":
    main()
