"""Codes and shapes scanned in grey, restored without options, beside Otsu's threshold; wrong pixels in %, as a table.

    RESTORE_DATA=DATA python benchmarks/choices/grey_shapes.py

`crowded` in `restore/inference/decision/rules.py`, the share of ink within reach of ink, tells them from pages: the
first table has its largest values of the middles of 360 pixels of `real_pages.py`, the second those of codes,
silhouettes and blobs, blurred by .6 pixels, in even light and in light that falls to a part of it at the left, with
noise of .012. `grain` tells pages with noise all over: the third table has pages of print under white noise, a share of
the contrast, read by the prior of pages and by others from its levels.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter
from skimage import data
from skimage.filters import threshold_otsu

import restore
from benchmarks.measures.script import command_line, head, row
from benchmarks.peers.real_pages import YEARS, otsu, pages
from restore.channels.damage import Damage, Observed
from restore.images.tones import stretched
from restore.inference.candidates import Prior
from restore.inference.decision import rules
from restore.inference.open import open_engine
from restore.inference.scans.sheet import Sheet
from restore.zoo import reader
from training.data.pages import page
from training.data.text import families_for_tests

PAPER, INK, BLUR, NOISE = 0.9, 0.16, 0.6, 0.012
LIGHT = (1.0, 0.8, 0.6, 0.4)
SIDE, LARGEST = 360, 4
GRAIN, PRINTED = (0.04, 0.08, 0.12, 0.16, 0.2, 0.3), 8


def code(side: int) -> np.ndarray:
    return np.kron(np.random.default_rng(side).random((24, 24)) < 0.5, np.ones((side, side), bool))


def blob(reach: int) -> np.ndarray:
    field = gaussian_filter(np.random.default_rng(reach).random((240, 240)), reach)
    return np.asarray(field > np.quantile(field, 0.4))


def horse() -> np.ndarray:
    return np.asarray(data.horse() > 0)


def coins() -> np.ndarray:
    smooth = gaussian_filter(data.coins().astype(float), 2)
    return np.asarray(smooth > threshold_otsu(smooth))


# White is True.
SHAPES: dict[str, Callable[[], np.ndarray]] = {
    "code of 4x4": lambda: code(4),
    "code of 5x5": lambda: code(5),
    "horse": horse,
    "coins": coins,
    **{f"blobs, {reach}": lambda reach=reach: blob(reach) for reach in (6, 10, 14, 18, 22)},
}


def read_by(rules_of_reading: tuple[rules.Rule, ...], levels: np.ndarray) -> np.ndarray:
    """A page in black and white, True where white, where other rules say who reads it."""
    before, rules.READ_BY_OTHERS = rules.READ_BY_OTHERS, rules_of_reading
    try:
        return np.asarray(restore.denoise(levels)) > 127
    finally:
        rules.READ_BY_OTHERS = before


def grain() -> None:
    """Print under white noise, read by either."""
    head("noise, share of the contrast", "the prior of pages, wrong %", "others, wrong %")
    of_pages, others = (), (rules.Rule(None, "grain", "above", -1.0, ""),)
    for noise in GRAIN:
        wrong = list[list[float]]()
        for number in range(PRINTED):
            clean = page(families_for_tests(), 7, number, (SIDE, SIDE)) < 128
            grey = gaussian_filter(INK + (PAPER - INK) * clean, BLUR)
            grey += noise * (PAPER - INK) * np.random.default_rng(number).normal(0, 1, clean.shape)
            levels = np.rint(255 * grey.clip(0, 1)).astype(np.uint8)
            wrong.append([100 * float(np.mean(read_by(table, levels) != clean)) for table in (of_pages, others)])
        row(noise, *(f"{value:.2f}" for value in np.mean(wrong, 0)))


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("RESTORE_DATA"))
    chosen = parser.parse_args()
    if chosen.data is None:
        raise SystemExit("set RESTORE_DATA, or give --data: the folder that holds dibco/")
    warnings.simplefilter("ignore")
    prior = Prior(open_engine(reader()))

    def crowded(levels: np.ndarray) -> float:
        grey = (levels / 255).astype(np.float32)
        page = prior.posterior(Observed(stretched(grey), Damage()), lambda share: None)
        return Sheet.of(grey, page.means[0], None).crowded

    found = sorted(((crowded(page), name) for name, page, _ in pages(chosen.data, list(YEARS), SIDE)), reverse=True)
    head("page", "ink within reach of ink")
    for share, name in found[:LARGEST]:
        row(name, f"{share:.3f}")
    head("", "light at the left", "ink within reach of ink", "Otsu", "`restore`", "with", left=("with",))
    for name, drawn in SHAPES.items():
        clean = drawn()
        for light in LIGHT:
            grey = gaussian_filter(INK + (PAPER - INK) * clean, BLUR) * np.linspace(light, 1, clean.shape[1])
            grey += np.random.default_rng(3).normal(0, NOISE, clean.shape)
            levels = np.rint(255 * grey.clip(0, 1)).astype(np.uint8)
            try:
                result, solution = restore.denoise(levels, return_solution=True, strict=True)
                answer = (f"{100 * np.mean((result > 127) != clean):.2f}", solution.model)
            except restore.NotRestored:
                answer = ("", "refused")
            wrong = 100 * np.mean(otsu(levels) == clean)
            row(name, light, f"{crowded(levels):.2f}", f"{wrong:.2f}", *answer)
    grain()


if __name__ == "__main__":
    main()
