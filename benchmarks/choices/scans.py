"""Scans made black and white, by a prior and by thresholds; wrong pixels and the measures of DIBCO, as tables.

    python benchmarks/choices/scans.py --model conv-scan --pages 4 --seed 100
    python benchmarks/choices/scans.py --fonts training --seed 7
    python benchmarks/choices/scans.py --pages 2 --noise 0.03 0.06 --blur 0.9

Text of 10 to 12 points at 150 dpi is drawn by code in fonts that no prior learns from (Debian's fonts-liberation and
fonts-freefont-ttf); the light falls off, the page behind shines through, the optics blur, and there is Gaussian noise.
Every threshold has the width, window and k that leave fewest pixels wrong, chosen knowing the truth, anew for every
level of noise. Wolf's needs doxapy (PyPI). Where there is Tesseract, the characters are counted that it reads wrongly.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Sequence
from importlib.util import find_spec

import numpy as np
from scipy.ndimage import gaussian_filter
from skimage.filters import threshold_otsu, threshold_sauvola

import restore
from benchmarks.measures.contests import drd, f_measure, psnr
from benchmarks.measures.script import command_line, head, row
from benchmarks.pictures.letters import misread, printed
from restore.learning.run.card import machine_facts
from training.data.pages import Family
from training.data.text import families_for_tests, families_to_learn_from

NOISE = (0.1, 0.2, 0.3)

# Grey levels of paper and of ink in full light.
PAPER, INK = 0.9, 0.15

# How much darker the light is along one direction and in a spot; how much ink of the page behind shines through, and
# the standard deviation of its blur in pixels.
FALL, SPOT = 0.3, 0.15
THROUGH, BEHIND = 0.2, 1.5

# Settings to choose from: standard deviations of the Gaussian, sides of the window, and k.
WIDTHS = (0.5, 0.75, 1.0, 1.25, 1.5)
WINDOWS = (9, 15, 25, 41, 75, 121)
STRENGTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.3)

# A page as it was scanned: its ink, booleans, its text, and the scan, all (H, W).
Page = tuple[np.ndarray, str, np.ndarray]

# Makes a scan black and white with some settings: True is ink.
Binarise = Callable[..., np.ndarray]


def scanned(ink: np.ndarray, behind: np.ndarray, blur: float, noise: float, draw: np.random.Generator) -> np.ndarray:
    """A scan in 8 bits, as floats in [0, 1], of a page of ink with another page on its back."""
    down, across = (np.linspace(-0.5, 0.5, size) for size in ink.shape)
    angle, (row, column) = draw.uniform(0, 2 * np.pi), draw.uniform(-0.5, 0.5, 2)
    slope = np.sin(angle) * down[:, None] + np.cos(angle) * across
    spot = np.exp(-((down[:, None] - row) ** 2 + (across - column) ** 2) / 0.1)
    light = 1 - FALL * (slope + 0.7) / 1.4 - SPOT * spot
    through = THROUGH * gaussian_filter(behind[:, ::-1].astype(float), BEHIND)
    cover = np.maximum(gaussian_filter(ink.astype(float), blur), through)
    grey = light * (PAPER - (PAPER - INK) * cover) + noise * draw.standard_normal(ink.shape)
    return np.asarray(np.rint(255 * grey.clip(0, 1)) / 255)


def pages(
    families: list[Family], seed: int, count: int, shape: tuple[int, int], blur: float, noise: float
) -> list[Page]:
    made = []
    for number in range(count):
        ink, text = printed(families, seed, number, shape)
        behind, _ = printed(families, seed, number + 1000, shape)
        made.append((ink, text, scanned(ink, behind, blur, noise, np.random.default_rng([seed, number]))))
    return made


def otsu(grey: np.ndarray) -> np.ndarray:
    return np.asarray(grey < threshold_otsu(grey))


def sauvola(grey: np.ndarray, window: int, k: float) -> np.ndarray:
    return np.asarray(grey < threshold_sauvola(grey, window, k, r=0.5))


def smoothed_sauvola(grey: np.ndarray, width: float, window: int, k: float) -> np.ndarray:
    return sauvola(gaussian_filter(grey, width), window, k)


def wolf(grey: np.ndarray, window: int, k: float) -> np.ndarray:
    import doxapy

    levels = np.rint(255 * grey).astype(np.uint8)
    binarisation, found = doxapy.Binarization(doxapy.Binarization.Algorithms.WOLF), np.empty_like(levels)
    binarisation.initialize(levels)
    binarisation.to_binary(found, {"window": window, "k": k})
    return np.asarray(found == 0)


def best(binarise: Binarise, settings: Sequence[tuple[float, ...]], made: Sequence[Page]) -> tuple[float, ...]:
    """The settings that leave fewest pixels wrong."""

    def wrong(each: tuple[float, ...]) -> float:
        return float(np.mean([(binarise(grey, *each) != ink).mean() for ink, _, grey in made]))

    return min(settings, key=wrong)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--model", default="conv-scan", help="name or folder of a prior [%(default)s]")
    parser.add_argument("--pages", type=int, default=4, help="how many [%(default)s]")
    parser.add_argument("--shape", type=int, nargs=2, default=[400, 400], help="of a page [400 400]")
    parser.add_argument("--seed", type=int, default=100, help="of the pages and of their damage [%(default)s]")
    parser.add_argument("--blur", type=float, default=0.6, help="standard deviation in pixels [%(default)s]")
    parser.add_argument("--noise", type=float, nargs="+", default=NOISE, help="its standard deviations [%(default)s]")
    parser.add_argument("--fonts", choices=("tests", "training"), default="tests", help="[%(default)s]")
    asked = parser.parse_args()
    prior = restore.load(asked.model)
    local = list(itertools.product(WINDOWS, STRENGTHS))
    candidates: dict[str, tuple[Binarise, list[tuple[float, ...]]]] = {
        "Otsu": (otsu, [()]),
        "Sauvola": (sauvola, local),
        "Wolf": (wolf, local),
        "Gaussian, then Sauvola": (smoothed_sauvola, [(width, *each) for width in WIDTHS for each in local]),
        f"`{asked.model}`": (lambda grey: prior.denoise(grey, "scan") < 0.5, [()]),
    }
    if find_spec("doxapy") is None:
        del candidates["Wolf"]
    reads = shutil.which("tesseract") is not None
    families = families_for_tests() if asked.fonts == "tests" else families_to_learn_from()
    size = "x".join(map(str, reversed(asked.shape)))
    print(f"{asked.pages} pages of {size}, seed {asked.seed}, blur {asked.blur:g}; {machine_facts()}")
    for noise in asked.noise:
        made = pages(families, asked.seed, asked.pages, (asked.shape[0], asked.shape[1]), asked.blur, noise)
        measures = ("wrong pixels, %", "F-measure, %", "PSNR, dB", "DRD", "read wrongly, %")
        head(f"noise {noise:g}", *measures, "settings", left=("settings",))
        for name, (binarise, settings) in candidates.items():
            chosen = best(binarise, settings, made) if len(settings) > 1 else settings[0]
            found = [(binarise(grey, *chosen), ink, text) for ink, text, grey in made]
            errors = f"{100 * np.mean([misread(ours, text) for ours, _, text in found]):.1f}" if reads else "-"
            scores = [
                np.mean([score(ours, ink) for ours, ink, _ in found])
                for score in (lambda ours, ink: (ours != ink).mean(), f_measure, psnr, drd)
            ]
            shown = (f"{100 * scores[0]:.2f}", f"{100 * scores[1]:.1f}", f"{scores[2]:.1f}", f"{scores[3]:.2f}")
            row(name, *shown, errors, ", ".join(f"{each:g}" for each in chosen))


if __name__ == "__main__":
    main()
