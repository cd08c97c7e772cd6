"""The memory of `restore denoise IN_FOLDER -o OUT_FOLDER` on many images against that on a few.

    python benchmarks/package/memory.py [--model tap-mnist-25] [--few 100] [--many 10000]

The images are assets/digit.png with 10 % of its pixels inverted, different ones each time. Memory is the peak of the
process. A third run repeats the command on the many images, which are all done already and so are skipped.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.measures.script import command_line, head, row
from benchmarks.measures.timing import COMMAND, of_process, on_processors
from restore.learning.run.card import machine_facts

DIGIT = Path(__file__).parents[2] / "assets" / "digit.png"


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
    parser = command_line(__doc__, repeats=1)
    parser.add_argument("--model", default="tap-mnist-25", help="name of an unconditional prior [%(default)s]")
    parser.add_argument("--few", type=int, default=100, help="[%(default)s]")
    parser.add_argument("--many", type=int, default=10_000, help="[%(default)s]")
    chosen = parser.parse_args()
    on_processors(chosen.threads)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = {count: drawn(folder / str(count), count) for count in (chosen.few, chosen.many)}
        head("", f"{chosen.few} images, MiB", f"{chosen.many} images, MiB", "ratio", "done before, MiB")
        for engine in ("onnx", "torch"):
            words = ("--model", chosen.model, "--p", "0.1", "--engine", engine, "--quiet", "--skip-existing")
            most = []
            for count in (chosen.few, chosen.many, chosen.many):
                target = f"{folder}/{engine}-{count}/"
                _, mebibytes = of_process(*COMMAND, "denoise", str(sources[count]), "-o", target, *words)
                most.append(mebibytes)
                assert len(list(Path(target).glob("*.png"))) == count
            few, many, again = (f"{mebibytes:.1f}" for mebibytes in most)
            row(engine, few, many, f"{most[1] / most[0]:.2f}", again)
    print(f"({machine_facts()})")


if __name__ == "__main__":
    main()
