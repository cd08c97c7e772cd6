"""What a page costs by its size and by its damage: processor seconds and memory of `restore denoise`.

    python benchmarks/package/cost.py

Pages of printed text at 300 dots per inch, in black and white, in a font that no prior has learnt. The first table has
clean ones of 1 to 50 megapixels, with nothing told and with `--remove none`, so that no marks are looked for; the
second A4 pages with flips, a number of them or a share, with nothing told.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from benchmarks.measures.script import command_line, head, row
from benchmarks.measures.timing import COMMAND, on_processors, spent
from restore.learning.run.card import machine_facts
from training.data.text import families_for_tests

TEXT = Path(__file__).parents[2] / "training" / "data" / "text.txt"
A4 = (3508, 2480)
MEGAPIXELS = (1, 4, 9, 25, 50)
FLIPS = (0, 300, 3000, 0.003, 0.01, 0.03, 0.1, 0.3)

# Of the print, in pixels: some 10 points.
SIZE, LEADING, MARGIN = 42, 60, 200


def printed(shape: tuple[int, int]) -> np.ndarray:
    """A page of text, (H, W), True where paper is."""
    sheet = Image.new("1", shape[::-1], 1)
    draw, words = ImageDraw.Draw(sheet), TEXT.read_text(encoding="utf-8").split()
    font = ImageFont.truetype(families_for_tests()[0][0], SIZE)
    number, margin = 0, min(MARGIN, min(shape) // 8)
    for top in range(margin, shape[0] - margin, LEADING):
        line = ""
        while font.getlength(line) < shape[1] - 3 * margin:
            line, number = f"{line}{words[number % len(words)]} ", number + 1
        draw.text((margin, top), line, 0, font)
    return np.asarray(sheet)


def cost(page: np.ndarray, flips: float, folder: Path, *options: str) -> tuple[float, float, str, int]:
    """Seconds, MiB, outcome, and pixels that are wrong afterwards."""
    rng, seen = np.random.default_rng(0), page.copy()
    places = rng.choice(page.size, int(flips), replace=False) if flips >= 1 else rng.random(page.size) < flips
    seen.ravel()[places] ^= True
    source, target = folder / "seen.png", folder / "found.png"
    Image.fromarray(seen).save(source, dpi=(300, 300))
    target.unlink(missing_ok=True)
    words = ("denoise", str(source), "-o", str(target), "--quiet", "--max-pixels", str(page.size), *options)
    _, mebibytes, seconds = spent(*COMMAND, *words)
    with Image.open(target) as found:
        left = int((np.asarray(found.convert("1")) != page).sum())
    return seconds, mebibytes, "as it came" if target.read_bytes() == source.read_bytes() else "restored", left


def main() -> None:
    parser = command_line(__doc__, repeats=1)
    parser.add_argument("--most", type=float, default=50, help="megapixels [%(default)s]")
    chosen = parser.parse_args()
    on_processors(1)
    Image.MAX_IMAGE_PIXELS = None
    print(machine_facts())
    with tempfile.TemporaryDirectory() as name:
        wholly = ("CPU-s", "MiB", "no marks, CPU-s", "no marks, MiB")
        head("clean, megapixels", *wholly, "came back", left=("came back",))
        for size in (size for size in MEGAPIXELS if size <= chosen.most):
            high = round((size * 1e6 * 2**0.5) ** 0.5)
            clean = printed((high, round(high / 2**0.5)))
            figures = [cost(clean, 0, Path(name), *options) for options in ((), ("--remove", "none"))]
            shown = [f"{value:.{digits}f}" for each in figures for value, digits in ((each[0], 1), (each[1], 0))]
            row(size, *shown, " / ".join(dict.fromkeys(each[2] for each in figures)))
        page = printed(A4)
        head("flips of an A4 page", "wrong before", "CPU-s", "MiB", "came back", "wrong after", left=("came back",))
        for flips in FLIPS:
            seconds, mebibytes, outcome, left = cost(page, flips, Path(name))
            before = int(flips) if flips >= 1 else round(flips * page.size)
            row(flips, before, f"{seconds:.1f}", f"{mebibytes:.0f}", outcome, left)


if __name__ == "__main__":
    main()
