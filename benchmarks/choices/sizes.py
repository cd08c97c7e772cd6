"""What `restore denoise` takes for pages of growing size: seconds and memory of the whole process.

    python benchmarks/choices/sizes.py [--model conv-text] [--repeats 1] [--threads 2]
    python benchmarks/choices/sizes.py --untold --megapixels 1
    python benchmarks/choices/sizes.py --scans 2500 5000
    python benchmarks/choices/sizes.py --scans 10000 --text 500 --wrong 0 --threads 1

An A4 page at 150 dpi, and 1, 4 and 16 megapixels of one page repeated, all with 10 % of their pixels inverted.
`--scans` measures large scans instead: squares with text in one corner, 0.1 % of whose pixels are inverted. What is in
them decides how long they take, but not how much memory.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.measures.script import command_line, head, row
from benchmarks.measures.timing import COMMAND, of_process, on_processors
from restore.learning.run.card import machine_facts
from training.data.pages import page
from training.data.text import families_for_tests

A4 = (1754, 1240)
SIDE = 1000
P = 0.1

# Share of wrong pixels that is told for scans.
SCANNED = 0.001


def sheets(chosen: argparse.Namespace) -> Iterator[tuple[str, np.ndarray, float]]:
    """The pages: a name, ink as booleans (H, W), and the share of wrong pixels that is told."""
    families = families_for_tests()
    if chosen.scans:
        text = page(families, 0, 0, (chosen.text, chosen.text)) > 127
        for side in chosen.scans:
            yield "scan", np.pad(text[:side, :side], (0, max(0, side - chosen.text))), SCANNED
        return
    yield "A4 at 150 dpi", page(families, 0, 1, A4) > 127, P
    square = page(families, 0, 0, (SIDE, SIDE)) > 127
    for count in chosen.megapixels:
        yield f"{count} megapixels", np.tile(square, 2 * (round(count**0.5),)), P


def damaged(ink: np.ndarray, p: float, path: Path) -> Path:
    """A 1-bit file of a page, black on white, with pixels inverted."""
    draw = np.random.default_rng(0)
    # Row by row, for the largest have a hundred million pixels.
    light = np.stack([row ^ (draw.random(row.shape) >= p) for row in ink])
    Image.fromarray(light).save(path)
    return path


def processor_seconds() -> float:
    """Of all processes that this one has started, and theirs, that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = command_line(__doc__, repeats=1)
    parser.add_argument("--model", default="conv-text", help="name or folder of a prior [%(default)s]")
    parser.add_argument("--megapixels", type=int, nargs="+", default=[1, 4, 16], help="squares of 1, 4, 9 ... [1 4 16]")
    parser.add_argument("--scans", type=int, nargs="+", default=[], help="sides of scans, in place of all others")
    parser.add_argument("--text", type=int, default=2000, help="side of the text on scans [%(default)s]")
    parser.add_argument("--wrong", type=float, default=SCANNED, help="share of pixels of scans to invert [%(default)s]")
    parser.add_argument("--untold", action="store_true", help="give neither the prior nor the level")
    chosen = parser.parse_args()
    on_processors(chosen.threads)
    head("", "pixels", "seconds", "of the processors", "per megapixel", "MiB")
    with tempfile.TemporaryDirectory() as name:
        for size, ink, p in sheets(chosen):
            source = damaged(ink, chosen.wrong if chosen.scans else p, Path(name) / "page.png")
            target = str(Path(name) / "restored.png")
            told = () if chosen.untold else ("--model", chosen.model, "--p", f"{p:g}", "--invert")
            words = ("denoise", str(source), *told, "--overwrite")
            words += ("-o", target, "--quiet", "--max-pixels", str(ink.size))
            before = processor_seconds()
            turns = [of_process(*COMMAND, *words) for _ in range(chosen.repeats)]
            worked = (processor_seconds() - before) / chosen.repeats
            seconds, mebibytes = np.median(turns, axis=0)
            shape = "x".join(map(str, ink.shape[::-1]))
            per_megapixel = f"{1e6 * worked / ink.size:.2f}"
            row(size, shape, f"{seconds:.1f}", f"{worked:.1f}", per_megapixel, f"{mebibytes:.0f}")
    print(f"({chosen.threads} threads; {machine_facts()})")


if __name__ == "__main__":
    main()
