"""What tells pages from blank paper and from photographs: limits of `restore/inference/decision/rules.py` rest on it.

    RESTORE_DATA=DATA python benchmarks/choices/page_limits.py

Pages are the middles, of 360 pixels, of all real pages (`training/data/sources.py`), counted by whether `conv-scan` has
learnt from their source; whole pages, of up to 1,500 pixels, are those of the years. Blank parts are squares of 224
pixels of the pages in which no ink is, if there are any. Photographs are those of scikit-image, in full and at a half
and a third of their size, their middle and corners. The rows are pages that are refused and photographs that are read,
with their facts; the last table counts all.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from skimage import color, data

from benchmarks.measures.script import command_line, head, row
from benchmarks.peers.real_pages import YEARS, pages
from restore.channels.damage import Damage, Observed
from restore.inference.decision.rules import objection
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.scans.reading import read
from restore.status import Status
from training.data.sources import GROUPS, real_pages

SIDE, WHOLE, BLANK = 360, 1500, 224

# The share of ink from which a blank part is read as one with ink.
INKED = 0.002

PHOTOGRAPHS = (
    "camera", "coins", "moon", "clock", "brick", "grass", "gravel", "astronaut", "coffee", "chelsea", "rocket",
    "retina", "cell", "hubble_deep_field", "immunohistochemistry", "microaneurysms",
)  # fmt: skip


def photographs() -> Iterator[tuple[str, np.ndarray]]:
    """Parts of photographs, grey levels in [0, 1], with their names."""
    for name in PHOTOGRAPHS:
        image = getattr(data, name)() / 255
        grey = color.rgb2gray(image[..., :3]) if image.ndim == 3 else image
        for step in (1, 2, 3):
            part = grey[::step, ::step]
            if min(part.shape) < SIDE // 2:
                continue
            far = [max(0, size - SIDE) for size in part.shape]
            corners = {(0, 0), (far[0], far[1]), (0, far[1]), (far[0] // 2, far[1] // 2)}
            for top, left in sorted(corners):
                yield f"{name} / {step}, from {top}, {left}", part[top : top + SIDE, left : left + SIDE]


def blanks(data: Path) -> Iterator[tuple[str, np.ndarray]]:
    """A square of each page in which there is no ink, at random, of those that have one."""
    rng = np.random.default_rng(0)
    for source, name, grey, paper in real_pages(data):
        if min(grey.shape) > BLANK:
            ink = sliding_window_view(np.pad((~paper).cumsum(0).cumsum(1), ((1, 0), (1, 0))), (BLANK + 1, BLANK + 1))
            corners = ink[..., 0, 0] + ink[..., -1, -1] - ink[..., 0, -1] - ink[..., -1, 0]
            empty = np.argwhere(corners == 0)
            if len(empty):
                top, left = empty[rng.integers(len(empty))]
                yield f"{source}/{name}", grey[top : top + BLANK, left : left + BLANK] / 255


def middles(data: Path, sources: Collection[str], side: int) -> Iterator[tuple[str, np.ndarray]]:
    return ((name, grey / 255) for name, grey, _ in pages(data, list(sources), side))


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("RESTORE_DATA"))
    chosen = parser.parse_args()
    if chosen.data is None:
        raise SystemExit("set RESTORE_DATA, or give --data: the folder that holds dibco/ and pages/")
    engines = Engines(Options())
    others = [source for group in GROUPS.values() for source in group if source not in YEARS]
    kinds = {
        "page of a source learnt from": middles(chosen.data, YEARS, SIDE),
        "page of another source": middles(chosen.data, others, SIDE),
        "whole page": middles(chosen.data, YEARS, WHOLE),
        "blank part": blanks(chosen.data),
        "photograph": photographs(),
    }
    head("", "page", "false ink", "left", "answer", left=("answer",))
    counts = dict[str, tuple[int, int, int, int]]()
    for kind, pictures in kinds.items():
        total, inked, reasons = 0, 0, Counter[Status]()
        for name, picture in pictures:
            reading = read(Observed(picture, Damage("auto")), None, engines, None, lambda share: None, careful=True)
            why = objection(reading.facts) or (Status.NOT_INK if reading.sheet is None else None)
            total += 1
            reasons.update([why] if why else [])
            inked += bool(not why and reading.page is not None and (reading.page.means[0] < 0.5).mean() > INKED)
            if (kind not in ("blank part", "photograph") and why) or (kind == "photograph" and not why):
                facts = reading.facts
                figures = (f"{value:.4f}" for value in (facts.page, facts.false_ink, facts.left))
                row(f"{kind}, {name}", *figures, "refused" if why else "read")
        counts[kind] = total, reasons[Status.FAINT], sum(reasons.values()), inked
    head("", "pictures", "refused for false ink", "refused", f"read with more than {INKED:.1%} ink")
    for kind, figures in counts.items():
        row(kind, *map(str, figures))


if __name__ == "__main__":
    main()
