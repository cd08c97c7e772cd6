"""Parts of a page that are no ink on paper: how much of them stays as it was, and how well the rest is read.

    RESTORE_DATA=DATA python benchmarks/choices/page_parts.py --prior runs/priors/conv-parts-two-groups

On the middles of real pages lie photographs, grey areas and screens of dots: pages and photographs that the prior of
parts has not learnt from. It is the one that `conv-parts`, which has learnt from all pages, goes on from. Stamps in a
colour are put on the same pages, whose paper and ink have a tint, as a JPEG file keeps them. `stays` is the share of a
part's pixels, or of a stamp's ink, that come back as they came; `lost` is the share of the page, further than 16 pixels
from it, that stays too though it is page. `wrong` are pixels of the page at that distance that are ink for paper or the
other way, with the part and without it. Pages with nothing else are counted at the end.
"""

from __future__ import annotations

import colorsys
import os
import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from benchmarks.measures.script import command_line, head, row
from restore.channels.damage import Damage, Observed
from restore.images.colours import LUMINANCE
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.restore import restore
from restore.inference.restored import Restored
from restore.learning.run.card import machine_facts
from training.data.parts import Part, area, screen
from training.data.photographs import photograph
from training.data.sources import real_pages

# Sources that it has not learnt from.
GROUPS = ("A", "C")
SIDE, FAR = 480, 16

# Photographs that it has not seen, by scikit-image.
PHOTOGRAPHS = ("astronaut.png", "camera.png", "chelsea.png", "coins.png")


def _photograph(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    whole = photograph(str(rng.choice(PHOTOGRAPHS))) / 255
    top, left = (int(rng.integers(size - length + 1)) for size, length in zip(whole.shape, shape, strict=True))
    return np.asarray(whole[top : top + shape[0], left : left + shape[1]])


# A page, (H, W) or in colours (H, W, 3), without a part and with it, and which pixels are the part's.
Pair = tuple[np.ndarray, np.ndarray, np.ndarray]


def _pasted(drawn: Part) -> Callable[[np.random.Generator, np.ndarray, tuple[slice, slice]], Pair]:
    """Lay a part on a page, as light as its paper at most."""

    def pair(rng: np.random.Generator, page: np.ndarray, place: tuple[slice, slice]) -> Pair:
        pasted, inside = page.copy(), np.zeros(page.shape, bool)
        inside[place] = True
        pasted[place] = np.quantile(page, 0.9) * drawn(rng, page[place].shape).clip(0, 1)
        return page, pasted, inside

    return pair


def _stamped(rng: np.random.Generator, page: np.ndarray, place: tuple[slice, slice]) -> Pair:
    """Put a stamp on a page in colours: an ellipse, a bar and strokes, through which its ink shows."""
    high, wide = page[place].shape
    sheet = Image.new("L", (4 * wide, 4 * high))
    draw, width = ImageDraw.Draw(sheet), int(rng.integers(10, 24))
    draw.ellipse((8, 8, 4 * wide - 8, 4 * high - 8), outline=255, width=width)
    draw.rectangle((0.8 * wide, 1.7 * high, 3.2 * wide, 2.3 * high), outline=255, width=width)
    for x in np.linspace(1.0, 3.0, 9) * wide:
        draw.line((x, 1.8 * high, x + rng.uniform(-0.1, 0.1) * wide, 2.2 * high), fill=255, width=width)
    cover = np.zeros(page.shape)
    cover[place] = rng.uniform(0.7, 1) * np.asarray(sheet.resize((wide, high), Image.Resampling.BOX)) / 255
    paper, ink = 1 - rng.uniform(0, 0.25, 3) * (0, 0.4, 1), rng.uniform(0, 0.15, 3)
    tinted = ink + page[..., None] * (paper - ink)
    colour = np.array(colorsys.hsv_to_rgb(rng.random(), rng.uniform(0.7, 1), rng.uniform(0.5, 0.9)))
    both = tinted, tinted * (1 - cover[..., None] * (1 - colour))
    quality = int(rng.integers(75, 96))
    plain, stamped = (compressed(each, quality) for each in both)
    return plain, stamped, cover > 0.5


def compressed(colours: np.ndarray, quality: int) -> np.ndarray:
    """Colours as a JPEG file keeps them."""
    file = BytesIO()
    Image.fromarray(np.rint(255 * colours.clip(0, 1)).astype(np.uint8)).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file)) / 255


KINDS: dict[str, Callable[[np.random.Generator, np.ndarray, tuple[slice, slice]], Pair]] = {
    "photographs": _pasted(_photograph),
    "grey areas": _pasted(area),
    "screens of dots": _pasted(screen),
    "coloured stamps": _stamped,
}


class Readers(Engines):
    """The usual priors, but for the one that tells the parts."""

    def __init__(self, prior: str) -> None:
        super().__init__(Options())
        self.parts = Engines(Options(model=prior)).open(prior)


def answered(page: np.ndarray, engines: Engines) -> Restored:
    seen = Observed(page, Damage()) if page.ndim == 2 else Observed(page @ LUMINANCE, Damage(), page)
    (answer,) = restore([seen], Options(), engines)
    return answer


def wrong(answer: Restored, truth: np.ndarray, where: np.ndarray) -> float:
    """The share of some pixels that are not what is true, of what was read."""
    return float(((answer.means > 0.5) != truth)[where].mean())


def stays(answer: Restored) -> np.ndarray:
    """Where a picture comes back as it came."""
    shape = answer.means.shape
    replaced = np.ones(shape, bool) if answer.replaced is None else answer.replaced
    return np.ones(shape, bool) if answer.unchanged else ~replaced


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("RESTORE_DATA"))
    parser.add_argument("--pages", type=int, default=30, help="at most [%(default)s]")
    parser.add_argument("--prior", default="conv-parts", help="that tells the parts; a name or a folder [%(default)s]")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS), help="[all]")
    chosen = parser.parse_args()
    if chosen.data is None:
        raise SystemExit("set RESTORE_DATA, or give --data: the folder that holds dibco/ and pages/")
    warnings.simplefilter("ignore")
    print(machine_facts())
    engines, pages = Readers(chosen.prior), list(real_pages(chosen.data, groups=GROUPS))
    pages = pages[:: -(-len(pages) // chosen.pages)]
    head("parts", "pages", "95 % stays", "stays, %", "lost, %", "wrong, %", "without it, %", "refused")
    alone = list[float]()
    for kind in chosen.only:
        figures, refused = list[tuple[float, float, float, float]](), 0
        for number, (_, _, grey, paper) in enumerate(pages):
            rng = np.random.default_rng([number, *kind.encode()])
            top, left = (max(0, (size - SIDE) // 2) for size in grey.shape)
            part = slice(top, top + SIDE), slice(left, left + SIDE)
            page, truth = grey[part] / 255, paper[part]
            high, wide = (int(rng.integers(110, 200)) for _ in range(2))
            if min(page.shape) < 220:
                continue
            y, x = (int(rng.integers(size - length)) for size, length in zip(page.shape, (high, wide), strict=True))
            near = np.zeros(page.shape, bool)
            near[max(0, y - FAR) : y + high + FAR, max(0, x - FAR) : x + wide + FAR] = True
            without, pasted, inside = KINDS[kind](rng, page, (slice(y, y + high), slice(x, x + wide)))
            plain, with_it = answered(without, engines), answered(pasted, engines)
            if kind == chosen.only[0]:
                alone.append(float(stays(plain).mean()) if not plain.unchanged else np.nan)
            if with_it.unchanged or plain.unchanged:
                refused += 1
                continue
            left_alone = stays(with_it)
            figures.append(
                (
                    float(left_alone[inside].mean()),
                    float(left_alone[~near].mean()),
                    wrong(with_it, truth, ~near),
                    wrong(plain, truth, ~near),
                )
            )
        values = np.array(figures)
        means = (f"{100 * value:.2f}" for value in values.mean(0))
        row(kind, len(values), f"{(values[:, 0] >= 0.95).mean():.0%}", *means, refused)
    lost = np.array(alone)
    print(
        f"\nOf {len(lost)} pages with nothing else {np.isnan(lost).sum()} come back as they came; "
        f"of {np.sum(lost > 0.005)} more than .5 % stays, of all {100 * np.nanmean(lost):.2f} %."
    )


if __name__ == "__main__":
    main()
