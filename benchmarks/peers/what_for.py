"""Make the pictures and the table of docs/what-for.md, in some minutes.

    python benchmarks/peers/what_for.py [--only NAME ...]

Each picture of `pictures/ten.py` is damaged and given to the very command that the page shows. Beside it stand the
better of two median filters, and the best of other filters; they are told the level of the noise, and their settings
are those that leave least wrong of this very picture.
"""

from __future__ import annotations

import itertools
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from scipy.ndimage import gaussian_filter, median_filter
from skimage.filters import threshold_otsu, threshold_sauvola

from benchmarks.filters.binary import FILTERS, MORE, Candidate, Seen, filled
from benchmarks.filters.binary import median as majority
from benchmarks.filters.denoisers import DENOISERS, Denoiser, tuned
from benchmarks.measures.script import command_line, head, row
from benchmarks.pictures.ten import EXAMPLES, FLIPS, REFUSED, SIGMA, Example, example
from restore.channels import Damage

PICTURES = Path(__file__).parents[2] / "docs" / "what-for"
SIDES = (3, 5)

# Settings of Sauvola's threshold: standard deviations of a Gaussian before it, sides of its window, and k.
WIDTHS = (0.5, 0.75, 1.0, 1.25, 1.5)
WINDOWS = (9, 15, 25, 41, 75, 121)
STRENGTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.3)

# Of the panels of a picture, in pixels.
WIDTH, GAP = 272, 8

# Grey levels of what lies between panels, and of holes.
BETWEEN, TO_FILL = 150, 110

# What a filter makes of a picture, for each of its settings, by its name.
Found = dict[str, list[np.ndarray]]


def save(values: np.ndarray, path: Path) -> None:
    """Write values in [0, 1] as grey levels; integers as they are."""
    whole = values if values.dtype == np.uint8 else np.rint(255 * values.astype(np.float64)).astype(np.uint8)
    Image.fromarray(whole).save(path, optimize=True)


def run(command: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run a `restore` command as it is shown, in a folder."""
    words = [sys.executable, "-m", "restore", *shlex.split(command)[1:], *more]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def restored(name: str, shown: Example, folder: Path) -> tuple[np.ndarray, str]:
    """What the command makes of a picture, in [0, 1], and the prior that it chose.

    Raises:
        ValueError: if it refuses the picture.
    """
    save(shown.seen, folder / f"{name}.png")
    if shown.hidden is not None:
        save(shown.hidden, folder / "holes.png")
    done = run(shown.command, folder, "--json", "--overwrite")
    if done.returncode:
        raise ValueError(done.stderr)
    facts = json.loads(done.stdout)
    with Image.open(folder / facts["output"]) as image:
        return np.asarray(image.convert("L")) / 255, facts["model"]


def sauvola(grey: np.ndarray, width: float, window: int, k: float) -> np.ndarray:
    """What is paper by Sauvola's threshold, after a Gaussian."""
    smooth = gaussian_filter(grey, width)
    return np.asarray(smooth >= threshold_sauvola(smooth, window, k, r=0.5))


def medians(shown: Example) -> list[np.ndarray]:
    if shown.hidden is not None or shown.flipped:
        seen = as_seen(shown)
        repair = majority if shown.hidden is None else filled
        return [repair(seen, side) for side in SIDES]
    smooth = [median_filter(shown.seen, side) for side in SIDES]
    return smooth if shown.grey else [each > threshold_otsu(each) for each in smooth]


def others(shown: Example) -> Found:
    """Filters that are tuned: general ones for black and white, Sauvola for scans, denoisers for photographs."""
    if shown.grey:
        seen, damage = torch.from_numpy(shown.seen), Damage(sigma=SIGMA)
        part = torch.from_numpy(shown.truth[shown.part])
        best = {name: tuned(name, part.reshape(1, -1), SIGMA, tuple(part.shape), seed=0) for name in DENOISERS}
        whole = {name: Denoiser(name, tuple(seen.shape), each.parameters) for name, each in best.items()}
        return {name: [each.restore(seen.reshape(1, -1), damage).view_as(seen).numpy()] for name, each in whole.items()}
    if shown.hidden is None and not shown.flipped:
        settings = itertools.product(WIDTHS, WINDOWS, STRENGTHS)
        return {"Sauvola after smoothing": [sauvola(shown.seen, *setting) for setting in settings]}
    seen = as_seen(shown)

    def able(each: Candidate) -> bool:
        return each.flips if shown.hidden is None else each.holes

    left_out = ("as it is", "median", "median from the rim", "BM3D")
    candidates = {name: each for name, each in (FILTERS | MORE).items() if name not in left_out and able(each)}
    return {name: [each.repair(seen, one) for one in each.settings] for name, each in candidates.items()}


def as_seen(shown: Example) -> Seen:
    hidden = np.zeros(shown.truth.shape, bool) if shown.hidden is None else shown.hidden
    return Seen(shown.seen > 0.5, FLIPS if shown.hidden is None else 0.0, hidden)


def loss_of(shown: Example) -> Callable[[np.ndarray], float]:
    """The share of wrong pixels, of those in holes if there are any; of a photograph, minus the PSNR in dB."""

    def loss(found: np.ndarray) -> float:
        if shown.grey:
            return float(10 * np.log10(np.mean((found.clip(0, 1) - shown.truth) ** 2)))
        return float(((found > 0.5) != (shown.truth > 0.5))[... if shown.hidden is None else shown.hidden].mean())

    return loss


def sheet(shown: Example, *found: np.ndarray) -> Image.Image:
    """What came in and what came out, a part of it, enlarged without smoothing, with grey between."""
    before = np.where(shown.hidden, TO_FILL / 255, shown.seen) if shown.hidden is not None else shown.seen
    panels = [np.rint(255 * each[shown.part].astype(np.float64)).astype(np.uint8) for each in (before, *found)]
    height, width = panels[0].shape
    factor = max(1, WIDTH // width)
    picture = Image.new("L", (len(panels) * (factor * width + GAP) - GAP, factor * height), BETWEEN)
    for number, panel in enumerate(panels):
        enlarged = Image.fromarray(panel).resize((factor * width, factor * height), Image.Resampling.NEAREST)
        picture.paste(enlarged, (number * (factor * width + GAP), 0))
    return picture


def shown_as(shown: Example, loss: float) -> str:
    return f"{-loss:.1f} dB" if shown.grey else f"{100 * loss:.2f} %"


def cells(name: str, folder: Path, pictures: Path | None = None) -> tuple[str, ...]:
    """The row of a picture in the table; its sheet is written into a folder, if one is given."""
    shown = example(name)
    loss = loss_of(shown)
    ours, prior = restored(name, shown, folder)
    median = min(medians(shown), key=loss)
    best = {other: min(map(loss, found)) for other, found in others(shown).items()}
    other = min(best, key=lambda each: best[each])
    if pictures:
        sheet(shown, ours, median).save(pictures / f"{name}.png", optimize=True)
    before = shown_as(shown, loss(shown.seen))
    if shown.hidden is not None:
        before = "hidden"
    elif not (shown.grey or shown.flipped):
        before = shown_as(shown, loss(shown.seen > threshold_otsu(shown.seen)))
    after = [shown_as(shown, each) for each in (loss(ours), loss(median))]
    best_other = f"{shown_as(shown, best[other])}, {other}"
    return shown.title, f"`{shown.command}`", f"`{prior}`", before, *after, best_other


def refusal(name: str, folder: Path) -> str:
    """The command, and the line that says why the picture comes back as it came."""
    values, command = REFUSED[name](name)
    save(values, folder / f"{name}.png")
    done = run(command, folder)
    lines = [line for line in done.stderr.splitlines() if "as it came, not sure" in line]
    assert done.returncode == 0 and len(lines) == 1, command
    return f"$ {command}\n{lines[0]}"


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--only", nargs="+", default=[*EXAMPLES, *REFUSED], choices=[*EXAMPLES, *REFUSED])
    parser.add_argument("--output", type=Path, default=PICTURES, help="folder for the pictures [docs/what-for]")
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    columns = ("picture", "command", "prior chosen", "damaged", "restored", "median", "best other filter")
    head(*columns, left=columns[:3])
    for name in asked.only:
        with tempfile.TemporaryDirectory() as folder:
            if name in EXAMPLES:
                row(*cells(name, Path(folder), asked.output))
            else:
                print(f"\n{refusal(name, Path(folder))}", flush=True)


if __name__ == "__main__":
    main()
