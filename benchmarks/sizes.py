"""What `restore denoise` takes for pages of growing size: seconds and memory of the whole process.

    python benchmarks/sizes.py [--model tap-text] [--repeats 1] [--threads 2]

An A4 page at 150 dpi, and 1, 4 and 16 megapixels of one page repeated, all with 10 % of their pixels inverted.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path

import numpy as np
from cold_start import COMMAND, measured
from PIL import Image
from timing import on_processors, parser

from restore.data.sets.pages import page
from restore.data.sets.text import families_for_tests
from restore.learning.run.card import machine_facts

A4 = (1754, 1240)
SIDE = 1000
P = 0.1


def damaged(ink: np.ndarray, path: Path) -> Path:
    """A file of a page, black on white, with pixels inverted."""
    flipped = ink ^ (np.random.default_rng(0).random(ink.shape) < P)
    Image.fromarray(~flipped).save(path)
    return path


def processor_seconds() -> float:
    """Of all processes that this one has started, and theirs, that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    options = parser("Seconds and memory of `restore denoise` on pages of growing size.", repeats=1)
    options.add_argument("--model", default="tap-text", help="name or folder of a prior [%(default)s]")
    options.add_argument(
        "--megapixels", type=int, nargs="+", default=[1, 4, 16], help="squares of 1, 4, 9 ... [1 4 16]"
    )
    chosen = options.parse_args()
    on_processors(chosen.threads)
    families = families_for_tests()
    square = page(families, 0, 0, (SIDE, SIDE)) > 127
    sizes = {"A4 at 150 dpi": page(families, 0, 1, A4) > 127}
    sizes |= {f"{count} megapixels": np.tile(square, 2 * (round(count**0.5),)) for count in chosen.megapixels}
    print("| | pixels | seconds | of the processors | per megapixel | MiB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as name:
        for number, (size, ink) in enumerate(sizes.items()):
            source, target = damaged(ink, Path(name) / f"{number}.png"), str(Path(name) / "restored.png")
            words = (
                "denoise",
                str(source),
                "--model",
                chosen.model,
                "--p",
                f"{P:g}",
                "--invert",
                "--overwrite",
                "-o",
                target,
            )
            before = processor_seconds()
            turns = [measured(sys.executable, "-c", COMMAND, *words, "--quiet") for _ in range(chosen.repeats)]
            worked = (processor_seconds() - before) / chosen.repeats
            seconds, mebibytes = np.median(turns, axis=0)
            shape = "x".join(map(str, ink.shape[::-1]))
            each = 1e6 * worked / ink.size
            print(f"| {size} | {shape} | {seconds:.1f} | {worked:.1f} | {each:.2f} | {mebibytes:.0f} |", flush=True)
    print(f"({chosen.threads} threads; {machine_facts()})")


if __name__ == "__main__":
    main()
