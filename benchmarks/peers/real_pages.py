"""Photographed and scanned pages that nobody here drew, made black and white beside common binarisers, as tables.

    RESTORE_DATA=DATA python benchmarks/peers/real_pages.py [--years 2009 2010] [--side 640] [--list]
    RESTORE_DATA=DATA python benchmarks/peers/real_pages.py --held-out-for-choosing

The pages are those of the contests of document binarisation, `dibco/YEAR/NAME.png` and `NAME.truth.png` in the folder
of the data; of each the middle, at most `--side` pixels a side, is restored without options. F is the F-measure of ink,
in per cent; see `measures/contests.py` for the other measures. Faint is ink with at most a third of the darkest's
contrast. A page that is refused comes back as it was, and is counted apart. ISauvola, Wolf and Gatos are those of
doxapy (PyPI), if it is installed. A third of the pages, chosen by a hash of the name, is held out of training.
`--unet-minutes` has a network beside them that sees what `conv-scan` sees, and has learnt from the same pages, in the
folder of the data, for so many minutes of processor time. `--turns 1` has all pages lie on their sides.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter, grey_closing
from skimage.filters import threshold_otsu, threshold_sauvola

import restore
from benchmarks.filters import unet
from benchmarks.measures.contests import drd, f_measure, pseudo_f_measure, psnr, recall_of_faint, width_of_strokes
from benchmarks.measures.script import command_line, head, row
from restore.errors import NotRestored, RestoreError
from restore.learning.run.card import machine_facts
from training.data.scans import for_choosing

YEARS = ("2009", "2010", "2011", "2012", "2013")

# Pixels of the window of Sauvola's threshold; side of the closing that leaves the paper, and its Gaussian's sigma.
WINDOW, CLOSED, EVENED = 41, 25, 6

# A restored page is worse than Otsu's threshold if its F is more than so much lower.
WORSE = 2.0

# With how many digits each is shown.
MEASURES = {
    "wrong pixels, %": 2,
    "F": 1,
    "pseudo-F": 1,
    "PSNR": 2,
    "DRD": 2,
    "width, % of truth's": 1,
    "recall of faint ink, %": 1,
}

# The number of the F-measure among them.
F = 1

# Makes a grey page (H, W), uint8, black and white: True is ink.
Binariser = Callable[[np.ndarray], np.ndarray]


def otsu(page: np.ndarray) -> np.ndarray:
    return page <= threshold_otsu(page)


def closing(page: np.ndarray) -> np.ndarray:
    """Divide by the paper, a closing, and take Otsu's threshold."""
    paper = gaussian_filter(grey_closing(page, (CLOSED, CLOSED)).astype(float), EVENED)
    return otsu((255 * (page / np.maximum(paper, 1)).clip(0, 1)).astype(np.uint8))


def of_doxa(name: str) -> Binariser:
    import doxapy

    def binarised(page: np.ndarray) -> np.ndarray:
        found = np.empty_like(page)
        method = doxapy.Binarization(getattr(doxapy.Binarization.Algorithms, name))
        method.initialize(np.ascontiguousarray(page))
        method.to_binary(found, {"window": WINDOW, "k": 0.2})
        return found == 0

    return binarised


def peers() -> Mapping[str, Binariser]:
    own: dict[str, Binariser] = {
        "Otsu": otsu,
        "Sauvola": lambda page: page <= threshold_sauvola(page, WINDOW),
        "closing and dividing": closing,
    }
    if find_spec("doxapy"):
        own |= {name.capitalize(): of_doxa(name) for name in ("ISAUVOLA", "WOLF", "GATOS")}
    return own


def measured(found: np.ndarray, truth: np.ndarray, page: np.ndarray) -> np.ndarray:
    """Every measure of `MEASURES`; shares in per cent."""
    shares = (
        float((found != truth).mean()),
        f_measure(found, truth),
        pseudo_f_measure(found, truth),
        width_of_strokes(found, truth),
        recall_of_faint(found, truth, page),
    )
    wrong, f, pseudo, width, faint = (100 * share for share in shares)
    return np.array([wrong, f, pseudo, psnr(found, truth), drd(found, truth), width, faint])


def pages(data: Path, years: list[str], side: int, turns: int = 0) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The middle of every page, after so many quarter turns to the left: its name, grey levels, and ink."""
    for path in sorted(path for year in years for path in (data / "dibco" / year).glob("*.png")):
        if path.suffixes == [".png"]:
            grey = np.array(Image.open(path).convert("L"))
            ink = np.array(Image.open(path.with_suffix(".truth.png")).convert("L")) < 128
            middle = tuple(slice(max(0, (size - side) // 2), (size + side) // 2) for size in grey.shape)
            yield path.stem, *(np.ascontiguousarray(np.rot90(image[middle], turns)) for image in (grey, ink))


def by_restore(page: np.ndarray) -> tuple[np.ndarray | None, str]:
    """The ink without options, or None where the page is refused or fails; and why, or which prior restored it."""
    try:
        _, solution = restore.denoise(page, return_solution=True)
    except NotRestored as refusal:
        return None, str(refusal).partition(";")[0]
    except RestoreError as fault:
        return None, f"FAILED: {fault}"
    return solution.means < 0.5, solution.model


def mean_of(scores: list[np.ndarray]) -> np.ndarray:
    """The mean of every measure over the pages that have it."""
    table = np.array(scores).reshape(-1, len(MEASURES))
    return np.array([np.mean(column[np.isfinite(column)]) for column in table.T])


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--years", nargs="+", default=list(YEARS))
    parser.add_argument("--side", type=int, default=640, help="[%(default)s]")
    parser.add_argument("--data", type=Path, default=os.environ.get("RESTORE_DATA"))
    parser.add_argument("--held-out-for-choosing", action="store_true", help="a third of the pages only")
    parser.add_argument("--turns", type=int, default=0, help="to the left by right angles first [%(default)s]")
    parser.add_argument("--list", action="store_true", help="a line for each page")
    parser.add_argument("--unet-minutes", type=float, default=0.0, help="0 for none [%(default)s]")
    parser.add_argument("--unet", type=Path, default=Path("runs"), help="folder that keeps the network [%(default)s]")
    chosen = parser.parse_args()
    if chosen.data is None:
        raise SystemExit("set RESTORE_DATA, or give --data: the folder that holds dibco/")
    warnings.simplefilter("ignore")
    others = dict(peers())
    if chosen.unet_minutes:
        others["U-Net"] = unet.reader(chosen.unet, chosen.data, chosen.unet_minutes).read
    rows, reasons = list[dict[str, np.ndarray]](), list[str]()
    seconds = megapixels = 0.0
    for name, page, truth in pages(chosen.data, chosen.years, chosen.side, chosen.turns):
        if chosen.held_out_for_choosing and not for_choosing(name):
            continue
        start = time.process_time()
        ink, reason = by_restore(page)
        seconds, megapixels = seconds + time.process_time() - start, megapixels + page.size / 1e6
        answers = {"restore": ink} | {peer: binarise(page) for peer, binarise in others.items()}
        scores = {which: measured(answer, truth, page) for which, answer in answers.items() if answer is not None}
        rows.append(scores)
        reasons.append(reason)
        if chosen.list:
            shown = ", ".join(f"{which} {values[F]:.1f}" for which, values in scores.items())
            print(f"{name}: {shown}; {reason}", flush=True)
    restored = [scores for scores in rows if "restore" in scores]
    worse = sum(scores["restore"][F] < scores["Otsu"][F] - WORSE for scores in restored)
    failed = sum(reason.startswith("FAILED") for reason in reasons)
    print(f"{machine_facts()}; {seconds / max(megapixels, 1e-9):.1f} CPU-s a megapixel")
    refused = len(rows) - len(restored) - failed
    print(f"{len(rows)} pages: {len(restored)} restored, {refused} refused, {failed} failed;")
    print(f"{worse} restored ones are worse than by Otsu's threshold by more than {WORSE:g} points of F.")
    print("All measures but the last are of restored pages. An infinite PSNR is no part of its mean.")
    head("", *MEASURES, "F, all pages")
    for which in ("restore", *others):
        part = mean_of([scores[which] for scores in restored])
        shown = (f"{value:.{digits}f}" for value, digits in zip(part, MEASURES.values(), strict=True))
        whole = "" if which == "restore" else f"{np.mean([scores[which][F] for scores in rows]):.1f}"
        row(which, *shown, whole)


if __name__ == "__main__":
    main()
