"""Photographed and scanned pages that nobody here drew, made black and white beside common binarisers, as tables.

    RESTORE_DATA=DATA python benchmarks/peers/real_pages.py --leave-out A [--model PRIOR] [--unet FILE] [--list]

The pages are those of `training.data.sources`, eleven sources in four groups, of which a reader is judged by one that
it has not seen: who trains it has to leave the group out. It is told that each is a scan: of each page the middle, at
most `--side` pixels a side, if there is ink in it. How many pages it refuses if it is not told so is said beside. F is
the F-measure of ink, in per cent; see `measures/contests.py` for the other measures. Faint is ink with at most a third
of the darkest's contrast. ISauvola, Wolf and Gatos are those of doxapy (PyPI), if it is installed. `--unet` has a
network beside them that `filters/unet.py` has kept. `--turns 1` has all pages lie on their sides.
"""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter, grey_closing
from skimage.filters import threshold_otsu, threshold_sauvola

import restore
from benchmarks.filters import unet
from benchmarks.measures.contests import (
    drd,
    f_measure,
    false_marks,
    forgiving_f_measure,
    psnr,
    recall_of_faint,
)
from benchmarks.measures.script import command_line, head, row
from restore.channels.views import VIEWS
from restore.errors import Foreign, some
from restore.learning.run.card import machine_facts
from training.data.sources import GROUPS, real_pages

# The contests' pages of which limits of what is a page were chosen.
YEARS = ("2009", "2010", "2011", "2012", "2013")

# Pixels of the window of Sauvola's threshold; side of the closing that leaves the paper, and its Gaussian's sigma.
WINDOW, CLOSED, EVENED = 41, 25, 6

# A restored page is worse than Otsu's threshold if its F is more than so much lower.
WORSE = 2.0

# With how many digits each is shown.
MEASURES = {
    "wrong pixels, %": 2,
    "F": 1,
    "F, forgiving a pixel": 1,
    "PSNR": 2,
    "DRD": 2,
    "recall of faint ink, %": 1,
    "marks that are no ink, % of ink": 1,
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
        forgiving_f_measure(found, truth),
        recall_of_faint(found, truth, page),
        false_marks(found, truth),
    )
    wrong, f, forgiving, *others = (100 * share for share in shares)
    return np.array([wrong, f, forgiving, psnr(found, truth), drd(found, truth), *others])


def pages(
    data: Path, sources: Sequence[str], side: int, turns: int = 0
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The middle of every page, after so many quarter turns to the left: SOURCE/NAME, grey levels, and ink."""
    for source, name, grey, paper in real_pages(data):
        if source in sources:
            middle = tuple(slice(max(0, (size - side) // 2), (size + side) // 2) for size in grey.shape)
            seen, ink = (np.ascontiguousarray(np.rot90(part[middle], turns)) for part in (grey, ~paper))
            yield f"{source}/{name}", seen, ink


@dataclass(frozen=True, eq=False)
class Read:
    """What a reader says of a page.

    Attributes:
        ink: where there is ink.
        nats: what each pixel of the truth costs, on average.
        refused: why the page is refused if nobody says that it is a scan, or nothing.
    """

    ink: np.ndarray
    nats: float
    refused: str


def by_restore(page: np.ndarray, truth: np.ndarray, model: Path | str) -> Read:
    refused = ""
    try:
        restore.denoise(page, model=model)
    except Foreign as refusal:
        refused = str(refusal).partition(";")[0]
    _, solution = restore.denoise(page, model=model, p="scan", return_solution=True)
    white = np.clip(solution.means.astype(float), 1e-6, 1 - 1e-6)
    return Read(white < 0.5, float(-np.log(np.where(truth, 1 - white, white)).mean()), refused)


def mean_of(scores: list[np.ndarray]) -> np.ndarray:
    """The mean of every measure over the pages that have it."""
    table = np.array(scores).reshape(-1, len(MEASURES))
    return np.array([np.mean(column[np.isfinite(column)]) for column in table.T])


def show(rows: Mapping[str, list[dict[str, np.ndarray]]]) -> None:
    """All measures of each method, and its F by source: the rows are those of the pages of a source."""
    every, first = [scores for part in rows.values() for scores in part], next(iter(rows.values()))[0]
    head("", *MEASURES)
    for which in first:
        part = mean_of([scores[which] for scores in every])
        row(which, *(f"{value:.{digits}f}" for value, digits in zip(part, MEASURES.values(), strict=True)))
    print()
    head("F", *(f"{source} ({len(part)})" for source, part in rows.items()), "mean of the sources")
    for which in first:
        means = [float(np.mean([scores[which][F] for scores in part])) for part in rows.values()]
        row(which, *(f"{value:.1f}" for value in (*means, np.mean(means))))


def _never() -> unet.UNet:
    raise AssertionError("the file exists")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--leave-out", choices=GROUPS, required=True, help="the group of sources to read")
    parser.add_argument("--model", default="conv-scan", help="a prior that has not seen them [%(default)s]")
    parser.add_argument("--side", type=int, default=512, help="[%(default)s]")
    parser.add_argument("--data", type=Path, default=os.environ.get("RESTORE_DATA"))
    parser.add_argument("--turns", type=int, default=0, help="to the left by right angles first [%(default)s]")
    parser.add_argument("--list", action="store_true", help="a line for each page")
    parser.add_argument("--unet", type=Path, help="a network that has not seen them [none]")
    asked = parser.parse_args()
    if asked.data is None:
        raise SystemExit("set RESTORE_DATA, or give --data: the folder that holds dibco/ and pages/")
    warnings.simplefilter("ignore")
    group = asked.leave_out
    others = dict(peers())
    if asked.unet:
        if not asked.unet.exists():
            raise SystemExit(f"{asked.unet}: no such file; give a network that benchmarks/filters/unet.py has kept")
        others["U-Net"] = unet.stored(asked.unet, _never, seen=VIEWS).read
    rows, nats, refused = defaultdict[str, list[dict[str, np.ndarray]]](list), list[float](), list[str]()
    for name, page, truth in pages(asked.data, GROUPS[group], asked.side, asked.turns):
        if not truth.any():
            continue
        read = by_restore(page, truth, asked.model)
        answers = {"restore": read.ink} | {peer: binarise(page) for peer, binarise in others.items()}
        scores = {which: measured(answer, truth, page) for which, answer in answers.items()}
        rows[name.partition("/")[0]].append(scores)
        nats.append(read.nats)
        refused += [name] * bool(read.refused)
        if asked.list:
            shown = ", ".join(f"{which} {values[F]:.1f}" for which, values in scores.items())
            print(f"{name}: {shown}; {read.refused or 'read'}", flush=True)
    every = [scores for part in rows.values() for scores in part]
    worse = sum(scores["restore"][F] < scores["Otsu"][F] - WORSE for scores in every)
    print(f"{machine_facts()}; group {group} left out")
    which = f" ({some(refused)})" if refused else ""
    print(f"{len(every)} pages, {np.mean(nats):.4f} nats a pixel; untold {len(refused)} are refused{which};")
    print(f"{worse} are worse than by Otsu's threshold by more than {WORSE:g} points of F.")
    print("An infinite PSNR is no part of its mean.")
    show(rows)


if __name__ == "__main__":
    main()
