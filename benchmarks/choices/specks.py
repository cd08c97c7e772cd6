"""Pages freed of specks, and what became of dots: by a prior, by area openings, and by unpaper, as Markdown tables.

    python benchmarks/choices/specks.py --pages 4 --seed 4100
    python benchmarks/choices/specks.py --pages 2 --flips
    python benchmarks/choices/specks.py --tuning --pages 16 --seed 9100

Half of the pages of 600x800 pixels are those of `benchmarks/peers/pages.py`, half are paragraphs in letters of 8 to 12
points at 150 dpi, all in fonts that no prior learns from. Specks are those of `restore corrupt --task specks:SHARE`;
those of the last column are discs and bars, which the channel does not assume. Area openings and unpaper (Debian's
unpaper, left out if it is missing) have the setting that leaves least wrong, chosen knowing the truth, anew for every
column; `restore` is told nothing. The second table counts small marks of clean pages, such as dots of i, colons and
full stops, of which less than half is left: on clean pages, and beside specks. The third has pictures that are full of
dots, none of which may change. `--tuning` shows, on pages in fonts for training, by how many nats specks explain a page
better than none: `SPECKS_MARGIN` in `restore/inference/specks.py` is between those of clean and damaged pages.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import label

import restore
from benchmarks.filters.binary import Candidate, Seen, as_seen
from benchmarks.measures.scoring import least, wrong
from benchmarks.measures.script import command_line, head, row
from benchmarks.pictures.all_kinds import picture
from benchmarks.pictures.letters import printed
from restore.channels import Specks
from restore.errors import NotRestored
from restore.inference.candidates import Prior
from restore.inference.specks import Pieces, likeliest_rate, log_odds
from restore.learning.run.card import machine_facts
from training.data.pages import page
from training.data.text import families_for_tests, families_to_learn_from

SHARES = (0.001, 0.003, 0.01, 0.03)
COMPACT = 0.01
POINTS = (8, 12)

# The most pixels of a small mark.
MARK = 16

# Pictures full of dots: of `pictures/all_kinds.py`, and a table of dotted lines.
DOTTED = ("scatter plot", "dots, regular", "dots, jittered", "stars", "halftone", "music", "table")

UNPAPER = [f"--no-{step}" for step in ("blackfilter", "grayfilter", "mask-scan", "mask-center", "deskew", "wipe")]
UNPAPER += ["--no-border", "--no-border-scan", "--no-border-align", "--overwrite"]


def areas_opened(seen: Seen, most: float) -> np.ndarray:
    """Ink of at most so many pixels becomes paper, and paper within ink, alike."""
    found = seen.ink.copy()
    for colour in (True, False):
        parts, _ = label(found == colour)
        small = np.bincount(parts.ravel()) <= most
        small[0] = False
        found ^= small[parts]
    return found


def ink_opened(seen: Seen, most: float) -> np.ndarray:
    """Ink of at most so many pixels becomes paper."""
    parts, _ = label(seen.ink, np.ones((3, 3)))
    small = np.bincount(parts.ravel()) <= most
    small[0] = False
    return seen.ink & ~small[parts]


def by_unpaper(*options: str) -> Callable[[Seen, float], np.ndarray]:
    """unpaper with some filters alone; the setting is the intensity of its noise filter, 0 for none."""

    def repair(seen: Seen, intensity: float) -> np.ndarray:
        noise = ["-ni", f"{intensity:g}"] if intensity else ["--no-noisefilter"]
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "seen.pbm", Path(folder) / "found.pbm"
            Image.fromarray(~seen.ink).save(source)
            subprocess.run(["unpaper", *UNPAPER, *noise, *options, source, target], check=True, capture_output=True)
            return ~np.asarray(Image.open(target).convert("1"))

    return repair


def by_prior(model: str, **level: float | str) -> Candidate:
    """`restore` with a prior; what it refuses comes back as it was."""
    denoise = partial(restore.denoise, model="auto") if model == "auto" else restore.load(model).denoise

    def repair(seen: Seen, _: float) -> np.ndarray:
        try:
            return denoise(seen.ink, strict=True, **level)
        except NotRestored:
            return seen.ink

    return Candidate(repair)


def candidates(model: str, *, flips: bool) -> dict[str, Candidate]:
    sizes = tuple(map(float, range(10)))
    found = {
        "as it is": Candidate(as_seen),
        "area opening of ink": Candidate(ink_opened, sizes),
        "area opening of ink and paper": Candidate(areas_opened, sizes),
    }
    if shutil.which("unpaper"):
        found["unpaper, noise filter"] = Candidate(by_unpaper("--no-blurfilter"), sizes)
        found["unpaper, noise filter of 4"] = Candidate(by_unpaper("--no-blurfilter"), (4.0,))
        found["unpaper, noise and blur filter"] = Candidate(by_unpaper(), sizes)
    else:
        print("unpaper is not installed, so it is left out")
    if flips:
        found[f"`{model}`, `--p auto`"] = by_prior(model, p="auto")
    found[f"`{model}`, `--specks auto`"] = by_prior(model, specks="auto")
    return found


def pages(families: Sequence[Sequence[Path]], count: int, seed: int) -> list[np.ndarray]:
    """Pages of all sizes of letters, and of small ones, in turns."""
    families = list(families)
    return [
        printed(families, seed, number, points=POINTS)[0] if number % 2 else page(families, seed, number) > 127
        for number in range(count)
    ]


def specked(clean: Sequence[np.ndarray], share: float, seed: int) -> list[Seen]:
    found = [
        Specks(share).corrupt(ink.astype(np.uint8), np.random.default_rng([seed, number])) > 0
        for number, ink in enumerate(clean)
    ]
    return [Seen(ink, 0.0, np.zeros(ink.shape, bool)) for ink in found]


def compact(clean: Sequence[np.ndarray], share: float, seed: int) -> list[Seen]:
    """Specks that are discs and bars of 2 to 8 pixels, half of them ink."""
    kinds = [np.ones(shape, bool) for shape in ((1, 2), (2, 1), (2, 2), (2, 3), (3, 2), (1, 4), (4, 1), (2, 4), (4, 2))]
    kinds += [np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], bool), np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], bool)]
    found = []
    for number, ink in enumerate(clean):
        dice, seen = np.random.default_rng([seed, number, 1]), ink.copy()
        for _ in range(dice.poisson(share * ink.size / np.mean([kind.sum() for kind in kinds]))):
            kind = kinds[dice.integers(len(kinds))]
            top, left = (int(dice.integers(size - 4)) for size in ink.shape)
            seen[top : top + kind.shape[0], left : left + kind.shape[1]][kind] = dice.random() < 0.5
        found.append(Seen(seen, 0.0, np.zeros(ink.shape, bool)))
    return found


def lost(clean: np.ndarray, found: np.ndarray) -> tuple[int, int]:
    """How many small marks are gone, and how many there are."""
    parts, count = label(clean, np.ones((3, 3)))
    sizes, left = np.bincount(parts.ravel()), np.bincount(parts[found], minlength=count + 1)
    marks = sizes <= MARK
    return int((marks & (2 * left < sizes)).sum()), int(marks.sum())


def dotted_table() -> np.ndarray:
    """Lines of words, each with a dotted line to a number, and dotted rules between; ink."""
    ink = picture("table", 0)[:200, :300] == 0
    for top in range(6, 200, 22):
        ink[top : top + 2, 10:290] = np.arange(280) % 5 < 2
    return ink


def pages_cleaned(tried: dict[str, Candidate], clean: Sequence[np.ndarray], seed: int) -> None:
    """Two tables: wrong pixels, and marks lost, on clean pages with the setting for specks on 1 % of the pixels."""
    columns = {f"{100 * share:g} %": specked(clean, share, seed) for share in SHARES}
    columns[f"{100 * COMPACT:g} %, discs and bars"] = compact(clean, COMPACT, seed)
    undamaged, marks = specked(clean, 0.0, seed), dict[str, list[str]]()
    head("wrong pixels, %", *columns, "settings", left=("settings",))
    for name, candidate in tried.items():
        found = [least(candidate, seen, wrong(clean, seen)) for seen in columns.values()]
        settings = ", ".join(f"{setting:g}" for _, setting, _ in found) if len(candidate.settings) > 1 else ""
        row(name, *(f"{100 * share:.3f}" for share, _, _ in found), settings)
        setting = found[SHARES.index(COMPACT)][1]
        every = [[candidate.repair(each, setting) for each in undamaged], *(repaired for _, _, repaired in found)]
        marks[name] = [str(sum(lost(*both)[0] for both in zip(clean, repaired, strict=True))) for repaired in every]
        changed = sum(int((ours != ink).sum()) for ours, ink in zip(every[0], clean, strict=True))
        marks[name].append(str(changed))
    head(f"marks lost of {sum(lost(ink, ink)[1] for ink in clean)}", "clean", *columns, "pixels of clean pages changed")
    for name, cells in marks.items():
        row(name, *cells)


def dotted(tried: dict[str, Candidate]) -> None:
    """Pixels of clean pictures full of dots that change, with the prior that `restore` finds itself."""
    drawn = {name: picture(name, 0) == 0 for name in DOTTED} | {"table of dotted lines": dotted_table()}
    head("picture", *tried, "`restore denoise --specks auto`")
    alone = by_prior("auto", specks="auto")
    for name, ink in drawn.items():
        seen = Seen(ink, 0.0, np.zeros(ink.shape, bool))
        settings = [(each, 6.0 if len(each.settings) > 1 else each.settings[0]) for each in tried.values()]
        row(name, *(str(int((each.repair(seen, of) != ink).sum())) for each, of in [*settings, (alone, 0.0)]))


def tuning(model: str, count: int, seed: int) -> None:
    """By how many nats specks explain pages better than none, in fonts for training."""
    prior = Prior(restore.load(model).engine)
    clean = pages(families_to_learn_from(), count, seed)
    head("specks on", "nats", "specks found on")
    for share in (0.0, 0.0003, *SHARES):
        found = []
        for seen in specked(clean, share, seed):
            pieces = Pieces.of(seen.ink)
            found.append(likeliest_rate(pieces, log_odds(pieces, seen.ink.astype(np.float32), prior)))
        nats = ", ".join(f"{nats:.0f}" for _, nats in sorted(found, key=lambda each: each[1]))
        row(f"{100 * share:g} %", nats, ", ".join(f"{100 * Specks.of_rate(rate).share:.2g}" for rate, _ in found))


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--model", default="conv-text", help="name or folder of a prior [%(default)s]")
    parser.add_argument("--pages", type=int, default=4, help="how many [%(default)s]")
    parser.add_argument("--seed", type=int, default=4100, help="of the pages and of their specks [%(default)s]")
    parser.add_argument("--flips", action="store_true", help="undo flips at the level that is found, too")
    parser.add_argument("--tuning", action="store_true", help="show by how much specks explain pages for training")
    asked = parser.parse_args()
    print(f"{asked.pages} pages, seed {asked.seed}; {machine_facts()}")
    if asked.tuning:
        tuning(asked.model, asked.pages, asked.seed)
        return
    tried, clean = candidates(asked.model, flips=asked.flips), pages(families_for_tests(), asked.pages, asked.seed)
    pages_cleaned(tried, clean, asked.seed)
    dotted(tried)


if __name__ == "__main__":
    main()
