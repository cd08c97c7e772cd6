"""Many small pages in one command, in one process and with `--jobs 2`, against the bare solve of the same pixels.

    python benchmarks/package/many_pages.py [--pages 500]

Pages in fonts that no prior has learnt, a twentieth of their pixels inverted, by `conv-text` and a level that is told.
The bare solve calls the engine for each page, which is in memory. Seconds are of processors, without those of a command
for a single page, so that starts do not count; each process has one.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.measures.script import command_line, head, row
from benchmarks.measures.timing import COMMAND, spent
from restore.channels.damage import Damage, Observed
from restore.inference.candidates import Prior
from restore.inference.open import open_engine
from restore.learning.run.card import machine_facts
from training.data.pages import page
from training.data.text import families_for_tests

SHAPE, FLIPS, MODEL = (200, 160), 0.05, "conv-text"


def damaged(count: int) -> list[np.ndarray]:
    """Pages, True for white."""
    dice, families = np.random.default_rng(0), families_for_tests()
    return [(page(families, 0, number, SHAPE) < 128) ^ (dice.random(SHAPE) < FLIPS) for number in range(count)]


def bare(pages: list[np.ndarray]) -> float:
    """Processor seconds of the solves alone, after one that warms up."""
    prior = Prior(open_engine(MODEL), invert=True)
    seen = [Observed(white.astype(np.float32), Damage(FLIPS)) for white in pages]
    prior.posterior(seen[0], lambda share: None)
    start = time.process_time()
    for each in seen:
        prior.posterior(each, lambda share: None)
    return time.process_time() - start


def saved(pages: list[np.ndarray], folder: Path) -> Path:
    folder.mkdir()
    for number, white in enumerate(pages):
        Image.fromarray(white).save(folder / f"{number:03}.png")
    return folder


def command(source: Path, target: Path, jobs: int) -> tuple[float, float, float]:
    options = ("--model", MODEL, "--p", str(FLIPS), "--invert", "--jobs", str(jobs), "--quiet")
    return spent(*COMMAND, "denoise", str(source), "-o", f"{target}/", *options)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--pages", type=int, default=500, help="[%(default)s]")
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    pages = damaged(chosen.pages)
    with tempfile.TemporaryDirectory() as name:
        whole = saved(pages, Path(name) / "whole")
        few = saved(pages[:2], Path(name) / "few")
        alone = bare(pages) / len(pages)
        head(f"{len(pages)} pages", "ms a page", "ratio", "seconds", "MiB of the largest process")
        row("bare solve", f"{1000 * alone:.1f}", "1.00", "", "")
        for jobs in (1, 2):
            _, _, start = command(few, Path(name) / f"few {jobs}", jobs)
            seconds, mebibytes, used = command(whole, Path(name) / f"whole {jobs}", jobs)
            each = (used - start) / (len(pages) - 2)
            row(f"`--jobs {jobs}`", f"{1000 * each:.1f}", f"{each / alone:.2f}", f"{seconds:.1f}", f"{mebibytes:.0f}")
    print(machine_facts())


if __name__ == "__main__":
    main()
