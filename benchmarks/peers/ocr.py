"""Characters that OCRmyPDF reads wrongly on pages with flipped pixels, with the plugin and without; a table.

    python benchmarks/peers/ocr.py
    python benchmarks/peers/ocr.py --dpi 300 --shape 600 1200 --pages 4
    python benchmarks/peers/ocr.py --fonts training --seed 7 --pages 4

Pages of text in letters of 10 to 12 points, black and white, are drawn in fonts that no prior learns from (Debian's
fonts-liberation and fonts-freefont-ttf). OCRmyPDF reads all pages as one PDF: as they are, with `--clean`, which runs
unpaper, smoothed by a Gaussian of one pixel, and with `restore`. Needs Debian's tesseract-ocr, ghostscript and unpaper.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

from benchmarks.measures.scoring import inverted
from benchmarks.measures.script import command_line, head, row
from benchmarks.pictures.letters import DPI, errors, printed
from restore.images import Picture, bound, encode
from restore.learning.run.card import machine_facts
from training.data.text import families_for_tests, families_to_learn_from

FLIPS = (0.0, 0.05, 0.1)


def read(pages: Sequence[Image.Image], dpi: int, *options: str) -> list[str]:
    """What OCRmyPDF reads on each page."""
    pictures = [Picture(np.asarray(page), info={"dpi": (dpi, dpi)}) for page in pages]
    with tempfile.TemporaryDirectory() as folder:
        source, result, text = (Path(folder, name) for name in ("pages.pdf", "read.pdf", "read.txt"))
        source.write_bytes(bound([encode(each, each.pixels, format="PDF") for each in pictures], "PDF"))
        command = [
            sys.executable,
            "-m",
            "ocrmypdf",
            "--quiet",
            "--output-type",
            "pdf",
            "--sidecar",
            str(text),
            *options,
        ]
        subprocess.run([*command, str(source), str(result)], check=True)
        return text.read_text(encoding="utf-8").split("\f")[: len(pages)]


def as_page(ink: np.ndarray) -> Image.Image:
    return Image.fromarray(np.where(ink, 0, 255).astype(np.uint8))


def smoothed(ink: np.ndarray) -> Image.Image:
    return as_page(ink).filter(ImageFilter.GaussianBlur(1))


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--model", default="conv-text", help="name or folder of a prior, or auto [%(default)s]")
    parser.add_argument("--pages", type=int, default=12, help="how many [%(default)s]")
    parser.add_argument("--shape", type=int, nargs=2, default=[300, 600], help="of a page in pixels [300 600]")
    parser.add_argument("--dpi", type=int, default=DPI, help="pixels per inch [%(default)s]")
    parser.add_argument("--seed", type=int, default=100, help="of the pages and of their damage [%(default)s]")
    parser.add_argument("--fonts", choices=("tests", "training"), default="tests", help="[%(default)s]")
    asked = parser.parse_args()
    families = families_for_tests() if asked.fonts == "tests" else families_to_learn_from()
    shape = (asked.shape[0], asked.shape[1])
    clean, texts = zip(
        *[printed(families, asked.seed, number, shape, asked.dpi) for number in range(asked.pages)], strict=True
    )
    methods: dict[str, tuple[Callable[[np.ndarray], Image.Image], list[str]]] = {
        "OCRmyPDF": (as_page, []),
        "with `--clean`": (as_page, ["--clean"]),
        "after a Gaussian": (smoothed, []),
        f"with `--restore-model {asked.model}`": (as_page, ["--restore-model", asked.model]),
    }
    size = f"{asked.shape[1]}x{asked.shape[0]} at {asked.dpi} dpi"
    print(f"{asked.pages} pages of {size}, seed {asked.seed}, {sum(map(len, texts))} characters; {machine_facts()}")
    head("read wrongly, %", *(f"flip {p:g}" for p in FLIPS))
    for name, (show, options) in methods.items():
        shares = []
        for p in FLIPS:
            found = read([show(each.ink) for each in inverted(clean, p, asked.seed)], asked.dpi, *options)
            shares.append(sum(map(errors, found, texts)) / sum(map(len, texts)))
        row(name, *(f"{100 * share:.2f}" for share in shares))


if __name__ == "__main__":
    main()
