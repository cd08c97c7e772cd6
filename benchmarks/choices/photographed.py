"""Pages photographed on a table: are they read, how well, and does the table stay as it was?

    RESTORE_DATA=DATA python benchmarks/choices/photographed.py

Middles of real pages, of sources that the prior of parts has learnt from in part, lie askew and in perspective on
tables that are dark, have a colour, or show a photograph that no prior has seen; the light falls off, and a JPEG file
keeps it. *Read* is how many are not returned as they came; *table* the share of the table that stays as it was, and
*sheet* that of the sheet which is read, further than 12 pixels from its edge. *Wrong* are the pixels of that which are
ink for paper, or the other way, *alone* those of the same sheet on a table as light as it, and *Otsu* those of its
threshold within the sheet. Pages that are not read
alone, as they are too faint, or grey for the most part, do not count.
"""

from __future__ import annotations

import colorsys
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.choices.page_parts import GROUPS, PHOTOGRAPHS, answered, compressed, stays, wrong
from benchmarks.measures.script import command_line, head, row
from restore.images.colours import LUMINANCE
from restore.images.tones import Tones, counted
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.scans.sheet import largest
from restore.learning.run.card import machine_facts
from training.data.photographs import photograph
from training.data.sources import real_pages

SHEET, PICTURE, FAR = 700, (900, 900), 12


def _dark(rng: np.random.Generator) -> np.ndarray:
    return np.full((*PICTURE, 3), rng.uniform(0.05, 0.4)) * rng.uniform(0.9, 1.1, 3)


def _coloured(rng: np.random.Generator) -> np.ndarray:
    hue = colorsys.hsv_to_rgb(rng.random(), rng.uniform(0.4, 0.9), rng.uniform(0.3, 0.9))
    return np.full((*PICTURE, 3), hue)


def _photograph(rng: np.random.Generator) -> np.ndarray:
    whole = Image.fromarray(photograph(str(rng.choice(PHOTOGRAPHS)))).resize(PICTURE)
    return np.asarray(whole)[..., None] / 255 * rng.uniform(0.4, 0.8) * (1, *rng.uniform(0.6, 1, 2))


TABLES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "dark": _dark,
    "coloured": _coloured,
    "photographs": _photograph,
}


def laid(layer: np.ndarray, corners: np.ndarray, empty: int) -> np.ndarray:
    """An image (h, w) of bytes as it lies in a picture, by the places of its corners, (4, 2)."""
    height, width = layer.shape
    x, y = corners.T
    u = np.array([0, width, width, 0])
    v = np.array([0, 0, height, height])
    zero = np.zeros(4)
    one = np.ones(4)
    rows = np.stack([x, y, one, zero, zero, zero, -u * x, -u * y], 1)
    columns = np.stack([zero, zero, zero, x, y, one, -v * x, -v * y], 1)
    warp = np.linalg.solve(np.concatenate([rows, columns]), np.concatenate([u, v]))
    sampled = Image.Resampling.BICUBIC
    image = Image.fromarray(layer).transform(
        PICTURE, Image.Transform.PERSPECTIVE, tuple(warp), sampled, fillcolor=empty
    )
    return np.asarray(image)


def corners_of(rng: np.random.Generator) -> np.ndarray:
    """Where the corners of a sheet lie, (4, 2): turned, moved and in perspective."""
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * rng.uniform(0.27, 0.42) * np.array(PICTURE)
    turn = rng.uniform(-0.35, 0.35)
    turned = square @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    return turned * rng.uniform(0.85, 1.1, (4, 1)) + np.array(PICTURE) / 2 + rng.uniform(-30, 30, 2)


def photographed(
    rng: np.random.Generator, grey: np.ndarray, paper: np.ndarray, table: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A page on a table and one on a table like itself, (H, W, 3); where the sheet lies, and its paper, (H, W)."""
    corners = corners_of(rng)
    level = int(np.quantile(grey, 0.9))
    sheet, white = laid(grey, corners, level) / 255, laid(np.uint8(255) * paper, corners, 255) > 127
    cover = laid(np.full(grey.shape, 255, np.uint8), corners, 0)[..., None] / 255
    tint = 1 - rng.uniform(0, 0.15, 3) * (0, 0.4, 1)
    light = np.linspace(1, rng.uniform(0.6, 1), PICTURE[0])[:, None, None]
    grain, quality = 0.01 * rng.standard_normal((*PICTURE, 1)), int(rng.integers(75, 96))
    alone = sheet[..., None] * tint
    both = (compressed(light * page + grain, quality) for page in (cover * alone + (1 - cover) * table, alone))
    return *both, cover[..., 0] > 0.5, white


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("RESTORE_DATA"))
    parser.add_argument("--pages", type=int, default=20, help="at most, on every kind of table [%(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="of tables and light [%(default)s]")
    chosen = parser.parse_args()
    if chosen.data is None:
        raise SystemExit("set RESTORE_DATA, or give --data: the folder that holds dibco/ and pages/")
    warnings.simplefilter("ignore")
    print(machine_facts())
    pages = [page for page in real_pages(chosen.data, groups=GROUPS) if min(page[2].shape) >= SHEET // 2]
    pages = pages[:: -(-len(pages) // chosen.pages)]
    engines = Engines(Options())
    head("table", "pages", "read", "table, %", "sheet, %", "wrong, %", "alone, %", "Otsu, %")
    for kind, table in TABLES.items():
        figures, count = list[tuple[float, ...]](), 0
        for number, (_, _, grey, paper) in enumerate(pages):
            rng = np.random.default_rng([chosen.seed, number, *kind.encode()])
            top, left = (max(0, (size - SHEET) // 2) for size in grey.shape)
            part = slice(top, top + SHEET), slice(left, left + SHEET)
            seen, alone, sheet, white = photographed(rng, grey[part], paper[part], table(rng))
            inside = largest((~sheet).astype(np.int8), FAR) == 0
            beside = largest(sheet.astype(np.int8), FAR) == 0
            answer, usual = answered(seen, engines), answered(alone, engines)
            count += not usual.unchanged
            if usual.unchanged or answer.unchanged:
                continue
            levels = np.rint(255 * (seen @ LUMINANCE)).astype(np.uint8)
            otsu = levels > Tones.of(counted(levels[inside])).threshold
            left_alone = stays(answer)
            figures.append(
                (
                    float(left_alone[beside].mean()),
                    float(1 - left_alone[inside].mean()),
                    wrong(answer, white, inside),
                    wrong(usual, white, inside),
                    float((otsu != white)[inside].mean()),
                )
            )
        row(kind, count, len(figures), *(f"{100 * value:.2f}" for value in np.mean(figures, 0)))


if __name__ == "__main__":
    main()
