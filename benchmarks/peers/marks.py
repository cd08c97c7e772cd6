"""Marks on pages and masks: how many pixels are left wrong, what content is lost, and what becomes of clean pictures.

    python benchmarks/peers/marks.py
    python benchmarks/peers/marks.py --tuning --only clean

Pages are in fonts that no prior learns from, of all sizes and in letters of 7 to 12 points at 150 dpi, a third of them
full to their edges, and masks are of twelve photographs; marks are those of `training/data/marks.py`. `restore` is told
the kind, or nothing ("untold"). Others have the setting that leaves least wrong of each row, chosen knowing the truth;
OpenCV inpaints under the truth. unpaper has its noise filter, or for borders its mask and border scans. Tesseract reads
the pages with rules. Clean pictures are as drawn, and as scanned: turned, blurred, with grain, and cut again.
`--tuning` takes other seeds, and the fonts that priors learn from: constants are chosen on these.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
from PIL import Image
from scipy import ndimage

import restore
from benchmarks.measures.script import command_line, head, row
from benchmarks.pictures import all_kinds
from benchmarks.pictures.content import CONTENT
from benchmarks.pictures.kinds import PHOTOGRAPHS, mask
from benchmarks.pictures.letters import errors, printed, read
from restore.channels.damage import Damage, Observed
from restore.inference.marks.pieces import Pieces
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.restore import marks_in
from training.data.marks import MARKS, scanned
from training.data.pages import Family, page
from training.data.text import families_for_tests, families_to_learn_from

STRENGTHS = (1, 2, 3)
AREAS = (2, 5, 9, 14, 20, 30, 60)

# The kinds of marks as drawn, and what removes them.
ASKED = {
    "specks": {"remove": "specks"},
    "dots": {"remove": "dots"},
    "rules": {"remove": "lines"},
    "streaks": {"remove": "lines"},
    "light streaks": {"remove": "lines"},
    "border": {"remove": "border"},
    "islands": {"specks": 60},
    "clusters": {"specks": 60},
}

# What may go unasked.
UNTOLD = ("specks", "dots", "border")

# Clean pictures of `pictures/all_kinds.py`, beside those of `pictures/content.py`.
CLEAN = (
    "print, small", "print, large", "table", "music", "halftone", "ordered dither, 8x8", "error diffusion",
    "code, 3 a module", "data matrix", "scatter plot", "stars", "map, contours", "map, streets", "floor plan",
    "hatching, 20 degrees", "graph paper, 10 pixels", "mask", "line chart", "silhouette", "handwriting",
)  # fmt: skip

UNPAPER = [f"--no-{step}" for step in ("blackfilter", "grayfilter", "blurfilter", "mask-center", "deskew", "wipe")]
UNPAPER += ["--no-border-align", "--overwrite"]

Ink = np.ndarray
Setting = float
Repair = Callable[[Ink, Setting], Ink]


def opened(ink: Ink, most: Setting) -> Ink:
    """Ink and paper of at most so many pixels become the other."""
    found = ink.copy()
    for colour, joined in ((True, np.ones((3, 3))), (False, None)):
        parts, _ = ndimage.label(found == colour, joined)
        small = np.bincount(parts.ravel()) <= most
        small[0] = False
        found ^= small[parts]
    return found


def small_objects(ink: Ink, most: Setting) -> Ink:
    from skimage.morphology import remove_small_objects

    return remove_small_objects(ink, max_size=int(most), connectivity=2)


def open_and_close(ink: Ink, side: Setting) -> Ink:
    square = np.ones((int(side), int(side)))
    return ndimage.binary_closing(np.pad(ndimage.binary_opening(ink, square), 8, "edge"), square)[8:-8, 8:-8]


def median(ink: Ink, side: Setting) -> Ink:
    return ndimage.median_filter(ink, int(side))


def by_unpaper(ink: Ink, intensity: Setting) -> Ink:
    noise = ["-ni", f"{intensity:g}"] if intensity else ["--no-noisefilter"]
    scans = [] if not intensity else ["--no-mask-scan", "--no-border", "--no-border-scan"]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "seen.pbm", Path(folder) / "found.pbm"
        Image.fromarray(~ink).save(source)
        subprocess.run(["unpaper", *UNPAPER, *noise, *scans, source, target], check=True, capture_output=True)
        return ~np.asarray(Image.open(target).convert("1"))


PEERS: dict[str, tuple[Repair, tuple[Setting, ...]]] = {
    "area opening": (opened, AREAS),
    "remove_small_objects": (small_objects, AREAS),
    "open and close": (open_and_close, (1, 2, 3, 4)),
    "median": (median, (1, 3, 5)),
}
if shutil.which("unpaper"):
    PEERS["unpaper"] = (by_unpaper, (0, 4, 8, 12))


def inpainted(seen: Ink, marked: Ink) -> Ink:
    import cv2

    grey, hole = np.where(seen, 0, 255).astype(np.uint8), marked.astype(np.uint8)
    return cv2.inpaint(grey, hole, 3, cv2.INPAINT_TELEA) < 128


def by_restore(ink: Ink, **how: str | int) -> Ink:
    return ~restore.denoise(~ink, **how)


def pixels_removed(ink: Ink) -> int:
    """The pixels of marks that go though nobody asks; whether a picture is noisy first is not looked at."""
    options = Options()
    found = marks_in(Observed((~ink).astype(np.float64), Damage()), options, Engines(options))
    return int(sum(mark.mask.sum() for mark in found if mark.sure))


def asked(ink: Ink, kind: str) -> int:
    """How many small pieces of ink lie under the marks of a kind."""
    return lost(ink, ink & ~restore.find_marks(~ink, kind)[kind])[0]


def light_lines(ink: Ink) -> int:
    """How many pixels of ground are taken for light streaks where lines are asked for."""
    ground = ink == (ink.mean() > 0.5)
    return int((restore.find_marks(~ink, "lines")["lines"] & ground).sum())


def wrong(found: Iterable[Ink], clean: Iterable[Ink]) -> float:
    return 100 * float(np.mean([(one != truth).mean() for one, truth in zip(found, clean, strict=True)]))


def best(repair: Repair, settings: Sequence[Setting], seen: Sequence[Ink], clean: Sequence[Ink]) -> float:
    return min(wrong([repair(one, setting) for one in seen], clean) for setting in settings)


def pages_of(families: list[Family], seed: int, count: int) -> list[Ink]:
    """Pages of 8 to 12 points, full of letters of 7 to 8 points, and of all sizes of letters, in turns."""
    kinds = (
        lambda number: printed(families, seed, number, points=(8, 12))[0],
        lambda number: printed(families, seed, number, points=(7, 8))[0][30:-30, 30:-30],
        lambda number: page(families, seed, number) > 127,
    )
    return [kinds[number % 3](number) for number in range(count)]


def lost(clean: Ink, found: Ink, most: int = 24) -> tuple[int, int]:
    """How many small pieces of ink of a clean picture are gone, and how many there are."""
    pieces = Pieces.of(clean, most)
    pieces = pieces.chosen(pieces.dark)
    return int((pieces.mean((clean & ~found).astype(float)) > 0.5).sum()), pieces.count


def marked(clean: Sequence[Ink], kind: str, strength: int, seed: int) -> tuple[list[Ink], list[Ink]]:
    dice = [np.random.default_rng([seed, number, strength]) for number in range(len(clean))]
    drawn = [MARKS[kind](ink, own, strength) for ink, own in zip(clean, dice, strict=True)]
    return [seen for seen, _ in drawn], [where for _, where in drawn]


def thousandths(*values: float) -> list[str]:
    return ["" if np.isnan(value) else f"{value:.3f}" for value in values]


def kinds(families: list[Family], seed: int, count: int, peers: bool) -> None:
    """Wrong pixels of each kind of marks, at three strengths."""
    others = {name: partial(best, *peer) for name, peer in PEERS.items()} if peers else {}
    more = [*others, "inpainting, true mask"] if peers else []
    head("marks, strength", "before", "`restore`, told", "CPU-s a megapixel", "untold", *more)
    pages = pages_of(families, seed, count)
    masks = [~mask(number + seed) for number in range(len(PHOTOGRAPHS))]
    for kind, how in ASKED.items():
        clean = masks if kind in ("islands", "clusters") else pages
        for strength in STRENGTHS:
            seen, where = marked(clean, kind, strength, seed)
            began = process_time()
            told = wrong([by_restore(one, **how) for one in seen], clean)
            seconds = (process_time() - began) / sum(one.size for one in seen) * 1e6
            untold = wrong(map(by_restore, seen), clean) if kind in UNTOLD else np.nan
            found = [repair(seen, clean) for repair in others.values()]
            found += [wrong(map(inpainted, seen, where), clean)] if peers else []
            cells = [*thousandths(wrong(seen, clean), told), f"{seconds:.1f}", *thousandths(untold, *found)]
            row(f"{kind}, {strength}", *cells)


def readable(families: list[Family], seed: int, count: int) -> None:
    """Characters that Tesseract reads wrongly where rules cross the text."""
    if shutil.which("tesseract") is None:
        print("tesseract is not installed, so no characters are read")
        return
    tried = ("clean", "as they are", "`restore`, told", "erased by hand", "inpainting, true mask")
    head("rules across text, characters wrong in %", *tried)
    texts = [printed(families, seed, number) for number in range(count)]
    for strength in STRENGTHS:
        seen, where = marked([ink for ink, _ in texts], "rules", strength, seed)
        told = [by_restore(one, remove="lines") for one in seen]
        erased = [one & ~gone for one, gone in zip(seen, where, strict=True)]
        tries = ([ink for ink, _ in texts], seen, told, erased, list(map(inpainted, seen, where)))
        row(strength, *(f"{characters_wrong(found, [text for _, text in texts]):.1f}" for found in tries))


def characters_wrong(pages: Iterable[Ink], texts: Sequence[str]) -> float:
    """In per cent."""
    count = sum(errors(read(one), text) for one, text in zip(pages, texts, strict=True))
    return 100 * count / sum(map(len, texts))


def clean_pictures(families: list[Family], seed: int) -> None:
    """What is done to clean pictures, as drawn and as scanned: pixels of marks untold, small pieces lost if asked."""
    columns = ("pieces", "removed untold", "specks asked", "dots asked", "light lines asked")
    head("clean picture", *columns, *(f"as scanned: {column}" for column in columns))
    sums = np.zeros(10, int)
    for name in (*CLEAN, *CONTENT):
        dice = np.random.default_rng([seed, len(name)])
        ink = CONTENT[name](families, dice) if name in CONTENT else ~(all_kinds.picture(name, seed) > 0.5)
        cells = list[int]()
        for one in (ink, scanned(ink, dice)):
            cells += [lost(one, one)[1], pixels_removed(one), asked(one, "specks"), asked(one, "dots")]
            cells += [light_lines(one)]
        sums += cells
        row(name, *cells)
    row("sum", *sums)


def content(families: list[Family], seed: int) -> None:
    """Small pieces of content lost beside specks, of all: told, by area opening of 20, and untold."""
    opening = ("area opening of 20: wrong", "lost")
    head("content beside specks", "before", "told", "lost", *opening, "as scanned: before", "told", "lost")
    for name in ("accents", "Arabic", "Arabic, thin", "leaders", "form", "dotted map"):
        cells = list[str]()
        for worn in (False, True):
            dice = np.random.default_rng([seed, len(name)])
            ink = CONTENT[name](families, dice)
            ink = scanned(ink, dice) if worn else ink
            seen, _ = MARKS["specks"](ink, dice, 3)
            found, area = by_restore(seen, remove="specks"), opened(seen, 20)
            cells += [*thousandths(wrong([seen], [ink]), wrong([found], [ink])), "{} of {}".format(*lost(ink, found))]
            cells += [] if worn else [*thousandths(wrong([area], [ink])), str(lost(ink, area)[0])]
        row(name, *cells)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--pages", type=int, default=3, help="for each kind of marks [%(default)s]")
    parser.add_argument("--seed", type=int, default=4600, help="[%(default)s]")
    parser.add_argument("--tuning", action="store_true", help="take fonts that priors learn from, and another seed")
    parser.add_argument("--only", choices=("kinds", "read", "clean", "content"), help="one of the tables")
    given = parser.parse_args()
    families = families_to_learn_from() if given.tuning else families_for_tests()
    seed = given.seed + 5000 * given.tuning
    tables = {
        "kinds": partial(kinds, families, seed, given.pages, not given.tuning),
        "read": partial(readable, families, seed, given.pages),
        "clean": partial(clean_pictures, families, seed),
        "content": partial(content, families, seed),
    }
    for name, table in tables.items():
        if given.only in (None, name):
            table()


if __name__ == "__main__":
    main()
