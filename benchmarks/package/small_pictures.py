"""Pictures of 28x28 pixels restored without options: digits, silhouettes and characters; wrong pixels in %, as a table.

    python benchmarks/package/small_pictures.py --pictures 60 --first 40

Priors of digits and of silhouettes know this size, priors of any size may suit a picture better. Nothing is told but
the mask of holes, whose pixels are scored. A picture that is refused counts as it is. Needs RESTORE_DATA with MNIST,
the silhouettes of Caltech-101 and Omniglot.
"""

from __future__ import annotations

import warnings

import numpy as np
from PIL import Image

from benchmarks.choices.families import FLIPS, counted, damaged, without_options, wrong_of_each
from benchmarks.measures.scoring import HOLES
from benchmarks.measures.script import command_line, head, row
from restore.data import load

SIDE = 28
SETS = ("mnist", "caltech101-silhouettes", "omniglot")

# Share of ink from which a pixel of a smaller picture is ink.
INK = 0.25


def pictures(name: str, first: int, count: int) -> list[np.ndarray]:
    """Test images of a set in black and white, made smaller if they are larger."""
    some = load(name, split="test").images[first : first + count] > 127
    small = (Image.fromarray(np.uint8(each) * 255).resize((SIDE, SIDE), Image.Resampling.BOX) for each in some)
    return [np.asarray(each) > 255 * INK for each in small]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--pictures", type=int, default=60, help="of each set [%(default)s]")
    parser.add_argument("--first", type=int, default=40, help="number of the first, and seed [%(default)s]")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    head("", "damage", "wrong, %", "restored with", left=("damage", "restored with"))
    for name in SETS:
        clean = pictures(name, asked.first, asked.pictures)
        for damage in ("0", *map(str, FLIPS), HOLES):
            seen = damaged(clean, damage, asked.first)
            found, priors = zip(*map(without_options, seen), strict=True)
            row(name, damage, f"{100 * np.mean(wrong_of_each(clean, seen, found)):.3f}", counted(priors))


if __name__ == "__main__":
    main()
