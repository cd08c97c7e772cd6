"""What tells pages from photographs, on both, as a table: limits of `restore/inference/decision/rules.py` rest on it.

    RESTORE_DATA=DATA python benchmarks/choices/page_limits.py

Pages are those of `real_pages.py`, their middle of 360 pixels, and of up to 1,500; photographs are those of
scikit-image, in full and at a half and a third of their size, their middle and corners. `left` has a largest value for
a page; the rows are those that are on the wrong side of a limit, and the counts are of all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from skimage import color, data

from benchmarks.measures.script import command_line, head, row
from benchmarks.peers.real_pages import YEARS, pages
from restore.channels.damage import Damage, Observed
from restore.inference.decision.rules import limit_of, objection
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.scans.reading import Sample, read
from restore.status import Status

SIDE, WHOLE = 360, 1500

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


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("RESTORE_DATA"))
    chosen = parser.parse_args()
    if chosen.data is None:
        raise SystemExit("set RESTORE_DATA, or give --data: the folder that holds dibco/")
    engines = Engines(Options())
    head("", "page", "left", "answer", left=("answer",))
    middles, wholes = (
        ((name, grey / 255) for name, grey, _ in pages(chosen.data, list(YEARS), side)) for side in (SIDE, WHOLE)
    )
    counts = []
    for kind, pictures in (("page", middles), ("whole page", wholes), ("photograph", photographs())):
        refused = total = light = 0
        for name, picture in pictures:
            observed, light_ink = Observed(picture, Damage("auto")), Sample.of(Observed(picture, Damage())).light_ink
            reading = read(observed, None, engines, None, lambda share: None, careful=True)
            why = objection(reading.facts) or (Status.NOT_INK if reading.sheet is None else None)
            total, refused, light = total + 1, refused + (why is not None), light + light_ink
            if (why is not None) == (kind != "photograph"):
                figures = (f"{value:.4f}" for value in (reading.facts.page, reading.facts.left))
                row(f"{kind} {name}", *figures, "refused" if why else "read")
        counts.append(f"{refused} of {total} {kind}s are refused, of {light} ink is light, if they are called pages")
    print(f"\nLimit: {limit_of(Status.NOT_INK, 'left')}; {', '.join(counts)}.")


if __name__ == "__main__":
    main()
