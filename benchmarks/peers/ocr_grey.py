"""Characters that Tesseract reads wrongly on grey pages, as they are, after thresholds and after `restore`; a table.

    python benchmarks/peers/ocr_grey.py --pages 8 --seed 100
    python benchmarks/peers/ocr_grey.py --fonts training --seed 7

Text of 10 to 12 points at 150 dpi is drawn in fonts that no prior learns from (Debian's fonts-liberation and
fonts-freefont-ttf). Pages are clean but for soft edges; or shaded, with another page shining through and noise of .03;
or worn: pale and uneven ink, paper, stains, folds, shadows, lens, sensor, JPEG (`training/data/wear.py`). The plugin of
OCRmyPDF shows OCR what `soft=True` gives. A page that is refused is read as it is. Needs Debian's tesseract-ocr.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.ndimage import gaussian_filter
from skimage.filters import threshold_otsu, threshold_sauvola

import restore
from benchmarks.measures.script import command_line, head, row
from benchmarks.pictures.letters import misread, printed
from restore.learning.run.card import machine_facts
from training.data.text import families_for_tests, families_to_learn_from
from training.data.wear import OF_INK, OF_PAPER, OF_SCANNERS, worn

SHAPE = (500, 500)
# The grey levels of paper and of ink: on clean and worn pages, and on shaded ones in full light.
PAPER, INK, LIT_INK = 0.9, 0.2, 0.15

# How much darker the light is along one direction and in a spot; how much ink of the page behind shines through, and
# the standard deviation of its blur in pixels; the standard deviation of the page's own blur, and of the noise.
FALL, SPOT = 0.3, 0.15
THROUGH, BEHIND = 0.2, 1.5
BLUR, NOISE = 0.6, 0.03

KINDS: dict[str, Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]] = {
    "clean": lambda ink, behind, rng: _toned(1 - gaussian_filter(ink.astype(np.float32), 0.5)),
    "shaded": lambda ink, behind, rng: _shaded(ink, behind, rng),
    "worn": lambda ink, behind, rng: worn(
        _toned(worn(1 - ink.astype(np.float32), rng, OF_INK)), rng, (*OF_PAPER, *OF_SCANNERS)
    ),
}
READINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "as they are": lambda page: page,
    "Otsu": lambda page: page < threshold_otsu(page),
    "Sauvola, window 25": lambda page: page < threshold_sauvola(page, 25, 0.2, r=0.5),
    "`restore`, black and white": lambda page: restore.denoise(page, strict=True) < 0.5,
    "`restore --soft`, as the plugin": lambda page: restore.denoise(page, soft=True, strict=True),
}


def _toned(white: np.ndarray) -> np.ndarray:
    return np.asarray(INK + (PAPER - INK) * white)


def _shaded(ink: np.ndarray, behind: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """A scan in 8 bits, as floats in [0, 1], of a page of ink with another page on its back."""
    down, across = (np.linspace(-0.5, 0.5, size) for size in ink.shape)
    angle, (row, column) = draw.uniform(0, 2 * np.pi), draw.uniform(-0.5, 0.5, 2)
    slope = np.sin(angle) * down[:, None] + np.cos(angle) * across
    spot = np.exp(-((down[:, None] - row) ** 2 + (across - column) ** 2) / 0.1)
    light = 1 - FALL * (slope + 0.7) / 1.4 - SPOT * spot
    through = THROUGH * gaussian_filter(behind[:, ::-1].astype(float), BEHIND)
    cover = np.maximum(gaussian_filter(ink.astype(float), BLUR), through)
    grey = light * (PAPER - (PAPER - LIT_INK) * cover) + NOISE * draw.standard_normal(ink.shape)
    return np.asarray(np.rint(255 * grey.clip(0, 1)) / 255)


def read_by(reading: Callable[[np.ndarray], np.ndarray], page: np.ndarray, text: str) -> float:
    try:
        return misread(reading(page), text)
    except restore.NotRestored:
        return misread(page, text)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--pages", type=int, default=8, help="of each kind [%(default)s]")
    parser.add_argument("--seed", type=int, default=100, help="of the pages and of their damage [%(default)s]")
    parser.add_argument("--fonts", choices=("tests", "training"), default="tests", help="[%(default)s]")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    families = families_for_tests() if asked.fonts == "tests" else families_to_learn_from()
    made: dict[str, list[tuple[np.ndarray, str]]] = {kind: [] for kind in KINDS}
    for number in range(asked.pages):
        ink, text = printed(families, asked.seed, number, SHAPE)
        behind, _ = printed(families, asked.seed, number + 1000, SHAPE)
        for kind, draw in KINDS.items():
            grey = draw(ink, behind, np.random.default_rng([asked.seed, number]))
            made[kind].append((np.rint(255 * grey.clip(0, 1)) / 255, text))
    print(f"{asked.pages} pages of {SHAPE[1]}x{SHAPE[0]}, seed {asked.seed}; {machine_facts()}")
    head("characters read wrongly, %", *KINDS)
    for name, reading in READINGS.items():
        row(name, *(f"{100 * np.mean([read_by(reading, *page) for page in pages]):.2f}" for pages in made.values()))


if __name__ == "__main__":
    main()
