"""What becomes of the dots of small sharp print, as of a screen, beside thresholds; as tables.

    python benchmarks/peers/small_print.py --pages 12

Print of 12, 14 and 18 pixels in fonts that no prior learns from, in grey levels: under uneven light, with white noise,
or both after a blur of .6 pixels. A dot is a part of the truth of at most 8 pixels, such as a point or that of an i,
and is lost if none of them is ink any more. Pages are restored without options; one that is refused does not count.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from scipy.ndimage import gaussian_filter, label
from skimage.filters import threshold_otsu, threshold_sauvola

import restore
from benchmarks.measures.script import command_line, head, row
from restore.learning.run.card import machine_facts
from training.data import pages
from training.data.text import families_for_tests

SIZES, SHAPE, MARGIN, PITCH = (12, 14, 18), (320, 480), 12, 1.4
PAPER, INK, DIMMEST, BLUR = 0.95, 0.2, 0.75, 0.6
# The most pixels of a dot.
DOT = 8

# How strong noise is, how many pixels wide blur, and how light the page is on its left.
KINDS: dict[str, tuple[float, float, float]] = {
    "uneven light": (0.0, 0.0, DIMMEST),
    "noise of .04": (0.04, 0.0, 1.0),
    "noise of .08": (0.08, 0.0, 1.0),
    "noise of .12": (0.12, 0.0, 1.0),
    "uneven light, blur, noise of .04": (0.04, BLUR, DIMMEST),
}
READINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "restore": lambda page: np.asarray(restore.denoise(page, strict=True)) < 128,
    "Otsu": lambda page: page <= threshold_otsu(page),
    "Sauvola, window 25": lambda page: page <= threshold_sauvola(page, 25),
}


def drawn(number: int) -> np.ndarray:
    """How much of each pixel is covered by ink, (H, W), on a page of its own font, size and text."""
    families = families_for_tests()
    size = SIZES[number % len(SIZES)]
    face = families[number // len(SIZES) % len(families)][0]
    font = ImageFont.truetype(face, size, layout_engine=ImageFont.Layout.BASIC)
    words = iter(np.roll(Path(pages.__file__).with_name("text.txt").read_text("utf-8").split(), -97 * number).tolist())
    sheet = Image.new("L", SHAPE[::-1])
    for top in range(MARGIN, SHAPE[0] - 2 * size, round(PITCH * size)):
        line = ""
        while font.getlength(line) < SHAPE[1] - 8 * size:
            line = f"{line} {next(words)}".strip()
        ImageDraw.Draw(sheet).text((MARGIN, top), line, 255, font)
    return np.asarray(sheet) / 255


def damaged(covered: np.ndarray, kind: str, number: int) -> np.ndarray:
    """The grey levels of a page, uint8."""
    noise, blur, dimmest = KINDS[kind]
    grey = gaussian_filter(PAPER - (PAPER - INK) * covered, blur) * np.linspace(dimmest, 1, SHAPE[1])
    grey += np.random.default_rng(number).normal(0, noise, SHAPE)
    return np.rint(255 * grey.clip(0, 1)).astype(np.uint8)


def lost(found: np.ndarray, truth: np.ndarray) -> float:
    """The share of dots that are gone."""
    parts, count = label(truth, np.ones((3, 3)))
    left = np.bincount(parts[found], minlength=count + 1)[1:]
    return float((left[np.bincount(parts.ravel())[1:] <= DOT] == 0).mean())


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--pages", type=int, default=12, help="of each kind [%(default)s]")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{asked.pages} pages of {SHAPE[1]}x{SHAPE[0]}; {machine_facts()}")
    refused, wrong, gone = 0, dict[tuple[str, str], list[float]](), dict[tuple[str, str], list[float]]()
    for kind in KINDS:
        for number in range(asked.pages):
            covered = drawn(number)
            page, truth = damaged(covered, kind, number), covered >= 0.5
            try:
                answers = {name: reading(page) for name, reading in READINGS.items()}
            except restore.NotRestored:
                refused += 1
                continue
            for name, answer in answers.items():
                wrong.setdefault((name, kind), []).append(float((answer != truth).mean()))
                gone.setdefault((name, kind), []).append(lost(answer, truth))
    print(f"{refused} pages are refused.")
    for title, figures in (("dots lost, %", gone), ("wrong pixels, %", wrong)):
        head(title, *KINDS)
        for name in READINGS:
            row(name, *(f"{100 * np.mean(figures.get((name, kind), [np.nan])):.2f}" for kind in KINDS))


if __name__ == "__main__":
    main()
